"""Replace addresses and names over a whole report, each original always by the same pseudonym.

IPv4 addresses become addresses of 198.18.0.0/15 (reserved for benchmarks, RFC 2544): one /24 per
original /24, so that subnets stay apart. IPv6 addresses go to 2001:db8::/32 (RFC 3849), one /64
per original /64. MAC addresses become locally administered ones. Host names, paths and file names
become host-01, capture-01.pcap and so on; names that skewscope itself gave ("rank 2") stay.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import Any, TypeVar

from skewscope.app.render.wording import base_name
from skewscope.core.report import Report
from skewscope.sources.series import host_part

T = TypeVar("T")
_MAC = re.compile(r"(?<![0-9A-Fa-f:.-])(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}(?![0-9A-Fa-f:-])")
_V4 = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d])(?!\.\d)")
_V6 = re.compile(r"(?<![0-9A-Za-z:.])[0-9A-Fa-f]*:[0-9A-Fa-f:]*(?:\d{1,3}(?:\.\d{1,3}){3})?(?:%[\w.-]+)?")
_LEARNED = re.compile(
    r"^(rank|client|gateway|router|engine|endpoint|replica|host|link|group|stage|prefill|decode|storage|peer)s?"
    r"( [\w>-]+)*$"
)
# Words of skewscope's own vocabulary: never names of the user's.
_VOCABULARY = frozenset(
    {"kind", "condition", "unit", "label", "framing", "scope", "cause", "risk", "roles", "also", "missing"}
)
_PLAIN = frozenset({"capture", "dump", "faulty", "healthy", "packets", "slow", "trace"})
"""File names that are words of ours: replacing them would maul texts and hide nobody."""
_NUMBERS = frozenset({"ts_ns", "values", "chunk_ns"})
"""Long columns of numbers: nothing to replace, not walked."""
_SUFFIXES = (".gz", ".xz", ".zst", ".bz2")


class Redactor:
    """Gives every original one pseudonym, in order of first use."""

    def __init__(self, report: Report) -> None:
        self._taken = set(_V4.findall(repr(report)))
        self._nets: dict[Any, int] = {}
        self._hosts: dict[Any, dict[Any, str]] = {}
        self._macs: dict[str, str] = {}
        self._known = {h.address for h in report.hosts if ":" in h.address}
        self._names = self._name_map(report)
        longest_first = sorted(self._names, key=len, reverse=True)
        parts = "|".join(re.escape(n) for n in longest_first)
        self._pattern = re.compile(rf"(?<![\w.-])(?:{parts})(?![\w-])") if parts else None

    def _name_map(self, report: Report) -> dict[str, str]:
        names: dict[str, str] = {}
        paths = [*(i.path for i in report.inputs), *_files(report)]
        for path in dict.fromkeys(paths):
            self._add_file(names, path)
        taps = [h.tap for h in report.hosts]
        told = (r.entity for i in report.inputs for r in i.readings)
        about = (host_part(e.removeprefix("metric:").partition("/")[0]) for e in told)
        hosts = [*(i.host for i in report.inputs), *(h.name for h in report.hosts), *about]
        for prefix, values in (("tap", taps), ("host", hosts)):
            new = [v for v in dict.fromkeys(values) if v not in names and _is_name(v)]
            names.update({value: f"{prefix}-{k:02d}" for k, value in enumerate(new, 1)})
        return names

    @staticmethod
    def _add_file(names: dict[str, str], path: str) -> None:
        base = base_name(path)
        if base not in names:
            count = len({v.split(".")[0] for v in names.values() if v.startswith("capture-")}) + 1
            names[base] = f"capture-{count:02d}{_extension(base)}"
        names.setdefault(path, names[base])
        stem = base.split(".", 1)[0]  # hosts are often called as their captures are
        if len(stem) > 1 and stem not in _PLAIN and not _LEARNED.match(stem):
            names.setdefault(stem, names[base].split(".", 1)[0])
        for folder in map(str, PurePath(path).parents):
            if folder not in ("/", ".", ""):
                names.setdefault(folder, "captures")

    def text(self, text: str) -> str:
        """Return the text without original addresses and names."""
        if self._pattern is not None:
            text = self._pattern.sub(lambda m: self._names[m[0]], text)
        text = _MAC.sub(lambda m: self._mac(m[0]), text)
        text = _V6.sub(lambda m: self._v6(m[0]), text)
        return _V4.sub(lambda m: self._v4(m[0]), text)

    def _mac(self, mac: str) -> str:
        key = mac.lower().replace("-", ":")
        number = len(self._macs) + 1
        return self._macs.setdefault(key, f"02:00:00:00:{number >> 8 & 255:02x}:{number & 255:02x}")

    def _v4(self, text: str) -> str:
        try:
            address = ipaddress.IPv4Address(text)
        except ValueError:
            return text
        if address.is_unspecified or address.is_loopback:
            return text
        return self._pseudonym(int(address) >> 8, int(address), self._fresh_v4)

    def _fresh_v4(self, net: int, host: int) -> str:
        return str(ipaddress.IPv4Address((198 << 24 | 18 << 16) + (net % 512 << 8) + host % 256))

    def _v6(self, text: str) -> str:
        address, rest = text, ""
        if address not in self._known and address.rpartition(":")[0] in self._known:
            address, _, rest = address.rpartition(":")
            rest = f":{rest}"
        elif address.endswith(":") and not address.endswith("::"):
            address, rest = address[:-1], ":"
        try:
            value = ipaddress.IPv6Address(address)
        except ValueError:
            return text
        if value.is_unspecified or value.is_loopback:
            return text
        whole = int(value)
        return self._pseudonym(("v6", whole >> 64), whole, self._fresh_v6) + rest

    @staticmethod
    def _fresh_v6(net: int, host: int) -> str:
        return str(ipaddress.IPv6Address((0x20010DB8 << 96) + (net << 64) + host))

    def _pseudonym(self, net: Any, host: Any, make: Callable[[int, int], str]) -> str:
        number = self._nets.setdefault(net, len(self._nets))
        hosts = self._hosts.setdefault(net, {})
        if host not in hosts:
            index = len(hosts) + 1
            made = make(number, index)
            while made in self._taken:  # an original that looks like a pseudonym
                index += 1
                made = make(number, index + 100)
            hosts[host] = made
        return hosts[host]

    def walk(self, value: T, field: str = "") -> T:
        """Return a copy in which every string has gone through `text`."""
        if isinstance(value, str):
            return value if field in _VOCABULARY else self.text(value)  # type: ignore[return-value]
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            changed = {f.name: self.walk(getattr(value, f.name), f.name) for f in dataclasses.fields(value)}
            return dataclasses.replace(value, **changed)
        if field in _NUMBERS:
            return value
        if isinstance(value, list):
            return [self.walk(v, field) for v in value]  # type: ignore[return-value]
        if isinstance(value, tuple):
            return tuple(self.walk(v, field) for v in value)  # type: ignore[return-value]
        return value


def _is_name(text: str) -> bool:
    """Say whether a text is a name of the user's: not empty, not learned, not an address."""
    if not text or _LEARNED.match(text):
        return False
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return True
    return False


def _extension(base: str) -> str:
    path = PurePath(base)
    packed = path.suffix if path.suffix in _SUFFIXES else ""
    inner = PurePath(path.stem).suffix if packed else path.suffix
    return (inner if re.fullmatch(r"\.(pcap|pcapng|cap|dump)\d*", inner) else "") + packed


def _files(report: Report) -> Iterator[str]:
    for incident in report.incidents:
        for evidence in [*incident.evidence, *(e for f in incident.findings for e in f.evidence)]:
            yield from (file for file, _ in evidence.packets)
            yield from (span.file for span in evidence.spans)
    for lanes in report.lanes:
        yield from (s.frame[0] for s in lanes.spans if s.frame)
    yield from (s.frame[0] for s in report.streams if s.frame)


def redacted(report: Report) -> Report:
    """Return a copy of the report without original addresses, host names, paths and file names."""
    return Redactor(report).walk(report)
