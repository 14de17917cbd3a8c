"""Service-level figures of a stretch of a run, and whether the signals of a scenario moved."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from skewscope.core.schemas import Kind
from skewscope.core.tables import Array, Table
from skewscope.lab.sim.compiled import kernel as k
from skewscope.lab.sim.output import Tokens
from skewscope.lab.sim.scenario import Signal
from skewscope.lab.sim.vantage.emit import Emission
from skewscope.lab.sim.world import Run

SLO_TTFT_S, SLO_GAP_S = 2.0, 0.2
"""A request is good when its first token and its mean gap stay below these (MLPerf's 70B figures)."""


def service(run: Run, tokens: Tokens, start_s: float, end_s: float) -> dict[str, float]:
    """Return what clients got between two times, in s and 1/s, and what the engines did."""
    first, last = tokens.first, tokens.last
    q = tokens.request[first]
    wait = np.full(len(run), np.nan)
    wait[q] = tokens.read_s[first] - run.demand.at_s[q]
    came = (run.demand.at_s >= start_s) & (run.demand.at_s < end_s)
    # What has not begun by the end has waited at least until then.
    wait = np.where(np.isnan(wait), run.duration_s - run.demand.at_s, wait)[came]
    gaps = np.diff(tokens.read_s, prepend=0.0)
    inside = (tokens.number > 0) & (tokens.read_s >= start_s) & (tokens.read_s < end_s)
    ended = (tokens.read_s[last] >= start_s) & (tokens.read_s[last] < end_s) & (run.times[q, k.Q_END] > 0)
    ended &= np.isnan(run.failed_s[q])
    mean_gap = (tokens.read_s[last] - tokens.read_s[first]) / np.maximum(last - first, 1)
    good = ended & (tokens.read_s[first] - run.demand.at_s[q] < SLO_TTFT_S) & (mean_gap < SLO_GAP_S)
    return {
        "ttft_p50_s": _quantile(wait, 0.5),
        "ttft_p95_s": _quantile(wait, 0.95),
        "gap_p50_s": _quantile(gaps[inside], 0.5),
        "gap_p95_s": _quantile(gaps[inside], 0.95),
        "gap_p99_s": _quantile(gaps[inside], 0.99),
        "goodput_rps": float(good.sum()) / (end_s - start_s),
        "tokens_per_s": float(inside.sum()) / (end_s - start_s),
        **_engine(run, start_s, end_s),
    }


def _engine(run: Run, start_s: float, end_s: float) -> dict[str, float]:
    medians, tails, batch = [], [], []
    for r in run.cluster.replicas:
        rows = run.steps[run.steps[:, k.T_REPLICA] == r.index]
        rows = rows[(rows[:, k.T_END] >= start_s) & (rows[:, k.T_START] < end_s)]
        took = np.minimum(rows[:, k.T_END], run.duration_s) - rows[:, k.T_START]
        medians.append(_quantile(took, 0.5))
        tails.append(_quantile(took, 0.99))
        batch.append(float(rows[:, k.T_BATCH].mean()) if len(rows) else 0.0)
    moved = [x.end_s - x.ready_s for x in run.transfers if start_s <= x.ready_s < end_s]
    return {
        "step_p50_s": float(np.nanmax(medians)) if np.isfinite(medians).any() else math.nan,
        "step_p99_s": float(np.nanmax(tails)) if np.isfinite(tails).any() else math.nan,
        "batch_share_ratio": max(batch) / max(min(batch), 0.5),
        "transfer_p50_s": _quantile(np.array(moved), 0.5),
    }


def _quantile(values: Array, share: float) -> float:
    return float(np.quantile(values, share)) if len(values) else math.nan


def ratios(fault: Mapping[str, float], paired: Mapping[str, float]) -> dict[str, float]:
    """Return each figure over that of the paired run."""
    out = {}
    for name, value in fault.items():
        other = paired[name]
        if other > 0 and not math.isnan(value):
            out[f"{name.removesuffix('_s').removesuffix('_rps').removesuffix('_ratio')}_ratio"] = (
                value / other
            )
    return out


def series_of(emission: Emission, signal: Signal) -> tuple[Array, Array]:
    """Return (times in s from the start, values) of a signal; a counter as its rate, a histogram as its mean.

    `at` is an entity, or "*" for the sum over all that have it.
    """
    d = emission.directory
    if signal.name.startswith("event:"):
        return _events(emission, signal)
    parts: list[tuple[Array, Array]] = []
    for name in ("counters", "metrics"):
        table = emission.tables[name]
        chosen = table["name"] == d.names.id(signal.name)
        if signal.at != "*":
            chosen &= table["entity"] == d.entities.id(signal.at)
        if signal.labels and name == "metrics":
            fitting = [n for n in range(len(d.labels)) if signal.labels in d.labels[n]]
            chosen &= np.isin(table["labels"], fitting)
        if chosen.any():
            parts.append(_values(table.take(chosen), emission.start_ns, signal.above))
    if not parts:
        return np.zeros(0), np.zeros(0)
    return parts[0]


def _values(rows: Table, start_ns: int, above: float) -> tuple[Array, Array]:
    kinds = rows["kind"]
    if (kinds == Kind.SUM).any():
        counts = _one(rows.take(kinds == Kind.COUNT), start_ns, rate=True)
        chosen = rows["bound"] == above if above else kinds == Kind.SUM
        part = _one(rows.take(chosen), start_ns, rate=True)
        n = min(len(part[0]), len(counts[0]))
        ratio = np.where(counts[1][:n] > 0, part[1][:n] / np.maximum(counts[1][:n], 1e-9), np.nan)
        return part[0][:n], 1 - ratio if above else ratio
    return _one(rows, start_ns, rate=bool((kinds[0] == Kind.COUNTER32) | (kinds[0] == Kind.COUNTER64)))


def _one(rows: Table, start_ns: int, rate: bool) -> tuple[Array, Array]:
    """Return a series of one or many entities, summed over whole seconds."""
    times = (rows["ts_ns"] - start_ns) / 1e9
    entities = np.unique(rows["entity"])
    grid = np.arange(0.5, max(times.max(initial=0.0), 1.0) - 0.5)
    total = np.zeros(len(grid))
    for e in entities:
        mine = (rows["entity"] == e) & np.isfinite(rows["value"])
        t, v = times[mine], rows["value"][mine]
        if len(t) < 3:
            continue
        if rate:
            grown = np.diff(v)
            grown = np.where(grown < 0, 0.0, grown)  # a reset or a wrap
            total += np.interp(grid, (t[1:] + t[:-1]) / 2, grown / np.maximum(np.diff(t), 1e-3))
        else:
            total += np.interp(grid, t, v)
    return grid, total


def _events(emission: Emission, signal: Signal) -> tuple[Array, Array]:
    d, table = emission.directory, emission.tables["events"]
    chosen = table["kind"] == d.names.id(signal.name.removeprefix("event:"))
    if signal.at != "*":
        chosen &= table["entity"] == d.entities.id(signal.at)
    times = np.sort((table["ts_ns"][chosen] - emission.start_ns) / 1e9)
    grid = np.arange(0.5, float((table["ts_ns"].max() - emission.start_ns) / 1e9))
    if signal.moves == "spreads":  # the gap between one event and the one before
        gaps = np.diff(times, prepend=times[0] if len(times) else 0.0)
        return times, gaps
    return grid, np.histogram(times, np.append(grid - 0.5, grid[-1] + 0.5))[0].astype(float)


def moved(
    signal: Signal, fault: Emission, paired: Emission, start_s: float, end_s: float
) -> tuple[float, float, bool]:
    """Return a signal's mean with and without the fault, and whether it moved as said, beyond noise."""
    means, spreads = [], []
    for emission in (fault, paired):
        times, values = series_of(emission, signal)
        # A sample around the onset is part of both; an event at the onset is part of the fault.
        cut = -0.6 if signal.name.startswith("event:") else 1.0
        inside = values[(times >= start_s + cut) & (times < end_s - 1)]
        inside = inside[np.isfinite(inside)]
        means.append(float(inside.mean()) if len(inside) else math.nan)
        spreads.append(float(inside.std()) / math.sqrt(max(len(inside), 1)) if len(inside) else math.nan)
    a, b = means
    if signal.moves == "freezes":
        times, values = series_of(fault, signal)
        inside = values[(times >= start_s + 2) & (times < end_s - 2)]
        return a, b, len(inside) > 3 and float(np.nanstd(inside)) == 0.0
    if signal.moves == "spreads":
        a, b = (float(np.nanmax(v[(t >= start_s) & (t < end_s)], initial=0.0))
                for t, v in (series_of(e, signal) for e in (fault, paired)))  # fmt: skip
        return a, b, a > 1.3 * b
    step = a - b
    if signal.name.startswith("event:"):  # one more is more
        return a, b, abs(step) * (end_s - start_s) > 0.5
    enough = abs(step) > max(2.5 * math.hypot(*spreads), 0.02 * abs(b), 1e-12)
    right = {"rises": step > 0, "falls": step < 0}.get(signal.moves, True)
    return a, b, bool(enough and right)
