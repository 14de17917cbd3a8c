"""Which round of a step a piece belongs to: the last one, told by the collectives' sequence numbers.

A step has many rounds (two per layer, say), and a piece leaves after the last of them. A piece that is
late by more than one round would look punctual against the latest round, so its own round is found by
number: steps repeat every `period` numbers, and pieces usually leave at one `phase` of the period. A
prefill may take another count of numbers and move the phase; then most of the next pieces agree on the
new one. A lasting delay of whole rounds does the same and is not seen here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from skewscope.core.tables import Array
from skewscope.features.graph import grow
from skewscope.features.host_rounds import Rounds
from skewscope.features.rolling import Ring

if TYPE_CHECKING:
    from skewscope.features.endpoint_pace import Pieces
    from skewscope.features.request_log import RequestLog

LATEST = 16
"""Pieces that vote on the phase: four steps of four streams."""

AGREED = 10
"""Votes of those that set it: pieces that scatter over the step leave it as it was."""

MAX_PERIOD = 4096
"""Rounds per step; 80 layers make some 200. More is no step."""

PUNCTUAL, FAR_APART = 0.1, 0.2
"""A piece within a tenth of a step after the latest round left on time, whatever the count says, where
rounds are at least a fifth of a step apart and such nearness is no accident."""


class StepPhase:
    """Period and phase of every endpoint's steps, in sequence numbers."""

    def __init__(self) -> None:
        self._period, self._votes = Ring(), Ring()
        self._phase = np.zeros(0)

    def reserve(self, size: int) -> None:
        """Make room for `size` endpoints."""
        self._period.reserve(size)
        self._votes.reserve(size)
        self._phase = grow(self._phase, size, np.nan)

    def ends(
        self, pieces: Pieces, rounds: Rounds, at: Array, log: RequestLog, usual: Array, apart: Array
    ) -> Array:
        """Return when each piece's own round ended, int64 (n,), 0 = unknown; learns from the pieces.

        `at` int64 (n,): index in `rounds` of the host's last round before the piece, -1 = none.
        `usual`, `apart` float64 (endpoints,): usual gap between pieces and between rounds in s.
        """
        seen, of = at >= 0, pieces.endpoint
        tag, end = np.where(seen, rounds.tag[at], 0), np.where(seen, rounds.end_ns[at], 0)
        self._learn_period(pieces, tag, seen, log)
        touched = np.unique(of)
        period = np.ones(len(self._phase), dtype=np.int64)
        period[touched] = np.nan_to_num(self._period.quantile(touched, 0.5), nan=1.0).astype(np.int64)
        self._vote(pieces, tag % period[of], seen, touched)
        phase = self._phase[of]
        back = (tag - np.nan_to_num(phase).astype(np.int64)) % period[of]
        own = rounds.ends_of(rounds.host[at], tag - back)
        near = (pieces.ts - end) / 1e9 <= PUNCTUAL * usual[of]
        near &= apart[of] >= FAR_APART * usual[of]
        return np.where(np.isnan(phase) | near | (period[of] <= 1), end, own) * seen

    def _vote(self, pieces: Pieces, phase: Array, seen: Array, touched: Array) -> None:
        later = seen & (pieces.gap > 0)
        self._votes.push(pieces.endpoint[later], phase[later].astype(np.float64))
        for i in touched.tolist():
            value, votes = self._votes.mode(i, LATEST)
            if votes >= AGREED:
                self._phase[i] = value

    def _learn_period(self, pieces: Pieces, tag: Array, seen: Array, log: RequestLog) -> None:
        """Learn how many numbers pass between two pieces of one stream."""
        order = np.lexsort((pieces.ts, pieces.row))
        row, number = pieces.row[order], np.where(seen, tag, -1)[order]
        head = np.concatenate(([True], row[1:] != row[:-1])) if len(row) else np.zeros(0, dtype=np.bool_)
        before = np.where(head, log.pool["round_tag"][row], np.concatenate((number[:1], number[:-1])))
        log.pool["round_tag"][row] = number
        passed = number - before
        good = (before >= 0) & (number >= 0) & (passed > 0) & (passed <= MAX_PERIOD)
        self._period.push(pieces.endpoint[order][good], passed[good].astype(np.float64))
