"""The bed's nodes, as a TOML file declares them and a seed completes them. Pure: nothing is created here."""

from __future__ import annotations

import ipaddress
import tomllib
from dataclasses import dataclass, replace
from importlib import resources
from random import Random
from typing import Any

ROLES = (
    "rank",
    "router",
    "gateway",
    "client",
    "prefill",
    "decode",
    "storage",
    "management",
    "bystander",
)
MAX_NODES = 40
NAME_LIMIT = 8
"""Longest node name: `eth0`'s peer is called `p-<name>`, and an interface name has 15 characters at most."""
NETWORKS = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
HTTP_PORTS = (8000, 8001, 8080, 8888, 9000, 30000)
STORE_PORTS = (29500, 29501, 5000, 12345)


class TopologyError(ValueError):
    """The file does not describe a bed; the message names the key."""


@dataclass(frozen=True)
class Node:
    """One network namespace with one port on the switch. `index` counts the nodes of a role in file order."""

    name: str
    role: str
    index: int
    replica: int = 0
    addresses: tuple[str, ...] = ()
    mac: str = ""
    tapped: bool = True

    @property
    def address(self) -> str:
        """The first address."""
        return self.addresses[0]


@dataclass(frozen=True)
class Topology:
    """A complete bed: every node has its addresses, every service its port."""

    name: str
    nodes: tuple[Node, ...]
    prefix: int = 24
    mtu: int = 1500
    http_port: int = 8000
    router_port: int = 8080
    store_port: int = 29500

    def node(self, name: str) -> Node:
        """Return a node by name; raises KeyError."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(name)

    def of_role(self, role: str) -> tuple[Node, ...]:
        """Return the nodes of a role in file order."""
        return tuple(n for n in self.nodes if n.role == role)

    def replicas(self) -> tuple[tuple[Node, ...], ...]:
        """Return the rank nodes of each replica, rank 0 first."""
        ranks = self.of_role("rank")
        return tuple(tuple(n for n in ranks if n.replica == r) for r in sorted({n.replica for n in ranks}))


def builtin(name: str) -> str:
    """Return the text of a topology that ships with the package; raises TopologyError."""
    file = resources.files("skewscope.lab.bed") / "topologies" / f"{name}.toml"
    if not file.is_file():
        raise TopologyError(f"no topology {name!r}; there are {', '.join(builtin_names())}")
    return file.read_text(encoding="utf-8")


def builtin_names() -> list[str]:
    """Return the names of the topologies that ship with the package."""
    folder = resources.files("skewscope.lab.bed") / "topologies"
    return sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))


def parse(text: str, seed: int) -> Topology:
    """Parse a topology file and draw from `seed` what it leaves open: addresses, MACs, ports.

    Raises TopologyError for anything that is not a bed.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TopologyError(f"not TOML: {error}") from None
    unknown = set(data) - {"name", "prefix", "mtu", "http_port", "router_port", "store_port", "node"}
    if unknown:
        raise TopologyError(f"unknown keys: {', '.join(sorted(unknown))}")
    nodes = _nodes(data.get("node"))
    rng = Random(f"topology {seed}")
    prefix = _whole(data, "prefix", rng.choice((16, 24, 24, 24)), 16, 28)
    http = _whole(data, "http_port", rng.choice(HTTP_PORTS), 1, 65535)
    front = [p for p in (80, *HTTP_PORTS) if p != http]
    return Topology(
        name=str(data.get("name", "unnamed")),
        nodes=_addressed(nodes, prefix, rng),
        prefix=prefix,
        mtu=_whole(data, "mtu", 1500, 576, 9000),
        http_port=http,
        router_port=_whole(data, "router_port", rng.choice(front), 1, 65535),
        store_port=_whole(data, "store_port", rng.choice([p for p in STORE_PORTS if p != http]), 1, 65535),
    )


def _whole(table: dict[str, Any], key: str, default: int, low: int, high: int) -> int:
    value = table.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise TopologyError(f"{key}: a whole number from {low} to {high} is needed, not {value!r}")
    return value


def _nodes(tables: Any) -> list[tuple[Node, int]]:
    """Return the nodes without addresses, each with the number of addresses it wants."""
    if not isinstance(tables, list) or not tables:
        raise TopologyError("node: at least one [[node]] table is needed")
    found: list[tuple[Node, int]] = []
    count: dict[str, int] = {}
    for table in tables:
        unknown = set(table) - {"names", "role", "replica", "addresses", "address_count", "tapped"}
        if unknown:
            raise TopologyError(f"node: unknown keys: {', '.join(sorted(unknown))}")
        role, names = table.get("role"), table.get("names")
        if role not in ROLES:
            raise TopologyError(f"role: {role!r} is none of {', '.join(ROLES)}")
        if not isinstance(names, list) or not names:
            raise TopologyError("names: a list of node names is needed")
        given = table.get("addresses", [])
        if given and len(names) > 1:
            raise TopologyError("addresses: only for a table with one name")
        for name in names:
            if not isinstance(name, str) or not name.isalnum() or not 1 <= len(name) <= NAME_LIMIT:
                raise TopologyError(f"names: {name!r} is not 1 to {NAME_LIMIT} letters and digits")
            node = Node(
                name=name,
                role=role,
                index=count.get(role, 0),
                replica=_whole(table, "replica", 0, 0, MAX_NODES),
                addresses=tuple(_given(a) for a in given),
                tapped=bool(table.get("tapped", True)),
            )
            count[role] = node.index + 1
            found.append((node, _whole(table, "address_count", 1, 1, 8)))
    names = [n.name for n, _ in found]
    if len(set(names)) < len(names) or "sw" in names:
        raise TopologyError("names: every node needs a name of its own, and `sw` is the switch")
    if len(found) > MAX_NODES:
        raise TopologyError(f"node: at most {MAX_NODES} nodes, not {len(found)}")
    return found


def _given(address: Any) -> str:
    try:
        return str(ipaddress.IPv4Address(address))
    except ValueError as error:
        raise TopologyError(f"addresses: {error}") from None


def _addressed(nodes: list[tuple[Node, int]], prefix: int, rng: Random) -> tuple[Node, ...]:
    """Give every node its addresses and MAC; the order of addresses is not the order of nodes."""
    space = ipaddress.IPv4Network(rng.choice(NETWORKS))
    start = int(space.network_address)
    net = start + (rng.randrange(space.num_addresses) >> (32 - prefix) << (32 - prefix))
    taken = {a for node, _ in nodes for a in node.addresses}
    host_count = min(1 << (32 - prefix), 254) - 2
    free = [str(ipaddress.IPv4Address(net + 1 + k)) for k in range(host_count)]
    free = [a for a in free if a not in taken]
    rng.shuffle(free)
    if sum(wanted for node, wanted in nodes if not node.addresses) > len(free):
        raise TopologyError(f"prefix: a /{prefix} network has too few addresses")
    out = []
    for node, wanted in nodes:
        addresses = node.addresses or tuple(free.pop() for _ in range(wanted))
        mac = "02:" + ":".join(f"{rng.randrange(256):02x}" for _ in range(5))
        out.append(replace(node, addresses=addresses, mac=mac))
    return tuple(out)
