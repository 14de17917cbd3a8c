"""Loads of numbers of either byte order, compiled and not."""

import numpy as np
import pytest

from skewscope.wire.jit import njit
from skewscope.wire.load import be16, be32, be64, bytes_of, frozen, le32, prefetch, u8

BYTES = bytes(range(0x80, 0x90))


@njit
def all_at(buf, at, out):
    data = bytes_of(buf)
    prefetch(data, at + 1_000_000)
    out[0], out[1], out[2], out[3] = u8(data, at), be16(data, at), be32(data, at), be64(data, at)
    out[4] = le32(data, at)


@pytest.mark.parametrize("at", range(9))
def test_numbers_are_read_at_any_offset(at):
    out = np.zeros(5, np.uint64)
    all_at(frozen(np.frombuffer(BYTES, np.uint8)), at, out)
    wanted = [int.from_bytes(BYTES[at : at + n], "big") for n in (1, 2, 4, 8)]
    wanted.append(int.from_bytes(BYTES[at : at + 4], "little"))
    assert out.tolist() == wanted
    buf = np.frombuffer(BYTES, np.uint8)
    assert [int(f(buf, at)) for f in (u8, be16, be32, be64, le32)] == wanted


@pytest.mark.parametrize(
    ("load", "at"), [(u8, 16), (be16, 15), (be32, 13), (be64, 9), (u8, -1), (be32, -4), (le32, 13)]
)
def test_uncompiled_loads_outside_the_buffer_raise(load, at):
    with pytest.raises(IndexError):
        load(np.frombuffer(BYTES, np.uint8), at)


def test_frozen_is_a_view_that_cannot_be_written():
    buf = np.zeros(4, np.uint8)
    view = frozen(buf)
    buf[1] = 7
    assert view[1] == 7
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
