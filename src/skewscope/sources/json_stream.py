"""JSON documents larger than memory: the members of the outermost object, and the elements of its arrays.

A damaged element is counted and left out, and what is behind it is still read.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Collection, Iterator
from typing import Any, BinaryIO

PIECE_BYTES = 1 << 18
MOST_CHARACTERS = 1 << 23
"""Longest single value: a longer one counts as damaged. Its objects take up to forty times as much."""

EXPONENT_CHARACTERS = 16

_SPACE = re.compile(r"[ \t\r\n\ufeff]*")
_NEXT = re.compile(r"[,\n][ \t\r\n]*(?=[{\[\]}\"])")


class _DamagedError(ValueError):
    """What stands there is not JSON."""


class JsonStream:
    """A reader of one document; `bad` counts what was left out, `cut` says that the end is missing."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._text, self._at, self._ended = "", 0, False
        self._json = json.JSONDecoder()
        self.bad, self.cut = 0, False

    def _more(self) -> bool:
        if self._ended:
            return False
        # As much again as is pending: a value of n characters is then tried log(n) times.
        data = self._stream.read(max(PIECE_BYTES, len(self._text) - self._at))
        self._ended = not data
        self._text = self._text[self._at :] + self._decode(data, self._ended)
        self._at = 0
        return True

    def _peek(self) -> str:
        """Return the next character that is not space; "" at the end."""
        while True:
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _value(self) -> Any:
        self._peek()
        while True:
            try:
                value, end = self._json.raw_decode(self._text, self._at)
            except RecursionError:
                raise _DamagedError from None
            except ValueError as error:
                at = getattr(error, "pos", self._at)
                open_end = at >= len(self._text) - 8 or "Unterminated" in str(error)
                small = len(self._text) - self._at < MOST_CHARACTERS
                if open_end and small and self._more():
                    continue
                self.cut |= open_end and self._ended
                raise _DamagedError from None
            near = len(self._text) - end < EXPONENT_CHARACTERS
            if near and not isinstance(value, dict | list | str) and self._more():
                continue  # a number may go on, as "1" with "e+16"
            self._at = end
            return value

    def _resume(self) -> bool:
        """Go to what may be the next value; False at the end."""
        self.bad += 1
        while True:
            found = _NEXT.search(self._text, self._at + 1)
            if found:
                self._at = found.end()
                return True
            self._at = max(self._at, len(self._text) - 1)
            if not self._more():
                self._at = len(self._text)
                return False

    def elements(self) -> Iterator[Any]:
        """Yield the elements of the array that begins here."""
        if self._peek() != "[":
            return
        self._at += 1
        while True:
            mark = self._peek()
            if mark == ",":
                self._at += 1
            elif mark == "]":
                self._at += 1
                return
            elif not mark:
                self.cut = True
                return
            else:
                try:
                    yield self._value()
                except _DamagedError:
                    if not self._resume():
                        return

    def documents(self) -> Iterator[Any]:
        """Yield values that stand one after the other: JSON lines, or objects over several lines."""
        while self._peek():
            try:
                yield self._value()
            except _DamagedError:
                if not self._resume():
                    return

    def members(self, arrays: Collection[str] = ()) -> Iterator[tuple[str, Any]]:
        """Yield (name, value) of the outermost object; those of `arrays` element by element.

        An outermost array is taken as the one called "".
        """
        mark = self._peek()
        if mark == "[":
            for value in self.elements():
                yield "", value
            return
        if mark != "{":
            self.bad += 1
            return
        self._at += 1
        while True:
            mark = self._peek()
            if mark == ",":
                self._at += 1
                continue
            if mark == "}" or not mark:
                self.cut |= not mark
                return
            try:
                name = self._value()
                if self._peek() != ":" or not isinstance(name, str):
                    raise _DamagedError
                self._at += 1
                if name in arrays and self._peek() == "[":
                    for value in self.elements():
                        yield name, value
                else:
                    yield name, self._value()
            except _DamagedError:
                if not self._resume():
                    return

    def notes(self) -> list[str]:
        """Return one line about each thing that was wrong."""
        out = [f"{self.bad} values are damaged and were left out"] if self.bad else []
        return out + ["the end is missing"] * self.cut
