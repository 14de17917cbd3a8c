"""Seeds for each target, made from the recordings that ship with the project and from built frames."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
from collections.abc import Iterator
from pathlib import Path

from fuzz.targets import LINKS, OPENINGS
from skewscope.wire.pcap import HEADER_BYTES

RECORDINGS = Path(__file__).resolve().parent.parent / "src" / "skewscope" / "app" / "recordings"


def _recorded(limit: int = 60) -> list[bytes]:
    """Return the first frames of a shipped recording."""
    plain = gzip.decompress(sorted(RECORDINGS.glob("*/lg.pcap.gz"))[0].read_bytes())
    found, at = [], HEADER_BYTES
    while at + 16 <= len(plain) and len(found) < limit:
        size = struct.unpack_from("<I", plain, at + 8)[0]
        found.append(plain[at + 16 : at + 16 + size])
        at += 16 + size
    return found


def _prefixed(pieces: list[bytes]) -> bytes:
    return b"".join(struct.pack("<H", min(len(p), 0x7FF)) + p[:0x7FF] for p in pieces)


def capture() -> Iterator[bytes]:
    """Whole small captures, plain and packed."""
    plain = gzip.decompress(sorted(RECORDINGS.glob("*/lg.pcap.gz"))[0].read_bytes())[:3000]
    yield plain
    yield from (gzip.compress(plain), bz2.compress(plain), lzma.compress(plain))
    yield plain[:HEADER_BYTES]


def frames() -> Iterator[bytes]:
    """Recorded frames under each link type."""
    for index in range(len(LINKS)):
        yield bytes([index]) + _prefixed(_recorded(6))
        yield bytes([index]) + _prefixed([f[14:] for f in _recorded(6)])


def roce() -> Iterator[bytes]:
    """Base transport headers of each kind."""
    for opcode in (0x00, 0x04, 0x06, 0x0A, 0x0B, 0x0C, 0x10, 0x11, 0x64, 0x81):
        yield _prefixed(
            [bytes([opcode, 0, 0xFF, 0xFF, 0, 0, 0, 17, 0x80, 0, 0, n]) + bytes(40) for n in range(4)]
        )


def stream() -> Iterator[bytes]:
    """Each opening, followed by recorded payload."""
    payload = [b"\x80" + f[66:] for f in _recorded() if len(f) > 66]
    for index in range(len(OPENINGS)):
        yield bytes([index]) + _prefixed(payload[:8])


def diagnose() -> Iterator[bytes]:
    """Recorded frames 1 ms apart."""
    yield _prefixed([b"\xe8\x03\x00" + f for f in _recorded(40)])


SEEDS = {f.__name__: f for f in (capture, frames, roce, stream, diagnose)}
