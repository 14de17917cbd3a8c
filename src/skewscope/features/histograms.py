"""Quantiles of what engines measure in buckets, for the time between two readings."""

from __future__ import annotations

import numpy as np

from skewscope.core.tables import Array


def bucket_quantile(rows: Array, bounds: Array, rises: Array, q: float, size: int) -> Array:
    """Return the q-quantile per row id of what was observed in between: float64 (size,), NaN where none.

    `rows` int64 (n,) below `size`; `bounds` float64 (n,) upper bounds, the last of each row infinite;
    `rises` float64 (n,) by how much each cumulative bucket rose. Within a bucket observations count as evenly
    spread from its lower bound (0 for the first), as Prometheus has it; in the infinite bucket the answer is
    its lower bound, which says "at least". A row with a bucket that is not known (NaN) is not known.
    """
    out = np.full(size, np.nan)
    if not len(rows):
        return out
    order = np.lexsort((bounds, rows))
    rows, bounds, rises = rows[order], bounds[order], rises[order]
    starts = np.flatnonzero(np.concatenate(([True], rows[1:] != rows[:-1])))
    for lo, hi in zip(starts, np.append(starts[1:], len(rows)), strict=True):
        edge, counted = bounds[lo:hi], np.maximum.accumulate(rises[lo:hi])
        total = counted[-1]
        if not np.isinf(edge[-1]) or not total > 0:  # no last bucket: observations beyond are not seen
            continue
        at = int(np.searchsorted(counted, q * total))
        below = edge[at - 1] if at else min(0.0, edge[0])
        if np.isinf(edge[at]):
            out[rows[lo]] = below
            continue
        before = counted[at - 1] if at else 0.0
        share = (q * total - before) / (counted[at] - before) if counted[at] > before else 1.0
        out[rows[lo]] = below + share * (edge[at] - below)
    return out
