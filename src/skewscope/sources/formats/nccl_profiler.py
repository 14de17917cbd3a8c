"""Events of NCCL's example profiler plug-in: steps of collectives, proxies and the network.

Source: `plugins/profiler/example/README.md` of NCCL. What it prints is Chrome trace JSON but for pointers
and names without quotes, so each line is mended and read for itself. Times count in microseconds from the
plug-in's start, except those of the GPU's clock.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from skewscope.core.tables import Table
from skewscope.sources.events import Events, entity_of, whole
from skewscope.sources.format import Format, Origin, lines
from skewscope.sources.formats.nccl_json import part, said

MOST_OPEN = 1 << 16
_BARE = re.compile(r"(:\s*)(0x[0-9a-fA-F]+|[A-Za-z_]\w*)(?=\s*[,}])")
_KEPT = (
    "SeqNum",
    "Rank",
    "Count",
    "Datatype",
    "Algorithm",
    "Protocol",
    "nChannels",
    "Channel",
    "Peer",
    "Steps",
    "Step",
    "transSize",
)
_WORDS = frozenset({"true", "false", "null"})

Open = tuple[float, int, dict[str, Any]]


def mended(line: str) -> dict[str, Any] | None:
    """Return the object of one line, None where there is none."""
    text = line.strip().rstrip(",").replace("\u201c", '"').replace("\u201d", '"')
    if not text.startswith("{"):
        return None
    text = _BARE.sub(lambda m: m[0] if m[2] in _WORDS else f'{m[1]}"{m[2]}"', text)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and "ph" in value else None


class _Profile:
    def __init__(self, origin: Origin) -> None:
        self.origin, self.events = origin, Events(origin)
        self._open: dict[tuple[Any, ...], Open] = {}
        self.damaged = self.alone = 0
        self._last_us = 0.0

    def line(self, number: int, text: str) -> None:
        value = mended(text)
        if value is None:
            self.damaged += len(text.strip()) > 3
            return
        ts = value.get("ts")
        if not isinstance(ts, int | float) or not 0 <= ts < 1e13:
            self.damaged += 1
            return
        self._last_us = max(self._last_us, ts)
        key = tuple(said(value, k) for k in ("name", "cat", "id", "pid", "tid"))
        if value["ph"] == "b":
            if len(self._open) < MOST_OPEN:
                self._open[key] = (ts, number, part(value, "args"))
        elif value["ph"] == "e":
            begun = self._open.pop(key, None)
            if begun is None:
                self.alone += 1
            else:
                self._add(key, begun, ts)

    def _add(self, key: tuple[Any, ...], begun: Open, end_us: float | None) -> None:
        name, category, _, pid, _ = key
        start_us, number, args = begun
        ns = self.origin.at_ns + int(start_us * 1000)
        kept: dict[str, Any] = {k: said(args, k) for k in _KEPT if k in args}
        code = whole(args.get("SeqNum", args.get("Step")))
        self.events.add(
            ns, number, entity_of(self.origin.about(), f"pid:{pid}"), "nccl.step", code,
            end_ns=0 if end_us is None else max(ns, self.origin.at_ns + int(end_us * 1000)),
            step=name, category=category, **kept,
        )  # fmt: skip

    def finish(self) -> None:
        for key, begun in self._open.items():
            self._add(key, begun, None)
        notes = self.origin.notes
        notes.append("times count from the plug-in's start, which was put at the time of the file")
        for count, why in (
            (self.damaged, "lines are damaged or cut and were left out"),
            (len(self._open), "steps have no end in this file"),
            (self.alone, "ends have no beginning in this file"),
        ):
            if count:
                notes.append(f"{count} {why}")


def read(stream: BinaryIO, origin: Origin) -> Iterator[dict[str, Table]]:
    """Yield steps with their durations; a step without an end is yielded last."""
    profile = _Profile(origin)
    for number, text in lines(stream, origin):
        profile.line(number, text)
        if profile.events.full:
            yield profile.events.take()
    profile.finish()
    yield profile.events.take()


_SHAPE = re.compile(rb'"cat": ?"(?:GROUP_API|COLL_API|KERNEL_LAUNCH|COLL|PROXY|NET|GROUP)", ?"ph": ?"[be]"')

FORMAT = Format(
    "NCCL profiler",
    "events of the example profiler plug-in",
    lambda head, name: 3 * bool(_SHAPE.search(head)),
    read,
)
