"""The workload `vllm`: real vLLM on CPUs, its tensor-parallel ranks in the bed's namespaces.

vLLM lives in a Python of its own, named by the environment variable of `needs.VLLM` (docs/bed.md tells how
to make it). Its ranks talk Gloo over TCP, as the bed's own engine does.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skewscope.lab.bed import programs
from skewscope.lab.bed.needs import vllm_python
from skewscope.lab.bed.processes import ProcessError, until
from skewscope.lab.bed.system import inside, run

if TYPE_CHECKING:
    from skewscope.lab.bed.bed import Bed
    from skewscope.lab.bed.topology import Node

READY_S = 400.0
MASTER_PORT = 29501
VLLM_PRIORITY = 1
TEXT = Path("/usr/share/common-licenses/GPL-3")
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "OMP_NUM_THREADS": "1",
}


def command(python: Path, model: Path, ranks: Sequence[Node], number: int, port: int) -> list[object]:
    """Return the command of one rank; rank 0 serves HTTP at `port`."""
    words: list[object] = [
        python.parent / "vllm", "serve", model, "--served-model-name", "bed",
        "--tensor-parallel-size", len(ranks), "--nnodes", len(ranks), "--node-rank", number,
        "--master-addr", ranks[0].address, "--master-port", MASTER_PORT,
        "--dtype", "float32", "--enforce-eager", "--max-model-len", 2048, "--max-num-seqs", 8,
        "--no-enable-prefix-caching", "--host", "0.0.0.0", "--port", port,
    ]  # fmt: skip
    return words if number == 0 else [*words, "--headless"]


def start(bed: Bed, ranks: Sequence[Node], name_of: Any) -> None:
    """Start all ranks in groups of a large weight, wait for the server, then make them real-time.

    vLLM polls while it waits, so its priority is under that of clients and captures, which would otherwise
    get no core.
    Raises BedUnavailableError where there is no vLLM, ProcessError where it does not start.
    """
    python = vllm_python()
    made = model(python)
    for number, node in enumerate(ranks):
        environment = {**ENVIRONMENT, "VLLM_HOST_IP": node.address, "PYTHONPATH": ""}
        words = command(python, made, ranks, number, bed.topology.http_port)
        child = bed.processes.start(name_of(node), node.name, words, priority=0, environment=environment)
        bed.group(child.name).take(child.pid)
    mark = f":{bed.topology.http_port:04X} 00000000:0000 0A"

    def listens() -> bool:
        if bed.processes.died():
            raise ProcessError(f"vLLM ended: {bed.processes.last_lines(bed.processes.died()[0], 6)}")
        return mark in inside(ranks[0].name, "cat", "/proc/net/tcp")

    if not until(listens, READY_S, 0.5):
        raise ProcessError(f"vLLM did not get ready: {bed.processes.last_lines(name_of(ranks[0]))}")
    for node in ranks:
        child = bed.processes[name_of(node)]
        bed.group(child.name).give_back(child.pid, VLLM_PRIORITY)
        child.priority = VLLM_PRIORITY  # not `real_time`: that its threads wait for each other says nothing


def model(python: Path) -> Path:
    """Return the folder of the random model, made once per installation of vLLM."""
    folder = python.parent.parent / "skewscope-tiny-llama"
    if not (folder / "made").exists():
        shutil.rmtree(folder, ignore_errors=True)
        script = Path(programs.__file__).with_name("tiny_llama.py")
        run(python, script, folder, TEXT, limit_s=READY_S)
    return folder
