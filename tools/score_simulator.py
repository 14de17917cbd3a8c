"""Compare the simulator with published measurements and write docs/results/simulator.md.

Usage: python -m tools.score_simulator [--page FILE] [--seeds N]
Tables of others are found by SKEWSCOPE_SAMPLES (folder `workload`). Without --page the text goes to standard
output. Exit code 3: no samples.
"""

import argparse
import csv
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import skewscope
from skewscope.core.directory import Directory
from skewscope.lab.sim import cluster, scenario, training, workload
from skewscope.lab.sim.case import Case, simulate
from skewscope.lab.sim.compiled import kernel as k
from skewscope.lab.sim.events import Streams
from skewscope.lab.sim.params import collective_s, step_model
from skewscope.lab.sim.ticks import Ticks
from skewscope.lab.sim.vantage import taps
from skewscope.lab.sim.vantage.emit import emit
from skewscope.lab.sim.workload import Demand
from skewscope.lab.sim.world import World

LAYERS, HIDDEN, INTERMEDIATE, CONTEXT = 80, 8192, 28672, 2048
ELEMENTWISE_S = 12e-6
"""Norms, rotary embedding and activation per layer, which the tables lack (our reading)."""


@dataclass(frozen=True)
class Row:
    """One comparison."""

    quantity: str
    published: float
    simulated: float
    unit: str
    fitted: bool = False

    @property
    def error(self) -> float:
        """Simulated over published, less one."""
        return self.simulated / self.published - 1


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def kernel_sums(folder: Path) -> Iterator[Row]:
    """Sum the tables' kernels of a 70B decode step on eight H100, and compare the step model."""
    gemm = {
        (int(r["m"]), int(r["n"]), int(r["k"])): float(r["latency_ms"]) / 1e3
        for r in rows_of(folder / "aic_h100_gemm_slice.csv")
        if r["gemm_dtype"] == "bfloat16"
    }
    attention = {
        (int(r["batch_size"]), int(r["step"]) + 1): float(r["latency_ms"]) / 1e3
        for r in rows_of(folder / "aic_h100_decode_attention_slice.csv")
        if r["num_heads"] == "8" and r["num_key_value_heads"] == "1"
    }
    table = pq.read_table(folder / "aic_h100_sxm_comm_vllm_0.24.0_custom_allreduce_perf.parquet").to_pylist()
    reduce_ = [(r["message_size"] * 2, r["latency"] / 1e3) for r in table
               if r["num_gpus"] == 8 and r["backend"] == "vllm_graph"]  # fmt: skip
    sizes, times = (np.array(column) for column in zip(*sorted(reduce_), strict=True))
    model = step_model("llama70b-tp8-h100")
    for batch in (1, 32, 64, 128):
        shapes = (
            (1024, HIDDEN),
            (HIDDEN, 1024),
            (INTERMEDIATE * 2 // 8, HIDDEN),
            (HIDDEN, INTERMEDIATE // 8),
        )
        layer = sum(gemm[batch, n, depth] for n, depth in shapes) + attention[batch, CONTEXT]
        layer += 2 * float(np.interp(batch * HIDDEN * 2, sizes, times)) + ELEMENTWISE_S
        yield Row(f"decode step, 70B TP8 H100, batch {batch}, 2 k context", LAYERS * layer * 1e3,
                  model.kernels_s(batch, batch * CONTEXT) * 1e3, "ms", fitted=batch in (1, 128))  # fmt: skip


def splitwise(folder: Path) -> Iterator[Row]:
    """Compare the step model of the engine of 2023 with SplitwiseSim's measured points."""
    points: dict[tuple[str, int, int], list[tuple[float, float]]] = {}
    for r in rows_of(folder / "splitwise_perf_model.csv"):
        if r["model"] == "llama2-70b" and r["tensor_parallel"] == "8" and r["token_size"] == "128":
            key = r["hardware"], int(r["prompt_size"]), int(r["batch_size"])
            points.setdefault(key, []).append((float(r["prompt_time"]), float(r["token_time"])))
    model = step_model("llama70b-tp8-h100-2023")
    for (hardware, prompt, batch), measured in sorted(points.items()):
        if hardware == "a100-80gb" or prompt > 2048:
            continue
        ratio = 1.3 if hardware.endswith("pcap") else 1.0
        asked = prompt * batch
        first = model.kernels_s(0, 0, asked, prompt / 2) * ratio + model.overhead_s(0, asked)
        next_ = model.kernels_s(batch, batch * (prompt + 64)) + model.overhead_s(batch)
        said = statistics.median(m[0] for m in measured), statistics.median(m[1] for m in measured)
        name = f"{hardware}, prompt {prompt}, batch {batch}"
        chosen = batch == 1 and prompt in (512, 2048) and ratio == 1.0
        yield Row(f"prompt time, {name}", said[0], first * 1e3, "ms", fitted=chosen)
        yield Row(
            f"token time, {name}", said[1], next_ * 1e3, "ms", fitted=(prompt, batch) in ((512, 1), (512, 64))
        )


def stream_s(model: str, prompt: int, output: int, together: int) -> tuple[float, float]:
    """Run one replica with so many equal requests; returns (median first token, median gap) in s."""
    text = f'[[replica]]\nmodel = "{model}"\n'
    made = cluster.parse("one", text, Streams.of(1).placement)
    at = np.repeat(np.arange(4) * 20.0 + 1.0, together) + np.tile(np.arange(together) * 1e-6, 4)
    n = len(at)
    demand = Demand(at, np.zeros(n, np.int64), np.full(n, prompt), np.full(n, output), np.arange(n))
    world = World(made, demand, [], 90.0, 1)
    world.settings.set(0.0, "cached_share", [0], 0.0)
    world._refresh()
    run = world.run()
    done = run.times[:, k.Q_END] > 0
    first = run.times[done, k.Q_FIRST] - at[done]
    gap = (run.times[done, k.Q_END] - run.times[done, k.Q_FIRST]) / (run.counts[done, k.N_DONE] - 1)
    return float(np.median(first)), float(np.median(gap))


def end_to_end(folder: Path) -> Iterator[Row]:
    """Compare whole simulated requests with SplitwiseSim's and with practitioners' ranges."""
    measured: dict[int, list[float]] = {}
    for r in rows_of(folder / "splitwise_perf_model.csv"):
        if (r["model"], r["hardware"], r["tensor_parallel"], r["prompt_size"], r["token_size"]) == (
            "llama2-70b", "h100-80gb", "8", "512", "128"):  # fmt: skip
            measured.setdefault(int(r["batch_size"]), []).append(float(r["token_time"]))
    for batch in (1, 4, 16, 32):
        _, gap = stream_s("llama70b-tp8-h100-2023", 512, 128, batch)
        name = f"token time of a whole run, engine of 2023, {batch} at once"
        yield Row(name, statistics.median(measured[batch]),
                  gap * 1e3, "ms")  # fmt: skip
    for name, low, high in (("llama70b-tp8-h100", 18.0, 28.0), ("llama70b-tp8-a100", 28.0, 45.0)):
        _, gap = stream_s(name, 1024, 128, 1)
        yield Row(
            f"gap at batch 1, {name}, middle of {low:g} to {high:g} ms", (low + high) / 2, gap * 1e3, "ms"
        )


def collectives(folder: Path) -> Iterator[tuple[str, int, float, float]]:
    """Yield (name, points, median and 90th percentile of the absolute error) against every measured size."""
    vidur = (
        (
            "all-reduce, 16 A100 on two nodes",
            "vidur_a100_dgx_all_reduce_by_size.csv",
            "16",
            "8",
            "all_reduce-16-a100",
        ),
        (
            "send and receive, two H100 nodes",
            "vidur_h100_dgx_send_recv_by_size.csv",
            "2",
            "1",
            "send_recv-2-h100",
        ),
    )
    for name, file, workers, devices, table in vidur:
        chosen = [r for r in rows_of(folder / file)
                  if (r["num_workers"], r["devices_per_node"]) == (workers, devices)]  # fmt: skip
        yield name, *_errors([(float(r["size_bytes"]), float(r["median_ms"]) / 1e3) for r in chosen], table)
    rows = pq.read_table(folder / "aic_h100_sxm_comm_nccl_2.29.2_nccl_perf.parquet").to_pylist()
    kind = ("all_reduce", "half", 8)
    chosen_rows = [
        (r["message_size"] * 2.0, r["latency"] / 1e3)
        for r in rows
        if (r["op_name"], r["nccl_dtype"], r["num_gpus"]) == kind
    ]
    yield "all-reduce, 8 H100 in one node, NCCL", *_errors(chosen_rows, "all_reduce-8-h100")


def _errors(points: Sequence[tuple[float, float]], table: str) -> tuple[int, float, float]:
    sizes, measured = (np.array(column) for column in zip(*points, strict=True))
    error = np.abs(collective_s(table, sizes) / measured - 1)
    return len(points), float(np.median(error)), float(np.quantile(error, 0.9))


def workloads(folder: Path) -> Iterator[Row]:
    """Compare generated demands with the public traces."""
    for profile, file in (("azure-conv", "AzureLLMInferenceTrace_conv.csv"),
                          ("azure-code", "AzureLLMInferenceTrace_code.csv")):  # fmt: skip
        rows = rows_of(folder.parent / "azure" / file)
        made = workload.synthetic(profile, 5.0, 0.0, 4000.0, 40, np.random.default_rng(1))
        for column, own, name in (
            ("ContextTokens", made.prompt, "prompt"),
            ("GeneratedTokens", made.output, "output"),
        ):
            said = np.array([float(r[column]) for r in rows])
            for share in (0.5, 0.9, 0.99):
                yield Row(f"{profile}, {name} tokens p{share * 100:g}", float(np.quantile(said, share)),
                          float(np.quantile(own, share)), "1", fitted=share == 0.5)  # fmt: skip


def speed() -> list[tuple[str, str]]:
    """Measure the speed of 64 nodes at step level, and of the tables' making, in CPU time of this process."""
    streams = Streams.of(1)
    made = cluster.parse("fleet64", cluster.shipped("fleet64"), streams.placement)
    demand = workload.synthetic(made.profile, made.rate_rps, 0.0, 120.0, 40, streams.placement)
    World(made, demand, [], 1.0, 1).run()
    best, run = float("inf"), None
    for _ in range(5):
        began = time.process_time()
        run = World(made, demand, [], 120.0, 1).run()
        best = min(best, time.process_time() - began)
    assert run is not None
    rates = []
    for _ in range(3):
        began = time.process_time()
        made_rows = emit(run).rows()
        rates.append(made_rows / (time.process_time() - began))
    job = cluster.parse("train8", cluster.shipped("train8"), Streams.of(1).placement)
    began = time.process_time()
    training.run(job, [], 600.0, 1)
    trained = 600.0 / (time.process_time() - began)
    return [
        ("64 hosts, 32 replicas, 120 s: simulated s per CPU s", f"{120.0 / best:.0f}"),
        ("engine steps per CPU s", f"{len(run.steps) / best:,.0f}"),
        ("sample rows per CPU s: all sources of 64 hosts, from truth to tables", f"{max(rates):,.0f}"),
        ("message rows per CPU s: what RDMA taps see of collectives", f"{_columns_per_s():,.0f}"),
        ("training job of 64 GPUs: simulated s per CPU s", f"{trained:,.0f}"),
    ]


def _columns_per_s() -> float:

    drawn = scenario.draw("ok_first_day.across_hosts", 1, duration_s=30.0)
    case_run = World(drawn.cluster, drawn.demand, [], 30.0, 1).run()

    directory = Directory()
    addresses = {a: n + 1 for n, a in enumerate(drawn.cluster.addresses)}
    directory.addresses += list(addresses)
    ticks = Ticks(case_run)
    best = 0.0
    for _ in range(3):
        began = time.process_time()
        table = taps.collectives(ticks, directory, addresses, 0, (2.0, 22.0))
        best = max(best, len(table) / (time.process_time() - began))
    return best


def cases(seeds: int) -> Iterator[tuple[str, list[Case]]]:
    """Run every variant of every fault with some seeds."""
    for name in scenario.names():
        for variant in scenario.variants(name) if scenario.load(name)["condition"] else []:
            asked = f"{name}.{variant}"
            yield asked, [simulate(scenario.draw(asked, s, duration_s=60.0)) for s in range(1, seeds + 1)]


def worst(case: Case) -> float:
    """Return the largest factor by which a service figure got worse."""
    names = ("ttft_p50", "ttft_p95", "gap_p50", "gap_p95", "gap_p99", "step_p50", "step_p99", "transfer_p50")
    return max(
        [case.effect.get(f"{n}_ratio", 1.0) for n in names]
        + [1 / max(case.effect.get("goodput_ratio", 1.0), 0.01)]
    )


def _table(rows: Sequence[Row]) -> list[str]:
    lines = ["| quantity | published | simulated | error |", "| --- | --: | --: | --: |"]
    for r in rows:
        name = f"{r.quantity}{' (fitted)' if r.fitted else ''}"
        lines.append(f"| {name} | {r.published:.4g} {r.unit} | {r.simulated:.4g} {r.unit} | {r.error:+.1%} |")
    free = [abs(r.error) for r in rows if not r.fitted]
    if free:
        said = f"median absolute error {statistics.median(free):.1%}, largest {max(free):.1%}"
        lines += ["", f"Not fitted: {len(free)} points, {said}."]
    return lines


def _cases_part(seeds: int) -> list[str]:
    lines = [
        "| scenario | seen of drawn | service moved | effect, smallest to largest |",
        "| --- | --: | --: | --- |",
    ]
    effects: list[float] = []
    seen = drawn = 0
    for name, made in cases(seeds):
        visible = [c for c in made if c.visible]
        moved = [c for c in made if c.service_moved]
        seen, drawn = seen + len(visible), drawn + len(made)
        sizes = sorted(worst(c) for c in made)
        effects += [worst(c) for c in visible]
        lines.append(
            f"| {name} | {len(visible)} of {len(made)} | {len(moved)} | {sizes[0]:.2f} to {sizes[-1]:.2f} |"
        )
    bins = np.histogram(effects, [0, 1.05, 1.3, 1.8, 3.0, 10.0, np.inf])[0]
    names = ("under 1.05", "to 1.3", "to 1.8", "to 3", "to 10", "above 10")
    sizes_said = ", ".join(f"{name} {count}" for name, count in zip(names, bins, strict=True))
    said = f"{seen} of {drawn} injections had a visible effect: in a service figure or in a declared signal."
    return [
        f"{said} The other {drawn - seen} are no cases.",
        f"Visible ones by the worst service figure: {sizes_said}.",
        "",
        *lines,
    ]


def page(folder: Path, seeds: int) -> str:
    """Return the page."""
    parts = [
        "# The simulator beside published measurements",
        "",
        "Everything here is simulated, or compares simulated figures with figures that others measured.",
        "Made by `python -m tools.score_simulator --page docs/results/simulator.md` with skewscope",
        f"{skewscope.__version__}.",
        "Rows marked *fitted* were used to choose parameters; the errors below each table leave them out.",
        "",
        "## One step: sums of kernels",
        "",
        "Published: sums over AIConfigurator's tables for vLLM 0.24 (GEMMs of shapes at hand, attention,",
        "all-reduce in a CUDA graph, 12 us a layer for the rest). No host time, no queue.",
        "",
        *_table(list(kernel_sums(folder))),
        "",
        "## One step of the engine of 2023",
        "",
        "Published: SplitwiseSim's measurements on DGX H100, as they are and under a power cap.",
        "",
        *_table(list(splitwise(folder))),
        "",
        "## Whole requests",
        "",
        *_table(list(end_to_end(folder))),
        "",
        "## Collectives",
        "",
        "| collective | points | median error | 90 % below |",
        "| --- | --: | --: | --: |",
        *(f"| {name} | {n} | {a:.1%} | {b:.1%} |" for name, n, a, b in collectives(folder)),
        "",
        "The tables are of idle fabrics and hold no tail; jitter and stragglers come from noise and faults.",
        "",
        "## Demand",
        "",
        *_table(list(workloads(folder))),
        "",
        "## Speed",
        "",
        "| what | measured |",
        "| --- | --: |",
        *(f"| {what} | {value} |" for what, value in speed()),
        "",
        "Targets: 100 times real time for 64 hosts on one core, 10 million events/s in columns.",
        "",
        "## Injections and their effect",
        "",
        *_cases_part(seeds),
        "",
        "## Not shown",
        "",
        "- Queueing is not compared: SplitwiseSim and llm-d publish steps, not queues under load.",
        "- The live bed's recorded runs with the bed's own parameters are not compared yet.",
        "- No public all-reduce between H100 nodes was found: `all_reduce-16-h100` is derived from A100.",
    ]
    return "\n".join(parts) + "\n"


def main(arguments: list[str]) -> int:
    """Write or print the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args(arguments)
    folder = Path(os.environ.get("SKEWSCOPE_SAMPLES", "")) / "workload" / "calibration"
    if not folder.is_dir():
        print("SKEWSCOPE_SAMPLES does not name a folder with workload/calibration", file=sys.stderr)
        return 3
    text = page(folder, options.seeds)
    if options.page:
        options.page.write_text(text, encoding="utf-8")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
