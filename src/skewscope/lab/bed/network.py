"""Network namespaces joined by a bridge in a namespace of its own. No system-wide setting is touched."""

from __future__ import annotations

from pathlib import Path

from skewscope.lab.bed.system import SWITCH, inside, namespace, port, run
from skewscope.lab.bed.topology import Node, Topology

OFFLOADS = ("tso", "gso", "gro", "tx", "sg")
NODE_SETTINGS = ("net.ipv6.conf.all.disable_ipv6=1", "net.ipv4.tcp_no_metrics_save=1")


def up(topology: Topology) -> None:
    """Create the switch and all nodes; raises CommandError half-way (call `cleanup.down` then)."""
    run("ip", "netns", "add", namespace(SWITCH))
    inside(SWITCH, "ip", "link", "add", "br0", "type", "bridge", "stp_state", "0", "mcast_snooping", "0")
    inside(SWITCH, "sysctl", "-qw", NODE_SETTINGS[0])
    inside(SWITCH, "ip", "link", "set", "br0", "mtu", topology.mtu, "up")
    for node in topology.nodes:
        _add(node, topology)


def _add(node: Node, topology: Topology) -> None:
    space, plug = namespace(node.name), port(node.name)
    run("ip", "netns", "add", space)
    inside(
        SWITCH, "ip", "link", "add", plug, "mtu", topology.mtu, "type", "veth", "peer", "name", "eth0",
        "netns", space, "address", node.mac, "mtu", topology.mtu,
    )  # fmt: skip
    # With offloads on, the tap would see frames of 65 kB, not packets.
    switches = [word for name in OFFLOADS for word in (name, "off")]
    inside(node.name, "ethtool", "-K", "eth0", *switches)
    inside(SWITCH, "ethtool", "-K", plug, *switches)
    inside(node.name, "sysctl", "-qw", *NODE_SETTINGS)
    inside(SWITCH, "ip", "link", "set", plug, "master", "br0", "up")
    inside(node.name, "ip", "link", "set", "lo", "up")
    for address in node.addresses:
        inside(node.name, "ip", "addr", "add", f"{address}/{topology.prefix}", "dev", "eth0")
    inside(node.name, "ip", "link", "set", "eth0", "up")
    # Congestion control by route: the sysctl would need a system-wide list to be changed for cubic.
    for route in inside(node.name, "ip", "-4", "route", "show", "dev", "eth0").splitlines():
        words = [w for w in route.split() if w != "linkdown"]
        inside(node.name, "ip", "route", "change", *words, "dev", "eth0", "congctl", "cubic")


def receive_drops() -> int:
    """Return how many frames the machine's receive backlog has dropped so far (all processors).

    Source: /proc/net/softnet_stat, second column, one line per processor, in hexadecimal.
    """
    lines = Path("/proc/net/softnet_stat").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1], 16) for line in lines)


def tcp_counters(pid: int) -> dict[str, int]:
    """Return the TCP counters of the network namespace of a process (RetransSegs, TCPLossProbes, ...).

    Empty where the process is gone.
    """
    found: dict[str, int] = {}
    for name in ("snmp", "netstat"):
        try:
            lines = Path(f"/proc/{pid}/net/{name}").read_text(encoding="ascii").splitlines()
        except OSError:
            return {}
        for keys, values in zip(lines[::2], lines[1::2], strict=False):
            if keys.split()[0] in ("Tcp:", "TcpExt:"):
                found.update(zip(keys.split()[1:], map(int, values.split()[1:]), strict=False))
    return found
