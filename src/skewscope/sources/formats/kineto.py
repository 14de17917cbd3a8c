"""Kineto traces of the PyTorch profiler: the GPU kernels of NCCL, with how long they took.

Source: Kineto `libkineto/src/output_json.cpp` (Chrome trace events; `baseTimeNanoseconds`, where it is
there, is what the times count from). Traces are read as they come, never whole: they reach gigabytes.
A collective's kernel spins while it waits for the other ranks: a long one is not itself slow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from skewscope.core.tables import Table
from skewscope.sources.events import Events, whole
from skewscope.sources.format import Format, Origin
from skewscope.sources.formats.flight_recorder import group_entity
from skewscope.sources.formats.nccl_json import part, said
from skewscope.sources.formats.nccl_log import rank_name, version_code
from skewscope.sources.json_stream import JsonStream

MOST_KERNELS = 1 << 17
"""Kernels that are held until the end of the trace says what its times count from."""
ABSOLUTE_US = 10**15
"""Times beyond this, September 2001, count from 1970."""
SIZES = {
    "float": 4, "float32": 4, "int": 4, "half": 2, "float16": 2, "bfloat16": 2, "double": 8, "long": 8,
    "int64": 8, "byte": 1, "char": 1, "int8": 1, "uint8": 1, "bool": 1, "float8_e4m3fn": 1, "float8_e5m2": 1,
}  # fmt: skip
_KERNEL = re.compile(r"nccl(?:Dev)?Kernel_?\w*", re.IGNORECASE)
_OPERATION = re.compile(r"nccl(?:Dev)?Kernel_([A-Za-z]+)(?:_(\w+?))?(?:_(LL128|LL|SIMPLE))?(?:_|\(|$)")

Object = dict[str, Any]


def _bytes(args: Object) -> int:
    """Return the size of a collective's input, 0 where the trace does not tell."""
    dtype = str(said(args, "dtype") or "").lower()
    return max(whole(args.get("In msg nelems")), 0) * SIZES.get(dtype, 0)


class _Trace:
    def __init__(self, origin: Origin) -> None:
        self.origin, self.events = origin, Events(origin)
        self.rank, self.base_ns = -1, 0
        self._kernels: list[tuple[float, float, int, Object]] = []
        self.seen = self.lost = self.odd = 0

    def member(self, name: str, value: Any) -> None:
        if name in {"traceEvents", ""}:
            self.seen += 1
            if isinstance(value, dict):
                self._event(value)
        elif name == "distributedInfo" and isinstance(value, dict):
            self.rank = whole(value.get("rank"), -1)
            version = str(said(value, "nccl_version") or "")
            if version:
                where = rank_name(self.rank)
                self.events.add(
                    self.origin.at_ns, 1, where, "nccl.version", version_code(version), version=version
                )
        elif name == "baseTimeNanoseconds":
            self.base_ns = whole(value)

    def _event(self, event: Object) -> None:
        name = event.get("name")
        if (
            event.get("cat") not in {"kernel", "Kernel"}
            or not isinstance(name, str)
            or not _KERNEL.match(name)
        ):
            return
        ts, lasted = event.get("ts"), event.get("dur")
        if not isinstance(ts, int | float) or not isinstance(lasted, int | float) or not 0 <= ts < 1e16:
            self.odd += 1
        elif len(self._kernels) >= MOST_KERNELS:
            self.lost += 1
        else:
            self._kernels.append((ts, max(min(lasted, 1e13), 0), self.seen, _kept(name, event)))

    def finish(self) -> Iterator[dict[str, Table]]:
        where = rank_name(self.rank) if self.rank >= 0 else self.origin.about()
        for ts, lasted, number, kept in self._kernels:
            absolute = ts > ABSOLUTE_US
            ns = int(ts * 1000) + (0 if absolute else self.base_ns or self.origin.at_ns)
            fields = dict(kept)
            peer, code = fields.pop("group"), fields.pop("bytes")
            end = ns + int(lasted * 1000)
            self.events.add(ns, number, where, "nccl.kernel", code, end_ns=end, peer=peer, **fields)
            if self.events.full:
                yield self.events.take()
        if self._kernels and not self.base_ns and self._kernels[0][0] <= ABSOLUTE_US:
            self.origin.notes.append(
                "times count from an unknown point: they were put at the time of the file"
            )
        self.origin.notes.append(f"{self.seen} trace events, {len(self._kernels)} of them kernels of NCCL")
        for count, why in ((self.lost, "too many"), (self.odd, "impossible times")):
            if count:
                self.origin.notes.append(f"{count} kernels were left out: {why}")
        yield self.events.take()


def _kept(name: str, event: Object) -> Object:
    """Return what is kept of a kernel."""
    args, found = part(event, "args"), _OPERATION.match(name)
    group = (str(said(args, "Process Group Name") or ""), str(said(args, "Process Group Description") or ""))
    return {
        "bytes": _bytes(args),
        "group": group_entity(group),
        "operation": said(args, "Collective name") or (found[1] if found else None),
        "algorithm": found[2] if found else None,
        "protocol": found[3] if found else None,
        "device": said(args, "device"),
        "stream": said(args, "stream"),
        "type": said(args, "dtype"),
        "group_size": said(args, "Group size"),
        "ranks": said(args, "Process Group Ranks"),
    }


def read(stream: BinaryIO, origin: Origin) -> Iterator[dict[str, Table]]:
    """Yield the NCCL kernels of a trace."""
    trace, document = _Trace(origin), JsonStream(stream)
    for name, value in document.members({"traceEvents", "deviceProperties"}):
        trace.member(name, value)
    origin.notes += document.notes()
    yield from trace.finish()


def sure(head: bytes, name: str) -> int:
    """Tell a trace by the members that Kineto writes before the events."""
    if head.lstrip()[:1] != b"{":
        return 0
    kineto = b'"traceEvents"' in head or b'"deviceProperties"' in head or b'"distributedInfo"' in head
    return 2 if kineto and (b'"schemaVersion"' in head or b'"ph"' in head) else 0


FORMAT = Format("Kineto trace", "NCCL kernels of a PyTorch profiler trace", sure, read)
