"""Clocks of captures: offsets between taps that hold the same packets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.core.directory import Directory, Tap
from skewscope.core.schemas import PACKETS
from skewscope.core.tables import Table
from skewscope.sources.clocks import KEPT, MATCHES, Clocks

NOW = 1_700_000_000_000_000_000


def packets(tap, flow, seqs, ahead_s=0.0, proto=6):
    n = len(seqs)
    ts = NOW + np.asarray(seqs, dtype=np.int64) * 1_000_000 + int(ahead_s * 1e9)
    columns = {"flow": np.full(n, flow), "seq": np.asarray(seqs) * 1448, "payload_bytes": np.full(n, 1448)}
    return Table(PACKETS, {"ts_ns": ts, "tap": np.full(n, tap), "proto": np.full(n, proto), **columns})


def directory(*names):
    out = Directory()
    out.taps = [Tap(i, n) for i, n in enumerate(names)]
    return out


def compared(*tables):
    clocks = Clocks()
    for table in tables:
        clocks.feed(table)
    return clocks


@pytest.mark.parametrize(("ahead_s", "way"), [(12.5, "ahead of"), (-12.5, "behind")])
def test_a_clock_that_is_off_is_named(ahead_s, way):
    clocks = compared(packets(0, 1, range(100)), packets(1, 1, range(100), ahead_s))
    (note,) = clocks.notes(directory("a.pcap", "b.pcap"))
    assert note.startswith(f"The clock of b.pcap is 12.5 s {way} that of a.pcap")


def test_the_odd_one_out_is_named_whatever_its_place():
    for odd in range(3):
        tables = [packets(t, 1, range(100), 60.0 if t == odd else 0.001 * t) for t in range(3)]
        (note,) = compared(*tables).notes(directory("a", "b", "c"))
        assert note.startswith(f"The clock of {'abc'[odd]} is ")


def test_agreement_strangers_and_single_taps_say_nothing():
    names = directory("a", "b")
    assert compared(packets(0, 1, range(99)), packets(1, 1, range(99), 0.9)).notes(names) == []
    assert compared(packets(0, 1, range(99)), packets(1, 2, range(99), 60)).notes(names) == []
    assert compared(packets(0, 1, range(99))).notes(names) == []
    assert compared(packets(0, 1, range(99), 0, 17), packets(1, 1, range(99), 60, 17)).notes(names) == []
    few = range(MATCHES - 1)
    assert compared(packets(0, 1, few), packets(1, 1, few, 60)).notes(names) == []


def test_captures_that_began_at_different_times_meet_in_what_both_hold():
    early, late = packets(0, 1, range(100_000)), packets(1, 1, range(90_000, 190_000), 30.0)
    clocks = compared(early, late)
    assert clocks.offsets()[1] == (0, 30_000_000_000)


def test_taps_without_common_packets_are_compared_over_a_third():
    clocks = compared(
        packets(0, 1, range(50)),
        packets(2, 1, range(50), 5.0),
        packets(2, 2, range(50), 5.0),
        packets(1, 2, range(50), 7.0),
    )
    assert clocks.offsets() == {0: (0, 0), 2: (0, 5_000_000_000), 1: (0, 7_000_000_000)}


def test_several_taps_in_one_table():
    both = Table.concat(PACKETS, [packets(0, 1, range(50)), packets(1, 1, range(50), 2.0)])
    assert compared(both).offsets()[1] == (0, 2_000_000_000)


def test_copies_sent_again_do_not_count():
    again = packets(0, 1, range(100), 40.0)
    clocks = compared(packets(0, 1, range(100)), again, packets(1, 1, range(100), 0.001))
    assert clocks.offsets()[1] == (0, 1_000_000)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 5000), min_size=1, max_size=4))
def test_any_split_keeps_the_same_bounded_sample(cuts):
    whole = packets(0, 1, range(10_000))
    clocks, start = Clocks(), 0
    for cut in [*cuts, 10_000]:
        clocks.feed(whole.take(slice(start, start + cut)))
        start += cut
    assert len(clocks._keys[0]) == KEPT
    once = compared(whole)
    assert np.array_equal(once._keys[0], clocks._keys[0])
    assert np.array_equal(once._times[0], clocks._times[0])
