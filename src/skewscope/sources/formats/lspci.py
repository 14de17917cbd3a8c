"""`lspci -vvv`: link capability against status, and the error bits of every PCI function.

Status bits stay set until somebody clears them, so a healthy machine shows many: they become events of
kind `pcie.sticky`, never errors. Only counts that rise (sysfs `aer_dev_*`) are a sign of a fault.
Source: PCI Express Base Specification (link and AER registers); pciutils `ls-caps.c` (layout).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from skewscope.core.tables import Table
from skewscope.sources.counters import Counters
from skewscope.sources.events import Events, entity_of
from skewscope.sources.format import Format, Origin, lines
from skewscope.sources.formats.kernel_log import pci_name

_FUNCTION = re.compile(r"((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ([^:]{1,80}): (.*)")
_LINK = re.compile(
    r"\s+Lnk(Cap|Sta):.*?Speed ([\d.]{1,6})GT/s(?: \((\w+)\))?, Width x(\d{1,2})(?: \((\w+)\))?"
)
_NUMA = re.compile(r"\s+NUMA node: (-?\d{1,4})")
_BITS = re.compile(r"\s+(DevSta|UESta|CESta):\s+(.*)")
_SET = re.compile(r"(\w+)\+")
NOT_ERRORS = frozenset({"AuxPwr", "TransPend"})
_RAW = {"Cap": ("max_link_speed", "max_link_width"), "Sta": ("current_link_speed", "current_link_width")}
_DRIVER = re.compile(r"\s+Kernel driver in use: (\S+)")


class _Listing:
    """One listing while it is read."""

    def __init__(self, origin: Origin) -> None:
        self.origin, self.host = origin, origin.about()
        self.counters, self.events = Counters(origin, "sysfs_pci"), Events(origin)
        self._entity, self._line, self._title = "", 0, ""
        self._said: dict[str, Any] = {}
        self._numa: tuple[int, float] | None = None
        self.functions = self.gpus = self.sticky = self.down = 0
        self.refused = False

    def line(self, number: int, text: str) -> None:
        found = _FUNCTION.match(text)
        if found:
            self.end()
            self._begin(number, *found.groups())
        elif self._entity:
            self._detail(number, text)

    def _begin(self, number: int, address: str, sort: str, title: str) -> None:
        self.functions += 1
        self._entity = entity_of(self.host, f"pci {pci_name(address)}")
        self._line, self._title, self._numa = number, title, None
        if title.startswith("NVIDIA") and sort.split(" [")[0] in {
            "3D controller",
            "VGA compatible controller",
        }:
            where = entity_of(self.host, f"gpu{self.gpus}")
            self.events.add(
                self.origin.at_ns, number, where, "gpu.identity", self.gpus, peer=self._entity, by="order"
            )
            self.gpus += 1

    def _detail(self, number: int, text: str) -> None:
        found = _LINK.match(text)
        if found:
            which, speed, _, width, _ = found.groups()
            self.down += "downgraded" in text
            if self._numa:  # what has no link, as the parts of a root complex, has no use for it either
                self._add(self._numa[0], "numa_node", self._numa[1])
                self._numa = None
            for raw, value in zip(_RAW[which], (speed, width), strict=True):
                self._add(number, raw, float(value) if value.count(".") < 2 else float("nan"))
            return
        found = _NUMA.match(text)
        if found:
            self._numa = number, float(found[1])
            return
        found = _BITS.match(text)
        if found:
            bits = [bit for bit in _SET.findall(found[2]) if bit not in NOT_ERRORS]
            if bits:
                self._said[found[1]] = " ".join(bits[:32])
            return
        found = _DRIVER.match(text)
        if found:
            self._said["driver"] = found[1]
        elif "<access denied>" in text:
            self.refused = True

    def _add(self, number: int, raw: str, value: float) -> None:
        self.counters.add(self.origin.at_ns, number, self._entity, raw, value)

    def end(self) -> None:
        """Write the error bits of the function that ends here."""
        bits = [b for name in ("DevSta", "UESta", "CESta") for b in self._said.get(name, "").split()]
        if bits:
            self.sticky += 1
            self.events.add(
                self.origin.at_ns, self._line, self._entity, "pcie.sticky", len(bits),
                title=self._title, **self._said,
            )  # fmt: skip
        self._said = {}

    def finish(self) -> None:
        self.end()
        notes = self.origin.notes
        notes.append(f"{self.functions} PCI functions, {self.gpus} of them NVIDIA GPUs")
        if self.sticky:
            notes.append(
                f"{self.sticky} functions have error bits set some time since they were cleared: no alarm"
            )
        if self.down:
            notes.append(f"{self.down} links are below what they can do, by intention or not")
        if self.refused:
            notes.append("lspci was not run as root: capabilities are missing")


def read(stream: BinaryIO, origin: Origin) -> Iterator[dict[str, Table]]:
    """Yield link state as counters, GPUs and sticky error bits as events."""
    listing = _Listing(origin)
    for number, text in lines(stream, origin):
        listing.line(number, text)
        if listing.counters.full or listing.events.full:
            yield {**listing.counters.take(), **listing.events.take()}
    listing.finish()
    yield {**listing.counters.take(), **listing.events.take()}


_SHAPE = re.compile(
    rb"^(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] [^\n:]{1,80}: [^\n]+\n"
    rb"\s+(?:Subsystem|Control|Flags|Physical|DeviceName)",
    re.MULTILINE,
)

FORMAT = Format(
    "lspci", "lspci -vvv: PCIe links and error bits", lambda head, name: 3 * bool(_SHAPE.search(head)), read
)
