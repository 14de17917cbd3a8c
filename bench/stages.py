"""Where `diagnose` spends its CPU time: seconds of each thread's clock by stage, without a profiler.

`python -m bench.stages FILE...` prints the stages of one run, the dearest first.
"""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skewscope.app import pipeline
from skewscope.engine import slices
from skewscope.engine.history import History
from skewscope.engine.judge import Judge
from skewscope.features.loader import load_all
from skewscope.sources import captures


@contextmanager
def _timed(spent: Counter[str]) -> Iterator[None]:
    """Add the CPU seconds of each stage to `spent` while the block runs."""
    stages: list[tuple[Any, str, str]] = [
        (captures.PacketParser, "parse", "headers to columns"),
        (captures._TapFramer, "feed", "reassembly and framing"),
        (slices, "_cut_all", "cutting and sorting slices"),
        (Judge, "step", "detectors"),
        (History, "__call__", "history for the report"),
    ]
    stages += [(type(f), "update", f"features of a {f.SPEC.scope}") for f in load_all()]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in stages]
    for (owner, name, label), (_, _, method) in zip(stages, before, strict=True):
        setattr(owner, name, _wrapped(method, label, spent))
    try:
        yield
    finally:
        for owner, name, method in before:
            setattr(owner, name, method)


def _wrapped(method: Callable[..., Any], label: str, spent: Counter[str]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        start = time.thread_time_ns()
        try:
            return method(*args, **kwargs)
        finally:
            spent[label] += time.thread_time_ns() - start

    return call


def measured(paths: list[Path]) -> tuple[dict[str, float], int, int]:
    """Diagnose captures twice, the first time to warm up.

    Returns (CPU ns of the second run by stage, "all" of the process; packets; slices of event time).
    """
    pipeline.run(paths)
    spent: Counter[str] = Counter()
    with _timed(spent):
        start = time.process_time_ns()
        report = pipeline.run(paths)
        whole = time.process_time_ns() - start
    ticks = max(1, (report.span_ns[1] - report.span_ns[0]) // slices.TICK_NS)
    return {**spent, "all": float(whole)}, sum(i.packets for i in report.inputs), ticks


def table(paths: list[Path], title: str, shown: int = 8) -> str:
    """Return the dearest stages of one run as a table."""
    spent, packets, ticks = measured(paths)
    whole = spent.pop("all")
    ranked = sorted(spent.items(), key=lambda item: -item[1])[:shown]
    ranked += [("everything", whole)]
    lines = [f"| {title} | ns a packet | us a slice | share |", "| --- | --- | --- | --- |"]
    lines += [f"| {n} | {ns / packets:.0f} | {ns / ticks / 1e3:.0f} | {ns / whole:.0%} |" for n, ns in ranked]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table([Path(a) for a in sys.argv[1:]], "stage"))
