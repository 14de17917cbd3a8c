"""Own time and time inside, from hand-made events of one member (testbed.md 4b)."""

import numpy as np

from skewscope.features import round_kernel as k

MS = 1_000_000
START = 1_700_000_000_000_000_000
OTHER, ASKED = -1, -2


class Member:
    """One member's events in time order (ms); `closed` are the rounds that it left."""

    def __init__(self):
        self.rounds = np.zeros((1, k.OPEN, k.R_COLUMNS), dtype=np.int64)
        self.rounds[:, :, k.KEY] = -1
        self.state = np.zeros((1, k.M_COLUMNS), dtype=np.int64)
        self.state[:, k.M_CURRENT] = -1
        self.closed = []

    def play(self, *events):
        """Events are (ms, "out" or "in", key, bytes)."""
        rows = np.zeros((len(events), k.V_COLUMNS), dtype=np.int64)
        for row, (ms, side, key, *size) in zip(rows, events, strict=True):
            row[[k.V_TS, k.V_OUT, k.V_KEY]] = START + round(ms * MS), side == "out", key
            row[k.V_BYTES] = size[0] if size else 100
            row[k.V_FRAME] = round(ms)
        done = np.zeros((len(events) + 1, 1 + k.R_COLUMNS), dtype=np.int64)
        count = k.absorb(rows, self.rounds, self.state, done)
        self.closed += [row[1:] for row in done[:count]]
        return self

    def ms(self, number, column):
        """Return a duration of a closed round, ms."""
        return self.closed[number][column] / MS

    def at(self, number, column):
        """Return a time of a closed round, ms from the start."""
        return (self.closed[number][column] - START) / MS


def steady(rounds=4, own=40.0, first=1):
    """Rounds of key 1, 2, ...: 40 ms of own time, out, in 2 ms later."""
    events = []
    now = 0.0
    for key in range(first, first + rounds):
        events += [(now, "out", key), (now + 2, "in", key)]
        now += 2 + own
    return events


def test_own_time_is_from_the_last_byte_in_to_the_first_byte_out():
    member = Member().play(*steady(4))
    assert [int(r[k.KEY]) for r in member.closed] == [1, 2, 3]
    assert [member.ms(i, k.OWN) for i in range(3)] == [0.0, 40.0, 40.0]
    assert [member.at(i, k.OWN_FROM) for i in (1, 2)] == [2.0, 44.0]
    assert [int(r[k.PREVIOUS]) for r in member.closed] == [-1, 1, 2]


def test_data_that_faster_peers_send_early_is_of_the_next_round():
    """With it the victim's own time would shrink to nothing."""
    member = Member().play(
        (0, "out", 1), (2, "in", 1), (30, "in", 2), (35, "in", 2),
        (90, "out", 2), (91, "in", 2), (130, "out", 3),
    )  # fmt: skip
    assert member.ms(1, k.OWN) == 88.0
    assert member.at(1, k.FIRST_IN) == 30.0
    assert member.closed[1][k.DATA_IN] == 300
    assert member.at(0, k.LAST_IN) == 2.0


def test_other_data_of_the_group_starts_the_clock_anew():
    """The scheduler's list of work: before it came nothing could be done."""
    member = Member().play((0, "out", 1), (2, "in", 1), (500, "in", OTHER), (540, "out", 2), (600, "out", 3))
    assert member.ms(1, k.OWN) == 40.0
    assert member.at(1, k.OWN_FROM) == 500.0


def test_a_request_is_noted_and_starts_no_clock():
    member = Member().play((0, "out", 1), (2, "in", 1), (30, "in", ASKED), (42, "out", 2), (90, "out", 3))
    assert member.ms(1, k.OWN) == 40.0
    assert member.at(1, k.ASKED) == 30.0


def test_a_stop_inside_a_round_is_the_member_s_own():
    member = Member().play((0, "out", 1), (1, "in", 1), (301, "out", 1), (302, "in", 1), (340, "out", 2))
    assert member.ms(0, k.INSIDE) == 300.0
    assert member.at(0, k.INSIDE_END) == 301.0
    assert member.closed[0][k.INSIDE_FRAME] == 301


def test_waiting_for_a_peer_inside_a_round_is_not():
    """It ends with a message in, and the answer follows at once."""
    member = Member().play((0, "out", 1), (300, "in", 1), (301, "out", 1), (302, "in", 1), (340, "out", 2))
    assert member.ms(0, k.INSIDE) == 1.0


def test_sizes_and_counts():
    member = Member().play(
        (0, "out", 1, 400), (1, "in", 1, 900), (2, "out", 1, 500), (3, "in", 1, 100), (40, "out", 2)
    )
    row = member.closed[0]
    assert (row[k.DATA_OUT], row[k.DATA_IN], row[k.LARGEST], row[k.MESSAGES]) == (900, 1000, 900, 4)
    assert (member.at(0, k.FIRST_OUT), member.at(0, k.LAST_OUT), member.at(0, k.LAST_EVENT)) == (0, 2, 3)


def test_a_root_that_only_sends_counts_from_its_own_last_byte():
    member = Member().play((0, "out", 1), (5, "out", 1), (45, "out", 2), (90, "out", 3))
    assert member.ms(1, k.OWN) == 40.0


def test_rounds_that_it_only_listens_to_are_forgotten_before_the_present_one():
    events = [(0, "out", 1)]
    events += [(1 + i, "in", 100 + i) for i in range(k.OPEN - 1)]
    events += [(60 + i, "in", 1) for i in range(3)] + [(100, "out", 2)]
    member = Member().play(*events)
    assert int(member.closed[0][k.KEY]) == 1


def test_in_one_piece_or_event_by_event_it_is_alike():
    events = steady(6)
    whole, parts = Member().play(*events), Member()
    for event in events:
        parts.play(event)
    assert np.array_equal(whole.closed, parts.closed)
    assert np.array_equal(whole.rounds, parts.rounds)


def test_the_latest_message_of_each_side_is_known():
    member = Member().play(*steady(2))
    assert member.state[0, [k.M_LAST_OUT, k.M_LAST_IN]].tolist() == [START + 42 * MS, START + 44 * MS]
