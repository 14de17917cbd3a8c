"""`skewscope inspect`."""

import json
from dataclasses import replace

from click.testing import CliRunner

from skewscope.app.cli import main
from skewscope.lab.synth.roce_ring import Ring, RingFault, write
from tests.app import example_report


def test_text_json_and_redaction(fake_pipeline, capture):
    fake_pipeline(lambda paths, progress=None, stop=None, first=None: example_report.straggler())
    text = CliRunner().invoke(main, ["inspect", str(capture)])
    assert text.exit_code == 0
    assert "Collective groups" in text.stdout
    data = CliRunner().invoke(main, ["inspect", str(capture), "--json", "--redact"])
    assert json.loads(data.stdout)["hosts"]
    assert "10.77." not in data.stdout


RING = Ring(ranks=2, steps=2, collectives=2, channels=1, message_bytes=20_000, snap_length=262_144)
MESSAGES = 2 * 2 * 2
"""In each direction: steps x collectives x rounds; each of 10,000 bytes, so three packets."""


def inspected(folder, *options):
    result = CliRunner().invoke(main, ["inspect", str(folder), "--json", *options])
    assert result.exit_code == 0
    return {i["path"].rsplit("/", 1)[-1]: i["roce"] for i in json.loads(result.stdout)["inputs"]}


def test_roce_is_counted(tmp_path):
    write(RING, tmp_path)
    counts = inspected(tmp_path)["h0.pcap"]
    assert counts["writes"] == 2 * MESSAGES * (3 + 1)
    assert counts["acks"] > 0
    assert (counts["queue_pairs"], counts["naks"], counts["cnps"], counts["not_roce"]) == (4, 0, 0, 0)
    assert "icrc_right" not in counts
    text = CliRunner().invoke(main, ["inspect", str(tmp_path)]).stdout
    assert "RoCE and InfiniBand" in text
    assert "64 writes" in text
    assert "invariant CRC" not in text


def test_faults_of_roce_are_counted(tmp_path):
    faults = (RingFault("rnr", 0, 0.3), RingFault("congestion", 1, 0.5))
    write(replace(RING, faults=faults), tmp_path)
    counts = inspected(tmp_path)
    assert counts["h0.pcap"]["rnr_naks"] > 0
    assert counts["h1.pcap"]["marked"] > counts["h0.pcap"].get("marked", 0)
    assert counts["h1.pcap"]["cnps"] > 0


def test_invariant_crcs_are_checked_on_demand(tmp_path):
    write(RING, tmp_path)
    path = tmp_path / "h1.pcap"
    data = bytearray(path.read_bytes())
    data[24 + 16 + 60] ^= 1  # in the payload or the headers of the first frame
    path.write_bytes(data)
    counts = inspected(tmp_path, "--icrc")
    total = counts["h1.pcap"]["packets"]
    assert (counts["h1.pcap"]["icrc_right"], counts["h1.pcap"]["icrc_wrong"]) == (total - 1, 1)
    assert counts["h0.pcap"]["icrc_wrong"] == counts["h0.pcap"]["icrc_unknown"] == 0
    text = CliRunner().invoke(main, ["inspect", "--icrc", str(path)]).stdout
    assert f"invariant CRC: {total - 1} right, 1 wrong, 0 cut off" in text


def test_invariant_crcs_of_cut_frames_are_unknown(tmp_path):
    write(replace(RING, snap_length=64), tmp_path)
    counts = inspected(tmp_path, "--icrc")["h0.pcap"]
    assert (
        counts["icrc_unknown"]
        == counts["packets"] - counts["icrc_right"]
        > counts["acks"]
        == counts["icrc_right"]
    )
    assert counts["cut"] > 0
