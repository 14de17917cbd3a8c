"""The simulated cluster: replicas, hosts, GPUs, NICs, links, from a TOML file; addresses from the seed."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import numpy as np

from skewscope.lab.sim.params import StepModel, step_model

GPUS = 8
"""GPUs and NICs of a host: one NIC per GPU, four PCIe switches, two sockets (DGX and HGX H100)."""
PORT = 8000
ROLES = ("mixed", "prefill", "decode", "training")


class ClusterError(ValueError):
    """A cluster file is not valid; the message names the key."""


@dataclass(frozen=True)
class Replica:
    """One engine: its hosts (indices), and how its model is spread over their GPUs."""

    index: int
    model: StepModel
    hosts: tuple[int, ...]
    role: str = "mixed"
    engine: str = "vllm"
    stages: int = 1
    data_parallel: bool = False
    experts: bool = False
    collective: str = ""
    kv_blocks: int = 24000
    max_batch: int = 256
    budget: int = 2048

    @property
    def ranks(self) -> int:
        """GPUs of the replica."""
        return GPUS * len(self.hosts)


@dataclass(frozen=True)
class Cluster:
    """A whole cluster. Hosts are numbered through; GPU k of host h has the number 8 h + k, as has its NIC."""

    name: str
    replicas: tuple[Replica, ...]
    addresses: tuple[str, ...]
    gateway: str
    clients: tuple[str, ...]
    profile: str
    rate_rps: float
    leaves: int = 2
    spines: int = 2
    training: dict[str, Any] = field(default_factory=dict)

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return len(self.addresses)

    def gpu(self, number: int) -> str:
        """Return the id of a GPU."""
        return f"{self.addresses[number // GPUS]}/gpu{number % GPUS}"

    def nic(self, number: int) -> str:
        """Return the id of the RDMA port beside a GPU."""
        return f"{self.addresses[number // GPUS]}/mlx5_{number % GPUS}/1"

    def front_port(self, host: int) -> str:
        """Return the id of the host's front-end port."""
        return f"{self.addresses[host]}/eth0"

    def endpoint(self, replica: int) -> str:
        """Return the id of a replica's API server."""
        return f"{self.addresses[self.replicas[replica].hosts[0]]}:{PORT}"

    def gpus_of(self, replica: int) -> list[int]:
        """Return the GPU numbers of a replica in rank order."""
        return [h * GPUS + k for h in self.replicas[replica].hosts for k in range(GPUS)]

    def replica_of(self, host: int) -> int:
        """Return the replica that runs on a host."""
        return next(r.index for r in self.replicas if host in r.hosts)

    def leaf(self, host: int) -> int:
        """Return the leaf switch of a host: neighbours in number are on different leaves."""
        return host % self.leaves

    def uplink(self, number: int) -> str:
        """Return the id of the link from a leaf to a spine, numbered leaf by leaf."""
        return f"leaf{number // self.spines}->spine{number % self.spines}"

    def uplink_of(self, gpu: int) -> int:
        """Return the uplink that the NIC of a GPU uses: hashing, one spine a rail here."""
        return self.leaf(gpu // GPUS) * self.spines + gpu % self.spines

    def pool(self, role: str) -> list[int]:
        """Return the replicas of a role, by number."""
        return [r.index for r in self.replicas if r.role == role]


def names() -> list[str]:
    """Return the shipped clusters."""
    folder = files("skewscope.lab.sim").joinpath("clusters")
    return sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))


def shipped(name: str) -> str:
    """Return the text of a shipped cluster; raises ClusterError for a name that is none."""
    if name not in names():
        raise ClusterError(f"no cluster {name!r}; there are {', '.join(names())}")
    return files("skewscope.lab.sim").joinpath("clusters", f"{name}.toml").read_text(encoding="utf-8")


def parse(name: str, text: str, rng: np.random.Generator) -> Cluster:
    """Build a cluster from TOML; addresses and the order of hosts come from `rng`.

    Raises ClusterError naming the key.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ClusterError(f"{name}: not TOML: {error}") from None
    replicas: list[Replica] = []
    hosts = 0
    for number, table in enumerate(data.get("replica", [])):
        keys = dict(table)
        try:
            count, width = int(keys.pop("count", 1)), int(keys.pop("hosts", 1))
            model = step_model(keys.pop("model"))
        except (KeyError, TypeError, ValueError) as error:
            raise ClusterError(f"{name}: replica {number + 1}: missing or unknown: {error}") from None
        if not 1 <= count <= 1024 or not 1 <= width <= 64:
            raise ClusterError(f"{name}: replica {number + 1}: count 1-1024 and hosts 1-64 are needed")
        if keys.get("role", "mixed") not in ROLES:
            raise ClusterError(f"{name}: replica {number + 1}: role {keys['role']!r} is none of {ROLES}")
        for _ in range(count):
            try:
                replica = Replica(len(replicas), model, tuple(range(hosts, hosts + width)), **keys)
            except TypeError as error:
                raise ClusterError(f"{name}: replica {number + 1}: {error}") from None
            replicas.append(replica)
            hosts += width
    if not replicas:
        raise ClusterError(f"{name}: no [[replica]]")
    work, fabric = data.get("workload", {}), data.get("fabric", {})
    subnet = int(rng.integers(1, 250))
    numbers = rng.permutation(250)[: min(hosts, 250)] + 2
    places = [f"10.{subnet}.{h // 250}.{numbers[h % 250]}" for h in range(hosts)]
    return Cluster(
        name=name,
        replicas=tuple(replicas),
        addresses=tuple(places),
        gateway=f"10.{subnet}.9.{int(rng.integers(2, 250))}",
        clients=tuple(f"10.{subnet}.8.{int(k)}" for k in rng.permutation(250)[:40] + 2),
        profile=work.get("profile", "azure-conv"),
        rate_rps=float(work.get("rate_rps", 4.0)),
        leaves=int(fabric.get("leaves", 2)),
        spines=int(fabric.get("spines", 2)),
        training=data.get("training", {}),
    )
