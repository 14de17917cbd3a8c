"""Answers of a model that runs in this process: full logits, so every bit of the platform shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from skewscope.fingerprint.collection import Answer
from skewscope.fingerprint.probes import Probe

Floats = NDArray[np.floating]
TOP = 64
LOGITS = 64
"""Ids whose raw logits are kept: what the published classifier on bits takes."""


def log_softmax(logits: Floats) -> NDArray[np.float32]:
    """Return log-probabilities in float32 by one subtraction, computed in the logits' own precision.

    The formula is part of a fingerprint: engines differ in it. This one serves all local platforms.
    """
    wide = logits.astype(np.float64)
    top = wide.max(axis=-1, keepdims=True)
    total = np.log(np.exp(wide - top).sum(axis=-1, keepdims=True)) + top
    return np.asarray(logits.astype(np.float32) - total.astype(np.float32), np.float32)


def answer(
    probes: Sequence[Probe],
    logits_of: Callable[[NDArray[np.int64], int], Floats],
    *,
    positions: int,
    batch: int,
    repeat: int = 0,
) -> Iterator[Answer]:
    """Yield the last `positions` positions of each probe; `batch` prompts of equal length run together.

    logits_of: (batch, length) token ids and a number of positions -> (batch, positions, ids) logits.
    """
    for start in range(0, len(probes), batch):
        group = probes[start : start + batch]
        tokens = np.array([p.tokens for p in group], np.int64)
        found = logits_of(tokens, positions)
        for row, probe in zip(found, group, strict=True):
            for token, bias in probe.bias.items():
                row[:, token] += row.dtype.type(bias)
        logprobs = log_softmax(found)
        for probe, logit, logprob in zip(group, found, logprobs, strict=True):
            for position in range(positions):
                order = np.argsort(-logprob[position], kind="stable")[:TOP]
                yield Answer(
                    probe.id,
                    position,
                    repeat,
                    [int(i) for i in order],
                    [float(x) for x in logprob[position][order]],
                    logit[position][:LOGITS].astype(np.float32),
                )
