"""The synthetic ring over RoCE: what a capture shows must be what the protocol and the truth say."""

import ipaddress
import shutil
import struct
import subprocess
import tempfile
from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from skewscope.app.pipeline import tables
from skewscope.core.directory import Directory
from skewscope.lab.synth.roce_ring import CTS_BYTES, Ring, RingFault, capture, write
from skewscope.wire import icrc
from skewscope.wire.packets import PacketParser
from skewscope.wire.roce_codes import (
    ACKNOWLEDGE,
    AETH,
    CNP,
    IMMEDIATE,
    RETH,
    WRITE_LAST_IMM,
    WRITE_ONLY,
    WRITE_ONLY_IMM,
)

BASE = Ring(ranks=3, steps=3, collectives=3, message_bytes=60_000, gap_s=5e-4, seed=7)
MESSAGES = 3 * 3 * 4 * 2
"""Of one connection's both channels: steps x collectives x rounds x channels."""


@cache
def shown(ring):
    """Return (roce rows by host, truth)."""
    with tempfile.TemporaryDirectory() as folder:
        truth = write(ring, Path(folder))
        return {f.stem: tables([f])["roce"] for f in sorted(Path(folder).iterdir())}, truth


def rows(table, keep):
    return [{n: int(table[n][i]) for n in table.columns} for i in np.flatnonzero(keep)]


def is_data(table):
    return (table["has"] & IMMEDIATE) > 0


def is_grant(table):
    return (table["opcode"] == WRITE_ONLY) & (table["dma_bytes"] == CTS_BYTES)


def test_the_same_ring_gives_the_same_bytes():
    again = capture(BASE)
    assert again == capture(BASE)
    other = capture(replace(BASE, seed=8))
    assert other[0]["h0"] != again[0]["h0"]


@pytest.mark.parametrize(
    "ring",
    [
        BASE,
        replace(BASE, ipv6=True, vlan=9, dscp=26),
        replace(BASE, qps=2, mtu=1024),
        replace(BASE, low_latency=True, message_bytes=4_000),
        replace(BASE, message_bytes=600, channels=1),
        replace(BASE, faults=(RingFault("loss", 1, 0.02), RingFault("rnr", 2, 0.05))),
    ],
)
def test_messages_and_grants_pair_up(ring):
    hosts, truth = shown(ring)
    expected = ring.steps * ring.collectives * truth["rounds"] * ring.channels
    for table in hosts.values():
        assert not table["fault"].any()
        assert set(table["immediate"][is_data(table)].tolist()) == {truth["message_bytes"]}
        seen = defaultdict(set)
        for row in rows(table, is_data(table) | is_grant(table)):
            seen[row["src"], row["qp"], row["has"] & IMMEDIATE].add(row["psn"])
        kinds = Counter()
        for (src, _, data), numbers in seen.items():
            kinds[src, data] += len(numbers)
        assert list(kinds.values()) == [expected] * 4  # data and grants, out and in


def test_sequence_numbers_count_from_zero_on_each_queue_pair():
    hosts, truth = shown(replace(BASE, qps=2))
    for table in hosts.values():
        requests = table.take(table["opcode"] != ACKNOWLEDGE)
        for qp in np.unique(requests["qp"]):
            numbers = requests["psn"][requests["qp"] == qp]
            assert numbers.tolist() == list(range(len(numbers)))
        acknowledged = rows(table, table["opcode"] == ACKNOWLEDGE)
        assert len({r["qp"] for r in acknowledged}) == 2 * 2 * 2 * 2
        assert truth["hosts"] == [0, 1, 2]


def test_the_receiver_grants_and_the_sender_answers():
    hosts, truth = shown(BASE)
    table, me = hosts["h0"], truth["ranks"][0]
    assert me.startswith("10.")
    by_channel = defaultdict(list)
    for row in rows(table, is_data(table) | is_grant(table)):
        by_channel[row["flow"], row["qp"]].append(row)
    assert len(by_channel) == 8
    balance = Counter()
    partner = {}
    for row in rows(table, is_data(table) | is_grant(table)):
        ends = tuple(sorted((row["src"], row["dst"])))
        grant = not row["has"] & IMMEDIATE
        partner.setdefault((ends, grant), set()).add((row["src"], row["dst"]))
        balance[ends] += 1 if grant else -1
        assert balance[ends] >= 0
    for (ends, grant), directions in partner.items():
        assert len(directions) == 1
        assert directions != partner[ends, not grant]


def test_long_messages_are_cut_by_the_mtu():
    hosts, truth = shown(BASE)
    size = truth["message_bytes"]
    table = hosts["h0"]
    writes = table.take((table["opcode"] != ACKNOWLEDGE) & ~is_grant(table))
    firsts = writes["dma_bytes"][(writes["has"] & RETH) > 0]
    assert set(firsts.tolist()) == {size}
    assert int(writes["payload_bytes"].sum()) == size * len(firsts)
    assert int(writes["payload_bytes"].max()) == BASE.mtu
    assert set(writes["opcode"][is_data(writes)].tolist()) == {WRITE_LAST_IMM}


def test_split_messages_end_with_an_empty_write():
    hosts, truth = shown(replace(BASE, split=True))
    table = hosts["h0"]
    data = table.take(is_data(table))
    assert set(data["opcode"].tolist()) == {WRITE_ONLY_IMM}
    assert not data["payload_bytes"].any()
    assert set(data["immediate"].tolist()) == {truth["message_bytes"]}


def test_acknowledgements_are_shared():
    hosts, _ = shown(replace(BASE, message_bytes=600, own_s=1e-6))
    table = hosts["h0"]
    asked = int(((table["bits"] & 16) > 0).sum())
    answers = rows(table, (table["has"] & AETH) > 0)
    assert 0 < len(answers) < asked
    assert {r["syndrome"] for r in answers} == {0x1F}


def test_every_crc_is_right_even_where_marked():
    ring = replace(BASE, snap_length=262_144, faults=(RingFault("congestion", 1, 0.2),))
    for six in (False, True):
        files, _ = capture(replace(ring, ipv6=six))
        results = Counter()
        for data in files.values():
            at, starts, sizes = 24, [], []
            while at < len(data):
                kept = struct.unpack_from("<I", data, at + 8)[0]
                starts.append(at + 16)
                sizes.append(kept)
                at += 16 + kept
            zero, size = np.zeros(len(starts), np.int64), np.array(sizes, np.int64)
            buf = np.frombuffer(data, np.uint8)
            parsed = PacketParser(Directory()).parse(buf, zero, np.array(starts, np.int64), size, size, 0, 1)
            results.update(icrc.verify(buf, parsed.packets).tolist())
            assert (parsed.roce["ecn"] == 3).any() or data is not files["h1"]
        assert list(results) == [icrc.RIGHT]


def test_loss_shows_at_the_sender_only_and_is_repaired():
    hosts, truth = shown(replace(BASE, steps=6, faults=(RingFault("loss", 1, 0.02, 2, 4),)))
    assert truth["lost"][1] > 5
    assert truth["lost"][0] == truth["lost"][2] == 0
    assert len(truth["begun_ns"]) == 18  # the ring came to its end
    nak = [r for t in (hosts["h1"],) for r in rows(t, (t["syndrome"] == 0x60) & (t["dst"] != 0))]
    assert nak
    onset, end = truth["fault"][0]["onset_ns"], truth["fault"][0]["end_ns"]
    assert all(onset <= r["ts_ns"] <= end + 10_000_000 for r in nak)
    for row in nak:  # what was missing comes again, after the NAK
        sender = [t for t in hosts.values() if (t["qp"] == row["qp"]).any()]
        assert sender
    near, far = hosts["h0"], hosts["h1"]
    sent = Counter(zip(near["qp"].tolist(), near["psn"].tolist(), near["opcode"].tolist(), strict=True))
    got = Counter(zip(far["qp"].tolist(), far["psn"].tolist(), far["opcode"].tolist(), strict=True))
    repeated = [k for k, n in sent.items() if n > 1 and k[2] != ACKNOWLEDGE]
    assert repeated
    assert any(sent[k] > got.get(k, 0) for k in repeated)


def test_rnr_naks_hold_the_sender_for_the_told_time():
    hosts, _ = shown(replace(BASE, channels=1, faults=(RingFault("rnr", 1, 0.1),)))
    table = hosts["h1"]
    naks = rows(table, table["syndrome"] == 0x2C)
    assert naks
    for nak in naks:
        again = [
            r["ts_ns"]
            for r in rows(table, is_data(table) & (table["psn"] == nak["psn"]) & (table["dst"] == nak["src"]))
            if r["ts_ns"] > nak["ts_ns"]
        ]
        assert min(again) - nak["ts_ns"] >= 640_000


def test_marks_bring_notifications_to_the_sending_queue_pair():
    hosts, truth = shown(replace(BASE, faults=(RingFault("congestion", 1, 0.2, 1, 2),)))
    table = hosts["h1"]
    marked = rows(table, table["ecn"] == 3)
    told = rows(table, (table["opcode"] == CNP) & (table["ecn"] != 3))
    assert len(marked) >= len(told) > 0
    assert {r["dst"] for r in marked} == {r["src"] for r in told if r["bits"] & 8}
    onset = truth["fault"][0]["onset_ns"]
    assert min(r["ts_ns"] for r in marked) >= onset
    answered = Counter((r["dst"], r["qp"]) for r in told)
    assert max(answered.values()) <= 1 + (max(r["ts_ns"] for r in told) - onset) / 50_000
    assert not (hosts["h0"]["ecn"] == 3).any()


def begin_lag(truth, first, last):
    begun = np.array(truth["begun_ns"][first:last], float)
    return np.median(begun - begun.min(axis=1, keepdims=True), axis=0)


def test_a_slow_rank_begins_late_and_a_slow_receiver_does_not():
    ring = replace(BASE, steps=8, own_spread=0.02)
    slow = shown(replace(ring, faults=(RingFault("slow_rank", 2, 3.0, 4, 8),)))[1]
    assert begin_lag(slow, 12, 24)[2] > 100_000 > 20_000 > begin_lag(slow, 0, 12)[2]
    late = shown(replace(ring, faults=(RingFault("slow_receiver", 2, 200e-6, 4, 8),)))[1]
    assert begin_lag(late, 12, 24)[2] < 20_000
    period = np.diff(np.array(late["begun_ns"])[:, 0])
    assert np.median(period[13:]) > np.median(period[:10]) + 150_000


def test_a_slow_link_stretches_its_frames():
    ring = replace(BASE, own_spread=0.0)
    plain, slow = (shown(replace(ring, faults=f))[1] for f in ((), (RingFault("slow_link", 1, 20.0),)))
    spans = [t["begun_ns"][-1][0] - t["begun_ns"][0][0] for t in (plain, slow)]
    assert spans[1] > 1.3 * spans[0]


def test_ranks_of_one_host_are_not_captured_between_each_other():
    hosts, truth = shown(replace(BASE, ranks=4, per_host=2))
    assert len(hosts) == 2
    assert truth["hosts"] == [0, 0, 1, 1]
    ends = {(int(s), int(d)) for s, d in zip(hosts["h0"]["src"], hosts["h0"]["dst"], strict=True)}
    assert len(ends) == 4  # ranks 1 and 2, ranks 3 and 0, both ways
    assert [ipaddress.ip_address(a).packed[-1] for a in truth["ranks"]] == [1, 2, 3, 4]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_others_can_read_it(tmp_path):
    faults = (RingFault("loss", 1, 0.05), RingFault("rnr", 0, 0.1))
    write(replace(BASE, steps=1, snap_length=262_144, faults=faults), tmp_path)
    command = ["tshark", "-r", str(tmp_path / "h1.pcap"), "-T", "fields", "-E", "occurrence=f"]
    for field in ("infiniband.bth.psn", "infiniband.immdt", "_ws.malformed", "_ws.expert.severity"):
        command += ["-e", field]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    rows_ = [line.split("\t") for line in lines.splitlines()]
    table = tables([tmp_path / "h1.pcap"])["roce"]
    assert [int(r[0]) for r in rows_] == table["psn"].tolist()
    assert [int(r[1] or "0", 16) for r in rows_] == table["immediate"].tolist()
    assert not any(r[2] or r[3] for r in rows_)


def test_clocks_of_taps_may_be_off():
    plain, _ = shown(BASE)
    off, _ = shown(replace(BASE, clock_spread_s=1e-3))
    shifts = [set((off[h]["ts_ns"] - plain[h]["ts_ns"]).tolist()) for h in plain]
    assert all(len(s) == 1 for s in shifts)
    assert len(set.union(*shifts)) == 3


def test_heavy_loss_ends_too():
    ring = replace(BASE, qps=2, split=True, faults=(RingFault("loss", 0, 0.2), RingFault("loss", 1, 0.2)))
    truth = shown(ring)[1]
    assert [len(row) for row in truth["begun_ns"]] == [3] * 9
    assert min(truth["lost"][:2]) > 20


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="unknown faults"):
        capture(replace(BASE, faults=(RingFault("flood", 0, 1.0),)))
    with pytest.raises(ValueError, match="1 ranks"):
        capture(replace(BASE, ranks=1))
