"""A running bed: network, engine, front ends, router or gateway, clients; it cleans up behind itself."""

from __future__ import annotations

import atexit
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from skewscope.lab.bed import gateways, network, vllm
from skewscope.lab.bed.cleanup import Claim
from skewscope.lab.bed.groups import CpuGroup
from skewscope.lab.bed.processes import PRIORITY, Processes
from skewscope.lab.bed.topology import Node, Topology
from skewscope.lab.bed.workload import Workload, WorkloadError

DRAIN_S, GIVE_UP_S = 1.5, 0.7
HEARTBEAT_PORT, KV_PORT = 9997, 7600
SETTLE_S = 0.3


class Bed:
    """One bed on this machine; `with Bed(...) as bed:` has all services ready and no load yet."""

    def __init__(self, topology: Topology, workload: Workload, seed: int) -> None:
        self.topology, self.workload, self.seed = topology, workload, seed
        self._groups: dict[str, CpuGroup] = {}
        self._handlers: dict[int, Any] = {}
        self._runs = 0
        self._check()

    def _check(self) -> None:
        for ranks in self.topology.replicas():
            if len(ranks) % self.workload.stages:
                raise WorkloadError(f"layers: {self.workload.stages} stages do not divide {len(ranks)} ranks")
        if not self.topology.replicas() or not (self.workload.training or self.topology.of_role("client")):
            raise WorkloadError("the topology needs ranks and a client")

    def __enter__(self) -> Bed:
        self._claim = Claim()
        atexit.register(self._claim.release)
        self._on_signals()
        # Above the workload, so that injections begin when they should.
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY + 2))
        try:
            self.folder = self._claim.folder
            self.processes = Processes(self.folder)
            network.up(self.topology)
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def end(self) -> None:
        """End all processes; the folder with their logs stays until `close`."""
        if hasattr(self, "processes"):
            self.processes.stop_all()
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))

    def close(self) -> None:
        """End all processes and remove everything; may be called twice."""
        self.end()
        self._claim.release()
        atexit.unregister(self._claim.release)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers.clear()

    def _on_signals(self) -> None:
        def end(number: int, frame: FrameType | None) -> None:
            raise SystemExit(128 + number)  # unwinds through __exit__

        for number in (signal.SIGTERM, signal.SIGHUP):
            self._handlers[number] = signal.signal(number, end)

    # Start-up.

    def _start(self) -> None:
        prefill = self.topology.of_role("prefill")
        if prefill:
            self._start_replica(prefill)
        for ranks in self.topology.replicas():
            self._start_replica(ranks, prefill)
        backends = [[r[0].address, self.topology.http_port] for r in self.topology.replicas()]
        for node in self.topology.of_role("router"):
            settings = {
                "port": self.topology.router_port, "backends": backends,
                "options": dict(self.workload.router),
            }  # fmt: skip
            self.processes.program(node.name, node.name, "router", settings)
            self.processes.wait_ready(node.name)
        for node in self.topology.of_role("gateway"):
            gateways.start(self, node, backends)
        for name, flow in self.workload.flows.items():
            self.start_flow(name, **flow)
        if self.workload.probes_every_s and not self.workload.training:
            self._start_probes()
        if self.workload.heartbeats_every_s:
            self._start_heartbeats()
        clients = {} if self.workload.training else self.workload.clients
        for name, habits in clients.items():
            self.add_client(name, habits)

    def _start_replica(self, ranks: tuple[Node, ...], prefill: tuple[Node, ...] = ()) -> None:
        load, leader = self.workload, ranks[0]
        if load.engine == "vllm":
            vllm.start(self, ranks, rank_of)
            return
        for number, node in enumerate(ranks):
            settings = {
                "rank": number, "tp": len(ranks) // load.stages, "layers": load.layers,
                "leader": leader.address,
                "store_port": self.topology.store_port, "hidden": load.hidden, "compute_ms": load.compute_ms,
                "prompt_token_ms": load.prompt_token_ms, "noise": load.noise, "slots": load.slots,
                "chunk": load.chunk, "static": load.static, "pool_tokens": load.pool_tokens,
                "expert_rows": load.expert_rows, "expert_ms": load.expert_ms,
                "work_list": load.work_list, "seed": self.seed + 1000 * node.replica,
            }  # fmt: skip
            program = "trainer" if load.training else "rank"
            self.processes.program(rank_of(node), node.name, program, settings)
        self.processes.wait_ready(*map(rank_of, ranks))
        if load.training:
            return
        front: dict[str, Any] = {
            "port": self.topology.http_port, "leader": rank_of(leader), "seed": self.seed,
            "hold_on_crash": load.hold_on_crash, "options": dict(load.front_end),
        }  # fmt: skip
        if prefill:
            front["fetchers"] = self._start_kv(prefill, ranks)
            front["prefill"] = {
                "host": prefill[0].address, "port": self.topology.http_port,
                "token_bytes": load.kv_token_bytes,
            }  # fmt: skip
        self.processes.program(front_of(leader), leader.name, "front_end", front)
        self.processes.wait_ready(front_of(leader))

    def _start_kv(self, prefill: tuple[Node, ...], ranks: tuple[Node, ...]) -> list[str]:
        """Start a KV path from each prefill rank to the decode rank of the same number; name the fetchers."""
        names = []
        for source, target in zip(prefill, ranks, strict=False):
            self.processes.program(f"kv-{source.name}", source.name, "kv", {"role": "serve", "port": KV_PORT})
            self.processes.wait_ready(f"kv-{source.name}")
            fetch = {"role": "fetch", "host": source.address, "port": KV_PORT}
            self.processes.program(f"kv-{target.name}", target.name, "kv", fetch)
            self.processes.wait_ready(f"kv-{target.name}")
            names.append(f"kv-{target.name}")
        return names

    def _start_probes(self) -> None:
        nodes = self.topology.of_role("management")[:1]
        if not nodes:
            return
        fronts = [r[0] for r in (self.topology.of_role("prefill"), *self.topology.replicas()) if r]
        also = gateways.metrics_port(self.workload.gateway)
        settings = {
            "targets": [[n.address, self.topology.http_port] for n in fronts],
            "pages": [[n.address, also] for n in self.topology.of_role("gateway") if also],
            "every_s": self.workload.probes_every_s,
        }  # fmt: skip
        self.processes.program("probes", nodes[0].name, "probes", settings)
        self.processes.wait_ready("probes")

    def _start_heartbeats(self) -> None:
        (target,) = self.topology.of_role("management")[:1]
        for node in self.topology.of_role("rank"):
            settings = {
                "host": target.address, "port": HEARTBEAT_PORT, "node": node.name,
                "every_s": self.workload.heartbeats_every_s,
            }  # fmt: skip
            self.processes.program(f"heart-{node.name}", node.name, "heartbeat", settings)
            self.processes.wait_ready(f"heart-{node.name}")

    # What runs.

    @property
    def target(self) -> tuple[str, int]:
        """Address and port that clients talk to: gateway, router, or the first front end."""
        for role in ("gateway", "router"):
            for node in self.topology.of_role(role):
                return node.address, self.topology.router_port
        return self.topology.replicas()[0][0].address, self.topology.http_port

    def add_client(self, name: str, settings: Mapping[str, Any]) -> None:
        """Start a group of clients; it waits for `go`. `address` names one of the client node's addresses."""
        settings = dict(settings)
        node = self.topology.node(settings.pop("node", self.topology.of_role("client")[0].name))
        which = settings.pop("address", None)
        host, port = self.target
        sources = node.addresses if which is None else (node.addresses[which],)
        program = f"client-{name}"
        base = {"host": host, "port": port, "sources": sources, "seed": self.seed}
        self.processes.program(program, node.name, "client", {**base, **settings})
        self.processes.wait_ready(program)

    def start_flow(self, name: str, src: str, dst: str, port: int, **settings: Any) -> None:
        """Start a bulk flow between two nodes: processes `<name>-to` and `<name>-from`."""
        receiver = {"role": "receive", "port": port, "udp": settings.get("udp", False)}
        for key in ("receive_buffer", "size_bytes"):
            receiver[key] = settings.get(key, 0)
        self.processes.program(f"{name}-to", dst, "bulk", receiver)
        self.processes.wait_ready(f"{name}-to")
        host = self.topology.node(dst).address
        sender = {"role": "send", "host": host, "port": port, **settings}
        self.processes.program(f"{name}-from", src, "bulk", sender)
        self.processes.wait_ready(f"{name}-from")

    def stop_flow(self, name: str) -> None:
        """End a bulk flow."""
        self.processes.stop(f"{name}-from")
        self.processes.stop(f"{name}-to")

    def group(self, process: str) -> CpuGroup:
        """Return the processor group of a process; the process is not yet in it."""
        if process not in self._groups:
            self._groups[process] = CpuGroup(process)
        return self._groups[process]

    def group_folders(self) -> dict[str, Path]:
        """Return the folders of the processor groups that exist, by process."""
        return {name: group.path for name, group in self._groups.items()}

    def demote(self, process: str) -> Callable[[], None]:
        """Put a process under the normal scheduler, in its own group; return the way back.

        A quota does not bind real-time processes, and a real-time process does not feel its neighbours.
        """
        pid, group = self.processes[process].pid, self.group(process)
        group.take(pid)
        self.processes.slowed(pid)

        def promote() -> None:
            group.quota(None)
            group.give_back(pid, self.processes[process].priority)

        return promote

    def go(self) -> None:
        """Start the load: reset the engine's noise, then let the main clients begin."""
        leaders = [r[0] for r in (self.topology.of_role("prefill"), *self.topology.replicas()) if r]
        self._runs += 1
        for leader in leaders:
            if self.workload.training:
                self.processes.set_rank(rank_of(leader), reset=self._runs)
            elif self.workload.engine == "own":
                self.processes.tell(front_of(leader), reset=True)
        time.sleep(SETTLE_S)
        for name in self.main_clients():
            self.processes.tell(name, go=True)

    def quiesce(self, drain_s: float = DRAIN_S) -> None:
        """End the load, let what is open finish for a while, and give the rest up."""
        clients = [n for n in self.processes.names() if n.startswith("client-")]
        for name in clients:
            self.processes.tell(name, end=True)
        time.sleep(drain_s)
        for name in clients:
            self.processes.tell(name, abort=True)
        time.sleep(GIVE_UP_S)

    def main_clients(self) -> list[str]:
        """Return the programs of the clients that run from the start."""
        named = () if self.workload.training else self.workload.clients
        return [f"client-{n}" for n in named if n.startswith("main")]


def rank_of(node: Node) -> str:
    """Return the name of the rank process on a node."""
    return f"rank-{node.name}"


def front_of(node: Node) -> str:
    """Return the name of the front-end process on a node."""
    return f"front-{node.name}"
