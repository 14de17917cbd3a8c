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


def prometheus_text() -> Iterator[bytes]:
    """One line of each kind."""
    yield (
        b"# HELP a b\n# TYPE vllm:time_to_first_token_seconds histogram\n"
        b'vllm:time_to_first_token_seconds_bucket{le="0.1",model_name="a\\"b"} 3 1700000000123\n'
        b"vllm:time_to_first_token_seconds_sum 1.5e3\nvllm:time_to_first_token_seconds_count 4\n"
        b'DCGM_FI_DEV_GPU_TEMP{gpu="0",Hostname="h"} 25 # {trace_id="x"} 1 2\n'
        b'node_load1 NaN\nnode_procs_running +Inf\nunknown{a="}"} 1\n# EOF\n'
    )


def remote_write() -> Iterator[bytes]:
    """A series with two labels and a sample, of version 1 and of version 2."""
    sample = bytes.fromhex("09000000000000f03f1080b0ed86bd31")
    label = b"\x0a\x08__name__\x12\x0anode_load1"
    series = b"\x0a" + bytes([len(label)]) + label + b"\x12" + bytes([len(sample)]) + sample
    yield b"\x0a" + bytes([len(series)]) + series
    second = b"\x0a\x02\x01\x02\x12" + bytes([len(sample)]) + sample
    texts = b"".join(b"\x22" + bytes([len(t)]) + t for t in (b"", b"__name__", b"node_load1"))
    yield texts + b"\x2a" + bytes([len(second)]) + second


def otlp_metrics() -> Iterator[bytes]:
    """A gauge as protobuf and as JSON."""
    point = b"\x19" + (5).to_bytes(8, "little") + b"\x21" + struct.pack("<d", 2.0)
    gauge = b"\x0a" + bytes([len(point)]) + point
    metric = b"\x0a\x0anode_load1\x2a" + bytes([len(gauge)]) + gauge
    scope = b"\x12" + bytes([len(metric)]) + metric
    resource = b"\x12" + bytes([len(scope)]) + scope
    yield b"\x0a" + bytes([len(resource)]) + resource
    yield (
        b'{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"node_load1","gauge":'
        b'{"dataPoints":[{"timeUnixNano":"5","asDouble":2}]}}]}]}]}'
    )


SEEDS = {
    f.__name__: f
    for f in (capture, frames, roce, stream, diagnose, prometheus_text, remote_write, otlp_metrics)
}
