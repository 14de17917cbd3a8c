"""Feature windows of synthetic runs, and detectors driven over them without the engine."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from skewscope.conditions.loader import Condition
from skewscope.core.condition import Verdicts, Window
from skewscope.core.directory import Directory
from skewscope.core.features import FeatureRows
from skewscope.core.scenario import Fault, Scenario, Workload
from skewscope.engine.slices import slices
from skewscope.features.loader import load_all
from skewscope.lab.synth import write
from skewscope.sources.captures import open_captures

FAST = Workload(own_s=0.01, answer_tokens=20)
PAIRS = Workload(ranks=2, replicas=2, own_s=0.01, answer_tokens=20, clients=8)
RUNS = (
    Scenario("healthy", "healthy", duration_s=2.0, seed=3, workload=FAST),
    Scenario("two replicas", "healthy", duration_s=2.0, seed=4, workload=PAIRS),
    Scenario(
        "host faults",
        "faulty",
        duration_s=3.0,
        seed=5,
        workload=FAST,
        faults=(Fault("straggler", 0.8, 1.4, 2, 2.0), Fault("pause", 1.7, 2.3, 1, 0.2)),
    ),
    Scenario(
        "network faults",
        "faulty",
        duration_s=3.0,
        seed=6,
        workload=FAST,
        faults=(Fault("loss", 0.8, 1.4, 1, 0.05), Fault("delay", 1.6, 2.4, 2, 0.004)),
    ),
    Scenario(
        "load faults",
        "faulty",
        duration_s=3.0,
        seed=7,
        workload=PAIRS,
        faults=(Fault("overload", 0.8, 1.6, -1, 4.0), Fault("uneven_routing", 1.4, 2.6, -1, 12.0)),
    ),
)


@dataclass
class Recorded:
    """One window of one scope, as its feature family returned it."""

    start_ns: int
    end_ns: int
    rows: FeatureRows


def series(folder: Path) -> dict[str, list[Recorded]]:
    """Return the windows of every scope for a folder of captures."""
    directory = Directory()
    captures = open_captures(sorted(folder.glob("*.pcap")), directory, _fail)
    features = load_all()
    found: dict[str, list[Recorded]] = {f.SPEC.scope: [] for f in features}
    with np.errstate(invalid="ignore", divide="ignore"):
        for slice_ in slices([c.batches() for c in captures], directory):
            rows: dict[str, FeatureRows] = {}
            for feature in features:
                made = feature.update(slice_, rows)
                rows[feature.SPEC.scope] = made
                found[feature.SPEC.scope].append(Recorded(slice_.start_ns, slice_.end_ns, made))
    for capture in captures:
        capture.close()
    return found


def record(scenarios: Iterable[Scenario] = RUNS) -> list[dict[str, list[Recorded]]]:
    """Return the windows of every scenario."""
    found = []
    for scenario in scenarios:
        with tempfile.TemporaryDirectory() as folder:
            write(scenario, Path(folder))
            found.append(series(Path(folder)))
    return found


def _fail(message: str) -> None:
    raise AssertionError(message)


@dataclass(frozen=True)
class Bare:
    """One window as a detector is given it: rows in which every need is known, all columns of the scope."""

    start_ns: int
    end_ns: int
    keys: tuple[str, ...]
    columns: dict[str, np.ndarray]
    onset: dict[str, np.ndarray]

    def take(self, rows: Sequence[int] | np.ndarray) -> Bare:
        """Return some rows, in the order given."""
        rows = np.asarray(rows, dtype=np.int64)
        return Bare(
            self.start_ns,
            self.end_ns,
            tuple(self.keys[i] for i in rows),
            {n: v[rows] for n, v in self.columns.items()},
            {n: v[rows] for n, v in self.onset.items()},
        )

    def shifted(self, by_ns: int) -> Bare:
        """Return the same window at another time."""
        onset = {n: np.where(v > 0, v + by_ns, v) for n, v in self.onset.items()}
        return Bare(self.start_ns + by_ns, self.end_ns + by_ns, self.keys, self.columns, onset)


def bare(condition: Condition, recorded: list[Recorded]) -> list[Bare]:
    """Return the windows that the condition's detector would be given."""
    found = []
    for window in recorded:
        columns = {n: np.asarray(v, dtype=np.float64) for n, v in window.rows.columns.items()}
        known = np.ones(len(window.rows.keys), dtype=bool)
        for name in condition.entry.needs:
            known &= np.isfinite(columns[name])
        if not known.any():
            continue
        onset = {n: v for n, v in window.rows.onset_ns.items() if n in columns}
        whole = Bare(window.start_ns, window.end_ns, tuple(window.rows.keys), columns, onset)
        found.append(whole.take(np.flatnonzero(known)))
    return found


class Bench:
    """A detector with state arrays, as the engine keeps them."""

    def __init__(self, condition: Condition, capacity: int = 256) -> None:
        self.condition = condition
        self.detector = condition.fresh()
        self.state = {n: np.full(capacity, v) for n, v in self.detector.STATE.items()}
        self.slots: dict[str, int] = {}

    def step(self, window: Bare) -> Verdicts:
        """Judge one window."""
        slot = np.array([self.slots.setdefault(k, len(self.slots)) for k in window.keys], dtype=np.int64)
        given = Window(
            window.start_ns,
            window.end_ns,
            list(window.keys),
            {n: v.copy() for n, v in window.columns.items()},
            slot,
            self.state,
            {n: v.copy() for n, v in window.onset.items()},
        )
        return self.detector.step(given)

    def answers(self, windows: Iterable[Bare], shift_ns: int = 0) -> list[dict[str, tuple[float, ...]]]:
        """Return per window and key: state, score, onset less `shift_ns`, evidence in the entry's order."""
        found = []
        for window in windows:
            verdicts = self.step(window)
            evidence = [verdicts.evidence[n] for n in self.condition.entry.evidence]
            found.append(
                {
                    key: (
                        float(verdicts.state[i]),
                        float(verdicts.score[i]),
                        # A time kept in float64 state is good to 256 ns: compare microseconds.
                        float((int(verdicts.onset_ns[i]) - shift_ns * (verdicts.onset_ns[i] > 0)) // 1000),
                        *(float(column[i]) for column in evidence),
                    )
                    for i, key in enumerate(window.keys)
                }
            )
        return found


def same(one: list[dict[str, tuple[float, ...]]], two: list[dict[str, tuple[float, ...]]]) -> None:
    """Assert that two runs answered alike: onsets within 2 us, all else to the last digits."""
    assert len(one) == len(two)
    for a, b in zip(one, two, strict=True):
        assert a.keys() == b.keys()
        for key in a:
            np.testing.assert_allclose(a[key][:2], b[key][:2], rtol=1e-9, atol=1e-12, err_msg=key)
            assert abs(a[key][2] - b[key][2]) <= 2, key
            np.testing.assert_allclose(a[key][3:], b[key][3:], rtol=1e-9, atol=1e-12, err_msg=key)
