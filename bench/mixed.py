"""Frames of every kind that the parser walks: VLAN, IPv6, tunnels of mirrors, TCP options, RoCEv2.

`python -m bench.mixed FILE --packets 1000000` writes a capture: seven kinds in turn, 256 connections of each.
"""

import argparse
from pathlib import Path

from skewscope.wire import build, roce_build

SNAP = 162
"""Bytes kept: the headers of the deepest tunnel and as much payload as elsewhere."""

PACE_NS = 1_000
START_NS = 1_700_000_000_000_000_000
MAC, PEER = b"\x02\0\0\0\0\1", b"\x02\0\0\0\0\2"
OPTIONS = build.tcp_options(timestamps=(7, 6), sacks=((1, 2),))
ACK_PSH = 24


def _tcp4(k: int, options: bytes = b"") -> bytes:
    src, dst = bytes((10, 1, 0, k % 32)), bytes((10, 1, 1, k % 32))
    return build.ipv4(
        src, dst, 6, build.tcp(src, dst, 40_000 + k, 8000, k, 1, ACK_PSH, 512, b"x" * 60, options)
    )


def _tcp6(k: int) -> bytes:
    src, dst = bytes(15) + bytes((k % 32,)), b"\xfd" + bytes(14) + bytes((k % 32,))
    return build.ipv6(src, dst, 6, build.tcp(src, dst, 40_000 + k, 8000, k, 1, ACK_PSH, 512, b"x" * 60))


def _mirrored(port: int, payload: bytes) -> bytes:
    src, dst = b"\x0a\2\0\1", b"\x0a\2\0\2"
    return build.ethernet(MAC, PEER, build.ipv4(src, dst, 17, build.udp(src, dst, 50_000, port, payload)))


def frames(k: int) -> list[bytes]:
    """Return one frame of each kind, of connection k."""
    plain = build.ethernet(MAC, PEER, _tcp4(k, OPTIONS))
    path = roce_build.Path(MAC, PEER, bytes((10, 3, 0, k % 32)), bytes((10, 3, 1, k % 32)), 49_152 + k)
    write = roce_build.bth(0x0A, k, k) + roce_build.reth(k, 1, 64) + bytes(64)
    mirror = build.ipv4(b"\x0a\2\0\1", b"\x0a\2\0\2", 47, build.erspan(2, plain, number=k))
    return [
        plain,
        build.ethernet(MAC, PEER, _tcp4(k), vlans=(5,)),
        build.ethernet(MAC, PEER, _tcp6(k), 0x86DD),
        _mirrored(4789, build.vxlan(k, plain)),
        build.ethernet(MAC, PEER, mirror),
        path.frame(write, k & 0xFFFF),
        path.frame(roce_build.bth(0x11, k, k) + roce_build.aeth(0x1F, k), k & 0xFFFF),
    ]


def write(target: Path, packets: int) -> int:
    """Write the capture; return its packets: whole rounds of 256 connections only."""
    kinds = [frames(k) for k in range(256)]
    order = [frame for one in kinds for frame in one]
    rounds = max(packets // len(order), 1)
    with target.open("wb") as out:
        out.write(build.capture_header(SNAP))
        for n in range(rounds):
            first = START_NS + n * len(order) * PACE_NS
            records = ((first + i * PACE_NS, frame, len(frame)) for i, frame in enumerate(order))
            out.write(build.capture(records, SNAP)[len(build.capture_header(SNAP)) :])
    return rounds * len(order)


def main() -> None:
    """Write a capture as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--packets", type=int, default=1_000_000)
    args = parser.parse_args()
    print(f"{write(args.file, args.packets):,} packets, {args.file.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
