"""Files of /sys as text: `<path>: <value>` a line, as `grep -r .` over a tree writes it.

Read are the ports of /sys/class/infiniband, /sys/class/net, and link state and error counts of
/sys/bus/pci/devices. Sources: Linux `Documentation/ABI/stable/sysfs-class-infiniband`,
`testing/sysfs-class-net-statistics`, `testing/sysfs-bus-pci-devices-aer`.
A line `# time <Unix seconds>` begins a later reading of the same files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from skewscope.core.tables import Table
from skewscope.sources.counters import Counters, leading_number
from skewscope.sources.events import Events, entity_of
from skewscope.sources.format import Format, Origin, lines

_TO = r"(?:: ?|\t|=)(.*)$"
_PORT = re.compile(
    r"(?:.*infiniband/)?([\w.\-]{1,64})/ports/(\d{1,3})/(?:hw_counters/|counters/)?(\w{1,80})" + _TO
)
_NET = re.compile(r"(?:.*\bnet/)?([\w.\-@]{1,64})/statistics/(\w{1,80})" + _TO)
_NET_FILE = re.compile(r".*\bclass/net/([\w.\-@]{1,64})/(speed|mtu|carrier|carrier_changes)" + _TO)
_PCI = re.compile(r"(?:.*/)?([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])/(\w{1,80})" + _TO)
_TIME = re.compile(r"# time ([1-8]\d{9})(?:\.(\d{1,9}))?\s*$")
_FILE = re.compile(r"# file: (aer_\w{1,60})\s*$")
_AER = re.compile(r"([A-Za-z][\w /\-]{0,60}?) (\d{1,20})\s*$")

_PCI_FILES = frozenset(
    {"current_link_speed", "max_link_speed", "current_link_width", "max_link_width", "numa_node"}
)
_NVIDIA, _DISPLAY = 0x10DE, 0x03
MOST_GPUS = 1 << 10
NOT_COUNTERS = frozenset({"board_id", "fw_ver", "hca_type", "link_layer", "node_guid", "node_desc", "name"})


class _Tree:
    """One text while it is read."""

    def __init__(self, origin: Origin) -> None:
        self.origin, self.host = origin, origin.about()
        self.counters, self.events = Counters(origin, "sysfs_infiniband"), Events(origin)
        self.ns = origin.at_ns
        self.other = 0
        self._file = self._function = ""
        self._vendors: dict[str, set[float]] = {}

    def line(self, number: int, text: str) -> None:
        if text.startswith("#"):
            self._comment(text)
            return
        found = _PORT.match(text)
        if found:
            device, port, name, value = found.groups()
            self._add(number, f"{device}/{port}", "sysfs_infiniband", name, leading_number(value))
            return
        found = _NET.match(text) or _NET_FILE.match(text)
        if found:
            self._add(number, found[1], "sysfs_net", found[2], leading_number(found[3]))
            return
        found = _PCI.match(text)
        if found:
            self._pci(number, *found.groups())
            return
        found = _AER.match(text)
        if found and self._file:
            name = f"{self._file}/{found[1]}"
            part = f"pci {self._function}" if self._function else ""
            self._add(number, part, "sysfs_pci", name, float(found[2]))
            return
        self.other += bool(text.strip())

    def _comment(self, text: str) -> None:
        time, file = _TIME.match(text), _FILE.match(text)
        if time:
            self.ns = int(time[1]) * 10**9 + int((time[2] or "0").ljust(9, "0"))
        elif file:
            self._file, self._function = file[1], ""

    def _pci(self, number: int, function: str, file: str, value: str) -> None:
        self._file = ""
        part = f"pci {function}"
        if file.startswith("aer_dev_"):
            # The file holds a count a line; a dump without prefixes goes on with bare lines.
            self._file, self._function = file, function
            found = _AER.match(value)
            if found:
                self._add(number, part, "sysfs_pci", f"{file}/{found[1]}", float(found[2]))
        elif file in _PCI_FILES or file.startswith("aer_rootport_"):
            self._add(number, part, "sysfs_pci", file, leading_number(value))
        elif file in {"vendor", "class"} and len(self._vendors) < 1 << 14:
            code = leading_number(value)
            self._vendors.setdefault(function, set()).add(code // 65536 if file == "class" else code)

    def _add(self, number: int, part: str, product: str, name: str, value: float) -> None:
        if name not in NOT_COUNTERS:
            self.counters.add(self.ns, number, entity_of(self.host, part), name, value, product)

    def finish(self) -> None:
        """Say which PCI functions are GPUs: NVML numbers them in the order of their addresses."""
        gpus = sorted(f for f, said in self._vendors.items() if {_NVIDIA, _DISPLAY} <= said)
        for index, function in enumerate(gpus[:MOST_GPUS]):
            peer = entity_of(self.host, f"pci {function}")
            self.events.add(
                self.ns, 0, entity_of(self.host, f"gpu{index}"), "gpu.identity", index, peer=peer, by="order"
            )
        if self.other:
            self.origin.notes.append(f"{self.other} lines are of files that are not read")


def read(stream: BinaryIO, origin: Origin) -> Iterator[dict[str, Table]]:
    """Yield the counters of a tree, and which PCI functions are GPUs."""
    tree = _Tree(origin)
    for number, text in lines(stream, origin):
        tree.line(number, text)
        if tree.counters.full:
            yield tree.counters.take()
    tree.finish()
    yield {**tree.counters.take(), **tree.events.take()}


_SHAPE = re.compile(
    rb"^[^\s:]*[\w.\-]+/ports/\d+/(?:hw_)?counters/\w+(?:: ?|\t|=)"
    rb"|^[^\s:]*/statistics/[rt]x_\w+(?:: ?|\t|=)\d"
    rb"|^[^\n]{0,200}[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d/(?:current_link_|max_link_|aer_)"
    rb"|^# file: aer_(?:dev|rootport)_",
    re.MULTILINE,
)

FORMAT = Format(
    "sysfs",
    "InfiniBand ports, network devices, PCIe links and errors of /sys",
    lambda head, name: 3 * bool(_SHAPE.search(head)),
    read,
)
