"""Which flows are followed: a bounded set of slots, the flow longest silent makes room."""

from __future__ import annotations

from skewscope.core.tables import Array
from skewscope.wire.held import end_stream, reset
from skewscope.wire.jit import inner
from skewscope.wire.layout import (
    EVICTED,
    FREE_SLOT,
    L_IDLE,
    NEWEST,
    OLDEST,
    OPEN,
    USED,
    Batch,
    Rows,
    Tcp,
    i64,
)
from skewscope.wire.spans import mark


@inner
def _evict(t: Tcp, k: int, ts: int) -> None:
    """End both directions of the flow in slot k and free the slot."""
    for s in (2 * k, 2 * k + 1):
        end_stream(t, s, ts)
        reset(t, s)
    t.slot_of[t.slots[k]["flow"]] = -1
    t.slots[k]["used"] = 0
    t.cells[EVICTED] += 1
    t.cells[USED] -= 1
    _unlink(t.slots, t.cells, k)
    t.slots[k]["older"] = t.cells[FREE_SLOT]
    t.cells[FREE_SLOT] = k


@inner
def _unlink(slots: Rows, cells: Array, k: int) -> None:
    newer = slots[k]["newer"]
    older = slots[k]["older"]
    if newer >= 0:
        slots[newer]["older"] = older
    else:
        cells[NEWEST] = older
    if older >= 0:
        slots[older]["newer"] = newer
    else:
        cells[OLDEST] = newer


@inner
def _link_newest(slots: Rows, cells: Array, k: int) -> None:
    first = cells[NEWEST]
    slots[k]["newer"] = -1
    slots[k]["older"] = first
    if first >= 0:
        slots[first]["newer"] = k
    else:
        cells[OLDEST] = k
    cells[NEWEST] = k


@inner
def touch(slots: Rows, cells: Array, k: int, ts: int) -> None:
    """Note a packet of the flow in slot k."""
    slots[k]["ts"] = ts
    if cells[NEWEST] != k:
        _unlink(slots, cells, k)
        _link_newest(slots, cells, k)


@inner
def slot_for(t: Tcp, b: Batch, i: int) -> int:
    """Return the slot of packet i's flow; the flow longest silent makes room where none is free."""
    flow = b.flow[i]
    ts = b.ts[i]
    k = i64(t.slot_of[flow])
    if k >= 0:
        touch(t.slots, t.cells, k, ts)
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
    _link_newest(t.slots, t.cells, k)
    reset(t, 2 * k)
    reset(t, 2 * k + 1)
    mark(t, i64(OPEN), 2 * k, i64(0), i64(0), ts)
    return k
