"""Weights of a GGUF file (version 2 and 3), from its bytes: the container in which small models are shipped.

Source: the GGUF specification of the ggml project. Only tensor types that small models use are expanded.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAGIC = b"GGUF"
MOST_ENTRIES = 1_000_000
MOST_TEXT_BYTES = 16_000_000
MOST_ALIGNMENT = 1 << 20
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9
F32, F16, Q4_1, Q8_0 = 0, 1, 3, 8
_BLOCK_BYTES = {F32: (1, 4), F16: (1, 2), Q4_1: (32, 20), Q8_0: (32, 34)}
"""Per tensor type: numbers in a block, bytes of a block."""

Floats = NDArray[np.float32]


class GgufError(ValueError):
    """The bytes are not a GGUF file that can be read."""


@dataclass
class Gguf:
    """Metadata by key, and per tensor its shape (slowest dimension first), type and first byte."""

    metadata: dict[str, Any]
    tensors: dict[str, tuple[tuple[int, ...], int, int]]
    data: NDArray[np.uint8] = field(repr=False)

    def tensor(self, name: str) -> Floats:
        """Return one tensor expanded to float32; GgufError where it is missing, cut or of another type."""
        if name not in self.tensors:
            raise GgufError(f"no tensor {name}")
        shape, kind, start = self.tensors[name]
        if kind not in _BLOCK_BYTES:
            raise GgufError(f"tensor {name} has type {kind}, which is not expanded here")
        per_block, size = _BLOCK_BYTES[kind]
        blocks, rest = divmod(math.prod(shape), per_block)
        raw = self.data[start : start + blocks * size]
        if rest or raw.size < blocks * size:
            raise GgufError(f"tensor {name} is cut short")
        return _EXPAND[kind](raw.reshape(blocks, size)).reshape(shape)


def _q4_1(raw: NDArray[np.uint8]) -> Floats:
    scale, least = (raw[:, i : i + 2].copy().view(np.float16).astype(np.float32) for i in (0, 2))
    packed = raw[:, 4:]
    quarters = np.concatenate([packed & 15, packed >> 4], axis=1)
    return np.asarray(scale * quarters + least, np.float32)


def _q8_0(raw: NDArray[np.uint8]) -> Floats:
    scale = raw[:, :2].copy().view(np.float16).astype(np.float32)
    return np.asarray(scale * raw[:, 2:].copy().view(np.int8), np.float32)


_EXPAND: dict[int, Callable[[NDArray[np.uint8]], Floats]] = {
    F32: lambda raw: raw.copy().view(np.float32),
    F16: lambda raw: raw.copy().view(np.float16).astype(np.float32),
    Q4_1: _q4_1,
    Q8_0: _q8_0,
}


class _Reader:
    def __init__(self, data: NDArray[np.uint8]) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > self.data.size:
            raise GgufError("the file ends within its header")
        self.at += count
        return self.data[self.at - count : self.at].tobytes()

    def number(self, code: str) -> Any:
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def count(self, most: int) -> int:
        found: int = self.number("Q")
        if found > most:
            raise GgufError(f"a count of {found} in the header")
        return found

    def text(self) -> str:
        return self.take(self.count(MOST_TEXT_BYTES)).decode("utf-8", "replace")

    def value(self, kind: int, nested: bool = False) -> Any:
        if kind == _TEXT:
            return self.text()
        if kind in _SCALARS:
            return self.number(_SCALARS[kind])
        if kind != _ARRAY or nested:
            raise GgufError(f"metadata of type {kind}")
        inner = self.number("I")
        return [self.value(inner, nested=True) for _ in range(self.count(MOST_ENTRIES))]


def parse_gguf(data: NDArray[np.uint8]) -> Gguf:
    """Read the header of a whole file (uint8, may be memory-mapped); tensors stay where they are."""
    reader = _Reader(data)
    if reader.take(4) != MAGIC:
        raise GgufError("not a GGUF file")
    version = reader.number("I")
    if version not in (2, 3):
        raise GgufError(f"GGUF version {version}")
    tensors, entries = reader.count(MOST_ENTRIES), reader.count(MOST_ENTRIES)
    metadata = {}
    for _ in range(entries):
        key = reader.text()
        metadata[key] = reader.value(reader.number("I"))
    places: dict[str, tuple[tuple[int, ...], int, int]] = {}
    for _ in range(tensors):
        name, dimensions = reader.text(), reader.number("I")
        if dimensions > 8:
            raise GgufError(f"tensor {name} has {dimensions} dimensions")
        shape = tuple(reader.number("Q") for _ in range(dimensions))[::-1]
        places[name] = (shape, reader.number("I"), reader.number("Q"))
    alignment = metadata.get("general.alignment", 32)
    if not isinstance(alignment, int) or not 0 < alignment <= MOST_ALIGNMENT:
        raise GgufError(f"alignment {alignment!r}")
    base = -(-reader.at // alignment) * alignment
    placed = {name: (shape, kind, base + start) for name, (shape, kind, start) in places.items()}
    return Gguf(metadata, placed, data)
