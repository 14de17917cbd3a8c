"""Seeded streams of random numbers, drawn in blocks: one stream per purpose and host.

Separate streams keep a run with a fault comparable with the same run without it: what a fault
draws takes nothing from the others.
"""

from __future__ import annotations

import zlib

import numpy as np

BLOCK = 4096


class Noise:
    """An endless stream of uniform or standard normal numbers."""

    __slots__ = ("_block", "_normal", "_rng")

    def __init__(self, seed: int, name: str, *, normal: bool = False) -> None:
        self._rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        self._normal = normal
        self._block: list[float] = []

    def next(self) -> float:
        """Return the next number."""
        if not self._block:
            draw = self._rng.standard_normal(BLOCK) if self._normal else self._rng.random(BLOCK)
            self._block = draw.tolist()
        return self._block.pop()

    def below(self, limit: int) -> int:
        """Return a whole number in [0, limit); uniform streams only."""
        return int(self.next() * limit)


def rng(seed: int, name: str) -> np.random.Generator:
    """Return a generator of its own for one purpose."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())])
