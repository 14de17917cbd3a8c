"""On which grid do the values lie? That shows how logits were stored, even behind log-softmax in fp32.

log-softmax subtracts one number from all logits of a position, so differences of log-probabilities are
differences of logits, up to fp32 rounding: multiples of the storage format's step at their size. A bf16
logit between 8 and 16 has steps of 1/16, an fp16 one of 1/128, an fp32 one of 2^-20.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skewscope.fingerprint.formats import FORMATS, round_to

COARSEST, FINEST = 2, 14
"""Powers of 1/2 that are tried as steps; finer ones drown in fp32 rounding of the log-softmax."""
ROUNDING = 4.0
"""Accepted distance from the grid, in ulps of the log-probability: a sum and a subtraction round."""
ENOUGH = 0.95
"""Share of values on a grid that shows it: a few cross into the next binade, whose step is double."""
DECIMALS = 7


@dataclass(frozen=True)
class Grid:
    """What the values lie on.

    storage: coarsest format that holds the logits, or of the log-probabilities' differences `bf16`,
    `fp16`, `fp32`, or `unknown`; step: the coarsest power of two that all differences are multiples of,
    median over positions, 0 where none; decimals: log-probabilities are rounded to so many, -1 if not;
    trailing_zeros: mean number of trailing zero bits of the significands.
    """

    storage: str
    step: float
    decimals: int
    trailing_zeros: float


def storage_of(logits: NDArray[np.float32]) -> str:
    """Return the coarsest format that holds nearly all of these raw values."""
    finite = logits[np.isfinite(logits)]
    if not finite.size:
        return "unknown"
    for name in ("e5m2", "e4m3", "bf16", "fp16"):
        inside = np.abs(finite) <= FORMATS[name].largest
        if np.mean((round_to(finite, name) == finite) & inside) >= ENOUGH:
            return name
    return "int8" if _is_int8(finite) else "fp32"


def _is_int8(values: NDArray[np.float32]) -> bool:
    """Whether the values are integer multiples, up to 127, of one scale."""
    size = np.abs(values[values != 0].astype(np.float64))
    if not size.size or np.unique(size).size > 128 or size.size < 300:
        return False
    levels = np.unique(size)
    scale = np.min(np.diff(np.concatenate([[0.0], levels])))
    if scale <= 0 or levels[-1] / scale > 127.5:
        return False
    return bool(np.mean(np.abs(levels / scale - np.rint(levels / scale)) < 1e-3) >= ENOUGH)


def step_of(logprobs: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return per row the coarsest power of two whose multiples all differences to the best token are."""
    best = logprobs[:, :1].astype(np.float64)
    apart = np.where(np.isnan(logprobs), 0.0, logprobs - best)
    slack = ROUNDING * np.spacing(np.nanmax(np.abs(logprobs), axis=1, initial=1.0).astype(np.float32))
    found = np.zeros(len(logprobs))
    for power in range(FINEST, COARSEST - 1, -1):
        step = 2.0**-power
        off = np.abs(apart - np.rint(apart / step) * step)
        found[np.mean(off <= slack[:, None], axis=1) >= ENOUGH] = step
    return found


def decimals_of(logprobs: NDArray[np.float32]) -> int:
    """Return to how many decimals the values are rounded, -1 if to none up to seven."""
    values = logprobs[np.isfinite(logprobs)].astype(np.float64)
    if not values.size:
        return -1
    for digits in range(DECIMALS):
        if np.all(np.abs(values - np.round(values, digits)) <= np.spacing(np.abs(values).astype(np.float32))):
            return digits
    return -1


def trailing_zeros(values: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the number of trailing zero bits of each significand, 23 for powers of two and zero."""
    fraction = np.ascontiguousarray(values, np.float32).view(np.uint32) & np.uint32(0x7FFFFF)
    lowest = fraction & (~fraction + np.uint32(1))
    return np.where(lowest == 0, 23, np.frexp(lowest.astype(np.float64))[1] - 1).astype(np.int64)


def grid_of(logprobs: NDArray[np.float32], logits: NDArray[np.float32] | None = None) -> Grid:
    """Analyse the grid of log-probabilities (n, k), best first, and of raw logits where there are any."""
    steps = step_of(logprobs) if logprobs.shape[1:] and logprobs.shape[1] > 2 else np.zeros(0)
    shown = steps[steps > 0]
    step = float(np.median(shown)) if shown.size > len(steps) / 2 else 0.0
    finite = logprobs[np.isfinite(logprobs)]
    decimals = decimals_of(logprobs)
    if logits is not None and logits.size:
        storage = storage_of(logits)
    elif decimals >= 0 or not finite.size:
        storage = "unknown"
    else:
        # Logits of language models lie between 4 and 64: bf16 steps 2^-5 to 2^-2, fp16 2^-8 to 2^-5.
        storage = "bf16" if step >= 2.0**-5 else "fp16" if step >= 2.0**-10 else "fp32"
    zeros = float(np.mean(trailing_zeros(finite))) if finite.size else 0.0
    return Grid(storage, step, decimals, zeros)
