"""NCCL debug logs: lines of `NCCL_DEBUG=INFO` or `WARN`, alone or between those of an engine.

Sources: NCCL user guide, "Logging" and "Environment Variables"; line layouts of 2.18 to 2.30.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from skewscope.core.tables import Table
from skewscope.sources.events import Events, entity_of
from skewscope.sources.format import Format, Origin, lines
from skewscope.sources.formats.kernel_log import pci_name
from skewscope.sources.stamps import LOCAL, NONE, stamp

MOST_PROCESSES = 1 << 12
"""Processes whose GPU is remembered."""

Said = dict[str, Any]
Match = re.Match[str]

LINE = re.compile(
    r"([A-Za-z0-9][\w.\-]{0,252}):(\d{1,10}):(\d{1,10}) (?:\[(-?\d{1,4})\] )?"
    r"(?:(\S{1,100}:\d{1,6}) )?NCCL (INFO|WARN|ERROR|TRACE|CALL|VERSION|ABORT) ?(.*)"
)
"""Host, pid, thread, CUDA device, place in the source, level, text."""

STATUS = {
    0: "SUCCESS", 1: "LOC_LEN_ERR", 2: "LOC_QP_OP_ERR", 4: "LOC_PROT_ERR", 5: "WR_FLUSH_ERR",
    9: "REM_INV_REQ_ERR",
    10: "REM_ACCESS_ERR", 11: "REM_OP_ERR", 12: "RETRY_EXC_ERR", 13: "RNR_RETRY_EXC_ERR",
}  # fmt: skip
"""Completion status of verbs by number (rdma-core, `enum ibv_wc_status`)."""


def rank_name(rank: int | str) -> str:
    """Return the entity of a rank of a job whose host and GPU are not known."""
    return f"rank:{rank}"


def version_code(text: str) -> int:
    """Return 22705 for "2.27.5+cuda12.4", 0 where it is no version."""
    found = re.match(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})", text)
    return int(found[1]) * 10000 + int(found[2]) * 100 + int(found[3]) if found else 0


def bus_name(text: str) -> str:
    """Return the PCI function that NCCL's `busId 9b000` means, "" where it is elided."""
    try:
        number = int(text, 16)
    except ValueError:
        return ""
    domain, bus = number >> 20 & 0xFFFF, number >> 12 & 0xFF
    return "pci " + pci_name(f"{domain:04x}:{bus:02x}:{number >> 4 & 0xFF:02x}.{number & 7}")


def _init(m: Match) -> Said:
    found = re.search(r"nvmlDev (\d+)", m[0])
    bus = re.search(r"busId ([0-9a-fA-F]+)", m[0])
    commid = re.search(r"commId (\S+)", m[0])
    return {
        "code": int(m[2]),
        "peer": commid[1] if commid else m[1],
        "nranks": int(m[3]),
        "nvml": int(found[1]) if found else None,
        "bus": bus_name(bus[1]) if bus else "",
        "state": m[4].strip(" -") or None,
    }


def _completion(m: Match) -> Said:
    text = m[0]
    status = re.search(r"status=(?:[A-Za-z_ ]*\()?(\d{1,5})", text)
    vendor = re.search(r"vendor[ _]err[ =](\d{1,9}|0x[0-9a-fA-F]{1,8})", text)
    opcode = re.search(r"opcode=(?:[A-Za-z_ ]*\()?(-?\d{1,9})", text)
    hca = re.search(r"\bhca (\S+)", text)
    code = int(status[1]) if status else 0
    return {
        "code": code,
        "peer": m[1],
        "status": STATUS.get(code, ""),
        "vendor_err": int(vendor[1], 0) if vendor else None,
        "opcode": int(opcode[1]) if opcode else None,
        "side": "receive" if "(Recv)" in text else "send" if "(Send)" in text else None,
        "hca": hca[1] if hca else None,
        "text": text,
    }


def _channel(m: Match) -> Said:
    return {"code": int(m[1]), "peer": rank_name(m[3]), "rank": int(m[2]), "way": m[4], "via": m[5]}


def _ring(m: Match) -> Said:
    return {"code": int(m[1]), "peer": rank_name(m[4]), "rank": int(m[3]), "previous": int(m[2])}


def _tree(m: Match) -> Said:
    parent = rank_name(m[2]) if int(m[2]) >= 0 else ""
    return {"code": int(m[1]), "peer": parent, "rank": int(m[3]), "children": m[4]}


def _called(m: Match) -> Said:
    count = re.search(r"\bcount (\d+) datatype (\d+)", m[3])
    return {
        "code": int(m[2], 16),
        "operation": m[1],
        "count": int(count[1]) if count else None,
        "datatype": int(count[2]) if count else None,
    }


def _tuned(m: Match) -> Said:
    return {"operation": m[1], "bytes": int(m[2]), "algorithm": m[3], "protocol": m[4]}


def _timing(m: Match) -> Said:
    parts = {n.replace(" ", "_"): float(v) for n, v in re.findall(r"([a-z]+) (\d+\.\d+)", m[4])}
    return {"code": int(m[1]), "nranks": int(m[2]), "total_s": float(m[3]), "parts": parts}


_INFO: tuple[tuple[str, re.Pattern[str], Callable[[Match], Said]], ...] = (
    ("nccl.version", re.compile(r"(?:NCCL )?version (\d\S+)"), lambda m: {"code": version_code(m[1])}),
    (
        "nccl.destroy",
        re.compile(r"comm (\S+) rank (\d{1,9}) nranks (\d{1,9}).*- (Destroy COMPLETE|Abort COMPLETE)"),
        _init,
    ),
    ("nccl.init", re.compile(r"comm (\S+) rank (\d{1,9}) nranks (\d{1,9}).*- (Init \w+)"), _init),
    ("nccl.network", re.compile(r"Using network (.+)"), lambda m: {"network": m[1]}),
    (
        "nccl.channel",
        re.compile(
            r"Channel (\d{1,4})(?:/\d+)? : (\d{1,9})\[\w+\] -> (\d{1,9})\[\w+\]"
            r"(?: \[(send|receive)\])? via (\S+)"
        ),
        _channel,
    ),
    ("nccl.ring", re.compile(r"Ring (\d{1,4}) : (-?\d{1,9}) -> (-?\d{1,9}) -> (-?\d{1,9})"), _ring),
    ("nccl.tree", re.compile(r"Tree (\d{1,4}) : (-?\d{1,9}) -> (-?\d{1,9}) -> (\S+)"), _tree),
    ("nccl.collective", re.compile(r"(\w+): opCount ([0-9a-fA-F]{1,15}) (.*)"), _called),
    ("nccl.collective", re.compile(r"(\w+): (\d{1,18}) Bytes -> Algo (\w+) proto (\w+)"), _tuned),
    (
        "nccl.timing",
        re.compile(r"Init timings - .*rank (\d{1,9}) nranks (\d{1,9}) total (\d+\.\d+) \(([^)]*)\)"),
        _timing,
    ),
    (
        "nccl.error",
        re.compile(r"(\S+:\d+) -> (\d{1,3})\b(.*)"),
        lambda m: {"code": int(m[2]), "place": m[1], "text": m[0]},
    ),
)
_COMPLETION = re.compile(r"Got completion from peer (\S+) with .*")
_STATED = re.compile(r"\bNCCL version (\d\S+)")


def _said(level: str, text: str) -> tuple[str, Said] | None:
    found = _COMPLETION.search(text)
    if found:
        return "nccl.completion_error", _completion(found)
    for kind, pattern, read in _INFO:
        found = pattern.match(text)
        if found:
            return kind, read(found)
    if level in {"WARN", "ERROR", "ABORT"}:
        return "nccl.warning", {"text": text}
    return None


class _Log:
    """One log while it is read: which GPU a process and device are, and how late it is."""

    def __init__(self, origin: Origin) -> None:
        self.origin, self.events = origin, Events(origin)
        self._last_ns = origin.at_ns
        self._gpus: dict[tuple[str, int], str] = {}
        self.others = self._untimed = self._unzoned = 0

    def line(self, number: int, text: str) -> None:
        found = LINE.search(text)
        if found is None:
            version = _STATED.search(text)
            if version:
                self._add(number, self.origin.host, {}, "nccl.version", {"code": version_code(version[1])})
            return
        host, pid, _, device, place, level, said = found.groups()
        event = _said(level, said)
        if event is None:
            self.others += 1
            return
        ns, sort, _ = stamp(text, self.origin.at_ns)
        if sort == NONE:
            self._untimed += 1
        else:
            self._last_ns = ns
            self._unzoned += sort == LOCAL
        host = self.origin.host or host
        gpu = f"gpu{device}" if device is not None and int(device) >= 0 else ""
        where = self._gpus.get((host, int(pid)), entity_of(host, gpu))
        self._identify(number, host, int(pid), event[1])
        self._add(number, where, {"pid": int(pid), "place": place}, *event)

    def _identify(self, number: int, host: str, pid: int, said: Said) -> None:
        """Take from the line of an init which GPU a process drives.

        Lines are marked with CUDA's number of the device; NVML numbers what is in the machine.
        """
        nvml, bus = said.pop("nvml", None), said.pop("bus", "")
        if nvml is None or (host, pid) in self._gpus or len(self._gpus) >= MOST_PROCESSES:
            return
        self._gpus[host, pid] = where = entity_of(host, f"gpu{nvml}")
        if bus:
            peer = entity_of(host, bus)
            self.events.add(self._last_ns, number, where, "gpu.identity", nvml, peer=peer)

    def _add(self, number: int, where: str, more: Said, kind: str, said: Said) -> None:
        fields = {**more, **said}
        peer, code = fields.pop("peer", ""), fields.pop("code", 0)
        self.events.add(self._last_ns, number, where, kind, code, peer=peer, **fields)

    def finish(self) -> None:
        for count, why in (
            (self.others, "lines of NCCL say nothing that is kept"),
            (self._untimed, "events have no time: each got that of the event before, else of the file"),
            (self._unzoned, "events have times without a zone, taken as UTC"),
        ):
            if count:
                self.origin.notes.append(f"{count} {why}")


def read(stream: BinaryIO, origin: Origin) -> Iterator[dict[str, Table]]:
    """Yield the events of a debug log; other lines, as those of an engine, are passed over."""
    log = _Log(origin)
    for number, text in lines(stream, origin):
        if "NCCL" in text:
            log.line(number, text)
        if log.events.full:
            yield log.events.take()
    log.finish()
    yield log.events.take()


_SHAPE = re.compile(rb":\d+:\d+ (?:\[-?\d+\] )?(?:\S+ )?NCCL (?:INFO|WARN|TRACE|CALL|VERSION)")

FORMAT = Format(
    "NCCL debug log",
    "lines of NCCL_DEBUG",
    lambda head, name: 2 * bool(_SHAPE.search(head)),
    read,
)
