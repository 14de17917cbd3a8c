"""Clears to send: which message went because its receiver was ready at last, and which receiver was late.

A receiver grants its sender some messages ahead. While grants are left, a late message is its sender's;
with none left, the sender waits for the receiver. Grants are counted per connection; how many were
open when the capture began is not known, so the lowest count of a step stands for none left.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.jit import njit
from skewscope.core.tables import Array

# Columns of a connection's state.
OPEN, LOW, LOW_NOW, STEP, WAITED, K_COLUMNS = range(6)


@njit
def grants(ts: Array, connection: Array, clears: Array, step: Array, state: Array, out: Array) -> None:
    """Write per message to out int64 (n,) what its grant says; rows in order of time per connection.

    ts, connection, step int64 (n,); clears bool (n,): a clear to send, else data; state int64 (connections,
    K_COLUMNS). For data the time of the clear to send that its sender had waited for, 0 = it had not
    waited. For a clear to send 1 if its sender was waiting for it, else 0.
    """
    for i in range(len(ts)):
        row = state[connection[i]]
        if step[i] > row[STEP]:
            if row[STEP] > 0:
                row[LOW] = min(row[LOW_NOW], row[OPEN])
            row[LOW_NOW] = row[OPEN]
            row[STEP] = step[i]
        if clears[i]:
            out[i] = 0
            if row[OPEN] <= row[LOW]:
                out[i] = 1
                row[WAITED] = ts[i]
            row[OPEN] += 1
        else:
            out[i] = row[WAITED]
            row[WAITED] = 0
            row[OPEN] -= 1
            row[LOW] = min(row[LOW], row[OPEN])
            row[LOW_NOW] = min(row[LOW_NOW], row[OPEN])


class Credits:
    """Follows the grants of connections."""

    def __init__(self) -> None:
        self._state = np.zeros((0, K_COLUMNS), dtype=np.int64)

    def rows(self, ts: Array, connection: Array, clears: Array, step: Array) -> Array:
        """Return what `grants` says, int64 (n,); connection int64 (n,): of the data that a row concerns."""
        need = int(connection.max(initial=-1)) + 1
        if need > len(self._state):
            more = np.zeros((max(need, 2 * len(self._state), 64) - len(self._state), K_COLUMNS), np.int64)
            self._state = np.concatenate([self._state, more])
        out = np.zeros(len(ts), dtype=np.int64)
        grants(ts, connection, clears, step, self._state, out)
        return out
