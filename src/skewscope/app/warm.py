"""Compiled kernels: whether they are there, and the run that makes them.

Numba compiles a kernel when it is first called and keeps the code next to the source, or where
NUMBA_CACHE_DIR says. All of them take about half a minute of one core, once. `make setup` does it
by `python -m skewscope.app.warm`, so that nobody waits for it later.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numba.core.registry import CPUDispatcher

from skewscope.core.jit import has_entry
from skewscope.core.scenario import Fault, Scenario, Workload
from skewscope.core.schemas import COUNTERS
from skewscope.core.tables import Table
from skewscope.features.counter_rates import CounterRates
from skewscope.features.loader import load_all as load_features
from skewscope.wire.formats import ERF
from skewscope.wire.pcapng_write import PcapngWriter

RUNS = (
    Scenario(
        "framed",
        "faulty",
        duration_s=0.5,
        workload=Workload(own_s=0.01, answer_tokens=6),
        faults=(Fault("loss", 0.0, 0.5, 1, 0.2),),
    ),
    Scenario("opaque", "healthy", duration_s=1.2, workload=Workload(own_s=0.01, framing="opaque")),
    Scenario("chain", "healthy", duration_s=1.2, workload=Workload(own_s=0.01, pattern="chain")),
)
"""Short synthetic captures that, with those of `_write_roce`, call every kernel."""
MANY = 5_000
"""Addresses; a table of names begins with room for fewer."""


def kernels() -> dict[str, Any]:
    """Return the kernels that Python calls, by full name."""
    import_module("skewscope.sources.captures")  # the parsers' and, with the features, all there are
    load_features()
    found = {}
    for name, module in sorted(sys.modules.items()):
        if name.startswith("skewscope."):
            for value in vars(module).values():
                if isinstance(value, CPUDispatcher) and has_entry(value) and value.__module__ == name:
                    found[f"{name}.{value.__name__}"] = value
    return found


def cold() -> list[str]:
    """Return the names of kernels without code in memory or on disk."""
    found = []
    for name, kernel in kernels().items():
        cache: Any = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
        # The index is empty where there is none, or where the source has changed since.
        if cache is not None and not kernel.signatures and not cache._load_index():
            found.append(name)
    return found


def is_first_run() -> bool:
    """Return whether most kernels are yet to be compiled; a capture need not call all of them."""
    return 2 * len(cold()) > len(kernels())


def _other_kinds() -> bytes:
    """Return a capture of the kinds that the simulator does not write."""
    writer = PcapngWriter()
    data = writer.header() + writer.interface("erf", link=ERF)
    return data + writer.packet(0, bytes(32), 32)


def warm() -> None:
    """Compile what is not there yet."""
    from skewscope.app import pipeline
    from skewscope.lab.synth import write

    makers: list[Callable[[Path], object]] = [partial(write, scenario) for scenario in RUNS]
    for make in (*makers, _write_roce):
        if cold():
            with tempfile.TemporaryDirectory() as folder:
                make(Path(folder))
                (Path(folder) / "other.pcapng").write_bytes(_other_kinds())
                pipeline.run(sorted(Path(folder).glob("*.pcap*")), check_icrc=True)
    CounterRates().update(Table(COUNTERS, {"ts_ns": np.ones(1, dtype=np.int64)}))


def _write_roce(folder: Path) -> None:
    """Write captures of RoCEv2, and of RoCEv1 with more addresses than a parser begins with room for."""
    from skewscope.lab.synth import roce_ring
    from skewscope.wire import build, roce_build

    roce_ring.write(roce_ring.Ring(ranks=2, steps=1, collectives=2), folder)
    records = []
    for i in range(MANY // 2):
        src, dst = ((2 * i + k).to_bytes(16, "big") for k in (1, 2))
        frame = roce_build.frame_v1(b"\x02SYN\0\1", b"\x02SYN\0\2", src, dst, roce_build.bth(4, 2, i))
        records.append((roce_ring.EPOCH_NS + i, frame, len(frame)))
    (folder / "v1.pcap").write_bytes(build.capture(records, 65_535))


if __name__ == "__main__":
    if cold():
        print("compiling the kernels, once: about half a minute", file=sys.stderr)
    warm()
