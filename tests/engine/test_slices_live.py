"""Slices of live taps: silence passes, a quiet tap does not hold the others up."""

from skewscope.core.directory import Directory
from skewscope.core.schemas import PACKETS
from skewscope.core.tables import Heard
from skewscope.engine.slices import TICK_NS, slices


def packets(*times_ns):
    table = PACKETS.empty(len(times_ns))
    table["ts_ns"][:] = times_ns
    return {"packets": table}


def seen(*taps):
    return [
        (s.start_ns, s.tables["packets"]["ts_ns"].tolist())
        for s in slices([iter(t) for t in taps], Directory())
    ]


def test_a_quiet_tap_tells_the_time_and_the_other_goes_on():
    start = 10 * TICK_NS
    busy = [packets(start), packets(start + TICK_NS), packets(start + 2 * TICK_NS)]
    quiet = [Heard({}, start - 1), Heard({}, start + 3 * TICK_NS)]
    found = seen(busy, quiet)
    assert [rows for _, rows in found] == [[start], [start + TICK_NS], [start + 2 * TICK_NS]]


def test_silence_everywhere_makes_empty_slices():
    start = 10 * TICK_NS
    tap = [
        packets(start),
        *(Heard({}, start + k * TICK_NS) for k in range(1, 6)),
        packets(start + 6 * TICK_NS),
    ]
    found = seen(tap)
    assert [len(rows) for _, rows in found] == [1, 0, 0, 0, 0, 0, 1]


def test_time_before_the_first_packet_makes_no_slice():
    start = 50 * TICK_NS
    found = seen([Heard({}, 5), Heard({}, start - 5), packets(start)])
    assert found == [(start, [start])]


def test_a_tap_that_only_told_the_time_and_ended_makes_none():
    assert seen([Heard({}, 5 * TICK_NS)]) == []
