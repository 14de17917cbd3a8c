"""The synthesiser: repeatable, readable by others, and each fault where a real one would show."""

import collections
import struct
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from skewscope.core.scenario import CLIENT, FAULTS, Fault, Scenario, Workload
from skewscope.lab.synth import capture, write

BASE = Scenario("base", "healthy", duration_s=1.2, seed=21, workload=Workload(own_s=0.01, answer_tokens=20))
PAIRS = replace(BASE, workload=Workload(ranks=2, replicas=2, own_s=0.01, clients=8, answer_tokens=8))
EXPERTS = replace(BASE, workload=replace(BASE.workload, pattern="all_to_all"))
BULK = replace(BASE, workload=replace(BASE.workload, bulk_bps=4e6))
Packet = collections.namedtuple("Packet", "ts src dst sport dport seq ack flags window size data wire proto")


def records(data):
    """Yield (time in ns, bytes) of a capture, without any of the product's parsers."""
    at = 24
    while at < len(data):
        second, nano, kept, _ = struct.unpack_from("<IIII", data, at)
        yield second * 1_000_000_000 + nano, data[at + 16 : at + 16 + kept]
        at += 16 + kept


def packets(data):
    for ts, frame in records(data):
        total, proto = struct.unpack_from(">H", frame, 16)[0], frame[23]
        src, dst = (".".join(map(str, frame[a : a + 4])) for a in (26, 30))
        sport, dport, seq, ack = struct.unpack_from(">HHII", frame, 34)
        if proto == 17:
            yield Packet(ts / 1e9, src, dst, sport, dport, 0, 0, 0, 0, total - 28, b"", total, 17)
            continue
        head = (frame[46] >> 4) * 4
        window = struct.unpack_from(">H", frame, 48)[0]
        size, data_ = total - 20 - head, frame[34 + head :]
        yield Packet(ts / 1e9, src, dst, sport, dport, seq, ack, frame[47], window, size, data_, total, 6)


def with_fault(fault, base=BASE):
    return replace(base, faults=(fault,))


def resent(seen, by=None, to=None):
    """Count data segments of which one tap saw a copy before."""
    count, known = 0, set()
    for p in seen:
        if p.size and by in (None, p.src) and to in (None, p.dst):
            copy = p.src, p.dst, p.sport, p.dport, p.seq
            count += copy in known
            known.add(copy)
    return count


def steps(seen):
    """Return the times of the broadcasts of a root: the first data message of each."""
    tags = {}
    for p in seen:
        if len(p.data) >= 48 and p.data[23] == 6 and p.data[8] == 1:
            tags.setdefault((p.src, p.data[19:23]), p.ts)
    return np.sort(list(tags.values()))


@pytest.fixture(scope="module")
def healthy():
    files, truth = capture(BASE)
    return {n: list(packets(d)) for n, d in files.items()}, truth


def taps(scenario):
    files, truth = capture(scenario)
    start = truth["first_sample_ns"] / 1e9
    return {n: list(packets(d)) for n, d in files.items()}, truth["hosts"], start


def test_the_same_scenario_gives_the_same_bytes_and_another_seed_others():
    short = replace(BASE, duration_s=0.3)
    files, truth = capture(short)
    assert capture(short) == (files, truth)
    other, elsewhere = capture(replace(short, seed=22))
    assert set(other) == set(files)
    assert not set(truth["hosts"].values()) & set(elsewhere["hosts"].values())


def test_it_writes_one_file_per_tap_and_says_that_it_is_synthetic(tmp_path):
    truth = write(replace(BASE, duration_s=0.2, taps=("n1", "rt")), tmp_path / "case")
    assert sorted(f.name for f in (tmp_path / "case").iterdir()) == ["n1.pcap", "rt.pcap"]
    assert truth["synthetic"] is True
    frame = (tmp_path / "case" / "n1.pcap").read_bytes()[40:]
    assert frame[:4] == frame[6:10] == b"\x02SYN"


def test_unknown_faults_and_taps_are_refused():
    with pytest.raises(ValueError, match="unknown faults"):
        capture(with_fault(Fault("gremlins", 0, 1)))
    with pytest.raises(ValueError, match="no such taps"):
        capture(replace(BASE, taps=("n9",)))


def test_healthy_traffic_loses_nothing_and_keeps_time(healthy):
    seen, truth = healthy
    assert set(seen) == {"n0", "n1", "n2", "n3", "lg"}
    for packets_ in seen.values():
        assert resent(packets_) == 0
        assert all(a.ts <= b.ts for a, b in pairwise(packets_))
    gaps = np.diff(steps(seen["n0"]))
    assert 0.02 < np.median(gaps) < 0.03
    assert truth["fault"] == []


def test_a_ring_edge_carries_the_messages_of_gloo(healthy):
    seen, truth = healthy
    left, right = truth["hosts"]["n0"], truth["hosts"]["n1"]
    kinds, rounds = collections.Counter(), set()
    for p in seen["n0"]:
        begins = p.data[9:16] == bytes(7) and p.data[23:24] == b"\x04"  # not the middle of a long message
        if begins and {p.src, p.dst} == {left, right}:
            kinds[p.src == left, p.data[8]] += 1
            rounds.add(p.data[19:23])
    per_round = {k: v / len(rounds) for k, v in kinds.items()}
    # Data flows to the left neighbour: readiness to receive goes right, readiness to send and data left.
    assert per_round == pytest.approx({(True, 3): 12, (False, 2): 12, (False, 1): 12}, rel=0.05)


def test_responses_stream_as_chunks(healthy):
    seen, _ = healthy
    text = b"".join(p.data for p in seen["lg"])
    assert text.count(b"HTTP/1.1 200 OK") > 3
    assert text.count(b"data: {") > 100
    assert text.count(b"0\r\n\r\n") >= text.count(b"data: [DONE]") > 3


def test_opaque_framing_keeps_the_rhythm_and_hides_the_preambles(healthy):
    opaque, _, _ = taps(replace(BASE, workload=replace(BASE.workload, framing="opaque")))
    assert len(steps(opaque["n0"])) == 0
    assert len(opaque["n0"]) == pytest.approx(len(healthy[0]["n0"]), rel=0.1)


SPECIAL = {
    "reader_stops": BULK,
    "hot_expert": EXPERTS,
    "starved_heartbeat": replace(BASE, workload=replace(BASE.workload, heartbeat_s=0.05)),
}
"""What a fault needs to sit on."""


@pytest.mark.parametrize("kind", FAULTS)
def test_every_fault_runs_and_changes_the_traffic_only_from_its_start(kind, healthy):
    base = PAIRS if "routing" in kind else SPECIAL.get(kind, BASE)
    strength = {
        "straggler": 2.0, "pause": 0.2, "host_busy": 0.8, "loss": 0.05, "delay": 0.003, "jitter": 0.003,
        "reorder": 0.002, "rate_limit": 3e6, "cross_traffic": 1e7, "mtu": 500.0, "slow_reader": 0.4,
        "long_prompts": 20.0, "overload": 4.0, "uneven_routing": 10.0, "egress_jitter": 1.0,
        "slow_front_end": 0.01, "token_blind_routing": 6.0, "hot_expert": 2.5,
        "starved_heartbeat": 0.1, "fetch": 2e7, "upload": 2e7, "gateway_buffer": 2000.0,
    }.get(kind, 1.0)  # fmt: skip
    if kind == "slow_reader":
        base = replace(base, workload=replace(base.workload, answer_tokens=200))
    target = 0 if kind in ("egress_jitter", "static_batching", "slow_front_end", "reader_stops") else 1
    base = replace(base, duration_s=0.8)
    files, truth = capture(replace(base, faults=(Fault(kind, 0.3, 0.7, target, strength, share=0.5),)))
    clean, _ = clean_run(base)
    (fault,) = truth["fault"]
    assert fault["culprit"]["id"] in truth["hosts"].values()
    assert files != clean
    if kind != "slow_reader":  # a slow reader's small buffer is there from the beginning
        # A tap writes a frame up to some microseconds after the event that made it.
        early = fault["onset_ns"] - 20_000
        for name, data in files.items():
            before = [r for r in records(data) if r[0] < early]
            assert before == [r for r in records(clean[name]) if r[0] < early]


clean_run = cache(capture)


def test_loss_on_the_way_up_shows_both_copies_at_the_senders_own_tap():
    seen, hosts, _ = taps(with_fault(Fault("loss", 0.2, 1.1, 1, 0.05, where="up")))
    n1 = hosts["n1"]
    assert resent(seen["n1"], by=n1) > 3
    arrived = resent(seen["n0"], by=n1) + resent(seen["n2"], by=n1)
    assert arrived < resent(seen["n1"], by=n1) / 2 + 2


def test_loss_on_the_way_down_shows_both_copies_at_the_senders_tap_only():
    seen, hosts, _ = taps(with_fault(Fault("loss", 0.2, 1.1, 1, 0.05, where="down")))
    n1 = hosts["n1"]
    senders = resent(seen["n0"], to=n1) + resent(seen["n2"], to=n1)
    assert senders > 3
    assert resent(seen["n1"], to=n1) < senders / 2 + 2


def test_a_relay_lengthens_the_round_trip_at_the_nodes_own_tap():
    seen, hosts, start = taps(with_fault(Fault("delay", 0.6, 1.2, 1, 0.004)))
    trips = []
    waiting = {}
    for p in seen["n1"]:
        if p.src == hosts["n1"] and p.size and p.ts > start + 0.7:
            waiting.setdefault((p.dst, p.sport), (p.seq + p.size, p.ts))
        elif p.dst == hosts["n1"]:
            want = waiting.get((p.src, p.dport))
            if want and p.ack >= want[0]:
                trips.append(p.ts - want[1])
                del waiting[p.src, p.dport]
    assert 0.008 <= np.median(trips) < 0.02


def test_a_pause_stops_rounds_and_draws_probes_to_the_paused_rank():
    seen, hosts, _start = taps(with_fault(Fault("pause", 0.6, 0.9, 2, 0.2)))
    gaps = np.diff(steps(seen["n0"]))
    assert 0.19 < gaps.max() < 0.26
    assert resent(seen["n2"], to=hosts["n2"]) > 0
    assert resent(seen["n2"], by=hosts["n2"]) == 0


def test_a_crash_closes_every_connection_of_the_rank_and_ends_the_rounds():
    seen, hosts, start = taps(with_fault(Fault("crash", 0.6, 1.2, 3)))
    fins = [p for p in seen["n3"] if p.flags & 1 and p.src == hosts["n3"]]
    assert len(fins) >= 2
    assert all(start + 0.6 < p.ts < start + 0.65 for p in fins)
    assert steps(seen["n0"]).max() < start + 0.7


def test_an_mtu_swallows_large_frames_at_the_port():
    base = replace(BASE, workload=replace(BASE.workload, message_bytes=16_384))
    seen, _hosts, start = taps(replace(base, faults=(Fault("mtu", 0.5, 1.2, 3, 1000.0),)))
    late = [p for p in seen["n3"] if p.ts > start + 0.501]
    assert max(p.wire for p in late) <= 1000
    assert max(p.wire for p in seen["n0"] if p.ts > start + 0.5) > 1000


def test_a_closed_window_is_announced_and_probed():
    seen, hosts, start = taps(replace(BULK, duration_s=2.0, faults=(Fault("reader_stops", 0.5, 1.6, 0),)))
    zero = [p for p in seen["n0"] if p.window == 0 and p.src == hosts["n0"]]
    assert zero
    assert all(start + 0.5 < p.ts < start + 1.65 for p in zero)
    again = [p for p in seen["n0"] if p.src == hosts["n1"] and p.size > 1000 and p.ts > start + 1.65]
    assert again


def test_slow_clients_close_their_windows():
    w = Workload(own_s=0.01, answer_tokens=300, clients=4)
    base = replace(BASE, duration_s=3.0, workload=w)
    seen, hosts, _start = taps(replace(base, faults=(Fault("slow_reader", 0.5, 2.9, -1, 0.8, share=0.5),)))
    zero = {p.sport for p in seen["lg"] if p.window == 0 and p.src == hosts["lg"]}
    assert len(zero) == 2


def test_foreign_packets_share_the_port():
    seen, _hosts, _start = taps(with_fault(Fault("cross_traffic", 0.4, 1.0, 2, 2e7)))
    foreign = [p for p in seen["n2"] if p.proto == 17]
    assert sum(8 * (p.wire + 14) for p in foreign) / 0.6 == pytest.approx(2e7, rel=0.15)


def test_overload_fills_the_slots_and_lengthens_the_wait():
    w = Workload(own_s=0.01, answer_tokens=20, slots=4, clients=4)
    faults = (Fault("overload", 0.4, 2.0, -1, 4.0),)
    seen, _, start = taps(replace(BASE, duration_s=2.0, workload=w, faults=faults))
    waits = []
    asked = {}
    for p in seen["lg"]:
        if p.data[:4] == b"POST":
            asked[p.sport] = p.ts
        elif b"data: {" in p.data and p.dport in asked:
            waits.append((asked[p.dport], p.ts - asked.pop(p.dport)))
    before = [w for at, w in waits if at < start + 0.4]
    during = [w for at, w in waits if at > start + 0.45]
    assert np.median(during) > 3 * np.median(before)


def test_a_weighted_gateway_starves_the_other_replica():
    seen, hosts, start = taps(
        replace(PAIRS, duration_s=2.0, faults=(Fault("uneven_routing", 0.4, 2.0, -1, 15.0),))
    )
    posts = [
        sum(p.data[:4] == b"POST" and p.dst == hosts[n] and p.ts > start + 0.45 for p in seen[n])
        for n in ("n0", "n2")
    ]
    assert posts[0] > 4 * max(posts[1], 1)


def test_engines_on_one_host_share_its_address_but_not_their_time():
    shared = replace(BASE, workload=Workload(ranks=1, replicas=4, per_host=2, clients=8, own_s=0.01))
    files, truth = capture(with_fault(Fault("straggler", 0.3, 1.2, 2, 3.0), shared))
    assert sorted(files) == ["lg", "n0", "n1"]
    assert truth["fault"][0]["culprit_ids_right"] == [truth["hosts"]["n1"]]
    served = collections.Counter(
        p.sport for p in packets(files["n1"]) if p.size and p.src == truth["hosts"]["n1"]
    )
    assert len(served) == 2
    assert min(served.values()) < 0.6 * max(served.values())


def test_ranks_on_one_host_talk_unseen():
    files, _truth = capture(replace(BASE, workload=replace(BASE.workload, per_host=2)))
    assert sorted(files) == ["lg", "n0", "n1"]
    for name in ("n0", "n1"):
        seen = list(packets(files[name]))
        assert len(steps(seen)) > 10
        assert all(p.src != p.dst for p in seen)


def test_a_fault_on_all_ranks_names_them_all():
    files, truth = capture(with_fault(Fault("straggler", 0.4, 1.2, -1, 3.0)))
    assert truth["fault"][0]["culprit_ids_right"] == [truth["hosts"][f"n{i}"] for i in range(4)]
    gaps = np.diff(steps(packets(files["n1"])))
    assert max(gaps[-6:]) > 2 * max(gaps[:6])


def test_loss_at_the_clients_leaves_the_cluster_alone():
    asking = replace(BASE, workload=replace(BASE.workload, answer_tokens=4, clients=8))
    files, truth = capture(with_fault(Fault("loss", 0.2, 1.2, CLIENT, 0.3, where="up"), asking))
    client = truth["hosts"]["lg"]
    assert truth["fault"][0]["culprit_ids_right"] == [client]
    assert resent(packets(files["lg"]), by=client) > 0
    assert all(resent(packets(files[f"n{i}"])) == 0 for i in range(4))
