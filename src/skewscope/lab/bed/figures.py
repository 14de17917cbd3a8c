"""Figures of a stretch of a run, from the engine's and the clients' own logs: truth beside the packets."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

IDLE_NS = 60_000_000
"""A pause between two steps that is longer than this is idle time of the engine, unless requests are open."""
COUNTS = {
    "retransmissions": ("RetransSegs",),
    "probes": ("TCPLossProbes",),
    "zero_windows": ("TCPToZeroWindowAdv",),
    "resets": ("OutRsts",),
    "segments": ("InSegs", "OutSegs"),
}
"""Figure -> TCP counters of the kernel, summed over the nodes."""


@dataclass(frozen=True)
class Span:
    """A stretch of time and what the kernel counted in it, per node."""

    start_ns: int
    end_ns: int
    counted: Mapping[str, int]

    @property
    def duration_s(self) -> float:
        """Length in s."""
        return (self.end_ns - self.start_ns) / 1e9


def rows(file: Path) -> list[dict[str, Any]]:
    """Return the rows of a JSON-lines log; a last line cut short is left out."""
    if not file.exists():
        return []
    lines = file.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.endswith("}")]


def quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile of a sample (nearest rank); NaN where there is none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else math.nan


def steps(logs: Sequence[Sequence[Mapping[str, Any]]], span: Span) -> dict[str, float]:
    """Return step figures in ms: the worst replica's median, 95th percentile and longest, and shares.

    `logs` holds rank 0's rows of each replica. A step lasts from its start to the next one's, so that a
    stop between steps counts; prefill steps are left out. `batch_mean` is in sequences, `replica_share` is
    the largest replica's tokens over the smallest's.
    """
    medians, tails, longest, work, count = [], [], [], [], 0
    for log in logs:
        inside = [r for r in log if span.start_ns <= r["start_ns"] < span.end_ns]
        lasted = [
            (b["start_ns"] - a["start_ns"]) / 1e6
            for a, b in pairwise(inside)
            if not a["prefill"] and b["start_ns"] - a["end_ns"] < IDLE_NS
        ]
        medians.append(quantile(lasted, 0.5))
        tails.append(quantile(lasted, 0.95))
        reach = [r for r in log if r["end_ns"] > span.start_ns and r["start_ns"] < span.end_ns]
        longest.append(max(((r["end_ns"] - r["start_ns"]) / 1e6 for r in reach), default=math.nan))
        work.append(sum(r["decode"] + bool(r["prefill"]) for r in inside))
        count += len(inside)
    return {
        "step_p50_ms": _worst(medians),
        "step_p95_ms": _worst(tails),
        "step_max_ms": _worst(longest),
        "steps_per_s": count / span.duration_s,
        "batch_mean": sum(work) / max(1, count),
        "replica_share": max(work, default=0) / max(1, min(work, default=1)),
    }


def entries(logs: Sequence[Sequence[Mapping[str, Any]]], span: Span) -> float:
    """Return the 95th percentile, in ms, of how late the last rank of a group enters a round.

    `logs` holds the rows of all ranks of one stage. Steps are matched by number.
    """
    by_step = [{r["step"]: r for r in log} for log in logs]
    lags = []
    for number, row in by_step[0].items():
        if not span.start_ns <= row["start_ns"] < span.end_ns or any(number not in b for b in by_step):
            continue
        for marks in zip(*([b[number]["start_ns"] / 1e3 + m for m in b[number]["enter_us"]] for b in by_step),
                         strict=False):  # fmt: skip
            lags.append((max(marks) - min(marks)) / 1e3)
    return quantile(lags, 0.95)


def requests(log: Sequence[Mapping[str, Any]], span: Span) -> dict[str, float]:
    """Return client figures: waits count from when a request was due; what never came counts to the end."""
    due = [r for r in log if span.start_ns <= r["due_ns"] < span.end_ns]
    waits = [((r["first_ns"] or max(span.end_ns, r["due_ns"])) - r["due_ns"]) / 1e6 for r in due]
    gaps: list[float] = []
    tokens = 0
    for r in log:
        if r["first_ns"] is None or r["first_ns"] > span.end_ns:
            continue
        at = r["first_ns"]
        for gap in r["gaps_us"]:
            at += gap * 1000
            if span.start_ns <= at < span.end_ns:
                gaps.append(gap / 1e3)
                tokens += 1
    done = [r for r in log if r["ended"] == "complete" and span.start_ns <= (r["end_ns"] or 0) < span.end_ns]
    return {
        "ttft_p50_ms": quantile(waits, 0.5),
        "ttft_p95_ms": quantile(waits, 0.95),
        "gap_p50_ms": quantile(gaps, 0.5),
        "gap_p95_ms": quantile(gaps, 0.95),
        "gap_max_ms": max(gaps, default=math.nan),
        "goodput_rps": len(done) / span.duration_s,
        "chunks_per_s": tokens / span.duration_s,
        "requests": float(len(due)),
        "failed": float(sum(r["ended"] in ("failed", "refused", "closed") for r in due)),
    }


def counts(span: Span) -> dict[str, float]:
    """Return the kernel's counts of the stretch."""
    return {name: float(sum(span.counted.get(k, 0) for k in keys)) for name, keys in COUNTS.items()}


def transfers(log: Sequence[Mapping[str, Any]], span: Span) -> dict[str, float]:
    """Return the median time in ms of bulk transfers that began in the stretch, and how many failed."""
    inside = [r for r in log if span.start_ns <= r["start_ns"] < span.end_ns]
    return {
        "transfer_p50_ms": quantile([(r["end_ns"] - r["start_ns"]) / 1e6 for r in inside], 0.5),
        "failed_transfers": float(sum(not r.get("whole", True) for r in inside)),
    }


def beats(logs: Sequence[Sequence[Mapping[str, Any]]], span: Span) -> dict[str, float]:
    """Return the longest gap in ms between two heartbeats of a node; a part of it lies in the stretch."""
    gaps = [
        (b["ts_ns"] - a["ts_ns"]) / 1e6
        for log in logs
        for a, b in pairwise(log)
        if b["ts_ns"] > span.start_ns and a["ts_ns"] < span.end_ns
    ]
    return {"beat_gap_ms": max(gaps, default=math.nan)}


def health(log: Sequence[Mapping[str, Any]], span: Span) -> dict[str, float]:
    """Return how many health probes of the stretch got no "200"."""
    inside = [r for r in log if span.start_ns <= r["ts_ns"] < span.end_ns]
    return {"failed_probes": float(sum(r["health"] != 200 for r in inside))}


def pages(texts: Sequence[tuple[int, str]], span: Span) -> dict[str, float]:
    """Return how many scraped pages (time in ns, text) of the stretch are the same as the one before."""
    inside = [text for at, text in texts if span.start_ns <= at < span.end_ns]
    return {"stale_pages": float(sum(a == b for a, b in pairwise(inside)))}


def ratio(fault: Mapping[str, float], paired: Mapping[str, float], figure: str) -> float:
    """Return a figure with the fault over the same figure without; NaN where either is not known."""
    a, b = fault.get(figure, math.nan), paired.get(figure, math.nan)
    return a / b if b > 0 else math.nan


def shown(
    fault: Mapping[str, float],
    paired: Mapping[str, float],
    least_ratio: Mapping[str, float],
    least_excess: Mapping[str, float],
) -> bool:
    """Return whether a fault had a measurable effect: one of the figures moved as far as asked.

    A least ratio under 1 asks for a fall to at most that.
    """
    for figure, least in least_ratio.items():
        moved = ratio(fault, paired, figure)
        if not math.isnan(moved) and (moved >= least if least >= 1 else moved <= least):
            return True
    return any(fault.get(f, 0.0) - paired.get(f, 0.0) >= n for f, n in least_excess.items())


def _worst(values: Sequence[float]) -> float:
    known = [v for v in values if not math.isnan(v)]
    return max(known, default=math.nan)
