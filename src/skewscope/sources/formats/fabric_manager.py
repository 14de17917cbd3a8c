"""The log of NVIDIA's fabric manager: errors of NVSwitches, links and partitions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from skewscope.core.tables import Table
from skewscope.sources.events import Events, entity_of
from skewscope.sources.format import Format, Origin, lines
from skewscope.sources.formats.kernel_log import pci_name
from skewscope.sources.stamps import NONE, stamp

_LEVEL = re.compile(r"\[(INFO|WARNING|ERROR|CRITICAL|ALERT|NOTICE|DEBUG)\] (?:\[tid (\d+)\] )?(.*)")
_SWITCH = re.compile(
    r"detected NVSwitch (non-fatal|fatal) error (\d{1,9})(?: on fid (\d+))?"
    r"(?: on NVSwitch pci bus id ([0-9a-fA-F:.]+))?(?: physical id (\d+))?(?: port (\d+))?"
)


def read(stream: BinaryIO, origin: Origin) -> Iterator[dict[str, Table]]:
    """Yield warnings and errors; messages of normal work are counted in a note."""
    events = Events(origin)
    last_ns, normal = origin.at_ns, 0
    for number, text in lines(stream, origin):
        ns, sort, rest = stamp(text, origin.at_ns)
        last_ns = ns if sort != NONE else last_ns
        found = _LEVEL.match(rest)
        if found is None or found[1] in {"INFO", "NOTICE", "DEBUG"}:
            normal += found is not None
            continue
        switch = _SWITCH.search(found[3])
        where, code = "", 0
        said: dict[str, Any] = {"level": found[1], "text": found[3]}
        if switch:
            severity, sxid, _, bus, _, port = switch.groups()
            where = f"pci {pci_name(bus)}" if bus and bus.count(":") in {1, 2} else ""
            code = int(sxid)
            said |= {"severity": severity, "port": port or ""}
        events.add(last_ns, number, entity_of(origin.about(), where), "fabric.error", code, **said)
        if events.full:
            yield events.take()
    if normal:
        origin.notes.append(f"{normal} messages of normal work")
    yield events.take()


def sure(head: bytes, name: str) -> int:
    """Tell the log by its own way of writing times, levels and threads."""
    shape = rb"^\[[A-Z][a-z]{2} +\d+ \d{4} \d\d:\d\d:\d\d\] \[[A-Z]+\] \[tid \d+\] "
    return 3 if re.search(shape, head, re.MULTILINE) else 0


FORMAT = Format("fabric manager log", "errors of NVSwitches and partitions", sure, read)
