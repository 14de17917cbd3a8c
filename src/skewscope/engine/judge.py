"""Runs one condition's detector over the windows of its scope."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from skewscope.core.condition import FINDING, NO_DATA, Detector, Verdicts, Window
from skewscope.core.directory import Directory
from skewscope.core.entry import Entry
from skewscope.core.features import FeatureRows, Slice
from skewscope.core.report import Evidence, Finding, FrameSpan
from skewscope.core.tables import Array
from skewscope.engine.lifecycle import ScopeLife, Verdict
from skewscope.engine.sight import Sight

MAX_SCOPES = 1 << 16
"""Scopes that one detector follows; further ones are answered "no data" and counted."""

BASELINE = "_ref"
"""Evidence `x_ref` is the baseline of evidence `x`."""


class Judge:
    """A detector with its state arrays and the life of its scopes."""

    def __init__(self, entry: Entry, detector: Detector) -> None:
        self.entry = entry
        self._detector = detector
        self._slots: dict[str, int] = {}
        self._keys: Sequence[str] = ()
        self._at = np.zeros(0, dtype=np.int64)
        """Slot of each of the last window's keys, -1 = not followed: windows mostly show the same scopes."""
        self._state = {name: np.full(16, value) for name, value in detector.STATE.items()}
        self._lives: dict[str, ScopeLife] = {}
        self.judged = 0
        self.refused = 0
        """Rows of scopes beyond MAX_SCOPES."""
        self.known: set[str] = set()
        """Needed features that were known at least once."""

    def step(
        self, slice_: Slice, rows: FeatureRows | None, sight: Sight
    ) -> tuple[list[Finding], list[Finding]]:
        """Judge one window; returns (findings that fire now, findings that end now)."""
        fired: list[Finding] = []
        if rows is not None and len(rows.keys):
            window = self._window(slice_.start_ns, slice_.end_ns, rows)
            if len(window):
                self.judged += len(window)
                verdicts = self._detector.step(window)
                fired = self._absorb(window, verdicts, _Tracer(sight, slice_.directory))
        ended = [done for life in self._lives.values() if life.open and (done := life.advance(slice_.end_ns))]
        return fired, ended

    def open_findings(self) -> list[Finding]:
        """Return the findings that have not ended."""
        return [life.open for life in self._lives.values() if life.open is not None]

    def _window(self, start_ns: int, end_ns: int, rows: FeatureRows) -> Window:
        keep = np.ones(len(rows.keys), dtype=np.bool_)
        for name in self.entry.needs:
            finite = np.isfinite(rows.columns[name])
            if name not in self.known and finite.any():
                self.known.add(name)
            keep &= finite
        if not keep.any():
            return Window(start_ns, end_ns, (), {}, np.zeros(0, dtype=np.int64), self._state)
        if rows.keys != self._keys:
            self._keys = list(rows.keys)
            self._at = np.array([self._slots.get(key, -1) for key in self._keys], dtype=np.int64)
        for i in np.flatnonzero(keep & (self._at < 0)).tolist():
            self._at[i] = self._slot(self._keys[i])
        at = np.flatnonzero(keep & (self._at >= 0))
        self.refused += int(np.count_nonzero(keep)) - len(at)
        whole = len(at) == len(keep)
        return Window(
            start_ns,
            end_ns,
            self._keys if whole else [self._keys[i] for i in at.tolist()],
            rows.columns if whole else _Rows(rows.columns, at),
            self._at[at],
            self._state,
            rows.onset_ns if whole else _Rows(rows.onset_ns, at),
            rows.frames if whole else _Rows(rows.frames, at),
        )

    def _slot(self, key: str) -> int:
        slot = self._slots.get(key)
        if slot is None:
            if len(self._slots) >= MAX_SCOPES:
                return -1
            slot = self._slots[key] = len(self._slots)
            for name, array in self._state.items():
                if slot >= len(array):
                    fresh = np.full(len(array), self._detector.STATE[name])
                    self._state[name] = np.concatenate([array, fresh])
        return slot

    def _absorb(self, window: Window, verdicts: Verdicts, trace: _Tracer) -> list[Finding]:
        fired = []
        told = verdicts.state != NO_DATA  # neither for nor against: m of n counts judged windows
        if not self._lives:
            told &= verdicts.state == FINDING
        for i in np.flatnonzero(told).tolist():
            key = window.keys[i]
            found = bool(verdicts.state[i] == FINDING)
            life = self._lives.get(key)
            if life is None:
                if not found:
                    continue
                life = self._lives[key] = ScopeLife(self.entry, key)
            onset = int(verdicts.onset_ns[i]) or window.start_ns
            score = float(verdicts.score[i])
            wanted = found and life.wants(score)
            evidence = self._evidence(window, verdicts, i, onset, trace) if wanted else []
            finding = life.step(Verdict(window.end_ns, found, score, onset, evidence))
            if finding is not None:
                fired.append(finding)
        return fired

    def _evidence(
        self, window: Window, verdicts: Verdicts, i: int, onset_ns: int, trace: _Tracer
    ) -> list[Evidence]:
        evidence = []
        spans = trace.spans(window.keys[i], min(onset_ns, window.start_ns))
        for name, unit in self.entry.evidence.items():
            if name not in verdicts.evidence or name.endswith(BASELINE):
                continue
            value = float(verdicts.evidence[name][i])
            if not np.isfinite(value):
                continue
            base = verdicts.evidence.get(name + BASELINE)
            baseline = float(base[i]) if base is not None and np.isfinite(base[i]) else None
            packets = trace.packets(window.frames, name, i)
            evidence.append(Evidence(name, value, unit, baseline, packets, spans))
        return evidence


class _Rows(Mapping[str, Array]):
    """Some rows of columns, taken when a column is asked for."""

    def __init__(self, columns: Mapping[str, Array], at: Array) -> None:
        self._columns, self._at = columns, at
        self._taken: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        if name not in self._taken:
            self._taken[name] = self._columns[name][self._at]
        return self._taken[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


class _Tracer:
    """Names the packets behind numbers."""

    def __init__(self, sight: Sight, directory: Directory) -> None:
        self._sight, self._directory = sight, directory

    def spans(self, key: str, since_ns: int) -> list[FrameSpan]:
        return self._sight.spans(key, since_ns, self._directory)

    def packets(self, frames: Mapping[str, Array], name: str, i: int) -> list[tuple[str, int]]:
        at = frames.get(name)
        if at is None or at[i, 0] < 0 or at[i, 1] <= 0:
            return []
        return [(self._directory.taps[int(at[i, 0])].path, int(at[i, 1]))]
