"""The things that are compared: our header parser, the C reference, dpkt, and `diagnose` end to end."""

import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from skewscope.core.directory import Directory
from skewscope.sources.captures import BLOCK_BYTES, MAX_RECORDS
from skewscope.wire.packets import PacketParser
from skewscope.wire.pcap import HEADER_BYTES, parse_header, walk_records

REFERENCE = Path(__file__).parent / "parse_ref.c"
DPKT_PACKETS = 40_000
"""A slice: dpkt needs a quarter of a minute for a million packets."""


def parse_headers(path: Path) -> tuple[int, float]:
    """Parse all headers to the `packets` table as the product does; return (packets, seconds).

    The clock starts with the file in memory, as that of the C reference does.
    """
    data = np.fromfile(path, dtype=np.uint8)
    start = time.perf_counter()
    header = parse_header(data[:HEADER_BYTES].tobytes())
    assert header is not None
    parser = PacketParser(Directory())
    ts = np.empty(MAX_RECORDS, dtype=np.int64)
    at, captured, wire = (np.empty(MAX_RECORDS, dtype=np.int64) for _ in range(3))
    pos, count = HEADER_BYTES, 0
    while True:
        block = data[pos : pos + BLOCK_BYTES]
        n, used, _ = walk_records(
            block, 0, header.big_endian, header.unit_ns, header.record_bytes, ts, at, captured, wire
        )
        if n == 0:
            return count, time.perf_counter() - start
        parser.parse(block, ts[:n].copy(), at[:n], captured[:n], wire[:n], 0, count + 1)
        pos, count = pos + used, count + n


def compiled_reference(folder: Path) -> Path | None:
    """Compile the C reference; None where there is no gcc."""
    gcc = shutil.which("gcc")
    if gcc is None:
        return None
    program = folder / "parse_ref"
    subprocess.run(
        [gcc, "-O3", "-march=native", "-w", "-o", program, REFERENCE], check=True, capture_output=True
    )
    return program


def parse_in_c(program: Path, path: Path) -> tuple[int, float]:
    """Run the C reference; return (packets, seconds of the middle one of its five passes)."""
    said = subprocess.run([program, path], check=True, capture_output=True, text=True).stdout
    passes = [(int(n), float(s)) for n, s in re.findall(r"C (\d+) pkts ([\d.]+) s", said)]
    return sorted(passes, key=lambda p: p[1])[len(passes) // 2]


def has_dpkt() -> bool:
    """Return whether dpkt is installed."""
    return importlib.util.find_spec("dpkt") is not None


def parse_with_dpkt(path: Path) -> tuple[int, float]:
    """Parse a slice of the file with dpkt, the same fields; return (packets, seconds)."""
    dpkt = importlib.import_module("dpkt")
    rows = []
    start = time.perf_counter()
    with path.open("rb") as file:
        for ts, frame in dpkt.pcap.Reader(file):
            ip = dpkt.ethernet.Ethernet(frame).data
            tcp = getattr(ip, "data", None)
            if isinstance(tcp, dpkt.tcp.TCP):
                size = ip.len - 4 * ip.hl - 4 * tcp.off
                rows.append(
                    (ts, ip.src, ip.dst, tcp.sport, tcp.dport, tcp.seq, tcp.ack, tcp.flags, tcp.win, size)
                )
            if len(rows) >= DPKT_PACKETS:
                break
    return len(rows), time.perf_counter() - start


@dataclass
class Run:
    """One process: wall clock and CPU seconds, peak resident bytes."""

    seconds: float
    cpu_s: float
    peak_bytes: int


def diagnose(paths: list[Path]) -> Run:
    """Run `skewscope diagnose` in a process of its own."""
    command = [str(Path(sys.executable).parent / "skewscope"), "diagnose", *map(str, paths), "--json"]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    seconds = time.perf_counter() - start
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)
