"""Routers that serving fleets run in front of their replicas: sglang-router and vllm-router, from PyPI.

Both are optional. They are started with the Python of the bed, which must find their packages
(`pip install --target FOLDER sglang-router`, and FOLDER on PYTHONPATH).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skewscope.lab.bed.needs import PACKAGES
from skewscope.lab.bed.processes import ProcessError, until
from skewscope.lab.bed.system import inside

if TYPE_CHECKING:
    from skewscope.lab.bed.bed import Bed
    from skewscope.lab.bed.topology import Node

METRICS_PORT = 29000
READY_S = 20.0
ASK = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=2).read().decode())"


def command(
    kind: str, settings: Mapping[str, Any], backends: Sequence[Sequence[Any]], port: int
) -> list[object]:
    """Return the command that starts the router; its `policy` is round_robin where none is set."""
    urls = [f"http://{host}:{p}" for host, p in backends]
    return [
        sys.executable, "-m", f"{PACKAGES[kind]}.launch_router",
        "--host", "0.0.0.0", "--port", port, "--worker-urls", *urls,
        "--policy", settings.get("policy", "round_robin"),
        "--prometheus-host", "0.0.0.0", "--prometheus-port", METRICS_PORT,
    ]  # fmt: skip


def start(bed: Bed, node: Node, kind: str, backends: Sequence[Sequence[Any]]) -> None:
    """Start the router and wait until it has found its workers."""
    port = bed.topology.router_port
    bed.processes.start(node.name, node.name, command(kind, bed.workload.gateway, backends, port))

    def ready() -> bool:
        url = f"http://127.0.0.1:{port}/readiness"
        return workers(inside(node.name, sys.executable, "-c", ASK, url, check=False)) >= len(backends)

    if not until(ready, READY_S, 0.5):
        raise ProcessError(f"{kind} did not get ready: {bed.processes.last_lines(node.name)}")


def workers(answer: str) -> int:
    """Return how many healthy workers a router's readiness page tells of; 0 where it is no such page."""
    try:
        return int(json.loads(answer)["healthy_workers"])
    except (ValueError, KeyError, TypeError):
        return 0
