"""Capture files as plain bytes: compressed or not, from disk, pipe or standard input.

What is read is told by content, never by name. Every stream is read piece by piece, so a small file
that unpacks to a huge one costs time, not memory.
"""

from __future__ import annotations

import bz2
import contextlib
import importlib
import lzma
import os
import stat
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from skewscope.wire.formats import begins_capture

STANDARD_INPUT = Path("/dev/stdin")
"""What `-` on the command line becomes; read from the process's own descriptor."""
PIECE_BYTES, STEP_BYTES = 1 << 17, 1 << 12
MEMORY_BYTES = 1 << 28
"""Most that a decompressor may take for its window: xz -9 needs 64 MiB, zstd --ultra 128 MiB."""

DAMAGE = (OSError, EOFError, ValueError, RuntimeError, zlib.error, lzma.LZMAError)
"""What the file system and the decompressors raise on files that cannot be read to their end."""

FOREIGN = {
    b"PK\x03\x04": "a zip archive; unpack it first",
    b"\x1f\x9d": "compressed with `compress`; unpack it with `uncompress`",
    b"7z\xbc\xaf": "a 7z archive; unpack it first",
    b"snoo": "a snoop file; convert it with `editcap -F nsecpcap`",
    b"RTSS": "a Network Monitor file; convert it with `editcap -F nsecpcap`",
    b"GMBU": "a Network Monitor file; convert it with `editcap -F nsecpcap`",
    b"\x1c\x00\x01\xac": "an IxVeriWave capture; convert it with `editcap -F nsecpcap`",
}
"""First bytes of formats that people have instead of pcap and pcapng, and what to do about them."""


class UnreadableError(Exception):
    """Why a stream cannot be read; the message is one line for the user."""


def reason(error: BaseException) -> str:
    """Return what an exception says, as one line without the path."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text).splitlines()[0]


class Decoder(Protocol):
    """The interface of the standard library's incremental decompressors."""

    @property
    def eof(self) -> bool:
        """Whether the member has ended."""
        ...

    @property
    def needs_input(self) -> bool:
        """Whether there is nothing left to give out without more input."""
        ...

    @property
    def unused_data(self) -> bytes:
        """What was given behind the end of the member."""
        ...

    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes:
        """Return at most `max_length` bytes."""
        ...


class _Gzip:
    """zlib's decompressor with the interface of the others; checks the checksum of each member.

    zlib gives nothing of a piece that turns out to be damaged: its state is kept before each piece, and
    then the piece is taken byte by byte up to the damage.
    """

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)
        self._error: zlib.error | None = None

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail and self._error is None

    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes:
        if self._error is not None:
            raise self._error
        data = self._inner.unconsumed_tail + data
        before = self._inner.copy()
        try:
            return self._inner.decompress(data, max_length)
        except zlib.error as error:
            self._inner, self._error = before, error
            return self._salvage(data)

    def _salvage(self, data: bytes) -> bytes:
        out = b""
        with contextlib.suppress(zlib.error):
            for i in range(len(data)):
                out += self._inner.decompress(data[i : i + 1])
        return out


class _Zstd:
    """zstandard's decompressor with the interface of the others.

    It has no limit on its output. A block holds at most 128 KiB and takes at least 4 bytes (RFC 8878,
    section 3.1.1.2), so that BITE_BYTES of input cannot become more than 16 MiB.
    """

    BITE_BYTES = 512

    def __init__(self, library: Any) -> None:
        self._inner = library.ZstdDecompressor(max_window_size=MEMORY_BYTES // 2).decompressobj()
        self._library_error: type[Exception] = library.ZstdError
        self._data, self._out, self._given = b"", b"", 0

    @property
    def eof(self) -> bool:
        return bool(self._inner.eof) and not self._out

    @property
    def unused_data(self) -> bytes:
        return bytes(self._inner.unused_data) + self._data

    @property
    def needs_input(self) -> bool:
        return not self._out and not self._data

    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes:
        self._data += data
        while self._data and not self._out and not self._inner.eof:
            bite, self._data = self._data[: self.BITE_BYTES], self._data[self.BITE_BYTES :]
            try:
                self._out, self._given = self._inner.decompress(bite), 0
            except self._library_error as error:
                raise ValueError(str(error)) from error
        out = self._out[self._given : self._given + max_length]
        self._given += len(out)
        if self._given >= len(self._out):
            self._out = b""
        return out


def _xz() -> Decoder:
    return lzma.LZMADecompressor(memlimit=MEMORY_BYTES)


def _lz4() -> Decoder:
    decoder: Decoder = _library("lz4.frame", "lz4").LZ4FrameDecompressor()
    return decoder


def _zstd() -> Decoder:
    return _Zstd(_library("zstandard", "zstd"))


def _library(module: str, name: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise UnreadableError(
            f"compressed with {name}: install skewscope[{name}] or unpack it first"
        ) from None


def decoder_for(head: bytes) -> Callable[[], Decoder] | None:
    """Return what makes a decompressor for a stream that begins so (6 bytes), None for plain bytes."""
    if head[:2] == b"\x1f\x8b":
        return _Gzip
    if head[:3] == b"BZh":
        return bz2.BZ2Decompressor
    if head[:6] == b"\xfd7zXZ\0":
        return _xz
    if head[:4] == b"\x04\x22\x4d\x18":
        return _lz4
    if head[:4] == b"\x28\xb5\x2f\xfd" or (head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5):
        return _zstd  # the second is a skippable frame, with which pzstd begins
    return None


class Unpacker:
    """Compressed members, one behind the other, as one stream of plain bytes."""

    def __init__(self, read: Callable[[int], bytes], new: Callable[[], Decoder]) -> None:
        self._read, self._new = read, new
        self._decoder = new()
        self._piece = b""
        self._members = 1
        self._given = False

    def read(self, size: int) -> bytes:
        """Return 1 to `size` bytes, b"" at the end; raises one of DAMAGE, or UnreadableError."""
        while True:
            if self._decoder.eof and not self._begin_member():
                return b""
            data = self._step() if self._decoder.needs_input else b""
            if self._decoder.needs_input and not data:
                raise EOFError("the end is missing")
            try:
                out = self._decoder.decompress(data, size)
            except DAMAGE:
                if self._members > 1 and not self._given:
                    raise UnreadableError("something else behind the compressed data was left out") from None
                raise
            if out:
                self._given = True
                return out

    def _step(self) -> bytes:
        """Return the next few bytes: small steps lose little to damage, and bound what one can become."""
        if not self._piece:
            self._piece = self._read(PIECE_BYTES)
        data, self._piece = self._piece[:STEP_BYTES], self._piece[STEP_BYTES:]
        return data

    def _begin_member(self) -> bool:
        """Begin the next member, if there is one; zeros between members are padding."""
        self._piece = ((self._decoder.unused_data or b"") + self._piece).lstrip(b"\0")
        while not self._piece:
            self._piece = self._read(PIECE_BYTES)
            if not self._piece:
                return False
            self._piece = self._piece.lstrip(b"\0")
        self._decoder, self._given = self._new(), False
        self._members += 1
        return True


class Stream:
    """The plain bytes of one input, up to the size that the file had when it was opened."""

    def __init__(self, path: Path) -> None:
        """Open the input; raises OSError, or UnreadableError."""
        # Our own descriptor: closing it leaves the process's standard input alone.
        self._file = (
            os.fdopen(os.dup(0), "rb", buffering=0)
            if path == STANDARD_INPUT
            else path.open("rb", buffering=0)
        )
        self.position = 0
        self.size = 0
        try:
            found = os.fstat(self._file.fileno())
            self._bounded = stat.S_ISREG(found.st_mode)
            if self._bounded:
                self.size = max(0, found.st_size - self._file.tell())
            self._held = b""
            self._held = self._head()
            new = decoder_for(self._held)
            self._unpacker = Unpacker(self._take, new) if new else None
        except BaseException:
            self._file.close()
            raise

    def _head(self) -> bytes:
        head = b""
        while len(head) < 6:
            more = self._take(6 - len(head))
            if not more:
                break
            head += more
        return head

    def _take(self, size: int) -> bytes:
        """Return up to `size` bytes of the file itself."""
        if self._held:
            data, self._held = self._held[:size], self._held[size:]
            return data
        if self._bounded:
            size = min(size, self.size - self.position)
        data = self._file.read(size) or b""
        self.position += len(data)
        return data

    @property
    def packed(self) -> bool:
        """Whether the bytes are decompressed on the way."""
        return self._unpacker is not None

    @property
    def missing(self) -> int:
        """How many bytes of the file are not there any more, or not read yet."""
        return self.size - self.position if self._bounded else 0

    def readinto(self, view: memoryview) -> int:
        """Fill the front of a buffer; returns the number of bytes, 0 at the end. Raises as `read` does."""
        if self._unpacker is not None or self._held:
            data = self._unpacker.read(len(view)) if self._unpacker else self._take(len(view))
            view[: len(data)] = data
            return len(data)
        if self._bounded:
            view = view[: self.size - self.position]
        count = self._file.readinto(view) or 0
        self.position += count
        return count

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def looks_like_capture(path: Path) -> bool:
    """Say whether a file holds a capture, also a compressed one.

    One that cannot be looked into for want of a library counts where its name says that it is one.
    """
    head = bytearray(4)
    try:
        stream = Stream(path)
        try:
            count = stream.readinto(memoryview(head))
        finally:
            stream.close()
    except UnreadableError:
        return bool({".pcap", ".pcapng", ".cap"} & set(path.suffixes))
    except DAMAGE:
        return False
    return count == 4 and begins_capture(bytes(head))
