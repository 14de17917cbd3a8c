"""Which messages are heartbeats, and how late the next one is."""

from __future__ import annotations

import numpy as np
import pytest

from skewscope.core.directory import Directory, Flow, Tap
from skewscope.core.features import Slice
from skewscope.core.schemas import PACKETS, RECORDS
from skewscope.core.tables import Table
from skewscope.features.graph import GraphRows
from skewscope.features.heartbeats import Heartbeats

TICK = 100_000_000
DIRECTORY = Directory(addresses=["-", "10.0.0.1", "10.0.0.2"], taps=[Tap(0, "a.pcap")])
DIRECTORY.flows.append(Flow(1, 5000, 2, 9997, 17))


def graph(server: int = -1, collective: bool = False) -> GraphRows:
    """Return a graph with one flow, seen at its own tap both ways."""
    return GraphRows(
        "host", ["10.0.0.1"], {"tx_packets": np.array([7.0])},
        vantage=np.zeros((2, 2), dtype=np.int32), ends=np.array([[0, 0], [1, 2]]),
        server=np.array([-1, server]), collective=np.array([False, collective]),
        opaque=np.zeros(2, dtype=bool),
    )  # fmt: skip


def run(times_s, size=90, secret=False, until_s=0.0, **roles):
    """Return the columns of each window for messages at these times, and the last onset."""
    family, found, onset = Heartbeats(), [], 0
    ts = np.array([int(t * 1e9) for t in times_s], dtype=np.int64)
    for start in range(0, int(max(until_s, *times_s) * 1e9) + TICK, TICK):
        now = ts[(ts >= start) & (ts < start + TICK)]
        one = np.ones(len(now), dtype=np.int64)
        packets = Table(
            PACKETS, {"ts_ns": now, "flow": one, "src": one, "dst": 2 * one, "payload_bytes": size * one}
        )
        records = Table(RECORDS, {"flow": np.ones(int(secret), dtype=np.int64)})
        rows = family.update(
            Slice(start, start + TICK, {"packets": packets, "records": records}, DIRECTORY),
            {"host": graph(**roles)},
        )
        if rows.keys:
            found.append({n: v[0] for n, v in rows.columns.items()})
            onset = int(rows.onset_ns["gap_ratio"][0])
    return found, onset


def beats(count, every=0.25, start=0.1):
    return [start + every * k for k in range(count)]


def test_an_even_rhythm_is_learned_and_is_on_time():
    found, onset = run(beats(20))
    assert found[-1] == {
        "beat_s": pytest.approx(0.25),
        "gap_ratio": 1.0,
        "late_beats": 0.0,
        "host_packets": 7.0,
    }
    assert onset == 0


def test_late_beats_are_counted_and_dated_by_when_the_first_was_due():
    first = beats(12)
    second = beats(4, start=first[-1] + 1.0)
    third = beats(4, start=second[-1] + 0.75)
    found, onset = run([*first, *second, *third])
    assert found[-1]["gap_ratio"] == pytest.approx(4.0)
    assert found[-1]["late_beats"] == 2
    assert onset == pytest.approx((first[-1] + 0.25) * 1e9, abs=2)


def test_a_flow_that_ends_is_not_late():
    found, _ = run(beats(12), until_s=8.0)
    assert max(f["late_beats"] for f in found) == 0


def test_a_lost_beat_is_not_late():
    lost = [t for k, t in enumerate(beats(24)) if k != 15]
    found, _ = run(lost)
    assert max(f["late_beats"] for f in found) == 0


def test_late_beats_are_forgotten():
    first = beats(12)
    found, _ = run([*first, *beats(32, start=first[-1] + 1.0)])
    assert max(f["late_beats"] for f in found) == 1
    assert found[-1]["late_beats"] == 0


@pytest.mark.parametrize(
    ("times", "more"),
    [
        (beats(7), {}),
        (beats(40, every=0.02), {}),
        (list(np.cumsum(np.random.default_rng(3).exponential(0.3, 40))), {}),
        (beats(20), {"size": 5000}),
        (beats(20), {"server": 1}),
        (beats(20), {"collective": True}),
        (beats(20), {"secret": True}),
    ],
    ids=["too few", "a stream", "random", "large", "HTTP", "collective", "TLS"],
)
def test_what_is_no_heartbeat(times, more):
    assert run(times, **more)[0] == []
