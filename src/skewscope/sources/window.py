"""The part of a stream that is being looked at, in one buffer that is used again and again."""

from __future__ import annotations

import numpy as np

from skewscope.core.tables import Array
from skewscope.sources.unpack import DAMAGE, Stream, UnreadableError, reason


class Window:
    """Bytes [low, high) of `buf` were read and not consumed yet.

    Plain reads and no memory map: a file that is cut short while it is read must not end the process.
    The copy costs about 0.1 s of a core per GB (docs/decisions/0014).
    """

    def __init__(self, stream: Stream, size: int) -> None:
        self._stream = stream
        self.buf: Array = np.zeros(size, dtype=np.uint8)
        self.low = 0
        self.high = 0
        self.skip = 0
        self.problem = ""
        """Why the stream could not be read to its end, "" where it could."""
        self._ended = False

    def __len__(self) -> int:
        return self.high - self.low

    def bytes(self) -> Array:
        """Return the buffer up to the last byte read; offsets in it stay valid until `fill`."""
        return self.buf[: self.high]

    def fill(self) -> bool:
        """Read until the buffer is full; returns False at the end of the stream.

        A buffer full of bytes that were not consumed is doubled: what is needed is more than it holds.
        """
        kept = self.high - self.low
        if self.low:
            self.buf[:kept] = self.buf[self.low : self.high].copy()
            self.low, self.high = 0, kept
        elif kept == len(self.buf):
            self.buf = np.concatenate([self.buf, np.zeros_like(self.buf)])
        view = memoryview(self.buf.data)
        while self.high < len(self.buf) and not self._ended:
            try:
                count = self._stream.readinto(view[self.high :])
            except UnreadableError as error:
                self.problem, self._ended = str(error), True
            except DAMAGE as error:
                packed = "compressed data ends early or is damaged"
                what = packed if self._stream.packed else "cannot be read to its end"
                self.problem, self._ended = f"{what} ({reason(error)})", True
            else:
                self.high += count
                self._drop_skipped()
                self._ended = count == 0
        return not self._ended

    def consume(self, end: int, skip: int = 0) -> None:
        """Give up the bytes before offset `end`, and `skip` bytes from there on, read already or not."""
        self.low = end
        self.skip += skip
        self._drop_skipped()

    def _drop_skipped(self) -> None:
        here = min(self.skip, self.high - self.low)
        self.low += here
        self.skip -= here
        if self.skip:
            self.low = self.high = 0
