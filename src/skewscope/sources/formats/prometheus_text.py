"""Prometheus text exposition (0.0.4) and OpenMetrics (1.0): what every engine and exporter answers.

Lines that are neither a sample nor a comment are left out and counted; what is behind them is still read,
which is why the parser is our own: the one of prometheus_client stops at the first bad line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from skewscope.core.tables import Table
from skewscope.sources.canonical import exposed
from skewscope.sources.format import Format, Origin, lines
from skewscope.sources.series import MAX_SERIES, ROLES, SeriesReader, Target

BATCH_ROWS = 1 << 14

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
# Possessive: a line of megabytes without its closing quote must not be tried in every way there is.
_BODY = r'(?:[^"}]++|"(?:[^"\\]++|\\.)*+")*+'
SERIES = re.compile(rf"({_NAME})\s*(?:\{{({_BODY})\}})?")
LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]++|\\.)*+)"\s*(?:,|$)')
SAMPLE = re.compile(rf"{_NAME}\s*(?:\{{{_BODY}\}})?\s+[-+.\w]+(?:\s+[-+.\d]+)?(?:\s+#.*)?$", re.ASCII)
TYPE = re.compile(
    rb"^# TYPE [^\s]+ (counter|gauge|histogram|summary|untyped|unknown|info|stateset|gaugehistogram)\r?$",
    re.MULTILINE,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)

SECONDS_BELOW = 1e11
"""Times below are seconds (OpenMetrics), above milliseconds (Prometheus): 1e11 ms is 1973, 1e11 s is 5138."""


def split_labels(body: str) -> dict[str, str] | None:
    """Return the labels between the braces, None where they are malformed."""
    labels: dict[str, str] = {}
    at = 0
    while at < len(body):
        found = LABEL.match(body, at)
        if found is None:
            return None if body[at:].strip() else labels
        value = found[2]
        if "\\" in value:
            value = _ESCAPE.sub(lambda m: "\n" if m[1] == "n" else m[1], value)
        labels[found[1]] = value
        at = found.end()
    return labels


def split_line(text: str) -> tuple[str, str] | None:
    """Return (series, value and time) of a sample line, None where it has no such form."""
    exemplar = text.find(" # ")
    if exemplar >= 0 and text.rfind('"', 0, exemplar) <= text.rfind("}", 0, exemplar):
        text = text[:exemplar]
    brace = text.rfind("}")
    if brace >= 0:
        return text[: brace + 1], text[brace + 1 :]
    series, _, rest = text.replace("\t", " ").lstrip().partition(" ")
    return (series, rest) if rest else None


def reading(rest: str, otherwise_ns: int) -> tuple[float, int] | None:
    """Return (value, time) of what stands behind a series, None where it is not a number."""
    fields = rest.split()
    if not 1 <= len(fields) <= 2 or "_" in rest:  # Python takes 1_000 for a number
        return None
    try:
        value = float(fields[0])
        if len(fields) == 1:
            return value, otherwise_ns
        time = float(fields[1])
        return value, int(time * 1e9) if abs(time) < SECONDS_BELOW else int(time) * 1_000_000
    except (ValueError, OverflowError):
        return None


class _Text:
    """The parser of one input: series are looked up once, readings every time."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._reader = SeriesReader(origin)
        self._known: dict[str, Target | None] = {}
        self._bad = 0

    def tables(self, stream: BinaryIO) -> Iterator[dict[str, Table]]:
        for number, text in lines(stream, self._origin):
            if text and not text.startswith("#") and not text.isspace():
                self._line(number, text)
                if self._reader.rows >= BATCH_ROWS:
                    yield self._reader.take()
        yield self._reader.take()
        if self._bad:
            self._origin.notes.append(f"{self._bad} lines are not samples")

    def _line(self, number: int, text: str) -> None:
        parts = split_line(text)
        got = reading(parts[1], self._origin.at_ns) if parts else None
        if parts is None or got is None or not -(1 << 62) < got[1] < 1 << 62:
            self._bad += 1
            return
        series = parts[0]
        if series in self._known:
            target = self._known[series]
            if target is None:
                return
        else:
            target = self._new(series)
        if target is not None:
            self._reader.add(target, got[1], got[0], number)

    def _new(self, series: str) -> Target | None:
        found = SERIES.fullmatch(series.strip())
        labels = split_labels(found[2] or "") if found else None
        if found is None or labels is None:
            self._bad += 1
            return None
        if found[1].endswith("_created"):  # OpenMetrics: when the series began
            return None
        target = self._reader.target(found[1], labels)
        if len(self._known) < MAX_SERIES:
            self._known[series] = target
        return target


def read(stream: BinaryIO, origin: Origin) -> Iterator[dict[str, Table]]:
    """Yield `counters` and `metrics` of one exposition; samples without a time are of `origin.at_ns`."""
    yield from _Text(origin).tables(stream)


def _family(line: str) -> str:
    found = SERIES.match(line)
    name = found[1] if found else ""
    return next((name.removesuffix(s) for s in ROLES if name.endswith(s) and not exposed(name)), name)


def sure(head: bytes, name: str) -> int:
    """Told by a TYPE comment, or by lines of samples under known names."""
    if b"\0" in head:
        return 0
    if TYPE.search(head):
        return 2
    whole = head.decode("utf-8", "replace").splitlines()[:200]
    samples = [line for line in whole[: max(1, len(whole) - 1)] if line and not line.startswith("#")]
    good = [line for line in samples if SAMPLE.match(line)]
    if not good or len(good) < 0.8 * len(samples):
        return 0
    suffix = name.endswith((".prom", ".metrics"))
    known = sum(exposed(_family(line)) is not None for line in good)
    if known >= 0.5 * len(good) and (suffix or "{" in good[0]):
        return 2
    return int(suffix)


FORMAT = Format("prometheus text", "metrics as an engine or exporter exposes them", sure, read)
