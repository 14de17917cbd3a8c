"""Numbers from a byte buffer, for kernels: one load each, and one byte swap where they are big-endian.

Put together from `buf[at] << 8 | ...` a number costs a load and a check for a negative index per byte.
These functions check nothing when compiled: the caller compares `at` with the end of the frame first.
Uncompiled (NUMBA_DISABLE_JIT=1) they raise IndexError outside the buffer, which the tests rely on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from skewscope.core.tables import Array

Bytes: TypeAlias = Any
"""What `bytes_of` returns: in a compiled kernel the address of a buffer, uncompiled the buffer itself."""


def bytes_of(buf: Array) -> Bytes:
    """Return where the bytes of buf uint8 (bytes,) are; the caller keeps buf alive."""
    return buf


@overload(bytes_of, strict=False)
def _bytes_of(buf: Any) -> Any:
    return lambda buf: buf.ctypes.data


def _bytes(buf: Array, at: int, count: int, order: Literal["big", "little"] = "big") -> int:
    if at < 0 or at + count > len(buf):
        raise IndexError(f"bytes {at} to {at + count} of {len(buf)}")
    return int.from_bytes(buf[at : at + count].tobytes(), order)


def u8(buf: Bytes, at: int) -> int:
    """Return the byte at `at`."""
    return _bytes(buf, at, 1)


def be16(buf: Bytes, at: int) -> int:
    """Return the 16-bit number at `at`."""
    return _bytes(buf, at, 2)


def be32(buf: Bytes, at: int) -> int:
    """Return the 32-bit number at `at`."""
    return _bytes(buf, at, 4)


def le32(buf: Bytes, at: int) -> int:
    """Return the little-endian 32-bit number at `at`."""
    return _bytes(buf, at, 4, "little")


def be64(buf: Bytes, at: int) -> np.uint64:
    """Return the 64-bit number at `at`, unsigned: it takes part in unsigned arithmetic only."""
    return np.uint64(_bytes(buf, at, 8))


def _compile(function: Callable[..., Any], bits: int, result: Any, *, swap: bool = True) -> None:
    """Let compiled kernels call `function` as a load of `bits` bits, in any alignment."""

    @intrinsic
    def load(_typing: Any, buf: Any, at: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            word = ir.IntType(bits)
            value = builder.load(builder.inttoptr(builder.add(*args), word.as_pointer()), align=1)
            if swap:
                value = builder.bswap(value)
            return builder.zext(value, ir.IntType(64)) if bits < 64 else value

        return result(types.intp, types.intp), generate

    @overload(function, strict=False)
    def chosen(buf: Any, at: Any) -> Any:
        return (lambda buf, at: load(buf, at)) if isinstance(buf, types.Integer) else None


_compile(u8, 8, types.int64, swap=False)
_compile(be16, 16, types.int64)
_compile(be32, 32, types.int64)
_compile(le32, 32, types.int64, swap=False)
_compile(be64, 64, types.uint64)


def prefetch(buf: Bytes, at: int) -> None:
    """Ask the processor for 128 bytes from `at` on, which need not lie in the buffer; uncompiled: nothing."""


@intrinsic
def _prefetch(_typing: Any, buf: Any, at: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        read, keep, data = (ir.Constant(word, n) for n in (0, 3, 1))
        for line in (0, 64):
            place = builder.add(builder.add(*args), ir.Constant(ir.IntType(64), line))
            builder.call(function, [builder.inttoptr(place, byte), read, keep, data])
        return _context.get_dummy_value()

    return types.void(types.intp, types.intp), generate


@overload(prefetch, strict=False)
def _prefetch_compiled(buf: Any, at: Any) -> Any:
    return (lambda buf, at: _prefetch(buf, at)) if isinstance(buf, types.Integer) else None


def frozen(buf: Array) -> Array:
    """Return a read-only contiguous view of bytes: one type for the kernels, whoever owns them."""
    view = np.ascontiguousarray(buf, np.uint8).view()
    view.flags.writeable = False
    return view
