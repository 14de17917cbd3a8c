"""GGUF files made by hand from the format's specification."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skewscope.fingerprint.gguf import GgufError, parse_gguf


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def made(tensors: dict[str, tuple[list[int], int, bytes]]) -> bytes:
    """Dimensions are written fastest first, as the format has it."""
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 3)
    out += text("general.architecture") + struct.pack("<I", 8) + text("llama")
    out += text("n") + struct.pack("<II", 4, 7)
    out += text("list") + struct.pack("<IIQ", 9, 5, 2) + struct.pack("<ii", -1, 5)
    data = b""
    for name, (shape, kind, raw) in tensors.items():
        out += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, len(data))
        data += raw + bytes(-len(raw) % 32)
    return out + bytes(-len(out) % 32) + data


Q4 = struct.pack("<ee", 0.5, -1.0) + bytes(i | ((15 - i) << 4) for i in range(16))
Q8 = struct.pack("<e", 0.25) + bytes(range(32))
FILE = made(
    {
        "f32": ([2, 3], 0, np.arange(6, dtype="<f4").tobytes()),
        "f16": ([4], 1, np.array([1, 2, 3, 65504], "<f2").tobytes()),
        "q4": ([32], 3, Q4),
        "q8": ([32, 1], 8, Q8),
        "odd": ([32], 12, bytes(64)),
    }
)


def bytes_of(raw: bytes) -> np.ndarray:
    return np.frombuffer(raw, np.uint8)


def test_tensors_and_metadata_are_read() -> None:
    file = parse_gguf(bytes_of(FILE))
    assert file.metadata == {"general.architecture": "llama", "n": 7, "list": [-1, 5]}
    assert file.tensor("f32").tolist() == [[0, 1], [2, 3], [4, 5]]
    assert file.tensor("f16").tolist() == [1, 2, 3, 65504]
    assert file.tensor("q4").tolist() == [0.5 * i - 1 for i in (*range(16), *range(15, -1, -1))]
    assert file.tensor("q8").tolist() == [[0.25 * i for i in range(32)]]
    for name in ("odd", "nobody"):
        with pytest.raises(GgufError, match=name):
            file.tensor(name)


@given(st.integers(0, len(FILE)), st.binary(max_size=8))
@example(143, b"\x00+")  # a dimension whose product with the next leaves 64 bits
def test_cut_and_damaged_files_are_refused_or_read(at: int, noise: bytes) -> None:
    for raw in (FILE[:at], FILE[:at] + noise + FILE[at + len(noise) :]):
        try:
            file = parse_gguf(bytes_of(raw))
            for name in file.tensors:
                file.tensor(name)
        except GgufError:
            pass


def test_other_files_are_named() -> None:
    with pytest.raises(GgufError, match="not a GGUF"):
        parse_gguf(bytes_of(b"PK\x03\x04" + bytes(30)))
    with pytest.raises(GgufError, match="version 1"):
        parse_gguf(bytes_of(b"GGUF" + struct.pack("<IQQ", 1, 0, 0)))
