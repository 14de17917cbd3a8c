"""Transport between two hosts, from two taps and from one."""

import numpy as np
import pytest

from skewscope.features.graph import Graph
from skewscope.features.transport import Transport
from tests.features.packet_tables import FIN, RST, SYN, Net, cell, play, total

A, B, C, D = "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"
BOTH = (0, 1)


def pair(taps=("n0", "n1")):
    """Return a net whose taps are A's and B's own, and the flow A -> B, established."""
    net = Net(taps)
    ab, ac, bd = net.flow(A, B), net.flow(A, C), net.flow(B, D)
    for ms in range(0, 10, 2):
        net.packet(ms, ac, 0, 0)
        if len(taps) > 1:
            net.packet(ms, bd, 0, 1)
    net.ack(1, ab, 0, tap=BOTH[: len(taps)])
    return net, ab


def alive(net, until, tap=1, step=20):
    """Keep B's tap showing something."""
    bd = 3
    for ms in range(0, until, step):
        net.packet(ms, bd, 0, tap)


def seen(net, until_ms=None):
    return play(net, Graph(), Transport(), until_ms=until_ms)


def test_bytes_segments_and_times():
    net, ab = pair()
    for i in range(5):
        net.data(20 + 10 * i, ab, 1000, 1000 * i, tap=BOTH, ip_id=i, after_us=400)
        net.data(24 + 10 * i, ab, 50, 50 * i, way=1, tap=(1, 0), ack=1000 * (i + 1), ip_id=i, after_us=300)
    rows = seen(net)[0]["pair"]
    assert cell(rows, f"{A}->{B}", "bytes") == 5000
    assert cell(rows, f"{A}->{B}", "segments") == 5
    assert cell(rows, f"{A}->{B}", "largest_bytes") == 1000
    assert cell(rows, f"{A}->{B}", "transit_s") == pytest.approx(400e-6)
    assert cell(rows, f"{B}->{A}", "transit_s") == pytest.approx(300e-6)
    assert cell(rows, f"{A}->{B}", "rtt_s") == pytest.approx(4.3e-3)
    assert cell(rows, f"{A}->{B}", "rtt_samples") == 5
    assert cell(rows, f"{A}->{B}", "inner") == 1.0
    assert rows.pair_of[net.host(A), net.host(B)] == list(rows.keys).index(f"{A}->{B}")


def test_nothing_measured_is_unknown_and_not_zero():
    net, ab = pair()
    net.data(20, ab, 100, 0)
    rows = seen(net)[0]["pair"]
    for name in ("rtt_s", "transit_s", "rtt_min_s", "lost_smallest_bytes"):
        assert np.isnan(cell(rows, f"{A}->{B}", name)), name
    assert cell(rows, f"{A}->{B}", "lost") == 0


@pytest.mark.parametrize("start", [1_000, 2**32 - 250])
def test_a_loss_between_two_taps(start):
    """The copy never shows at B's tap, which is alive; the second one does."""
    net, ab = pair()
    for i in range(6):
        net.data(20 + i, ab, 100, start + 100 * i, tap=0 if i == 2 else BOTH, ip_id=i)
    net.data(60, ab, 100, start + 200, tap=BOTH, ip_id=9)
    alive(net, 600)
    found = seen(net)
    assert total(found, "pair", f"{A}->{B}", "lost") == 1
    assert total(found, "pair", f"{A}->{B}", "needless") == 0
    assert total(found, "pair", f"{B}->{A}", "lost") == 0
    (hit,) = [r["pair"] for r in found if total([r], "pair", f"{A}->{B}", "lost")]
    at = list(hit.keys).index(f"{A}->{B}")
    assert cell(hit, f"{A}->{B}", "lost_smallest_bytes") == 100
    tap, frame = hit.frames["lost"][at]
    row = next(r for r in net.rows["packets"] if (r["tap"], r["frame"]) == (tap, frame))
    assert (row["ip_id"], row["ts_ns"]) == (2, hit.onset_ns["lost"][at])


def test_a_tail_loss_probe_that_was_not_needed():
    """The first copy had arrived; the reader was stalled and did not acknowledge (RFC 8985)."""
    net, ab = pair()
    net.data(20, ab, 100, 0, tap=BOTH, ip_id=1)
    net.data(45, ab, 100, 0, tap=BOTH, ip_id=2)
    alive(net, 600)
    found = seen(net)
    assert total(found, "pair", f"{A}->{B}", "needless") == 1
    assert total(found, "pair", f"{A}->{B}", "lost") == 0
    assert total(found, "pair", f"{A}->{B}", "resent") == 1


def test_one_tap_and_a_duplicate_sack():
    net, ab = pair(("n0",))
    net.data(20, ab, 100, 0, ip_id=1)
    net.data(45, ab, 100, 0, ip_id=2)
    net.ack(46, ab, 100, sack_lo=0, sack_hi=100)
    net.packet(700, ab, 0, 0)
    found = seen(net)
    assert total(found, "pair", f"{A}->{B}", "needless") == 1
    assert total(found, "pair", f"{A}->{B}", "lost") == 0


def test_one_tap_without_one_calls_it_lost():
    net, ab = pair(("n0",))
    net.data(20, ab, 100, 0, ip_id=1)
    net.data(245, ab, 100, 0, ip_id=2)
    net.ack(246, ab, 100)
    net.packet(900, ab, 0, 0)
    assert total(seen(net), "pair", f"{A}->{B}", "lost") == 1


def test_reordering_is_no_loss():
    net, ab = pair()
    for i in range(4):
        net.data(20 + i, ab, 100, 100 * i, tap=0, ip_id=i)
    for ms, i in ((30, 0), (31, 2), (32, 1), (33, 3)):
        net.data(ms, ab, 100, 100 * i, tap=1, ip_id=i)
    found = seen(net, 600)
    assert total(found, "pair", f"{A}->{B}", "reordered") == 1
    assert total(found, "pair", f"{A}->{B}", "lost") == 0


def test_a_receiver_s_tap_that_ends_accuses_nobody():
    net, ab = pair()
    net.data(20, ab, 100, 0, tap=BOTH, ip_id=1)
    net.data(120, ab, 100, 100, tap=0, ip_id=2)
    net.data(420, ab, 100, 100, tap=0, ip_id=3)
    net.packet(900, ab, 0, 0)
    assert total(seen(net), "pair", f"{A}->{B}", "lost") == 0


def test_the_fate_of_a_copy_is_told_at_the_end_of_the_capture():
    net, ab = pair()
    net.data(20, ab, 100, 0, tap=0, ip_id=1)
    net.data(60, ab, 100, 0, tap=BOTH, ip_id=2)
    assert total(seen(net), "pair", f"{A}->{B}", "lost") == 1


def test_delayed_acknowledgements_stay_out_of_the_median():
    net, ab = pair()
    for i in range(5):
        net.data(20 + 60 * i, ab, 100, 100 * i, ip_id=i)
        net.ack(60 + 60 * i, ab, 100 * (i + 1))
    found = seen(net)
    assert np.isnan(cell(found[0]["pair"], f"{A}->{B}", "rtt_s"))
    assert cell(found[0]["pair"], f"{A}->{B}", "rtt_min_s") == pytest.approx(0.04)


def test_a_closed_window_lasts_and_is_dated_from_its_shrink():
    net, ab = pair()
    net.data(20, ab, 1000, 0)
    for ms, window in ((30, 1000), (40, 500), (50, 0)):
        net.ack(ms, ab, 1000, window=window)
    net.ack(450, ab, 1000, window=1000)
    found = [r["pair"] for r in seen(net)]
    name = f"{A}->{B}"
    closed = [cell(r, name, "zero_window_s") for r in found if name in r.keys]
    assert closed == pytest.approx([0.05, 0.1, 0.1, 0.1, 0.0])
    assert sum(cell(r, name, "zero_windows") for r in found) == 1
    at = list(found[0].keys).index(name)
    assert found[0].onset_ns["zero_windows"][at] == net.slices()[0].start_ns + 40_000_000


def test_flags_and_marks():
    net, ab = pair()
    net.packet(20, ab, 0, 0, flags=SYN)
    net.packet(21, ab, 0, 0, flags=FIN, ecn=3)
    net.packet(22, ab, 0, 0, flags=RST)
    rows = seen(net)[0]["pair"]
    assert [cell(rows, f"{A}->{B}", n) for n in ("syns", "fins", "rsts", "ce_marks")] == [1, 1, 1, 1]


def test_udp_is_counted():
    net, _ = pair()
    flow = net.flow(A, B, 5, 6, proto=17)
    for ms in range(20, 50, 10):
        net.packet(ms, flow, 0, BOTH, payload_bytes=700)
    rows = seen(net)[0]["pair"]
    assert cell(rows, f"{A}->{B}", "bytes") == 2100
    assert cell(rows, f"{A}->{B}", "segments") == 0


def test_bytes_by_kind():
    net, ab = pair()
    group, served = net.flow(A, B, 1, 2), net.flow(C, A, 3, 80)
    net.message(20, group, 1, tap=BOTH, nbytes=400)
    net.http(20, served, 1)
    net.data(21, served, 300, 0)
    net.data(22, ab, 100, 0, tap=BOTH, ip_id=1)
    rows = seen(net)[0]["pair"]
    assert cell(rows, f"{A}->{B}", "bytes") == 500
    assert cell(rows, f"{A}->{B}", "collective_bytes") == 400
    assert cell(rows, f"{C}->{A}", "http_bytes") == 300
    assert cell(rows, f"{C}->{A}", "inner") == 0.0


def test_cut_and_fragmented_packets_are_not_followed():
    net, ab = pair()
    net.data(20, ab, 100, 0, fault=1)
    net.data(21, ab, 100, 500, fault=4)
    assert total(seen(net), "pair", f"{A}->{B}", "segments") == 0


def test_an_empty_slice_makes_no_rows():
    net, ab = pair()
    net.data(350, ab, 100, 0)
    found = seen(net)
    assert len(found[1]["pair"].keys) == 0
    assert f"{A}->{B}" in found[3]["pair"].keys


def test_lanes_beyond_the_limit_are_counted_without_times(monkeypatch):
    monkeypatch.setattr("skewscope.features.tcp_lanes.MAX_RINGS", 1)
    net, ab = pair()
    more = net.flow(A, B, 7, 7)
    net.ack(2, more, 0)
    for i in range(3):
        net.data(20 + i, ab, 100, 100 * i, ip_id=i)
        net.data(20 + i, more, 100, 100 * i, ip_id=i)
        net.data(22.5 + i, more, 10, 10 * i, way=1, ack=100 * (i + 1))
    rows = seen(net)[0]["pair"]
    assert cell(rows, f"{A}->{B}", "segments") == 6
    assert np.isnan(cell(rows, f"{A}->{B}", "rtt_s"))
