"""Conversion of the older form of recordings."""

import json
import os
from pathlib import Path

import pytest

from skewscope.lab.bed.truth import read
from skewscope.lab.import_testbed import RecordingError, convert, translate

SAID = {
    "inject_start_s": 1.5, "inject_end_s": 3.5, "first_packet_epoch": 1796046428.188539, "machine_busy": 0.09,
    "victim": "rank 2", "how": "a quota", "topology": "TP4",
}  # fmt: skip
WANT = {
    "conditions": ["c20", "c17"],
    "culprit": "10.0.0.1",
    "cause_right": ["host_cpu"],
    "secondary": ["c06"],
}


def folder(root, name="throttle", said=SAID, expected="[throttle]\nconditions = []\n"):
    (root / name).mkdir(parents=True)
    (root / name / "truth.json").write_text(json.dumps(said))
    (root / name / "n0.pcap.gz").write_bytes(b"capture")
    (root / name / "n0.jsonl.gz").write_bytes(b"log")
    (root / "expected.toml").write_text(expected)


def test_truth_is_translated():
    fault = translate("x", SAID, WANT, ["n0"]).faults[0]
    assert (fault.condition, fault.also_right, fault.culprit_kind) == ("c20", ("c17",), "rank")
    assert (fault.onset_s, fault.end_s) == (1.5, 3.5)
    assert fault.visible_from == ("tap:n0",)


def test_a_folder_becomes_a_case_with_its_bytes_unchanged(tmp_path):
    folder(tmp_path / "old")
    assert convert(tmp_path / "old", tmp_path / "new") == ["throttle"]
    case = tmp_path / "new" / "throttle"
    assert (case / "taps" / "n0.pcap.gz").read_bytes() == b"capture"
    assert (case / "logs" / "n0.jsonl.gz").read_bytes() == b"log"
    truth = read((case / "truth.toml").read_text())
    assert truth.first_sample_ns == pytest.approx(1796046428188539000, abs=200)
    assert not truth.faults


def test_a_case_that_is_there_is_left_alone(tmp_path):
    folder(tmp_path / "old")
    convert(tmp_path / "old", tmp_path / "new")
    (tmp_path / "new" / "throttle" / "taps" / "n0.pcap.gz").write_bytes(b"mine")
    convert(tmp_path / "old", tmp_path / "new")
    assert (tmp_path / "new" / "throttle" / "taps" / "n0.pcap.gz").read_bytes() == b"mine"


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(RecordingError, match=r"expected\.toml"):
        convert(tmp_path, tmp_path / "new")
    folder(tmp_path / "old", expected="[other]\nconditions = []\n")
    with pytest.raises(RecordingError, match=r"other: no truth\.json"):
        convert(tmp_path / "old", tmp_path / "new")
    with pytest.raises(RecordingError, match="culprit"):
        translate("x", SAID, {k: v for k, v in WANT.items() if k != "culprit"}, [])


@pytest.mark.samples
def test_all_recorded_faults_convert(tmp_path):
    root = Path(os.environ.get("SKEWSCOPE_SAMPLES", "")) / "testbed"
    if "SKEWSCOPE_SAMPLES" not in os.environ or not root.is_dir():
        pytest.skip("SKEWSCOPE_SAMPLES names no folder with testbed/")
    names = convert(root, tmp_path)
    truths = [read((tmp_path / n / "truth.toml").read_text()) for n in names]
    assert len(names) == 22
    assert sum(bool(t.faults) for t in truths) == 20
    assert all(list((tmp_path / n / "taps").iterdir()) for n in names)
