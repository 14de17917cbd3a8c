"""Runs one condition's detector over the windows of its scope."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from skewscope.core.condition import FINDING, NO_DATA, Detector, Verdicts, Window
from skewscope.core.directory import Directory
from skewscope.core.entry import Entry
from skewscope.core.features import FeatureRows
from skewscope.core.report import Evidence, Finding
from skewscope.core.tables import Array
from skewscope.engine.lifecycle import ScopeLife, Verdict

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
        self._state = {name: np.full(16, value) for name, value in detector.STATE.items()}
        self._lives: dict[str, ScopeLife] = {}
        self.judged = 0
        self.refused = 0
        """Rows of scopes beyond MAX_SCOPES."""
        self.known: set[str] = set()
        """Needed features that were known at least once."""

    def step(
        self, start_ns: int, end_ns: int, rows: FeatureRows | None, directory: Directory
    ) -> tuple[list[Finding], list[Finding]]:
        """Judge one window; returns (findings that fire now, findings that end now)."""
        fired: list[Finding] = []
        if rows is not None and len(rows.keys):
            window = self._window(start_ns, end_ns, rows)
            if len(window):
                self.judged += len(window)
                verdicts = self._detector.step(window)
                fired = self._absorb(window, verdicts, directory)
        ended = [done for life in self._lives.values() if (done := life.advance(end_ns)) is not None]
        return fired, ended

    def open_findings(self) -> list[Finding]:
        """Return the findings that have not ended."""
        return [life.open for life in self._lives.values() if life.open is not None]

    def _window(self, start_ns: int, end_ns: int, rows: FeatureRows) -> Window:
        keep = np.ones(len(rows.keys), dtype=np.bool_)
        columns: dict[str, Array] = {}
        for name in self.entry.needs:
            column = rows.columns[name]
            finite = np.isfinite(column)
            if finite.any():
                self.known.add(name)
            keep &= finite
        at = np.flatnonzero(keep)
        followed = np.array([self._slot(rows.keys[i]) >= 0 for i in at.tolist()], dtype=np.bool_)
        self.refused += len(at) - int(np.count_nonzero(followed))
        at = at[followed]
        for name, column in rows.columns.items():
            columns[name] = column[at]
        keys = [rows.keys[i] for i in at.tolist()]
        slot = np.array([self._slots[k] for k in keys], dtype=np.int64)
        return Window(
            start_ns,
            end_ns,
            keys,
            columns,
            slot,
            self._state,
            {n: v[at] for n, v in rows.onset_ns.items()},
            {n: v[at] for n, v in rows.frames.items()},
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

    def _absorb(self, window: Window, verdicts: Verdicts, directory: Directory) -> list[Finding]:
        fired = []
        for i, key in enumerate(window.keys):
            if verdicts.state[i] == NO_DATA:  # neither for nor against: m of n counts judged windows
                continue
            found = bool(verdicts.state[i] == FINDING)
            life = self._lives.get(key)
            if life is None:
                if not found:
                    continue
                life = self._lives[key] = ScopeLife(self.entry, key)
            onset = int(verdicts.onset_ns[i]) or window.start_ns
            evidence = self._evidence(window, verdicts, i, directory) if found else []
            finding = life.step(Verdict(window.end_ns, found, float(verdicts.score[i]), onset, evidence))
            if finding is not None:
                fired.append(finding)
        return fired

    def _evidence(self, window: Window, verdicts: Verdicts, i: int, directory: Directory) -> list[Evidence]:
        evidence = []
        for name, unit in self.entry.evidence.items():
            if name not in verdicts.evidence or name.endswith(BASELINE):
                continue
            value = float(verdicts.evidence[name][i])
            if not np.isfinite(value):
                continue
            base = verdicts.evidence.get(name + BASELINE)
            baseline = float(base[i]) if base is not None and np.isfinite(base[i]) else None
            packets = _packets(window.frames, name, i, directory)
            evidence.append(Evidence(name, value, unit, baseline, packets))
        return evidence


def _packets(frames: Mapping[str, Array], name: str, i: int, directory: Directory) -> list[tuple[str, int]]:
    at = frames.get(name)
    if at is None or at[i, 0] < 0 or at[i, 1] <= 0:
        return []
    return [(directory.taps[int(at[i, 0])].path, int(at[i, 1]))]
