"""NCCL RAS: the text of its status and of its monitor.

Source: NCCL user guide, "RAS". The text is made for people: what is known by its words is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from skewscope.core.tables import Table
from skewscope.sources.events import Events, entity_of
from skewscope.sources.format import Format, Origin, lines
from skewscope.sources.formats.nccl_log import rank_name
from skewscope.sources.stamps import NONE, stamp

_GROUP = re.compile(
    r" +(\d{1,9}) +(\d{1,9}) +(\S+) +(\S+) +(\S+) +(\d{1,9})"
    r" +(INIT|RUNNING|FINALIZE|ABORT|DESTROY|UNKNOWN|MIXED|NOCOMM)"
    r" +(\w+) *$"
)
_JOB = re.compile(r" +(\d{1,9}) +(\S+) +(\S+) +(\d{1,9}) +(\d{1,9}) *$")
_COMM = re.compile(r"#(\d+)-(\d+) \(([0-9a-fA-F]{1,32})\) (\w+)")
_SHARE = re.compile(r" +(\d{1,9}) ranks? ha(?:ve|s) (.+)")
_RANK = re.compile(r" +Rank (\d{1,9}) -- GPU (\d{1,4}) managed by process (\d{1,10}) on node (\S{1,253})")
_PROCESS = re.compile(r" +Process (\d{1,10}) on node (\S{1,253}) managing GPUs? ([\d,]{1,200})")
_MISSING = re.compile(r" +The missing ranks?: ([\d, \-]{1,4000})")
_COUNT = re.compile(r" +(?:Encountered )?(\d{1,9}) (?:communication timeouts|job process)")
_MONITOR = re.compile(r"(\w+): Process (\d{1,10}) on node (\S{1,253}) managing GPUs? ([\d,]{1,200})")
_TITLE = re.compile(r"(INCOMPLETE|TIMEOUT|DEAD|MISMATCH) *$")


class _Text:
    """One status while it is read: which communicator, and which kind of complaint, lines belong to."""

    def __init__(self, origin: Origin) -> None:
        self.events, self._origin = Events(origin), origin
        self._comm, self._title, self._share = "", "", ""
        self._shares: list[int] = []
        self.untimed = 0

    def line(self, number: int, text: str) -> None:
        ns, sort, rest = stamp(text, self._origin.at_ns)
        ns = self._origin.at_ns if sort == NONE else ns
        had = len(self.events)
        found = _MONITOR.match(rest)
        if found:
            self._end()
            self._add(ns, number, found[3], found[4], "nccl.ras.peer", 0, event=found[1], pid=int(found[2]))
            return
        comm, title = _COMM.match(text), _TITLE.match(text)
        if comm or title:
            self._end()
            self._comm, self._title = (comm[3], comm[4]) if comm else ("", title[1] if title else "")
            return
        self._detail(ns, number, text)
        self.untimed += len(self.events) - had

    def _add(self, ns: int, number: int, host: str, gpus: str, kind: str, code: int, **fields: Any) -> None:
        for gpu in gpus.split(","):
            if gpu:
                where = entity_of(host, f"gpu{gpu}")
                self.events.add(ns, number, where, kind, code, peer=self._comm, **fields)

    def _detail(self, ns: int, number: int, text: str) -> None:
        found = _GROUP.match(text)
        if found:
            group, comms, nodes, _, ranks, total, status, errors = found.groups()
            self.events.add(
                ns, number, "", "nccl.ras.group", int(group), communicators=int(comms), nodes=nodes,
                ranks_per_communicator=ranks, ranks=int(total), status=status, errors=errors,
            )  # fmt: skip
            return
        found = _JOB.match(text)
        if found:
            self.events.add(
                ns, number, "", "nccl.ras.job", int(found[4]), nodes=int(found[1]), gpus=int(found[5])
            )
            return
        found = _SHARE.match(text)
        if found:
            self._shares.append(int(found[1]))
            self._share = found[2]
            return
        found = _RANK.match(text)
        if found:
            rank, gpu, pid, host = found.groups()
            self._add(
                ns, number, host, gpu, "nccl.ras.mismatch", self._shares[-1] if self._shares else 0,
                rank=int(rank), pid=int(pid), says=self._share, majority=max(self._shares, default=None),
            )  # fmt: skip
            return
        found = _PROCESS.match(text)
        if found:
            kind = "nccl.ras.dead" if self._title == "DEAD" else "nccl.ras.missing"
            self._add(ns, number, found[2], found[3], kind, -1, pid=int(found[1]))
            return
        found = _MISSING.match(text)
        if found:
            for rank in _ranks(found[1]):
                self.events.add(ns, number, rank_name(rank), "nccl.ras.missing", rank, peer=self._comm)
            return
        found = _COUNT.match(text)
        if found and self._title == "TIMEOUT":
            self.events.add(ns, number, "", "nccl.ras.timeout", int(found[1]))

    def _end(self) -> None:
        self._comm, self._title, self._share, self._shares = "", "", "", []


def _ranks(text: str) -> list[int]:
    """Return the ranks that "1,4-6" names, at most 4096 of them."""
    out: list[int] = []
    for part in text.replace(" ", "").split(","):
        low, _, high = part.partition("-")
        if low.isdigit() and (not high or high.isdigit()):
            first, last = int(low[:9]), int((high or low)[:9])
            out += range(first, min(last, first + 4095 - len(out)) + 1)
    return out[:4096]


def read(stream: BinaryIO, origin: Origin) -> Iterator[dict[str, Table]]:
    """Yield what a status or a monitor says."""
    text = _Text(origin)
    for number, line in lines(stream, origin):
        text.line(number, line)
        if text.events.full:
            yield text.events.take()
    if text.untimed:
        origin.notes.append(f"{text.untimed} events have no time: they got that of the file")
    yield text.events.take()


_SHAPE = re.compile(
    rb"RAS Monitor Mode|Communicators\.\.\. \(|^Group +Comms +Nodes|PEER_\w+: Process \d+ on node"
    rb"|Communicator ranks have different",
    re.MULTILINE,
)

FORMAT = Format(
    "NCCL RAS text",
    "status or monitor of NCCL RAS",
    lambda head, name: 3 * bool(_SHAPE.search(head)),
    read,
)
