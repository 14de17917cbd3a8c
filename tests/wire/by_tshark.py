"""TCP segments of any capture that tshark can read, and what tshark says of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.wire.segments import Segment


def fields(path: Path, wanted: list[str], shown: str, *options: str) -> list[list[str]]:
    """Return the wanted fields of the packets that a display filter shows, as text."""
    command = ["tshark", "-r", str(path), "-Y", shown, "-T", "fields", *options]
    for name in wanted:
        command += ["-e", name]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [line.split("\t") for line in text.splitlines()]


def segments(path: Path) -> list[Segment]:
    """Return the TCP segments of a capture; flows are numbered from 1 as tshark's streams are from 0."""
    names = ["tcp.stream", "tcp.srcport", "tcp.seq_raw", "tcp.ack_raw", "tcp.flags", "tcp.len", "tcp.payload"]
    first: dict[str, str] = {}
    out = []
    for stream, port, seq, ack, flags, _, payload in fields(path, names, "tcp && !icmp"):
        way = int(port != first.setdefault(stream, port))
        flag = int(flags, 16) & 0xFF
        answered = int(ack) if flag & 16 else None
        data = bytes.fromhex(payload.replace(":", ""))
        out.append(Segment(data, int(seq), way, answered, flag, int(stream) + 1))
    return out
