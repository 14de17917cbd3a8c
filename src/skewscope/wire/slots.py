"""Which flows are followed: a bounded set of slots, the flow longest silent makes room."""

from __future__ import annotations

from skewscope.wire.held import end_stream, reset
from skewscope.wire.jit import njit
from skewscope.wire.layout import EVICTED, FREE_SLOT, L_IDLE, NEWEST, OLDEST, OPEN, USED, Batch, Tcp, i64
from skewscope.wire.spans import put


@njit
def _evict(t: Tcp, k: int, ts: int) -> None:
    """End both directions of the flow in slot k and free the slot."""
    for s in (2 * k, 2 * k + 1):
        end_stream(t, s, ts)
        reset(t, s)
    t.slot_of[t.slots[k]["flow"]] = -1
    t.slots[k]["used"] = 0
    t.cells[EVICTED] += 1
    t.cells[USED] -= 1
    _unlink(t, k)
    t.slots[k]["older"] = t.cells[FREE_SLOT]
    t.cells[FREE_SLOT] = k


@njit
def _unlink(t: Tcp, k: int) -> None:
    newer = t.slots[k]["newer"]
    older = t.slots[k]["older"]
    if newer >= 0:
        t.slots[newer]["older"] = older
    else:
        t.cells[NEWEST] = older
    if older >= 0:
        t.slots[older]["newer"] = newer
    else:
        t.cells[OLDEST] = newer


@njit
def _link_newest(t: Tcp, k: int) -> None:
    first = t.cells[NEWEST]
    t.slots[k]["newer"] = -1
    t.slots[k]["older"] = first
    if first >= 0:
        t.slots[first]["newer"] = k
    else:
        t.cells[OLDEST] = k
    t.cells[NEWEST] = k


@njit
def slot_for(t: Tcp, b: Batch, i: int) -> int:
    """Return the slot of packet i's flow; the flow longest silent makes room where none is free."""
    flow = b.flow[i]
    ts = b.ts[i]
    k = i64(t.slot_of[flow])
    if k >= 0:
        t.slots[k]["ts"] = ts
        if t.cells[NEWEST] != k:
            _unlink(t, k)
            _link_newest(t, k)
        return k
    oldest = t.cells[OLDEST]
    if oldest >= 0 and (t.cells[FREE_SLOT] < 0 or ts - t.slots[oldest]["ts"] > t.limits[L_IDLE]):
        _evict(t, oldest, ts)
    k = i64(t.cells[FREE_SLOT])
    slot = t.slots[k]
    t.cells[FREE_SLOT] = slot["older"]
    t.slot_of[flow] = k
    slot["flow"] = flow
    slot["tap"] = b.tap[i]
    slot["used"] = 1
    t.cells[USED] += 1
    slot["ts"] = ts
    if b.way[i] == 0:
        slot["a"] = b.src[i]
        slot["b"] = b.dst[i]
    else:
        slot["a"] = b.dst[i]
        slot["b"] = b.src[i]
    _link_newest(t, k)
    reset(t, 2 * k)
    reset(t, 2 * k + 1)
    put(t, OPEN, 2 * k, -1, 0, 0, 0, ts)
    return k
