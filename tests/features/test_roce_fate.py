"""Which steps back in a RoCE connection's sequence are losses."""

from __future__ import annotations

import numpy as np

from skewscope.features.roce_fate import COLUMNS, SKIPPED_NS, follow

SENDER, RECEIVER = 1, 2


def fates(*seen, start=0):
    """Return the fate of (tap, packet sequence number or "no N" for an RNR NAK[, time in us])."""
    n = len(seen)
    refuses = np.array([isinstance(s[1], str) for s in seen])
    psn = np.array([int(str(s[1]).split()[-1]) + start for s in seen], dtype=np.int64) & 0xFFFFFF
    ts = np.array([1000 * (s[2] if len(s) > 2 else i + 1) for i, s in enumerate(seen)], dtype=np.int64)
    fate = np.zeros(n, dtype=np.int64)
    one = np.zeros(n, dtype=np.int64)
    state, refused = np.full((1, COLUMNS), -1, dtype=np.int64), np.full(1, -1, dtype=np.int64)
    at = np.array([s[0] for s in seen], dtype=np.int64)
    follow(psn, ts, one, one, at, refuses, state, refused, fate)
    return fate.tolist()


def test_packets_in_order_cross_and_nothing_is_lost():
    seen = [(tap, k) for k in range(5) for tap in (SENDER, RECEIVER)]
    assert fates(*seen) == [0, 2] * 5
    assert fates(*seen, start=0xFFFFFD) == [0, 2] * 5


def test_a_step_back_is_one_loss_however_much_is_sent_again():
    first = [(SENDER, 0), (RECEIVER, 0), (SENDER, 1), (SENDER, 2), (RECEIVER, 2), (SENDER, 3)]
    again = [(SENDER, 1), (RECEIVER, 1), (SENDER, 2), (RECEIVER, 2), (SENDER, 3), (RECEIVER, 3)]
    assert fates(*first, *again) == [0, 2, 0, 0, 0, 0, 1, 2, 0, 2, 0, 2]


def test_what_the_receiver_took_was_not_lost():
    assert fates((SENDER, 0), (RECEIVER, 0), (SENDER, 1), (RECEIVER, 1), (SENDER, 1)) == [0, 2, 0, 2, 0]


def test_a_receiver_without_a_buffer_lost_nothing():
    seen = [(SENDER, 0), (RECEIVER, 0), (SENDER, 1), (SENDER, "no 1"), (SENDER, 1), (RECEIVER, 1)]
    assert 1 not in fates(*seen)
    assert fates(*seen, (SENDER, 2), (SENDER, 2))[-1] == 1


def test_with_the_senders_tap_only_every_step_back_counts():
    assert fates((SENDER, 0), (SENDER, 1), (SENDER, 1), (SENDER, 2)) == [0, 0, 1, 0]


def test_a_gap_of_the_capture_is_passed_after_a_while():
    late = SKIPPED_NS // 1000 + 10
    seen = [
        (RECEIVER, 0, 1),
        (RECEIVER, 2, 2),
        (RECEIVER, 3, 3),
        (RECEIVER, 4, late),
        (RECEIVER, 5, late + 1),
    ]
    assert fates(*seen)[:3] == [2, 0, 0]
    assert fates(*seen)[-1] == 2


def test_another_connection_on_the_same_number_is_no_loss():
    assert fates((SENDER, 500_000), (SENDER, 7), (SENDER, 8)) == [0, 0, 0]
