"""The composition: from files to a report, with damaged files, an interrupt and progress."""

import contextlib
import struct
import threading

import numpy as np
import pytest

from bench import flood, mirror
from skewscope.app import pipeline
from skewscope.app.pipeline import run, tables
from skewscope.app.render import json
from skewscope.core.scenario import Scenario, Workload
from skewscope.lab.synth import write
from skewscope.sources.captures import CaptureError
from skewscope.wire import build
from skewscope.wire.pcapng_write import PcapngWriter


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("run")
    write(Scenario("short", "healthy", duration_s=1.0, seed=4, workload=Workload(own_s=0.01)), made)
    return made


@pytest.fixture(scope="module")
def report(folder):
    return run(sorted(folder.glob("*.pcap")))


def test_a_healthy_run_has_no_incident(report):
    assert report.incidents == []
    assert not report.interrupted
    assert report.span_ns[1] - report.span_ns[0] == pytest.approx(1e9, rel=0.3)


def test_every_file_is_told_of(report, folder):
    files = sorted(folder.glob("*.pcap"))
    assert [i.path for i in report.inputs] == [str(f) for f in files]
    for one in report.inputs:
        assert (one.kind, one.link_type) == ("pcap", 1)
        assert one.packets > 0
        assert report.span_ns[0] <= one.first_ns <= one.last_ns <= report.span_ns[1]


def test_structure_and_series_are_learned(report):
    (group,) = report.groups
    assert len(group.members) == 4
    assert {"client", "gateway", "engine"} <= {r for h in report.hosts for r in h.roles}
    assert report.edges
    assert report.lanes
    assert report.streams
    assert {s.scope for s in report.series} >= {"endpoint", "group", "member"}
    assert all(len(s.ts_ns) == len(s.values) for s in report.series)


def test_bad_files_are_inputs_with_a_reason(folder, tmp_path):
    bad = tmp_path / "notes.pcap"
    bad.write_bytes(b"these are notes, not packets at all")
    files = sorted(folder.glob("*.pcap"))
    made = run([bad, *files, tmp_path])
    kinds = {i.path: (i.kind, i.notes) for i in made.inputs}
    assert kinds[str(bad)] == ("unreadable", ["not a capture file (no pcap magic number)"])
    assert kinds[str(tmp_path)] == ("unreadable", ["cannot read: Is a directory"])
    assert len(made.groups) == 1


def test_nothing_readable_is_an_empty_report(tmp_path):
    bad = tmp_path / "a.pcap"
    bad.write_bytes(b"")
    made = run([bad])
    assert [(i.kind, i.notes) for i in made.inputs] == [("unreadable", ["empty file"])]
    assert (made.incidents, made.span_ns, made.groups) == ([], (0, 0), [])
    assert made.no_data


def test_progress_grows_to_the_whole(folder):
    told = []
    files = sorted(folder.glob("*.pcap"))
    run(files, progress=lambda done, total: told.append((done, total)))
    assert [d for d, _ in told] == sorted(d for d, _ in told)
    assert told[-1][0] == told[-1][1] == sum(f.stat().st_size for f in files)


def test_a_stop_ends_the_reading_and_the_report_says_so(folder):
    made = run(sorted(folder.glob("*.pcap")), stop=lambda: True)
    assert made.interrupted


def test_reading_ahead_changes_nothing(folder, report, monkeypatch):
    """Taps that share one directory of ids give the same ids and report, whichever thread is faster."""
    files = sorted(folder.glob("*.pcap"))
    monkeypatch.setattr(pipeline, "Ahead", lambda source, depth: contextlib.nullcontext(source))
    in_turn = json.dumps(run(files))
    monkeypatch.undo()
    for depth in (1, 64):
        monkeypatch.setattr(pipeline, "DEPTH", depth)
        assert json.dumps(run(files)) == in_turn
    assert json.dumps(report) == in_turn


def test_the_first_incident_is_told_before_the_end(tmp_path):
    mirror.write(tmp_path / "long.pcap", copies=1, repeats=4)
    told = []
    made = run([tmp_path / "long.pcap"], first=lambda incident, share: told.append((incident, share)))
    ((incident, share),) = told
    assert incident.condition in {f.condition for i in made.incidents for f in i.findings}
    assert 0.0 < share < 1.0
    assert incident.detected_ns < made.span_ns[0] + 0.5 * (made.span_ns[1] - made.span_ns[0])


def test_an_error_while_reading_is_raised_and_leaves_no_thread(folder, monkeypatch):
    def broken(self):
        raise ArithmeticError("a defect")
        yield

    monkeypatch.setattr(pipeline.Capture, "batches", broken)
    with pytest.raises(ArithmeticError, match="a defect"):
        run(sorted(folder.glob("*.pcap")))
    assert [t for t in threading.enumerate() if t.name == "skewscope-reader"] == []


def test_the_order_of_files_does_not_matter(folder, report):
    again = run(sorted(folder.glob("*.pcap"), reverse=True))
    assert again.span_ns == report.span_ns
    assert sorted(g.members for g in again.groups) == sorted(g.members for g in report.groups)
    assert [(i.condition, i.onset_ns) for i in again.incidents] == [
        (i.condition, i.onset_ns) for i in report.incidents
    ]


def test_whole_tables(folder, tmp_path):
    files = sorted(folder.glob("*.pcap"))
    made = tables(files)
    assert {"packets", "messages", "http"} <= set(made)
    assert len(made["packets"]) > 1_000
    assert np.all(np.diff(made["packets"]["ts_ns"]) >= 0)
    with pytest.raises(CaptureError, match="cannot read"):
        tables([*files, tmp_path])


def _records(path):
    """Yield (time in ns, frame, length on the wire) of a capture that the simulator wrote."""
    data, at = path.read_bytes(), 24
    while at < len(data):
        second, ns, kept, size = struct.unpack_from("<IIII", data, at)
        yield second * 10**9 + ns, data[at + 16 : at + 16 + kept], size
        at += 16 + kept


def test_captures_merged_into_one_file_are_read_as_the_several_that_they_were(folder, report, tmp_path):
    writer, rows = PcapngWriter(), []
    data = writer.header()
    for k, file in enumerate(sorted(folder.glob("*.pcap"))):
        data += writer.interface(file.stem)
        rows += [(ts, k, frame, size) for ts, frame, size in _records(file)]
    rows.sort(key=lambda r: r[0])
    path = tmp_path / "merged.pcapng"
    path.write_bytes(data + b"".join(writer.packet(ts, frame, size, k) for ts, k, frame, size in rows))
    made = run([path])
    assert [(g.members, g.rounds) for g in made.groups] == [(g.members, g.rounds) for g in report.groups]
    assert {h.address for h in made.hosts if h.tap} == {h.address for h in report.hosts if h.tap}
    assert made.incidents == []
    (one,) = made.inputs
    assert (one.kind, one.packets, one.host) == ("pcapng", len(rows), "")
    assert one.notes[0].startswith("5 interfaces, each a tap of its own: lg (")


def test_captures_whose_clocks_differ_are_named(folder, tmp_path):
    files = sorted(folder.glob("*.pcap"))
    off = tmp_path / "n0.pcap"
    late = [(ts + 30 * 10**9, frame, size) for ts, frame, size in _records(folder / "n0.pcap")]
    off.write_bytes(build.capture(late, 65535))
    (note,) = run([off, *(f for f in files if f.name != off.name)]).notes
    assert note.startswith(f"The clock of {off} is 30.0 s ahead of that of ")
    assert run(files).notes == []


def test_a_flood_of_flows_is_read_in_bounded_steps(tmp_path, monkeypatch):
    """Each packet is a new flow; what is kept per flow is bounded, and what is worth following goes on."""
    monkeypatch.setattr("skewscope.features.tcp_lanes.MAX_PLACES", 1_024)
    flood.write(tmp_path / "scan.pcap", 50_000)
    made = run([tmp_path / "scan.pcap"])
    assert made.inputs[0].packets == 50_000
    assert made.incidents == []
    assert len(made.edges) == flood.SOURCES
    assert sum(e.packets_total for e in made.edges) <= 50_000
