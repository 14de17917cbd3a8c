"""A plausible report of a tensor-parallel straggler, made by hand for tests of the renderers."""

from __future__ import annotations

import random

from skewscope.core import report as r

T0 = 1_796_047_362_584_615_200
ONSET = T0 + 31_400_000_000
END = T0 + 61_400_000_000
LAST = T0 + 92_000_000_000
MS = 1_000_000
RANKS = ["10.77.0.10", "10.77.0.11", "10.77.0.12", "10.77.0.13"]
CLIENT, ROUTER = "10.77.0.30", "10.77.0.20"


def _file(index: int) -> str:
    return f"captures/n{index}.pcap.gz"


def _lanes(label: str, start: int, own_of_slow_ms: int) -> r.Lanes:
    spans = []
    for index, member in enumerate(RANKS):
        own = own_of_slow_ms if index == 2 else 41
        frame = (_file(index), 10_233 + index)
        spans.append(r.LaneSpan(member, "own", start, start + own * MS, frame))
        spans.append(r.LaneSpan(member, "wait", start + own * MS, start + own_of_slow_ms * MS))
        begin = start + own_of_slow_ms * MS
        spans.append(r.LaneSpan(member, "inside", begin, begin + 1 * MS, frame))
        spans.append(r.LaneSpan(member, "transit", begin + 1 * MS, begin + 2 * MS))
    return r.Lanes(
        "g1", label, start, start + (own_of_slow_ms + 3) * MS, [s for s in spans if s.end_ns > s.start_ns]
    )


def _series() -> list[r.Series]:
    rng = random.Random(7)
    out = []
    ts = [T0 + k * 1_000_000_000 for k in range(92)]
    for index, member in enumerate(RANKS):
        values: list[float | None] = []
        for t in ts:
            slow = index == 2 and ONSET <= t < END
            values.append((0.092 if slow else 0.041) + rng.gauss(0, 0.0015 if slow else 0.0003))
        values[5] = None
        out.append(r.Series("member", member, "own_time_p95_s", "s", ts, values))
    step: list[float | None] = [(0.143 if ONSET <= t < END else 0.086) + rng.gauss(0, 0.001) for t in ts]
    out.append(r.Series("group", "g1", "step_s", "s", ts, step))
    gap: list[float | None] = [(0.149 if ONSET <= t < END else 0.087) + rng.gauss(0, 0.002) for t in ts]
    out.append(r.Series("endpoint", "10.77.0.10:8000", "chunk_gap_p50_s", "s", ts, gap))
    return out


def _streams() -> list[r.StreamRow]:
    rows = []
    for k in range(14):
        start = T0 + (24_000 + 900 * k) * MS
        first = start + (260 if start < ONSET else 410) * MS
        chunks, now = [first], first
        for _ in range(36):
            now += (87 if now < ONSET else 149) * MS
            chunks.append(now)
        end = None if k == 13 else now + 2 * MS
        rows.append(
            r.StreamRow(CLIENT, "10.77.0.10:8000", start, first, end, chunks, 200, (_file(0), 900 + k))
        )
    return rows


def _span() -> r.FrameSpan:
    return r.FrameSpan(_file(2), 9_001, 10_600, 840, "ip.addr == 10.77.0.12")


def _evidence() -> list[r.Evidence]:
    return [
        r.Evidence("own_time_p95_s", 0.0954, "s", 0.0415, [(_file(2), 10_235), (_file(2), 10_611)]),
        r.Evidence("own_time_excess_ratio", 2.31, "ratio", 1.0, [(_file(2), 10_235)]),
        r.Evidence("last_to_enter_ratio", 0.96, "ratio", 0.25, [(_file(1), 9_920)]),
        r.Evidence("transit_p50_s", 0.00021, "s", 0.0002, [], [_span()]),
        r.Evidence("retransmissions", 0.0, "count", None, []),
    ]


def _incident() -> r.Incident:
    return r.Incident(
        id="i-1",
        condition="c20",
        title="One rank of a tensor-parallel group is slow in every round",
        score=0.97,
        onset_ns=ONSET,
        detected_ns=ONSET + 1_130 * MS,
        end_ns=END,
        culprits=[
            r.Culprit("rank", "10.77.0.12", "rank 2", 0.95),
            r.Culprit("link", "10.77.0.12->10.77.0.13", "link rank 2 to rank 3", 0.03),
        ],
        causes=[
            r.Cause("host_cpu", 0.46),
            r.Cause("runtime", 0.24),
            r.Cause("gpu", 0.2),
            r.Cause("pcie", 0.1),
        ],
        also=["c17"],
        victims=[
            r.Victim("rank", a, f"rank {i}", "waits 54 ms a round") for i, a in enumerate(RANKS) if i != 2
        ],
        impact=r.Impact(14, 14, 38.2, (0.26, 0.41), (0.087, 0.149), (0.086, 0.143)),
        evidence=_evidence(),
        actions=[
            r.Action(
                "lower_weight",
                "Lower the weight of this replica at the router",
                "low",
                True,
                "own_time_p95_s of the rank is back under 45 ms for 10 s",
            ),
            r.Action("replace_rank", "Restart the rank on another host", "medium", True),
        ],
        ruled_out=[
            r.RuledOut(
                "c23", "transit p50 stayed at 0.21 ms (0.20 ms before): the network did not slow down"
            ),
            r.RuledOut("c38", "96 % of rounds are late, not isolated ones"),
        ],
        timeline=[
            r.TimelineMark(ONSET, "own time of rank 2 leaves its baseline"),
            r.TimelineMark(ONSET + 1_130 * MS, "detected after 10 rounds"),
            r.TimelineMark(END, "own time of rank 2 is back"),
        ],
        cannot_tell=[
            "host CPU, runtime, GPU and PCIe look alike from packets: add host counters of 10.77.0.12"
        ],
        findings=[
            r.Finding(
                "c20", "member", "10.77.0.12", 0.97, ONSET, ONSET + 1_130 * MS, END, _evidence()[:2], 30
            )
        ],
        summary="rank 2 (10.77.0.12) is slow: its own time grew from 41 ms to 95 ms while its peers stayed "
        "at 41 ms; about 38 tokens/s are lost",
    )


def _inputs() -> list[r.Input]:
    return [
        r.Input(
            _file(i),
            "pcap",
            102_133 + i,
            5_400_000,
            T0 + i * MS,
            LAST,
            1,
            114,
            a,
            ["cut to 114 bytes a packet"],
        )
        for i, a in enumerate(RANKS)
    ]


def straggler() -> r.Report:
    """Return a report with one c20 incident."""
    return r.Report(
        inputs=_inputs(),
        span_ns=(T0, LAST),
        incidents=[_incident()],
        no_data=_no_data(),
        hosts=_hosts(),
        edges=_edges(),
        groups=[r.Group("g1", list(RANKS), "gloo", 0.086, 1_040)],
        lanes=[_lanes("healthy", T0 + 20_000 * MS, 41), _lanes("faulty", ONSET + 2_000 * MS, 95)],
        streams=_streams(),
        series=_series(),
        notes=["Data: packet captures, recorded on a test bed"],
    )


def healthy() -> r.Report:
    """Return the same cluster without an incident."""
    base = straggler()
    base.incidents = []
    base.lanes = base.lanes[:1]
    return base


def _no_data() -> list[r.NoData]:
    return [
        r.NoData("c10", ["pcie.h2d_bytes"]),
        r.NoData("c11", ["pcie.d2h_bytes"]),
        r.NoData("c14", ["pcie.h2d_bytes", "pcie.link_width"]),
        r.NoData("c26", ["roce.rnr_nak"]),
    ]


def _hosts() -> list[r.HostRole]:
    ranks = [
        r.HostRole(a, f"rank {i}", ["group member"] + (["engine"] if i == 0 else []), _file(i))
        for i, a in enumerate(RANKS)
    ]
    return [*ranks, r.HostRole(ROUTER, "router", ["gateway"]), r.HostRole(CLIENT, "client 1", ["client"])]


def _edges() -> list[r.Edge]:
    ring = [r.Edge(RANKS[i], RANKS[(i + 1) % 4], "collective", 9_000_000, 48_000) for i in range(4)]
    return [
        *ring,
        r.Edge(CLIENT, ROUTER, "requests", 700_000, 9_000),
        r.Edge(ROUTER, RANKS[0], "requests", 650_000, 8_800),
    ]
