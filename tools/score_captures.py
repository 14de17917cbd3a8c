"""Read every third-party capture of the samples, compare the counts with tshark's and write a page.

Usage: python -m tools.score_captures [--page FILE]
The captures are found by SKEWSCOPE_SAMPLES. Without --page the table goes to standard output.
Exit code 1: a count differs without a reason on record; 3: no samples or no tshark.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

import skewscope
from skewscope.app import pipeline
from skewscope.core.tables import Table

JUDGED = Path(__file__).with_name("captures_judged.toml")
FOLDERS = ("pcap-flow", "pcap-http", "pcap-ib", "pcap-roce")
SUFFIXES = (".pcap", ".pcapng", ".pcapng.gz")
BTH = "infiniband.bth.opcode"

Tables = dict[str, Table]


def _options(path: Path) -> list[str]:
    """Return what tshark must be told to read a file as it is: ports of HTTP/2, and to sort segments."""
    ports = tomllib.loads(JUDGED.read_text(encoding="utf-8")).get(path.name, {}).get("http2_ports", [])
    told = [part for port in ports for part in ("-d", f"tcp.port=={port},http2")]
    return ["-o", "tcp.reassemble_out_of_order:TRUE", *told]


def _rows(path: Path, filter_: str, *fields: str) -> list[list[str]]:
    """Return the fields of the packets that tshark's display filter selects; the first occurrence of each."""
    command = ["tshark", "-r", str(path), "-T", "fields", "-E", "occurrence=f", *_options(path)]
    command += [part for field in fields for part in ("-e", field)]
    if filter_:
        command += ["-Y", filter_]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [line.split("\t") for line in said.splitlines()]


def _count(path: Path, filter_: str, field: str) -> int:
    """Return how many times a field occurs in all, several times in one packet included."""
    command = ["tshark", "-r", str(path), "-T", "fields", "-e", field, "-Y", filter_, *_options(path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return sum(len(line.split(",")) for line in said.splitlines() if line)


def _frames(path: Path) -> list[tuple[int, int]]:
    """Return (type, length) of every HTTP/2 frame."""
    command = ["tshark", "-r", str(path), "-T", "fields", "-E", "occurrence=a", *_options(path)]
    command += ["-Y", "http2", "-e", "http2.type", "-e", "http2.length"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    out = []
    for line in said.splitlines():
        kinds, sizes = (cell.split(",") for cell in line.split("\t"))
        out += [(int(k), int(n)) for k, n in zip(kinds, sizes, strict=True) if k]
    return out


def _flows(path: Path, proto: str) -> int:
    """Return the connections that tshark sees, without regard to direction."""
    rows = _rows(
        path, proto, "ip.src", "ipv6.src", "ip.dst", "ipv6.dst", f"{proto}.srcport", f"{proto}.dstport"
    )
    ends = {frozenset(((r[0] or r[1], r[4]), (r[2] or r[3], r[5]))) for r in rows if len(r) == 6}
    return len(ends)


def _our_flows(tables: Tables, proto: int) -> int:
    packets = tables["packets"]
    return len(np.unique(packets["flow"][(packets["proto"] == proto) & (packets["flow"] > 0)]))


def _http(tables: Tables, kind: int, *, h2: bool) -> int:
    http = tables["http"]
    return int(np.count_nonzero((http["kind"] == kind) & ((http["stream"] > 0) == h2)))


def _times(path: Path) -> int:
    """Return the sum of all capture times in ns, modulo 2^63: equal only where all are."""
    total = 0
    for (text,) in _rows(path, "", "frame.time_epoch"):
        whole, part = text.split(".")
        total += int(whole) * 1_000_000_000 + int(part.ljust(9, "0"))
    return total


COUNTS: dict[str, tuple[Callable[[Tables], int], Callable[[Path], int]]] = {
    "packets": (lambda t: len(t["packets"]), lambda p: len(_rows(p, "", "frame.number"))),
    "sum of times": (lambda t: sum(t["packets"]["ts_ns"].tolist()), _times),
    "TCP flows": (lambda t: _our_flows(t, 6), lambda p: _flows(p, "tcp")),
    "UDP flows": (lambda t: _our_flows(t, 17), lambda p: _flows(p, "udp")),
    "HTTP/1 requests": (
        lambda t: _http(t, 1, h2=False),
        lambda p: _count(p, "http.request", "http.request.method"),
    ),
    "HTTP/1 responses": (
        lambda t: _http(t, 2, h2=False),
        lambda p: _count(p, "http.response", "http.response.code"),
    ),
    "HTTP/2 requests": (
        lambda t: _http(t, 1, h2=True),
        lambda p: _count(p, "http2.headers.method", "http2.headers.method"),
    ),
    "HTTP/2 responses": (
        lambda t: _http(t, 2, h2=True),
        lambda p: _count(p, "http2.headers.status", "http2.headers.status"),
    ),
    "HTTP/2 body bytes": (
        lambda t: int(t["http"]["nbytes"][(t["http"]["kind"] == 3) & (t["http"]["stream"] > 0)].sum()),
        lambda p: sum(n for kind, n in _frames(p) if kind == 0),
    ),
    "RoCE and InfiniBand packets": (lambda t: len(t["roce"]), lambda p: len(_rows(p, BTH, BTH))),
    "sum of PSNs": (
        lambda t: int(t["roce"]["psn"].sum()),
        lambda p: sum(int(r[0]) for r in _rows(p, BTH, "infiniband.bth.psn")),
    ),
}


def captures(root: Path) -> list[Path]:
    """Return the third-party captures, in order."""
    found = [p for folder in FOLDERS for p in sorted((root / folder).glob("*"))]
    return [p for p in found if p.name.endswith(SUFFIXES)]


def compared(path: Path) -> dict[str, tuple[int, int]]:
    """Return (ours, tshark's) by count."""
    tables = pipeline.tables([path])
    return {name: (mine(tables), theirs(path)) for name, (mine, theirs) in COUNTS.items()}


def main() -> int:
    """Compare all captures and write the page."""
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("--page", type=Path)
    given = parse.parse_args()
    root = Path(os.environ.get("SKEWSCOPE_SAMPLES", ""))
    files = captures(root) if root.name else []
    if not files or shutil.which("tshark") is None:
        sys.stderr.write("no captures (SKEWSCOPE_SAMPLES) or no tshark\n")
        return 3
    judged = tomllib.loads(JUDGED.read_text(encoding="utf-8"))
    lines, unexplained = [], 0
    for path in files:
        about = judged.get(path.name, {})
        differs = []
        counts = compared(path)
        for name, (mine, theirs) in counts.items():
            if mine != theirs:
                reason = about.get("differs", {}).get(name, "")
                unexplained += not reason
                shown = f"{name}: {mine}, tshark {theirs}" if name[:3] != "sum" else f"{name} differs"
                differs.append(f"{shown} ({reason or 'NOT EXPLAINED'})")
        seen = ", ".join(f"{v[0]} {n}" for n, v in counts.items() if v[0] and not n.startswith("sum"))
        lines.append(
            f"| {path.name} | {seen} | {'; '.join(differs) or 'all equal'} | {about.get('inspect', '-')} |"
        )
    text = _page(lines, unexplained)
    if given.page:
        given.page.write_text(text, encoding="utf-8")
    sys.stdout.write(
        text if not given.page else f"{given.page}: {len(lines)} captures, {unexplained} unexplained\n"
    )
    return 1 if unexplained else 0


def _page(lines: list[str], unexplained: int) -> str:
    version = subprocess.run(
        ["tshark", "--version"], capture_output=True, text=True, check=True
    ).stdout.split("\n")[0]
    rows = "\n".join(lines)
    return f"""# Third-party captures

<!-- Written by `python -m tools.score_captures --page docs/results/captures.md`. Edits are lost. -->

**Data: captures published by other projects.** What each is, and whose: the manifest of the samples.

- Date: {datetime.now(UTC).date()}. skewscope {skewscope.__version__}, {version}.
- Command: `python -m tools.score_captures`, with `SKEWSCOPE_SAMPLES` set.
- {len(lines)} captures; differences from tshark without a reason on record: {unexplained}.

Compared: {", ".join(COUNTS)}. "Sum" rows compare every single value.

| file | seen | beside tshark | `skewscope inspect`, judged by eye |
| --- | --- | --- | --- |
{rows}
"""


if __name__ == "__main__":
    sys.exit(main())
