"""Kernel messages: dmesg with and without times, the journal, /dev/kmsg.

Sources: NVIDIA "Xid Errors" and fabric manager guides (message layouts), Linux `drivers/pci/pcie/aer.c`,
`mm/oom_kill.c`, `kernel/hung_task.c`, `Documentation/ABI/testing/dev-kmsg`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from skewscope.core.tables import Table
from skewscope.sources.events import Events, entity_of, whole
from skewscope.sources.format import Format, Origin, lines
from skewscope.sources.stamps import BOOT, EXACT, LOCAL, NONE, SECOND_NS, stamp

MOST_WAITING = 1 << 16
"""Events without a wall clock that are held until one is found or the log ends."""

Match = re.Match[str]
Said = dict[str, Any]
_PCI = r"((?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)"


def pci_name(address: str) -> str:
    """Return a PCI address in the kernel's form: "0000:9b:00.0"."""
    address = address.lower()
    if address.count(":") == 1:
        address = f"0000:{address}"
    domain, bus, device = address.split(":")
    return f"{domain[-4:]}:{bus}:{device if '.' in device else device + '.0'}"


def _xid(m: Match) -> Said:
    text = m[3]
    gpu = re.search(r"\bGPU(\d{1,3})\b", text)
    process = re.search(r"pid='?(\d+)'?, name=([^,]+)", text)
    return {
        "part": f"pci {pci_name(m[1])}",
        "gpu": int(gpu[1]) if gpu else None,
        "code": int(m[2]),
        "pid": int(process[1]) if process else None,
        "process": process[2] if process else None,
        "text": text,
    }


def _sxid(m: Match) -> Said:
    text = m[4]
    severity = "fatal" if re.match(r"Fatal", text) else "not fatal" if text.startswith("Non-fatal") else None
    link = re.search(r"\bLink (\d+)", text)
    return {
        "part": f"pci {pci_name(m[2])}",
        "code": int(m[3]),
        "switch": int(m[1]),
        "severity": severity,
        "link": int(link[1]) if link else None,
        "text": text,
    }


def _segfault(m: Match) -> Said:
    inside = re.search(r" in ([^\[\s]+)\[", m[3])
    return {"code": int(m[2]), "process": m[1], "library": inside[1] if inside else None, "text": m[3]}


_SEVERITY = {"corrected": 0, "correctable": 0, "non-fatal": 1, "nonfatal": 1, "fatal": 2}


def _aer(m: Match) -> Said:
    severity = m[2].lower()
    first = severity.split()[-1].strip("()") if "uncorrect" in severity else severity.split()[0]
    kind = re.search(r"type=([^,]+)", m[3])
    return {
        "part": f"pci {pci_name(m[1])}",
        "code": _SEVERITY.get(first, 1),
        "layer": kind[1] if kind else None,
        "text": f"severity={m[2]}{m[3]}",
    }


def _aer_root(m: Match) -> Said:
    return {
        "part": f"pci {pci_name(m[4])}",
        "peer": f"pci {pci_name(m[1])}",
        "code": _SEVERITY.get(m[3].lower().split()[-1].strip("()"), 1),
        "text": m[0],
    }


def _mlx5(m: Match) -> Said:
    syndrome = re.search(r"synd(?:rome)?[ :(]*(0x[0-9a-fA-F]{1,8})", m[2])
    return {"part": f"pci {pci_name(m[1])}", "code": int(syndrome[1], 16) if syndrome else 0, "text": m[2]}


def _up(m: Match) -> Said:
    speed = re.search(r"(\d+) ?(M|G)b(?:ps|it|/s)", m[0])
    mbit = int(speed[1]) * (1000 if speed[2] == "G" else 1) if speed else 0
    return {"part": m[1], "code": mbit, "text": m[0]}


def _whose(part: int, code: int, **more: int) -> Callable[[Match], Said]:
    """Return a reader that takes groups of the match: 0 stands for none."""

    def read(m: Match) -> Said:
        said: Said = {"part": m[part] if part else "", "code": int(m[code]) if code else 0, "text": m[0]}
        return said | {name: m[group] for name, group in more.items()}

    return read


_DEVICE = r"(?:[a-z0-9_]+ [0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d )?"
_RULES: tuple[tuple[str, str, re.Pattern[str], Callable[[Match], Said]], ...] = (
    ("gpu.xid", "Xid (", re.compile(rf"NVRM: Xid \(PCI:{_PCI}\): (\d{{1,9}}), ?(.*)"), _xid),
    (
        "nvswitch.sxid",
        "SXid",
        re.compile(rf"nvidia-nvswitch(\d{{1,4}}): SXid \(PCI:{_PCI}\): (\d{{1,9}}), ?(.*)"),
        _sxid,
    ),
    ("peermem.error", "peermem", re.compile(r"nvidia-peermem (\S+?):?(\d*) (?:ERROR|error).*"), _whose(0, 0)),
    ("process.segfault", "segfault at", re.compile(r"(\S+)\[(\d{1,9})\]: segfault at (.*)"), _segfault),
    (
        "process.oom_kill",
        "illed process",
        re.compile(r"[Kk]illed process (\d{1,9}) \(([^)]*)\).*"),
        _whose(0, 1, process=2),
    ),
    (
        "kernel.hung_task",
        "blocked for more than",
        re.compile(r"task (\S+?):(\d{1,9}) blocked for more than (\d+) seconds"),
        _whose(0, 2, process=1, seconds=3),
    ),
    (
        "kernel.soft_lockup",
        "lockup",
        re.compile(r"(?:soft|hard) lockup - CPU#(\d{1,6}) stuck for (\d+)s! ?\[?([^:\]]*)"),
        _whose(0, 1, seconds=2, process=3),
    ),
    (
        "kernel.throttle",
        "throttled",
        re.compile(r"CPU(\d{1,6}): (?:Core|Package) temperature.*throttled.*"),
        _whose(0, 1),
    ),
    ("memory.error", "EDAC", re.compile(r"EDAC (\S+): (\d{1,9}) (CE|UE) .*"), _whose(1, 2, sort=3)),
    (
        "pcie.aer",
        "PCIe Bus Error",
        re.compile(rf"{_PCI}: (?:AER: )?PCIe Bus Error: severity=([^,]+)(.*)"),
        _aer,
    ),
    (
        "pcie.aer",
        "error received: ",
        re.compile(rf"{_PCI}: AER: (Multiple )?(\S+(?: \(\S+\))?) error received: {_PCI}"),
        _aer_root,
    ),
    ("link.down", "ink ", re.compile(rf"{_DEVICE}([\w.\-@]+): (?:NIC )?[Ll]ink (?:is )?[Dd]own.*"), _up),
    ("link.up", "ink ", re.compile(rf"{_DEVICE}([\w.\-@]+): (?:NIC )?[Ll]ink (?:is )?[Uu]p.*"), _up),
    (
        "nic.error",
        "mlx5_core",
        re.compile(rf"mlx5_core {_PCI}:? ?(.*(?:[Ee]rr(?:or)?\b|ERR|fail|timeout|synd|health|fatal|dead).*)"),
        _mlx5,
    ),
)
_WANTED = re.compile("|".join(re.escape(needle) for _, needle, _, _ in _RULES))
_BODY = re.compile(r"(?:(\S+) )?kernel: ?(?:\[ *\d+\.\d+\] ?)?")
_CLOCK = re.compile(r"setting system clock to (\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d) UTC \((\d{9,11})\)")


def _said(text: str) -> tuple[str, Said] | None:
    """Return the kind and the parts of the event that a message is, if it is one."""
    if not _WANTED.search(text):
        return None
    for kind, needle, pattern, read in _RULES:
        if needle in text:
            found = pattern.search(text)
            if found:
                return kind, read(found)
    return None


class _Log:
    """One kernel log while it is read."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.events = Events(origin)
        self._waiting: list[tuple[int, int, str, str, Said]] = []
        self._gpus: dict[str, str] = {}
        self._boot_ns: int | None = None
        self._up_ns = 0
        self._last_ns = 0
        self._guessed = self._unzoned = self._untimed = self._lost = 0

    def line(self, number: int, text: str) -> None:
        if text.startswith("{"):
            self._journal(number, text)
            return
        ns, sort, rest = stamp(text, self.origin.at_ns)
        body = _BODY.match(rest)
        host = self.origin.about(body[1] or "" if body else "")
        rest = rest[body.end() :] if body else rest
        if sort == BOOT:
            self._up_ns = max(self._up_ns, ns)
            self._watch_clock(ns, rest)
        self._message(number, ns, sort, host, rest)

    def _journal(self, number: int, text: str) -> None:
        """Take a line of `journalctl -o json`."""
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):
            return
        message = said.get("MESSAGE") if isinstance(said, dict) else None
        if isinstance(message, str):
            ns = whole(said.get("__REALTIME_TIMESTAMP")) * 1000
            host = self.origin.about(str(said.get("_HOSTNAME", "")))
            self._message(number, ns, EXACT if ns else NONE, host, message)

    def _watch_clock(self, up_ns: int, text: str) -> None:
        found = _CLOCK.search(text)
        if found and self._boot_ns is None:
            self._boot_ns = int(found[3]) * SECOND_NS - up_ns
            self._release()

    def _message(self, number: int, ns: int, sort: int, host: str, text: str) -> None:
        found = _said(text)
        if found is None:
            return
        if sort == BOOT and self._boot_ns is None:
            if len(self._waiting) < MOST_WAITING:
                self._waiting.append((ns, number, host, *found))
            else:
                self._lost += 1
            return
        if sort == BOOT:
            ns += self._boot_ns or 0
        self._unzoned += sort == LOCAL
        if sort == NONE:
            self._untimed += 1
            ns = self._last_ns or self.origin.at_ns
        self._last_ns = ns
        self._add(ns, number, host, *found)

    def _add(self, ns: int, number: int, host: str, kind: str, said: Said) -> None:
        fields = dict(said)
        part, code, gpu = fields.pop("part", ""), fields.pop("code"), fields.pop("gpu", None)
        peer = entity_of(host, fields.pop("peer")) if "peer" in fields else ""
        where = entity_of(host, part)
        if gpu is not None and where not in self._gpus and len(self._gpus) < MOST_WAITING:
            self._gpus[where] = named = entity_of(host, f"gpu{gpu}")
            self.events.add(ns, number, named, "gpu.identity", gpu, peer=where)
        if where in self._gpus:
            where, fields["pci"] = self._gpus[where], part
        self.events.add(ns, number, where, kind, code, peer=peer, **fields)

    def _release(self) -> None:
        """Write the events that waited for a wall clock."""
        for ns, number, host, kind, said in self._waiting:
            self._add(ns + (self._boot_ns or 0), number, host, kind, said)
        self._waiting = []

    def finish(self) -> None:
        """Place what has times since boot only, and note what was guessed."""
        if self._waiting:
            self._guessed = len(self._waiting)
            self._boot_ns = self.origin.at_ns - self._up_ns
            self._release()
        for count, why in (
            (self._guessed, "have times since boot only: the last line was put at the time of the file"),
            (self._unzoned, "have times without a zone, taken as UTC"),
            (self._untimed, "have no time: each got that of the event before, else of the file"),
            (self._lost, "were left out: too many without a wall clock"),
        ):
            if count:
                self.origin.notes.append(f"{count} events {why}")


def read(stream: BinaryIO, origin: Origin) -> Iterator[dict[str, Table]]:
    """Yield the events of a kernel log."""
    log = _Log(origin)
    for number, text in lines(stream, origin):
        log.line(number, text)
        if log.events.full:
            yield log.events.take()
    log.finish()
    yield log.events.take()


_DMESG = re.compile(
    rb"^(?:<\d+>)?(?:\[ *\d+\.\d{6}\] |[a-z]+ *:[a-z]+ *: (?:\[|\d{4}-)|\d+,\d+,\d+,[^;\n]*;"
    rb"|\[[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d \d{4}\] |[^\n]{0,80} kernel: )",
    re.MULTILINE,
)


def sure(head: bytes, name: str) -> int:
    """Tell kernel logs by the shape of their lines, then by what they say."""
    if _DMESG.search(head):
        return 2
    if b'"__REALTIME_TIMESTAMP"' in head and b'"MESSAGE"' in head:
        return 2
    return int(bool(re.search(rb"NVRM: Xid|nvidia-nvswitch|nvidia-peermem|: segfault at ", head)))


FORMAT = Format("kernel messages", "dmesg, journal or /dev/kmsg", sure, read)
