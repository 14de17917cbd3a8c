"""A busy mirror port: many copies of a shipped recording at the same time, on other addresses.

`python -m bench.mirror FILE --copies 64 --repeats 1` writes one. Each copy is a cluster of its own (a
group of four ranks, an engine, clients); their packets are interleaved by time. Repetitions follow one
another with later times and other ports, so that a long file goes on making connections.
"""

import argparse
import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.material import EPHEMERAL, HEADER, NANOSECONDS, PAUSE_NS, PORT_STEP, RECORD

RECORDING = Path("src/skewscope/app/recordings/cpu_throttle")
BATCH = 1 << 15
"""Records written at a time."""

SPREAD_NS = 37_000_000
"""Copies are apart by this, modulo a second: their steps do not beat together."""

IP_AT = RECORD + 14
THIRD_OCTETS = (IP_AT + 14, IP_AT + 18)
PORTS = (IP_AT + 20, IP_AT + 22)


@dataclass
class _Wire:
    """The frames of a recording, each once, in time order. `at` and `size` include the record header."""

    data: np.ndarray
    at: np.ndarray
    size: np.ndarray
    ts: np.ndarray


def _frames(path: Path) -> tuple[np.ndarray, list[int]]:
    data = gzip.decompress(path.read_bytes())
    assert int.from_bytes(data[:4], "little") == NANOSECONDS
    starts, at = [], HEADER
    while at + RECORD <= len(data):
        starts.append(at)
        at += RECORD + int.from_bytes(data[at + 8 : at + 12], "little")
    return np.frombuffer(data, dtype=np.uint8), starts


def _host(data: np.ndarray, at: np.ndarray) -> int:
    """Return the last octet that every frame of a tap has at one end."""
    ends = np.stack([data[at + IP_AT + 15], data[at + IP_AT + 19]])
    return max(range(256), key=lambda octet: int((ends == octet).any(axis=0).sum()))


def _merged(folder: Path) -> _Wire:
    """Return what a mirror port would have seen: of every tap the frames that its host sent."""
    parts, offset = [], 0
    blobs = []
    for path in sorted(folder.glob("*.pcap.gz")):
        data, starts = _frames(path)
        at = np.array(starts)
        tcp = (data[at + RECORD + 12] == 8) & (data[at + RECORD + 13] == 0) & (data[at + IP_AT + 9] == 6)
        at = at[tcp]
        at = at[data[at + IP_AT + 15] == _host(data, at)]
        ts = _u32(data, at) * 1_000_000_000 + _u32(data, at + 4)
        parts.append(np.stack([ts, at + offset, RECORD + _u32(data, at + 8)], axis=1))
        blobs.append(data)
        offset += len(data)
    rows = np.concatenate(parts)
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    return _Wire(np.concatenate(blobs), rows[:, 1], rows[:, 2], rows[:, 0])


def write(target: Path, copies: int, repeats: int = 1, folder: Path = RECORDING) -> tuple[int, float]:
    """Write the capture; return (packets, seconds of traffic)."""
    wire = _merged(folder)
    count = len(wire.ts)
    copy = np.repeat(np.arange(copies), count)
    row = np.tile(np.arange(count), copies)
    shift = (np.arange(copies) * SPREAD_NS) % 1_000_000_000
    ts = wire.ts[row] + shift[copy]
    order = np.argsort(ts, kind="stable")
    copy, row, ts = copy[order], row[order], ts[order]
    step = int(ts[-1] - ts[0]) + PAUSE_NS
    head = gzip.decompress(next(iter(sorted(folder.glob("*.pcap.gz")))).read_bytes())[:HEADER]
    with target.open("wb") as out:
        out.write(head)
        for number in range(repeats):
            for lo in range(0, len(ts), BATCH):
                part = slice(lo, lo + BATCH)
                out.write(_batch(wire, row[part], copy[part], ts[part] + number * step, number))
    return len(ts) * repeats, repeats * step / 1e9


def _batch(wire: _Wire, row: np.ndarray, copy: np.ndarray, ts: np.ndarray, number: int) -> bytes:
    """Return records of the copies: other third octets of both addresses, times and ports."""
    size = wire.size[row]
    start = np.cumsum(size) - size
    source = np.repeat(wire.at[row] - start, size) + np.arange(int(size.sum()))
    data = wire.data[source]
    _put(data, start, ts // 1_000_000_000)
    _put(data, start + 4, ts % 1_000_000_000)
    for field in THIRD_OCTETS:
        data[start + field] = copy & 0xFF
    for field in PORTS:
        port = (data[start + field].astype(np.int64) << 8) | data[start + field + 1]
        moved = EPHEMERAL + (port - EPHEMERAL + number * PORT_STEP) % (65_536 - EPHEMERAL)
        port = np.where(port >= EPHEMERAL, moved, port)
        data[start + field], data[start + field + 1] = port >> 8, port & 0xFF
    return data.tobytes()


def _u32(data: np.ndarray, at: np.ndarray) -> np.ndarray:
    return sum(data[at + i].astype(np.int64) << (8 * i) for i in range(4))


def _put(data: np.ndarray, at: np.ndarray, values: np.ndarray) -> None:
    for i in range(4):
        data[at + i] = (values >> (8 * i)) & 0xFF


def main() -> None:
    """Write a capture as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--copies", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--recording", type=Path, default=RECORDING)
    args = parser.parse_args()
    packets, seconds = write(args.file, args.copies, args.repeats, args.recording)
    size = args.file.stat().st_size
    print(f"{packets:,} packets, {size / 1e6:.0f} MB, {seconds:.1f} s: {packets / seconds:,.0f} packets/s")


if __name__ == "__main__":
    main()
