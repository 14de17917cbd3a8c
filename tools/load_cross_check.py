"""Compare the test bed's load generator with vLLM's, `vllm bench serve`, on the same engine and load.

Usage (root; SKEWSCOPE_VLLM names vLLM's Python): python -m tools.load_cross_check [--page FILE]
One bed (two ranks, four clients in a closed loop, 40 tokens an answer): the bed's own clients, then vLLM's,
then the bed's own again. Prints medians and 95th percentiles of time to first token and of chunk gaps, and
requests a second. Exit code 1: a median of vLLM's lies outside the range of the two own runs by more than
2 ms and 5 %.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from skewscope.lab.bed import figures, topology, vllm
from skewscope.lab.bed.bed import Bed
from skewscope.lab.bed.machine import sample, use
from skewscope.lab.bed.needs import require, vllm_python
from skewscope.lab.bed.workload import parse
from tools.score_testbed import machine

CLIENTS, PROMPT, ANSWER, REQUESTS = 4, 16, 40, 120
OWN_S, BENCH_S = 25.0, 180.0
FIGURES = ("ttft_p50_ms", "ttft_p95_ms", "gap_p50_ms", "gap_p95_ms", "requests_per_s")
ROOM_MS, ROOM_RATIO = 2.0, 0.05


def own(bed: Bed) -> dict[str, float]:
    """Run the bed's own clients for a while; return their figures."""
    bed.go()
    time.sleep(2.0)
    start_ns, before = time.time_ns(), sample(bed.processes.real_time())
    time.sleep(OWN_S)
    span = figures.Span(start_ns, time.time_ns(), {})
    busy = use(before, sample(bed.processes.real_time())).busy_ratio
    bed.quiesce()
    found = figures.requests(figures.rows(bed.folder / "client-main.jsonl"), span)
    return {**found, "requests_per_s": found["goodput_rps"], "busy": busy}


def bench(bed: Bed) -> dict[str, float]:
    """Run vLLM's generator from the clients' node; return its figures under the same names."""
    host, port = bed.target
    words: list[object] = [
        vllm_python().parent / "vllm", "bench", "serve", "--backend", "openai", "--model", "bed",
        "--tokenizer", vllm.model(vllm_python()), "--base-url", f"http://{host}:{port}",
        "--dataset-name", "random", "--random-input-len", PROMPT, "--random-output-len", ANSWER,
        "--max-concurrency", CLIENTS, "--num-prompts", REQUESTS, "--ignore-eos",
        "--percentile-metrics", "ttft,itl", "--metric-percentiles", "50,95",
        "--save-result", "--result-dir", bed.folder, "--result-filename", "bench.json",
    ]  # fmt: skip
    node = bed.topology.of_role("client")[0].name
    environment = {**vllm.ENVIRONMENT, "PYTHONPATH": ""}
    before = sample(bed.processes.real_time())
    child = bed.processes.start("bench", node, words, environment=environment)
    if child.handle.wait(BENCH_S):
        raise RuntimeError(f"vllm bench: {bed.processes.last_lines('bench', 8)}")
    busy = use(before, sample(bed.processes.real_time())).busy_ratio
    bed.processes.stop("bench")
    return {**named(json.loads((bed.folder / "bench.json").read_text(encoding="utf-8"))), "busy": busy}


def named(result: Mapping[str, Any]) -> dict[str, float]:
    """Return vLLM's figures under the bed's names."""
    return {
        "ttft_p50_ms": result["median_ttft_ms"],
        "ttft_p95_ms": result["p95_ttft_ms"],
        "gap_p50_ms": result["median_itl_ms"],
        "gap_p95_ms": result["p95_itl_ms"],
        "requests_per_s": result["request_throughput"],
    }


def outside(first: Mapping[str, float], other: Mapping[str, float], again: Mapping[str, float]) -> list[str]:
    """Return the medians in which `other` lies outside the range of the two own runs."""
    found = []
    for figure in ("ttft_p50_ms", "gap_p50_ms"):
        low, high = sorted((first[figure], again[figure]))
        room = max(ROOM_MS, ROOM_RATIO * high)
        if not low - room <= other[figure] <= high + room:
            found.append(figure)
    return found


def table(runs: Mapping[str, Mapping[str, float]]) -> str:
    """Return the runs as a Markdown table."""
    head = ("generator", *FIGURES, "machine busy")
    rows = [head, ("---",) * len(head)]
    rows += [(n, *(f"{r[f]:.2f}" for f in FIGURES), f"{r['busy']:.0%}") for n, r in runs.items()]
    return "".join("| " + " | ".join(r) + " |\n" for r in rows)


def page(runs: Mapping[str, Mapping[str, float]]) -> str:
    """Return the page."""
    differ = outside(*runs.values())
    said = f"differ in {', '.join(differ)}" if differ else "agree"
    return f"""# The load generator beside vLLM's

**Data: recorded from real processes on the test bed** ({datetime.now(UTC).date().isoformat()}, {machine()}).
Made by `python -m tools.load_cross_check --page docs/results/load_generator.md` as root, once. One bed, its
own engine with two ranks; {CLIENTS} clients in a closed loop, {PROMPT} prompt and {ANSWER} answer tokens
a request; the bed's clients, then `vllm bench serve` with {REQUESTS} requests, then the bed's again.

{table(runs)}
The medians {said} (room: {ROOM_MS:g} ms or {ROOM_RATIO:.0%} beside the two own runs, which differ as well).
The bed counts waits from when a request was due, vLLM from when it was sent; in a closed loop the two are the
same.
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the three and print or write the page."""
    parser = argparse.ArgumentParser(prog="python -m tools.load_cross_check")
    parser.add_argument("--page", type=Path, help="write the page to this file")
    asked = parser.parse_args(arguments)
    require(("vllm",))
    shape = topology.parse(topology.builtin("tp2"), 1)
    clients = {"clients": CLIENTS, "prompt": str(PROMPT), "answer": str(ANSWER)}
    load = parse({"compute_ms": 12.0, "clients": {"main": clients}, "probes_every_s": 0.0})
    with Bed(shape, load, 1) as bed:
        runs = {"own": own(bed), "vllm bench serve": bench(bed), "own again": own(bed)}
    print(table(runs), end="")
    if asked.page:
        asked.page.write_text(page(runs), encoding="utf-8")
    return int(bool(outside(*runs.values())))


if __name__ == "__main__":
    sys.exit(main())
