"""Steps of untagged groups: levels of traffic found by counting between silences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.features.steps import Steps

US, MS = 1_000, 1_000_000


def trains(per_step, gap_ns=20 * MS, apart_ns=100 * US, start=1):
    """Return times of messages: per step so many, then a gap."""
    ts, now = [], start
    for count in per_step:
        for _ in range(count):
            ts.append(now)
            now += apart_ns
        now += gap_ns - apart_ns
    return np.array(ts, dtype=np.int64)


def numbered(steps, ts, row=0, chunk=40, hole_ns=1 << 62):
    """Number one connection's messages, as slices would bring them; the capture has a hole at hole_ns."""
    rows = steps.rows(np.array([[0, row + 1, row + 2, 0]]))
    out = []
    for lo in range(0, len(ts), chunk):
        part = ts[lo : lo + chunk]
        if part[0] <= hole_ns <= part[-1]:
            steps.note_holes(np.array([hole_ns]), rows)
        group = np.full(len(part), 7)
        out.append(steps.number(part, part, np.repeat(rows, len(part)), group))
    return np.concatenate(out)


def sizes(found):
    """Return how many messages each step got, in order, those without one left out."""
    return np.unique(found[found >= 0], return_counts=True)[1].tolist()


def test_steps_are_found_after_a_few_repetitions():
    found = sizes(numbered(Steps(), trains([30] * 20)))
    assert len(found) >= 12
    assert set(found) == {30}


def test_a_lost_message_shifts_nothing_behind_its_step():
    ts = trains([30] * 12 + [29] + [30] * 6)
    found = sizes(numbered(Steps(), ts, hole_ns=int(ts[12 * 30 + 20])))
    assert found[-8:] == [30, 29, 30, 30, 30, 30, 30, 30]


def test_a_stop_in_mid_step_does_not_end_it():
    ts = trains([30] * 20)
    ts[15 * 30 + 12 :] += 300 * MS
    assert set(sizes(numbered(Steps(), ts))) == {30}


def test_prefill_steps_with_more_messages_do_not_hide_the_level():
    found = sizes(numbered(Steps(), trains([30, 30, 30, 90] * 6)))
    assert set(found) <= {30, 90}
    assert found.count(90) >= 3


def test_requests_of_many_steps_are_not_taken_for_steps():
    """Twenty steps of 10 ms, then half a second of idleness, again and again."""
    ts, now = [], 1
    for _ in range(8):
        part = trains([12] * 20, gap_ns=10 * MS, start=now)
        ts.append(part)
        now = int(part[-1]) + 500 * MS
    found = sizes(numbered(Steps(), np.concatenate(ts)))
    assert np.median(found) == 12


def test_short_levels_are_passed_over_for_longer_ones():
    """Collectives of six messages every millisecond are within the clocks' error; steps are not."""
    one = np.concatenate([trains([6], apart_ns=10 * US, start=k * MS) for k in range(1, 9)])
    ts = np.concatenate([one + k * 20 * MS for k in range(20)])
    assert set(sizes(numbered(Steps(), ts))) == {48}


def test_connections_of_a_group_share_numbers_whenever_they_were_first_seen():
    steps = Steps()
    ts = trains([30] * 30)
    both = np.concatenate([ts, ts[400:] + 3 * US])
    who = np.concatenate([np.zeros(len(ts), np.int64), np.ones(len(ts) - 400, np.int64)])
    order = np.argsort(both, kind="stable")
    both, who = both[order], who[order]
    rows = steps.rows(np.stack([who, who + 1, who + 2, who * 0], axis=1))
    found = []
    for lo in range(0, len(both), 50):
        part = slice(lo, lo + 50)
        found.append(steps.number(both[part], both[part], rows[part], np.full(len(rows[part]), 3)))
    found = np.concatenate(found)
    late = both > ts[600]
    mine = {int(t): int(s) for t, s in zip(both[late & (who == 0)], found[late & (who == 0)], strict=True)}
    theirs = {int(t): int(s) for t, s in zip(both[late & (who == 1)], found[late & (who == 1)], strict=True)}
    assert all(theirs[t + 3 * US] == s for t, s in mine.items() if t + 3 * US in theirs)
    assert len(theirs) >= len(mine) > 200


def test_traffic_without_a_rhythm_has_no_steps():
    draw = np.random.default_rng(5)
    ts = np.cumsum(draw.exponential(MS, 2000).astype(np.int64) + 1)
    found = numbered(Steps(), ts)
    assert np.mean(found >= 0) < 0.5 or len(set(sizes(found))) > 1


@given(
    st.lists(st.integers(0, 2**40), max_size=60),
    st.lists(st.integers(0, 3), min_size=60, max_size=60),
)
@settings(max_examples=50, deadline=None)
def test_numbers_never_go_back(gaps, who):
    ts = np.cumsum(np.array(gaps, dtype=np.int64)) + 1 if gaps else np.zeros(0, np.int64)
    conn = np.array(who[: len(ts)], dtype=np.int64)
    steps = Steps()
    if not len(ts):
        return
    rows = steps.rows(np.stack([conn * 0, conn, conn + 1, conn * 0], axis=1))
    found = steps.number(ts, ts, rows, np.ones(len(ts), np.int64))
    for c in set(conn.tolist()):
        mine = found[conn == c]
        assert np.all(np.diff(mine) >= 0)


@pytest.mark.parametrize("count", [1, 2])
def test_a_step_of_few_messages_is_a_level_too(count):
    """One all-reduce behind 40 ms of own time, two hosts: two messages a step."""
    found = set(sizes(numbered(Steps(), trains([count] * 30, gap_ns=40 * MS, apart_ns=50 * US), chunk=7)))
    assert found == {count}


def test_a_message_sent_again_after_a_silence_belongs_to_the_step_that_waited_for_it():
    ts = trains([30] * 20)
    ts[15 * 30 - 1 :] += 25 * MS  # the last one of a step comes late, and so does all that follows
    assert set(sizes(numbered(Steps(), ts))) == {30}
