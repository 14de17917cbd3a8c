"""Few very fat flows: full segments one way, an acknowledgement for every second, 400 000 packets a second.

`python -m bench.bulk FILE --packets 1000000` writes a capture with 114 bytes of each packet.
"""

import argparse
from pathlib import Path

import numpy as np

FLOWS = 8
PACE_NS = 2_500
SEGMENT = 1_448
HEADERS = 54
SNAP = 114
RECORD = 16
CYCLE = 3
"""Two segments and their acknowledgement."""

BATCH = 3 * (1 << 14) * FLOWS
HEADER = bytes.fromhex("4d3cb2a10200040000000000000000000000040001000000")
START_S = 1_700_000_000


def write(target: Path, packets: int) -> int:
    """Write the capture; return its packets: whole batches of cycles only."""
    packets = max(packets // (CYCLE * FLOWS), 1) * CYCLE * FLOWS
    with target.open("wb") as out:
        out.write(HEADER)
        for lo in range(0, packets, BATCH):
            out.write(_records(np.arange(lo, min(lo + BATCH, packets))))
    return packets


def _records(number: np.ndarray) -> bytes:
    flow, turn = number % FLOWS, number // FLOWS
    ack, sent = turn % CYCLE == CYCLE - 1, 2 * (turn // CYCLE) + np.minimum(turn % CYCLE, 2)
    size = np.where(ack, HEADERS, SNAP)
    start = np.cumsum(RECORD + size) - RECORD - size
    data = np.zeros(int((RECORD + size).sum()), dtype=np.uint8)
    ns = number * PACE_NS
    _put(data, start, START_S + ns // 1_000_000_000, 4, little=True)
    _put(data, start + 4, ns % 1_000_000_000, 4, little=True)
    _put(data, start + 8, size, 4, little=True)
    wire = np.where(ack, HEADERS, HEADERS + SEGMENT)
    _put(data, start + 12, wire, 4, little=True)
    ip = start + RECORD + 14
    _put(data, ip - 2, np.full_like(start, 0x0800), 2)
    _put(data, ip, np.full_like(start, 0x4500), 2)
    _put(data, ip + 2, wire - 14, 2)
    _put(data, ip + 4, turn & 0xFFFF, 2)
    _put(data, ip + 8, np.full_like(start, 0x4006), 2)
    here, there = 0x0A4D0101 + 256 * flow, 0x0A4D0102 + 256 * flow
    _put(data, ip + 12, np.where(ack, there, here), 4)
    _put(data, ip + 16, np.where(ack, here, there), 4)
    _put(data, ip + 20, np.where(ack, 5_001, 40_000 + flow), 2)
    _put(data, ip + 22, np.where(ack, 40_000 + flow, 5_001), 2)
    position = 1 + SEGMENT * sent
    _put(data, ip + 24, np.where(ack, 1, position) & 0xFFFFFFFF, 4)
    _put(data, ip + 28, np.where(ack, position, 1) & 0xFFFFFFFF, 4)
    _put(data, ip + 32, np.full_like(start, 0x5010), 2)
    _put(data, ip + 34, np.full_like(start, 0xFFFF), 2)
    return data.tobytes()


def _put(data: np.ndarray, at: np.ndarray, values: np.ndarray, size: int, *, little: bool = False) -> None:
    for i in range(size):
        data[at + i] = (values >> (8 * (i if little else size - 1 - i))) & 0xFF


def main() -> None:
    """Write a capture as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--packets", type=int, default=1_000_000)
    args = parser.parse_args()
    print(f"{write(args.file, args.packets):,} packets, {args.file.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
