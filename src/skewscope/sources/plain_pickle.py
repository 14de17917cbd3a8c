"""Pickles of plain data: dictionaries, lists, tuples, texts, numbers; no class is ever looked up.

The opcodes are walked first, and any that could name a class, call something or ask for memory out of
proportion refuses the file. Then an unpickler reads it whose look-up of classes always raises.
Source: `pickletools` of the standard library, which documents every opcode.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from typing import Any

MOST_BYTES = 1 << 26
MOST_OPCODES = 1 << 22
"""A list takes one byte of a pickle and 56 of memory: the number of values is what has to be limited."""

PLAIN = frozenset(
    {
        "PROTO", "FRAME", "STOP", "MARK", "POP", "NONE", "NEWTRUE", "NEWFALSE",
        "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "INT",
        "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "SHORT_BINBYTES", "BINBYTES", "BINSTRING",
        "SHORT_BINSTRING",
        "EMPTY_DICT", "DICT", "SETITEM", "SETITEMS", "EMPTY_LIST", "LIST", "APPEND", "APPENDS",
        "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3",
        "BINPUT", "LONG_BINPUT", "PUT", "MEMOIZE", "BINGET", "LONG_BINGET", "GET",
    }
)  # fmt: skip
"""Opcodes of plain data. Everything else is refused: GLOBAL, REDUCE, BUILD, INST, persistent ids, ..."""


class NotPlainError(ValueError):
    """The pickle holds something other than plain data, or is damaged; the message is one line."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str, /) -> Any:
        raise NotPlainError(f"it names the class {module[:40]}.{name[:40]}")

    def persistent_load(self, pid: Any, /) -> Any:
        raise NotPlainError("it refers to something outside")


def _check(data: bytes) -> None:
    for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
        if count >= MOST_OPCODES:
            raise NotPlainError(f"more than {MOST_OPCODES} values")
        if opcode.name not in PLAIN:
            raise NotPlainError(f"opcode {opcode.name} is not one of plain data")
        if opcode.name.endswith("PUT") and int(argument or 0) > count:
            raise NotPlainError("its memo is larger than what it holds")  # memory is taken up to the index


def load(data: bytes) -> Any:
    """Return the value that a pickle of plain data holds; raises NotPlainError and nothing else.

    What comes back may hold itself, or one list many times over: take plain members from it, walk no further.
    """
    if len(data) > MOST_BYTES:
        raise NotPlainError(f"longer than {MOST_BYTES >> 20} MiB")
    try:
        _check(data)
        return _Unpickler(io.BytesIO(data)).load()
    except NotPlainError:
        raise
    except Exception as error:  # damaged pickles raise nearly anything
        raise NotPlainError(f"damaged: {type(error).__name__}") from None
