"""Compare the north-south half with llmshark (PyPI) on one capture: same figures, time and memory of both.

    python -m bench.peer_llmshark CAPTURE --python PYTHON_WITH_LLMSHARK [-o PAGE]

llmshark needs some seventy packages, so it lives in an environment of its own, and is driven there by
this file's other half (`--dump`). It gives one session for each connection and no gaps that can be
compared as printed: after each segment it reads its whole buffer again, and lists earlier events once
more under the new time. What is compared is therefore the set of distinct times of its chunks.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

Session = dict[str, Any]


def dump(path: Path) -> None:
    """Print llmshark's sessions as JSON; runs where llmshark is installed."""
    import importlib

    parser = importlib.import_module("llmshark.parser").PCAPParser()
    sessions = [
        {
            "ports": [s.source_port, s.dest_port],
            "request": s.request_sent.timestamp(),
            "chunks": sorted({c.timestamp.timestamp() for c in s.chunks}),
            "listed": len(s.chunks),
        }
        for s in parser.parse_file(path)
    ]
    sys.stdout.write(json.dumps(sessions))


def ours(path: Path) -> None:
    """Print the last streamed response of each connection as JSON, from the `http` table."""
    from skewscope.app import pipeline

    tables = pipeline.tables([path])
    packets, http = tables["packets"], tables["http"]
    ports = dict(
        zip(
            packets["flow"].tolist(),
            zip(packets["sport"].tolist(), packets["dport"].tolist(), strict=True),
            strict=True,
        )
    )
    flows: dict[int, Session] = {}
    for kind, flow, ts, events in zip(
        *(http[n].tolist() for n in ("kind", "flow", "ts_ns", "events")), strict=True
    ):
        if kind == 1:
            flows[flow] = {"ports": sorted(ports[flow]), "request": ts / 1e9, "chunks": []}
        elif kind == 3 and events and flow in flows:
            flows[flow]["chunks"].append(ts / 1e9)
    sys.stdout.write(json.dumps([s for s in flows.values() if s["chunks"]]))


def measured(command: list[str]) -> tuple[list[Session], float, int]:
    """Run a command; return (the sessions it printed, seconds, peak resident bytes)."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]}: exit code {process.returncode}")
    return json.loads(said), time.perf_counter() - start, usage.ru_maxrss * 1024


def compared(theirs: list[Session], mine: list[Session]) -> dict[str, float]:
    """Match sessions by ports and return the largest differences in s, and how much was compared."""
    by_ports = {tuple(sorted(s["ports"])): s for s in mine}
    ttft, gaps, sessions, chunks = [0.0], [0.0], 0, 0
    for other in theirs:
        same = by_ports.get(tuple(sorted(other["ports"])))
        if same is None:
            continue
        sessions += 1
        a, b = np.array(other["chunks"]), np.array(same["chunks"])
        ttft.append(abs((a[0] - other["request"]) - (b[0] - same["request"])))
        common = min(len(a), len(b))
        chunks += common
        gaps.append(float(np.abs(np.diff(a[:common]) - np.diff(b[:common])).max(initial=0.0)))
    return {
        "sessions": sessions,
        "chunks": chunks,
        "ttft_difference_s": max(ttft),
        "gap_difference_s": max(gaps),
        "chunks_listed_by_llmshark": sum(s["listed"] for s in theirs),
        "chunks_of_skewscope": sum(len(s["chunks"]) for s in mine),
        "chunks_of_llmshark": sum(len(s["chunks"]) for s in theirs),
    }


def page(path: Path, packets: str, found: dict[str, float], times: dict[str, tuple[float, int]]) -> str:
    """Return the results page."""
    rows = "".join(f"| {n} | {s:.2f} | {b / 2**20:.0f} MiB |\n" for n, (s, b) in times.items())
    facts = "".join(f"| {k.replace('_', ' ')} | {v:.9g} |\n" for k, v in found.items())
    return f"""# Beside llmshark

<!-- Written by `python -m bench.peer_llmshark CAPTURE --python PYTHON -o docs/results/llmshark.md`. -->

**Data: the client leg of a capture of the project's test bed.** Not production traffic.

- Date: {datetime.date.today()}. Machine: {os.cpu_count()} cores, Python {platform.python_version()}.
- File: {path.name}, {packets}, {path.stat().st_size:,} bytes. llmshark 0.1.0 from PyPI.

| tool | seconds, start-up included | peak memory |
| --- | --- | --- |
{rows}
| compared | value |
| --- | --- |
{facts}
Differences are the largest over all sessions that both tools give. llmshark lists each event again after
every later segment, so its own mean gap is near zero; its distinct chunk times are what is compared here.
It keeps one session for each connection, the last; the same one is taken from skewscope.
"""


def main() -> int:
    """Run both and write the page."""
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("capture", type=Path)
    parse.add_argument("--python", default=sys.executable, help="an interpreter that has llmshark")
    parse.add_argument("-o", "--output", type=Path)
    parse.add_argument("--dump", choices=["llmshark", "skewscope"], help=argparse.SUPPRESS)
    given = parse.parse_args()
    if given.dump:
        (dump if given.dump == "llmshark" else ours)(given.capture)
        return 0
    me = [str(Path(__file__).resolve()), str(given.capture)]
    theirs, their_s, their_b = measured([given.python, *me, "--dump", "llmshark"])
    mine, my_s, my_b = measured([sys.executable, *me, "--dump", "skewscope"])
    text = page(
        given.capture,
        f"{sum(len(s['chunks']) for s in mine)} chunks",
        compared(theirs, mine),
        {"skewscope": (my_s, my_b), "llmshark": (their_s, their_b)},
    )
    if given.output:
        given.output.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
