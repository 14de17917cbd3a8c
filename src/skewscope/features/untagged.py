"""Event rows of untagged collectives: NCCL's messages under the number of their step."""

from __future__ import annotations

import numpy as np

from skewscope.core.tables import Array, Table
from skewscope.features import round_kernel as k
from skewscope.features.credits import Credits
from skewscope.features.graph import CLEAR_TO_SEND, NCCL_ROCE, NCCL_SOCKET, GraphRows
from skewscope.features.steps import Steps

UNTAGGED = 254
"""Stands where a tagged collective has its kind."""


class Untagged:
    """Turns untagged messages into event rows of the round kernel."""

    def __init__(self) -> None:
        self._steps = Steps()
        self._credits = Credits()

    def events(self, messages: Table, holes: Table, graph: GraphRows, index: Array) -> Array:
        """Return event rows int64 (n, V_COLUMNS), not in order of time.

        messages in order of time; holes of the same captures; index int32 (addresses,): member row + 1,
        0 = none.
        """
        m = messages
        nccl = (m["framing"] == NCCL_SOCKET) | (m["framing"] == NCCL_ROCE)
        if not nccl.any():
            return np.zeros((0, k.V_COLUMNS), dtype=np.int64)
        group = graph.member[m["src"]].astype(np.int64)
        m = m.take(nccl & (group >= 0) & (graph.member[m["dst"]] == group))
        src, dst = m["src"].astype(np.int64), m["dst"].astype(np.int64)
        clears = m["kind"] == CLEAR_TO_SEND
        tap, none = m["tap"].astype(np.int64), np.zeros(len(m), dtype=np.int64)
        rows = self._steps.rows(np.stack([tap, src, dst, clears.astype(np.int64)], axis=1))
        data = np.stack([tap, np.where(clears, dst, src), np.where(clears, src, dst), none], axis=1)
        concerns = self._steps.rows(data)
        kept = np.flatnonzero((rows >= 0) & (concerns >= 0))
        m, rows, clears, concerns = m.take(kept), rows[kept], clears[kept], concerns[kept]
        ts = m["ts_ns"]
        end = np.maximum(m["end_ns"], ts)
        group = graph.member[m["src"]].astype(np.int64)
        for kind in (0, 1) if len(holes) else ():
            ends = [holes[n].astype(np.int64) for n in ("tap", "src", "dst")]
            lossy = self._steps.rows(np.stack([*ends, ends[0] * 0 + kind], axis=1))
            self._steps.note_holes(holes["ts_ns"], lossy)
        steps = self._steps.number(ts, end, rows, group)
        grant = self._credits.rows(ts, concerns, clears, steps)
        return _rows(m, graph, index, steps, grant, clears)


def _rows(m: Table, graph: GraphRows, index: Array, steps: Array, grant: Array, clears: Array) -> Array:
    """Return the event rows of both ends of each message, at each end's vantage."""
    flow, way, tap = m["flow"].astype(np.int64), m["way"].astype(np.int64), m["tap"]
    at_source = (graph.vantage[flow, way] == tap) & (steps >= 0)
    at_target = (graph.vantage[flow, 1 - way] == tap) & (steps >= 0)
    end = np.maximum(m["end_ns"], m["ts_ns"])
    parts = []
    for out, keep, side, ts in (
        (1, at_source & ~clears, "src", m["ts_ns"]),
        (0, at_target & ~clears, "dst", end),
        (2, at_source & clears & (grant == 1), "src", m["ts_ns"]),
    ):
        rows = np.zeros((int(np.count_nonzero(keep)), k.V_COLUMNS), dtype=np.int64)
        rows[:, k.V_TS] = ts[keep]
        rows[:, k.V_MEMBER] = index[m[side][keep]].astype(np.int64) - 1
        rows[:, k.V_OUT] = out
        rows[:, k.V_KEY] = (np.int64(UNTAGGED) << 32) | steps[keep]
        rows[:, k.V_BYTES] = m["nbytes"][keep]
        rows[:, k.V_FRAME] = m["frame"][keep].astype(np.int64) | (tap[keep].astype(np.int64) << 48)
        rows[:, k.V_CLEAR] = grant[keep] if out == 1 else 0
        parts.append(rows)
    found = np.concatenate(parts)
    return found[found[:, k.V_MEMBER] >= 0]
