"""The things that are compared: our header parser, the C reference, other readers, `diagnose` end to end."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from skewscope.core.directory import Directory
from skewscope.sources.captures import BLOCK_BYTES, MAX_RECORDS
from skewscope.wire.packets import PacketParser
from skewscope.wire.pcap import HEADER_BYTES, parse_header, walk_records

REFERENCE = Path(__file__).parent / "parse_ref.c"
EVERY = 1 << 62
PEERS: dict[str, tuple[str, int, list[str]]] = {
    "pcapy": ("pcapy-ng next_batch, columns by NumPy", EVERY, ["pcapy", "numpy"]),
    "python": ("struct in plain Python, a slice", 200_000, []),
    "dpkt": ("dpkt, a slice", 40_000, ["dpkt"]),
    "tshark": ("tshark -T fields, a slice", 50_000, []),
    "scapy": ("scapy, a slice", 2_000, ["scapy.all"]),
}
"""Methods of bench/peers.py: name in the table, packets of the file that it is given, what it imports."""


def parse_headers(path: Path) -> tuple[int, float]:
    """Parse all headers to the `packets` table as the product does; return (packets, seconds).

    The clock starts with the file in memory, as that of the C reference does.
    """
    data = np.fromfile(path, dtype=np.uint8)
    start = time.perf_counter()
    return _parse(data, PacketParser(Directory())), time.perf_counter() - start


def _parse(data: np.ndarray, parser: PacketParser) -> int:
    header = parse_header(data[:HEADER_BYTES].tobytes())
    assert header is not None
    ts = np.empty(MAX_RECORDS, dtype=np.int64)
    at, captured, wire = (np.empty(MAX_RECORDS, dtype=np.int64) for _ in range(3))
    pos, count = HEADER_BYTES, 0
    while True:
        block = data[pos : pos + BLOCK_BYTES]
        n, used, _ = walk_records(
            block, 0, header.big_endian, header.unit_ns, header.record_bytes, ts, at, captured, wire
        )
        if n == 0:
            return count
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


def parse_in_threads(path: Path, threads: int) -> tuple[int, float]:
    """Parse the whole file once in each thread, with parsers of one run; return (packets, seconds)."""
    data = np.fromfile(path, dtype=np.uint8)
    first = PacketParser(Directory())
    parsers = [first, *(first.twin() for _ in range(threads - 1))]
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        counts = list(pool.map(lambda parser: _parse(data, parser), parsers))
    return sum(counts), time.perf_counter() - start


def peers() -> dict[str, Callable[[Path], tuple[int, float]]]:
    """Return the methods of bench/peers.py that can be run here: of the name that the table gives them.

    The Python that has the libraries is this one, or that of SKEWSCOPE_BENCH_PEERS.
    """
    python = os.environ.get("SKEWSCOPE_BENCH_PEERS", sys.executable)
    found = {}
    for name, (title, packets, needs) in PEERS.items():
        if shutil.which("tshark") if name == "tshark" else _imports(python, needs):
            found[title] = partial(_parse_with_peer, python, name, packets)
    return found


def _imports(python: str, modules: list[str]) -> bool:
    command = [
        python,
        "-c",
        "import importlib, sys; [importlib.import_module(m) for m in sys.argv[1:]]",
        *modules,
    ]
    return subprocess.run(command, capture_output=True).returncode == 0


def _parse_with_peer(python: str, name: str, packets: int, path: Path) -> tuple[int, float]:
    command = [python, Path(__file__).parent / "peers.py", name, path, str(packets)]
    count, seconds = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return int(count), float(seconds)


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
