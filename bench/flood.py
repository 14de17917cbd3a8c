"""A scan: one SYN for each of many connections, in a background of nothing else.

`python -m bench.flood FILE --flows 1000000` writes one: every packet is a new flow from one of 256
sources, 200 000 a second.
"""

import argparse
from pathlib import Path

import numpy as np

FRAME = 54
RECORD = 16
PACE_NS = 5_000
SOURCES = 256
BATCH = 1 << 16
HEADER = bytes.fromhex("4d3cb2a10200040000000000000000000000040001000000")
START_S = 1_700_000_000


def write(target: Path, flows: int) -> None:
    """Write the capture: Ethernet, IPv4 and TCP headers, classic pcap with nanoseconds."""
    with target.open("wb") as out:
        out.write(HEADER)
        for lo in range(0, flows, BATCH):
            out.write(_records(np.arange(lo, min(lo + BATCH, flows))))


def _records(number: np.ndarray) -> bytes:
    data = np.zeros((len(number), RECORD + FRAME), dtype=np.uint8)
    ns = number * PACE_NS
    data[:, 0:4] = (START_S + ns // 1_000_000_000).astype("<u4").view(np.uint8).reshape(-1, 4)
    data[:, 4:8] = (ns % 1_000_000_000).astype("<u4").view(np.uint8).reshape(-1, 4)
    data[:, 8] = data[:, 12] = FRAME
    ip = RECORD + 14
    data[:, RECORD + 12] = 8
    data[:, ip] = 0x45
    data[:, ip + 3] = FRAME - 14
    data[:, ip + 8 : ip + 10] = (64, 6)
    data[:, ip + 12 : ip + 15] = (10, 99, 0)
    data[:, ip + 15] = number % SOURCES
    data[:, ip + 16 : ip + 20] = (10, 77, 0, 10)
    source, port = 1_024 + number // SOURCES % 60_000, 1 + number // SOURCES // 60_000
    for at, value in ((20, source), (22, port)):
        data[:, ip + at], data[:, ip + at + 1] = value >> 8, value & 0xFF
    data[:, ip + 24 : ip + 28] = (number.astype(">u4") * 977).view(np.uint8).reshape(-1, 4)
    data[:, ip + 32], data[:, ip + 33] = 0x50, 2
    data[:, ip + 34] = 0xFF
    return data.tobytes()


def main() -> None:
    """Write a capture as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--flows", type=int, default=1_000_000)
    args = parser.parse_args()
    write(args.file, args.flows)
    print(f"{args.flows:,} flows, {args.file.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
