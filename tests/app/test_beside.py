"""Counters, metrics and logs beside captures, and alone."""

import gzip
from json import loads

import pytest
from click.testing import CliRunner

from skewscope.app.beside import Beside
from skewscope.app.cli import main
from skewscope.app.pipeline import read_all, run
from skewscope.app.render import json
from skewscope.core.directory import Directory
from skewscope.core.scenario import Scenario, Workload
from skewscope.lab.synth import write

ENGINE = 'vllm:num_requests_running{model_name="m"} %d\nvllm:time_to_first_token_seconds_sum 3\n'
TTFT = "vllm:time_to_first_token_seconds_count 2\nmade_up 1\n# TYPE made_up gauge\n"
SECOND_NS = 1_000_000_000


@pytest.fixture(scope="module")
def captures(tmp_path_factory):
    made = tmp_path_factory.mktemp("run")
    write(Scenario("short", "healthy", duration_s=1.0, seed=4, workload=Workload(own_s=0.01)), made)
    return sorted(made.glob("*.pcap"))


def scrapes(folder, times, endpoint="10.0.0.3:8000"):
    where = folder / "metrics" / endpoint
    where.mkdir(parents=True, exist_ok=True)
    out = []
    for i, second in enumerate(times):
        out.append(where / f"{second}.prom.gz")
        out[-1].write_bytes(gzip.compress((ENGINE % i + TTFT).encode()))
    return out


def test_scrapes_of_a_folder_are_one_input_with_the_last_values(tmp_path):
    files = scrapes(tmp_path, (1_700_000_030, 1_700_000_000, 1_700_000_015))
    report = run(files, explain=True)
    (one,) = report.inputs
    assert (one.path, one.files, one.kind) == (str(files[0].parent), 3, "prometheus text")
    assert (one.first_ns, one.last_ns) == (1_700_000_000 * SECOND_NS, 1_700_000_030 * SECOND_NS)
    assert one.rows == {"metrics": 9}
    assert one.entities == 1
    assert one.unmapped == {"made_up": 3}
    told = {r.name: (r.entity, r.value, r.unit, r.count) for r in one.readings}
    assert told == {
        "engine.requests_running": ("10.0.0.3:8000", 0.0, "requests", None),
        "engine.ttft_s": ("10.0.0.3:8000", 1.5, "s", 2),
    }
    assert json.to_dict(report)["inputs"][0]["readings"][0]["value"] == 0.0


def test_a_diagnosis_does_not_carry_the_readings(tmp_path):
    (one,) = run(scrapes(tmp_path, (1_700_000_000,))).inputs
    assert one.readings == []
    assert one.names["engine.ttft_s"] == 2


def test_what_stands_beside_captures_does_not_change_what_they_say(captures, tmp_path):
    alone = run(captures)
    first_s = alone.span_ns[0] // SECOND_NS
    files = scrapes(tmp_path, range(first_s - 40, first_s + 60, 7))
    joined = run([*captures, *files])
    assert joined.span_ns == alone.span_ns
    assert json.to_dict(joined)["incidents"] == json.to_dict(alone)["incidents"]
    assert [i.path for i in joined.inputs] == [*map(str, captures), str(files[0].parent)]
    assert joined.inputs[-1].rows == {"metrics": 3 * len(files)}
    assert joined.series == alone.series


def test_the_readings_are_in_the_tables_at_their_time(captures, tmp_path):
    first_s = run(captures).span_ns[0] // SECOND_NS
    tables, directory = read_all([*captures, *scrapes(tmp_path, (first_s - 30, first_s - 3000, first_s))])
    ts = tables["metrics"]["ts_ns"].tolist()
    assert ts == [(first_s - 30) * SECOND_NS] * 3 + [first_s * SECOND_NS] * 3  # 3000 s ago is too long ago
    assert {directory.entities[e] for e in tables["metrics"]["entity"].tolist()} == {"10.0.0.3:8000"}
    assert len(tables["packets"]) > 0


def test_readings_of_another_day_are_told_of(captures, tmp_path):
    report = run([*captures, *scrapes(tmp_path, (1_600_000_000,))])
    assert "1600000000.prom.gz shares no time with the captures: it is not joined to them." in report.notes


def test_what_nobody_reads_is_one_line(tmp_path):
    other = tmp_path / "notes.txt"
    other.write_text("hello\nworld\n")
    (one,) = run([other]).inputs
    assert (one.kind, one.notes) == ("unreadable", ["not a format that skewscope reads"])


def test_a_file_that_vanishes_is_told_of(tmp_path):
    beside = Beside(Directory())
    (file,) = scrapes(tmp_path, (1_700_000_000,))
    assert beside.open(file) == ""
    file.unlink()
    (tap,) = beside.taps()
    assert list(tap) == []
    (one,) = beside.inputs().values()
    assert one.notes[0].startswith("cannot read")


def test_progress_counts_files_as_they_are_read(tmp_path):
    told = []
    files = scrapes(tmp_path, (1_700_000_000, 1_700_000_015))
    run(files, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (sum(f.stat().st_size for f in files),) * 2


def test_inputs_that_nobody_knows_are_a_line_and_a_status(tmp_path):
    other = tmp_path / "notes.txt"
    other.write_text("hello\nworld\n")
    alone = CliRunner().invoke(main, ["inspect", str(other)])
    assert alone.exit_code == 3
    assert f"{other}: not a format that skewscope reads" in alone.output.splitlines()[-1]
    files = [str(f) for f in scrapes(tmp_path, (1_700_000_000,))]
    mixed = CliRunner().invoke(main, ["inspect", str(other), *files])
    assert mixed.exit_code == 1
    assert "engine.ttft_s" in mixed.output


def test_a_folder_is_searched_for_all_that_can_be_read(captures, tmp_path):
    scrapes(tmp_path, (1_700_000_000, 1_700_000_015))
    (tmp_path / "taps").mkdir()
    (tmp_path / "taps" / "n1.pcap").write_bytes(captures[0].read_bytes())
    (tmp_path / "truth.toml").write_text("schema = 1\n")
    (tmp_path / "README.md").write_text("# A case\n")
    result = CliRunner().invoke(main, ["inspect", str(tmp_path), "--json"])
    assert result.exit_code == 0
    told = loads(result.output[result.output.index("{") :])["inputs"]
    assert sorted((i["kind"], i["files"]) for i in told) == [("pcap", 1), ("prometheus text", 2)]
