"""Collections made by hand for tests."""

from __future__ import annotations

import numpy as np

from skewscope.fingerprint.collection import Answer, Collection, header_line, parse
from skewscope.fingerprint.formats import round_to

IDS = 40


def collection(
    name: str,
    *,
    probes: int = 40,
    positions: int = 2,
    repeats: int = 1,
    error: float = 0.0,
    noise: float = 0.0,
    noisy_share: float = 1.0,
    grid: str = "fp32",
    seed: int = 0,
    platform: int = 0,
) -> Collection:
    """A platform: the same logits for all, plus its own `error`, plus `noise` at every repetition."""
    lines = [header_line({"platform": {"name": name}})]
    for p in range(probes):
        for position in range(positions):
            truth = np.random.default_rng([7, p, position]).normal(10, 4, IDS)
            own = truth + error * np.random.default_rng([8, p, position, platform]).normal(size=IDS)
            for repeat in range(repeats):
                random = np.random.default_rng([9, p, position, repeat, platform, seed])
                logits = own + noise * random.normal(size=IDS) * (random.random() < noisy_share)
                logits = round_to(logits.astype(np.float32), grid)
                wide = logits.astype(np.float64)
                total = np.float32(np.log(np.exp(wide - wide.max()).sum()) + wide.max())
                order = np.argsort(-logits, kind="stable")[:20]
                values = [float(np.float32(logits[i] - total)) for i in order]
                answer = Answer(f"p{p:03}", position, repeat, [int(i) for i in order], values, logits)
                lines.append(answer.line())
    return parse(lines, name)
