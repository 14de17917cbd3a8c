"""Rules of the TCP kernel that need no graph: acknowledgements, windows, holes, fates."""

import numpy as np
import pytest

from skewscope.features import tcp_fate as fate
from skewscope.features import tcp_kernel as k

MS = 1_000_000
ACK, FIN, SYN = 16, 1, 2
NAMES = (
    "ts",
    "tap",
    "frame",
    "flow",
    "way",
    "payload",
    "seq",
    "ack",
    "flags",
    "window",
    "lo",
    "hi",
    "id",
    "ecn",
    "place",
)


class Scan:
    """Feeds rows of one flow to the kernel; `taps` are those of its two ends."""

    def __init__(self, taps=(0, 0)):
        self.vantage = np.array([taps], dtype=np.int32)
        self.lanes = np.zeros((2, k.L_COLUMNS), dtype=np.int64)
        self.lanes[:, [k.L_NEXT, k.L_UNA, k.L_RNEXT]] = -1
        self.lanes[:, k.L_SLOT] = [0, 1]
        self.ring = np.zeros((2, k.RING, 8), dtype=np.int64)
        self.acc = np.zeros((2, k.A_COLUMNS), dtype=np.int64)
        self.pending = np.zeros((64, 9), dtype=np.int64)
        self.waiting = 0
        self.rows = []

    def add(self, ms, way=0, tap=0, flags=ACK, window=1000, **more):
        row = {"ts": 10**15 + round(ms * MS), "tap": tap, "frame": len(self.rows) + 1, "way": way}
        row |= {"flags": flags, "window": window, **more}
        self.rows.append([row.get(n, 0) for n in NAMES])

    def run(self):
        """Feed what was added; returns (rtt, transit, events) rows."""
        cols = np.array(self.rows, dtype=np.int64).reshape(-1, len(NAMES))
        cols[:, [6, 7, 10, 11]] %= 2**32
        self.rows = []
        rtt, transit = (np.zeros((len(cols), 5), dtype=np.int64) for _ in range(2))
        events = np.zeros((4 * len(cols) + 64, 6), dtype=np.int64)
        counts = np.array([0, 0, 0, self.waiting], dtype=np.int64)
        k.scan(
            cols, self.vantage, self.lanes, self.ring, self.acc, rtt, transit, events, self.pending, counts
        )
        self.waiting = int(counts[3])
        return rtt[: counts[0]], transit[: counts[1]], events[: counts[2]]

    def settle(self, now_ms, alive_ms):
        """Decide the fate of what waits; returns the kinds of the events."""
        events = np.zeros((64, 6), dtype=np.int64)
        counts = np.zeros(4, dtype=np.int64)
        separate = np.full(self.waiting, self.vantage[0, 0] != self.vantage[0, 1])
        alive = np.full(self.waiting, 10**15 + round(alive_ms * MS), dtype=np.int64)
        now = 10**15 + round(now_ms * MS)
        self.waiting = fate.decide(self.pending, self.waiting, now, separate, alive, events, counts)
        return events[: counts[2], 0].tolist()


STARTS = [1_000, 2**32 - 150, 2**32 - 100, 2**32 - 1, 0, 2**31 - 50]


@pytest.mark.parametrize("start", STARTS)
def test_round_trips_across_the_wrap_of_sequence_numbers(start):
    scan = Scan()
    scan.add(0, way=1, ack=start)
    for i in range(4):
        scan.add(10 * i + 1, payload=100, seq=start + 100 * i, id=i)
        scan.add(10 * i + 4, way=1, ack=start + 100 * (i + 1))
    rtt, _, events = scan.run()
    assert rtt[:, 1].tolist() == [3 * MS] * 4
    assert len(events) == 0
    assert scan.acc[0, k.A_BYTES] == 400


@pytest.mark.parametrize("start", STARTS)
def test_a_copy_is_a_copy_across_the_wrap(start):
    scan = Scan()
    for i in range(4):
        scan.add(i, payload=100, seq=start + 100 * i, id=i)
    scan.add(50, payload=100, seq=start + 100, id=9)
    _, _, events = scan.run()
    assert events[:, 0].tolist() == [fate.E_RESENT]
    assert (scan.acc[0, k.A_RESENT], scan.waiting) == (1, 1)


def test_bare_acknowledgements_of_one_segment_may_be_delayed():
    """RFC 9293, section 3.8.6.3: less than two full segments may wait up to half a second."""
    scan = Scan()
    scan.add(0, way=1, ack=0)
    scan.add(1, payload=100, seq=0)
    scan.add(41, way=1, ack=100)
    scan.add(50, payload=100, seq=100)
    scan.add(51, payload=100, seq=200)
    scan.add(53, way=1, ack=300)
    scan.add(60, payload=100, seq=300)
    scan.add(64, way=1, ack=400, payload=10, seq=0)
    rtt, _, _ = scan.run()
    assert [(r[1] // MS, r[4] & 1) for r in rtt] == [(40, 1), (2, 0), (4, 0)]
    assert [int(r[4] >> 1) for r in rtt] == [100, 100, 100]


def test_data_that_was_sent_twice_gives_no_round_trip():
    """Karn: nobody knows which copy was acknowledged (RFC 6298, section 3)."""
    scan = Scan()
    scan.add(0, way=1, ack=0)
    scan.add(1, payload=100, seq=0, id=1)
    scan.add(201, payload=100, seq=0, id=2)
    scan.add(203, way=1, ack=100, payload=10)
    assert len(scan.run()[0]) == 0


def test_the_first_acknowledgement_seen_gives_no_round_trip():
    """The capture may have begun after the data."""
    scan = Scan()
    scan.add(1, payload=100, seq=0)
    scan.add(2, way=1, ack=100, payload=10)
    assert len(scan.run()[0]) == 0


@pytest.mark.parametrize("size", [0, 1])
def test_probes_of_a_window_are_no_copies(size):
    scan = Scan()
    scan.add(1, payload=100, seq=0)
    scan.add(100, payload=size, seq=99)
    scan.run()
    assert (scan.acc[0, k.A_RESENT], scan.waiting) == (0, 0)


def test_a_window_that_shrinks_to_nothing_is_dated_from_the_shrink():
    scan = Scan()
    for ms, window in ((0, 1000), (10, 950), (20, 600), (30, 200), (40, 0), (90, 0), (100, 800)):
        scan.add(ms, way=1, ack=0, window=window)
    _, _, events = scan.run()
    assert [(int(e[0]), (int(e[2]) - 10**15) // MS) for e in events] == [(fate.E_CLOSED, 20)]
    assert scan.acc[0, k.A_ZERO] == 2
    assert scan.lanes[0, k.L_ZERO_SINCE] == 0


def test_a_window_that_is_closed_stays_closed_until_it_opens():
    scan = Scan()
    scan.add(0, way=1, ack=0)
    scan.add(10, way=1, ack=0, window=0)
    scan.run()
    assert scan.lanes[0, k.L_ZERO_SINCE] == 10**15 + 10 * MS


def test_copies_into_a_closed_window_are_no_loss():
    """The sender probes a reader that takes nothing."""
    scan = Scan()
    scan.add(0, way=1, ack=0)
    scan.add(1, payload=100, seq=0)
    scan.add(2, way=1, ack=0, window=0)
    scan.add(300, payload=100, seq=0, id=7)
    scan.run()
    assert scan.waiting == 0


def test_a_window_of_zero_in_a_reset_or_syn_says_nothing():
    scan = Scan()
    scan.add(0, way=1, ack=0, window=0, flags=ACK | 4)
    scan.add(1, way=1, ack=0, window=0, flags=ACK | SYN)
    assert len(scan.run()[2]) == 0


def test_duplicate_acknowledgements_are_counted_while_data_is_out():
    scan = Scan()
    scan.add(0, way=1, ack=0)
    scan.add(1, payload=100, seq=0)
    for ms in (2, 3, 4):
        scan.add(ms, way=1, ack=0)
    scan.add(5, way=1, ack=100)
    scan.add(6, way=1, ack=100)
    scan.run()
    assert scan.acc[0, k.A_DUPACKS] == 3


def test_syn_fin_rst_and_marks_are_counted():
    scan = Scan()
    scan.add(0, flags=SYN)
    scan.add(1, flags=ACK | FIN, ecn=3)
    scan.add(2, flags=4)
    scan.run()
    names = ("A_SYN", "A_FIN", "A_RST", "A_CE", "A_PACKETS")
    assert [int(scan.acc[0, getattr(k, n)]) for n in names] == [1, 1, 1, 1, 3]


def test_a_new_connection_on_old_ports_is_no_copy():
    scan = Scan()
    scan.add(0, payload=100, seq=5_000)
    scan.add(10, flags=SYN, seq=100)
    scan.add(11, payload=100, seq=101)
    scan.run()
    assert (scan.acc[0, k.A_RESENT], scan.acc[0, k.A_HOLES]) == (0, 0)


def resent(taps=(0, 1)):
    """A copy sent at 0 ms and again at 30 ms, seen by the sender's tap only."""
    scan = Scan(taps)
    scan.add(0, payload=100, seq=0, id=1)
    scan.add(30, payload=100, seq=0, id=2)
    scan.run()
    return scan


def test_a_copy_that_never_showed_at_a_live_tap_is_lost():
    scan = resent()
    assert scan.settle(100, alive_ms=90) == []
    assert scan.settle(231, alive_ms=230) == [fate.E_LOST]
    assert scan.waiting == 0


def test_a_copy_that_had_arrived_was_sent_again_needlessly():
    scan = Scan((0, 1))
    scan.add(0, payload=100, seq=0, id=1)
    scan.add(1, tap=1, payload=100, seq=0, id=1)
    scan.add(30, payload=100, seq=0, id=2)
    scan.run()
    assert scan.settle(31, alive_ms=30) == [fate.E_NEEDLESS]


def test_a_copy_that_arrives_late_was_not_lost():
    scan = resent()
    scan.add(60, tap=1, payload=100, seq=0, id=1)
    scan.run()
    assert scan.settle(61, alive_ms=61) == [fate.E_NEEDLESS]


def test_the_second_copy_s_arrival_does_not_clear_the_first():
    """The IP id tells copies of the same bytes apart."""
    scan = resent()
    scan.add(31, tap=1, payload=100, seq=0, id=2)
    scan.run()
    assert scan.settle(300, alive_ms=290) == [fate.E_LOST]


def test_a_receiver_s_tap_that_has_ended_proves_nothing():
    scan = resent()
    assert scan.settle(300, alive_ms=-10) == []
    assert scan.settle(5_000, alive_ms=-10) == []
    assert scan.settle(10_100, alive_ms=-10) == []
    assert scan.waiting == 0


def test_copies_sent_three_times_without_an_answer_speak_for_themselves():
    scan = resent()
    scan.add(90, payload=100, seq=0, id=3)
    scan.run()
    assert scan.settle(400, alive_ms=-10) == [fate.E_LOST, fate.E_LOST]


@pytest.mark.parametrize("start", [1_000, 2**32 - 150])
def test_with_one_tap_a_duplicate_sack_clears_a_copy(start):
    """RFC 2883: a block below the cumulative acknowledgement names bytes that came twice."""
    scan = Scan()
    scan.add(0, payload=100, seq=start, id=1)
    scan.add(30, payload=100, seq=start, id=2)
    scan.add(32, way=1, ack=start + 100, lo=start, hi=start + 100)
    scan.run()
    assert scan.settle(33, alive_ms=33) == [fate.E_NEEDLESS]


def test_with_one_tap_a_copy_without_such_a_sign_is_lost():
    scan = resent((0, 0))
    scan.add(32, way=1, ack=100, lo=200, hi=300)
    scan.run()
    assert scan.settle(231, alive_ms=0) == [fate.E_LOST]


def arrivals(*rows, taps=(1, 0)):
    """Rows (ms, seq, id) of 100 bytes each at the receiver's tap only; returns event kinds and the scan."""
    scan = Scan(taps)
    for ms, seq, ident in rows:
        scan.add(ms, payload=100, seq=seq, id=ident)
    return scan.run()[2][:, 0].tolist(), scan


def test_bytes_that_fill_a_hole_with_an_older_id_were_reordered():
    kinds, scan = arrivals((0, 0, 1), (1, 200, 3), (2, 100, 2))
    assert kinds == [fate.E_REORDERED]
    assert (scan.acc[0, k.A_HOLES], scan.acc[0, k.A_REORDERED]) == (1, 1)


def test_ids_wrap():
    assert arrivals((0, 0, 65_534), (1, 200, 0), (2, 100, 65_535))[0] == [fate.E_REORDERED]


def test_at_a_lone_receiver_s_tap_a_newer_id_tells_of_a_loss():
    kinds, scan = arrivals((0, 0, 1), (1, 200, 3), (2, 100, 4), taps=(0, 0))
    assert fate.E_LOST in kinds
    assert fate.E_REORDERED not in kinds
    assert scan.acc[0, k.A_REORDERED] == 0


def test_without_ids_lateness_decides():
    """IPv6 has none: what comes within 3 ms overtook, what comes later was sent again."""
    assert arrivals((0, 0, 0), (1, 200, 0), (2, 100, 0))[0] == [fate.E_REORDERED]
    assert arrivals((0, 0, 0), (1, 200, 0), (40, 100, 0), taps=(0, 0))[0][-1] == fate.E_LOST


def test_transit_is_measured_per_copy():
    scan = Scan((0, 1))
    for ms, tap, seq, ident in ((0, 0, 0, 1), (3, 1, 0, 1), (10, 0, 100, 2), (15, 1, 100, 2)):
        scan.add(ms, tap=tap, payload=100, seq=seq, id=ident)
    _, transit, _ = scan.run()
    assert transit[:, 1].tolist() == [3 * MS, 5 * MS]
    assert transit[:, 4].tolist() == [100, 100]


def test_more_copies_than_the_ring_holds():
    scan = Scan()
    scan.add(0, way=1, ack=0)
    for i in range(3 * k.RING):
        scan.add(1 + i / 100, payload=10, seq=10 * i, id=i)
    scan.add(50, way=1, ack=30 * k.RING, payload=1)
    rtt, _, _ = scan.run()
    assert len(rtt) == 1
    assert scan.acc[0, k.A_BYTES] == 30 * k.RING


def test_random_segments_never_break_it():
    noise = np.random.default_rng(11)
    scan = Scan((0, 1))
    for _ in range(3_000):
        scan.add(
            float(noise.uniform(0, 1000)), way=int(noise.integers(2)), tap=int(noise.integers(2)),
            flags=int(noise.integers(256)), window=int(noise.integers(3)), payload=int(noise.integers(3)),
            seq=int(noise.integers(2**32)), ack=int(noise.integers(2**32)), id=int(noise.integers(2**16)),
            lo=int(noise.integers(2**32)), hi=int(noise.integers(2**32)),
        )  # fmt: skip
    rtt, transit, events = scan.run()
    assert max(len(rtt), len(transit)) <= 3_000
    assert scan.waiting <= len(scan.pending)
    assert set(events[:, 0].tolist()) <= {1, 2, 3, 4, 5}
