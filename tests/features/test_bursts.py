"""Rounds of groups whose bytes are not understood."""

from __future__ import annotations

import numpy as np

from skewscope.features.bursts import BINS, Bursts, silence_limit

MS = 1_000_000
TEAM = {1: [1, 2, 3, 4]}


def exchange(
    start_ms: float, order=(1, 2, 3, 4), copies: int = 5, step_us: int = 50
) -> list[tuple[int, int]]:
    """Return (ts, sender) of an exchange in which every member sends `copies` packets."""
    start = int(start_ms * MS)
    return [
        (start + (n * len(order) + i) * step_us * 1000, m) for n in range(copies) for i, m in enumerate(order)
    ]


def numbers(packets: list[tuple[int, int]], batch: int = 40) -> list[int]:
    """Return the round number of each packet, fed in batches as slices come."""
    bursts, out = Bursts(), []
    for at in range(0, len(packets), batch):
        part = packets[at : at + batch]
        ts, sender = (np.array(c, dtype=np.int64) for c in zip(*part, strict=True))
        out += bursts.keys(ts, np.ones(len(part), dtype=np.int64), sender, TEAM).tolist()
    return out


def steady(rounds: int) -> list[tuple[int, int]]:
    return [p for k in range(rounds) for p in exchange(40.0 * k)]


def rounds_of(packets, found) -> list[set[int]]:
    """Return, per exchange of `steady`, the round numbers that its packets got."""
    return [set(found[at : at + 20]) for at in range(0, len(packets), 20)]


def test_each_exchange_is_a_round_once_silence_is_known():
    packets = steady(30)
    got = rounds_of(packets, numbers(packets))[10:]
    assert all(len(one) == 1 for one in got)
    assert [min(one) for one in got] == list(range(min(got[0]), min(got[0]) + 20))


def test_a_member_that_is_late_does_not_split_the_round():
    packets = steady(20)
    # Three members begin, the fourth comes 60 ms later, then all go on.
    begin = exchange(800.0, order=(1, 2, 3), copies=1)
    rest = exchange(860.0, order=(4, 1, 2, 3), copies=5)
    found = numbers(packets + begin + rest)
    assert set(found[400:403]) == set(found[403:])
    assert found[400] == found[399] + 1


def test_a_stop_in_the_middle_does_not_split_the_round():
    packets = steady(20)
    stopped = exchange(800.0, copies=1) + exchange(1100.0, copies=4)
    found = numbers(packets + stopped)
    assert len(set(found[400:])) == 1


def test_larger_rounds_are_rounds_too():
    packets = steady(20) + [p for k in range(5) for p in exchange(800.0 + 60 * k, copies=50)]
    found = numbers(packets)
    assert found[-1] - found[399] == 5


def test_the_limit_is_half_of_the_silences_that_fill_the_time():
    histogram = np.zeros(BINS)
    assert silence_limit(histogram) == 0
    histogram[2 * 25] = 1.0  # silences of about 2**25 ns = 34 ms fill one second
    histogram[2 * 20] = 0.2
    assert 2**23 < silence_limit(histogram) <= 2**25
