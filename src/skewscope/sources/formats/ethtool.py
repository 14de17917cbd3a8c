"""`ethtool -S`: statistics of a network device, as text or as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from skewscope.core.tables import Table
from skewscope.sources.counters import Counters
from skewscope.sources.events import entity_of
from skewscope.sources.format import Format, Origin, lines
from skewscope.sources.json_stream import JsonStream

_LINE = re.compile(r"\s+(?:\[\d{1,4}\]: ?)?([A-Za-z][\w.\-\[\]]{0,80}): (-?\d{1,20})\s*$")
_BEGIN = re.compile(r"(?:NIC statistics|Standard stats for ([\w.\-@]{1,64}))[^:]{0,80}:")
_CALLED = re.compile(r"#? ?ethtool -S ([\w.\-@]{1,64})|# interface:? ([\w.\-@]{1,64})")
_QUEUE = re.compile(r"(?:rx|tx|ch|[rt]x_xdp)_?\d+_")
MOST_DEPTH = 4


def _device(origin: Origin) -> str:
    """Return the interface that a file's name ends with ("n1.eth0.txt", "ethtool_S_eth0.txt"), else ""."""
    stem = re.sub(
        r"(?i)[._\-]?(?:ethtool(?:[_\-]?S)?|stats?|statistics|txt|json|log|\d{9,})(?=[._\-]|$)",
        "",
        origin.name,
    )
    word = re.split(r"[._\-]", stem.strip("._-"))[-1]
    return word if re.fullmatch(r"(?:eth|en|ib|bond|p\d|pf|mlx|roce|rdma|storage)\w*", word) else ""


class _Statistics:
    def __init__(self, origin: Origin) -> None:
        self.origin, self.counters = origin, Counters(origin, "ethtool")
        self.queues = 0

    def add(self, line: int, device: str, name: str, value: float) -> None:
        if _QUEUE.match(name):
            self.queues += 1  # the sums over the queues have names of their own
            return
        where = entity_of(self.origin.about(), device or _device(self.origin))
        self.counters.add(self.origin.at_ns, line, where, name, value)

    def finish(self) -> None:
        if self.queues:
            self.origin.notes.append(f"{self.queues} values of single queues were passed over")


def read_text(stream: BinaryIO, origin: Origin) -> Iterator[dict[str, Table]]:
    """Yield the statistics of a text; devices by `ethtool -S <device>` lines or the file's name."""
    statistics, device = _Statistics(origin), ""
    for number, text in lines(stream, origin):
        called, begin = _CALLED.search(text), _BEGIN.match(text)
        if called:
            device = called[1] or called[2]
        elif begin:
            device = begin[1] or device
        else:
            found = _LINE.match(text)
            if found:
                statistics.add(number, device, found[1], float(found[2]))
        if statistics.counters.full:
            yield statistics.counters.take()
    statistics.finish()
    yield statistics.counters.take()


def _leaves(value: dict[str, Any], depth: int = 0) -> Iterator[tuple[str, float]]:
    """Yield (name, number) of an object of objects."""
    for name, inner in value.items():
        if isinstance(inner, dict) and depth < MOST_DEPTH:
            yield from _leaves(inner, depth + 1)
        elif isinstance(inner, int | float) and not isinstance(inner, bool) and abs(inner) < 2**64:
            yield name, float(inner)


def read_json(stream: BinaryIO, origin: Origin) -> Iterator[dict[str, Table]]:
    """Yield the statistics of `ethtool --json -S`: an array of objects, or one object, each a device."""
    statistics, document, number = _Statistics(origin), JsonStream(stream), 0
    alone: dict[str, Any] = {}
    for key, value in document.members():
        if key == "" and isinstance(value, dict):
            number += 1
            for name, count in _leaves(value):
                statistics.add(number, str(value.get("ifname", ""))[:64], name, count)
        elif len(alone) < 1 << 14:
            alone[key] = value
        if statistics.counters.full:
            yield statistics.counters.take()
    for name, count in _leaves(alone):
        statistics.add(1, str(alone.get("ifname", ""))[:64], name, count)
    origin.notes += document.notes()
    statistics.finish()
    yield statistics.counters.take()


def read(stream: BinaryIO, origin: Origin) -> Iterator[dict[str, Table]]:
    """Yield the statistics of either form."""
    begin = stream.peek(64)[:64].lstrip() if hasattr(stream, "peek") else b""
    yield from read_json(stream, origin) if begin[:1] in {b"[", b"{"} else read_text(stream, origin)


def sure(head: bytes, name: str) -> int:
    """Tell the text by its title, the JSON by the interface that it names."""
    if re.search(rb"^(?:NIC statistics|Standard stats for \S+):", head, re.MULTILINE):
        return 3
    if head.lstrip()[:1] in {b"[", b"{"} and re.search(rb'"ifname"\s*:', head):
        return 2 if re.search(rb'"(?:rx|tx)_[\w]+"\s*:\s*\d|"eth-(?:phy|mac|ctrl)"|"rmon"', head) else 0
    return 0


FORMAT = Format("ethtool -S", "statistics of a network device", sure, read)
