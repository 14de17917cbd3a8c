"""What the benchmarks read: a shipped recording, repeated to the size of a real capture."""

import gzip
from pathlib import Path

import numpy as np

RECORDING = Path("src/skewscope/app/recordings/cpu_throttle/n1.pcap.gz")
SIZE_BYTES = 50_000_000
EPHEMERAL = 32_768
"""Ports from here on move from copy to copy, so that each copy is made of new connections."""

PORT_STEP = 509
PAUSE_NS = 50_000_000
"""Time between two copies: about a decode step of the recording."""

HEADER, RECORD = 24, 16
NANOSECONDS = 0xA1B23C4D


def repeated(recording: Path, target: Path, size: int = SIZE_BYTES) -> tuple[int, int, float]:
    """Write the recording again and again with later times and other ports.

    Returns (packets, copies, seconds of traffic).

    recording: a little-endian classic pcap with nanoseconds, gzip, untagged IPv4 without options.
    """
    data = gzip.decompress(recording.read_bytes())
    body = np.frombuffer(data, dtype=np.uint8)[HEADER:]
    assert int.from_bytes(data[:4], "little") == NANOSECONDS
    starts, at = [], 0
    while at + RECORD <= len(body):
        starts.append(at)
        at += RECORD + int.from_bytes(body[at + 8 : at + 12].tobytes(), "little")
    records = np.array(starts)
    seconds, nanos = _u32(body, records), _u32(body, records + 4)
    times = seconds * 1_000_000_000 + nanos
    tcp = records[(body[records + 28] == 8) & (body[records + 29] == 0) & (body[records + 39] == 6)]
    copies = max(1, size // len(body))
    with target.open("wb") as out:
        out.write(data[:HEADER])
        for number in range(copies):
            copy = body.copy()
            now = times + number * (int(times[-1] - times[0]) + PAUSE_NS)
            _put(copy, records, now // 1_000_000_000)
            _put(copy, records + 4, now % 1_000_000_000)
            for field in (50, 52):
                port = (copy[tcp + field].astype(np.int64) << 8) | copy[tcp + field + 1]
                span = 65_536 - EPHEMERAL
                moved = EPHEMERAL + (port - EPHEMERAL + number * PORT_STEP) % span
                port = np.where(port >= EPHEMERAL, moved, port)
                copy[tcp + field], copy[tcp + field + 1] = port >> 8, port & 0xFF
            out.write(copy.tobytes())
    step_s = (int(times[-1] - times[0]) + PAUSE_NS) / 1e9
    return len(records) * copies, copies, copies * step_s


def _u32(body: np.ndarray, at: np.ndarray) -> np.ndarray:
    return sum(body[at + i].astype(np.int64) << (8 * i) for i in range(4))


def _put(body: np.ndarray, at: np.ndarray, values: np.ndarray) -> None:
    for i in range(4):
        body[at + i] = (values >> (8 * i)) & 0xFF
