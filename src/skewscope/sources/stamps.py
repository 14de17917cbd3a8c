"""Times at the beginning of log lines: kernel, journal, syslog, NCCL, fabric manager.

A calendar time without a zone is taken as UTC (`LOCAL` says so); a time since boot stays one (`BOOT`).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

NONE, EXACT, LOCAL, BOOT = range(4)
"""No time; a point in time; the same without its zone; nanoseconds since the machine was started."""

SECOND_NS = 10**9
FIRST_YEAR, LAST_YEAR = 1970, 2261
"""Years that nanoseconds in 64 bits can tell."""


class Stamp(NamedTuple):
    """A line's time in ns, which sort of time it is, and the rest of the line."""

    ns: int
    sort: int
    rest: str


_LEVEL = re.compile(r"(?:<\d{1,3}>|[a-z]+ *:[a-z]+ *: )")
_BOOT = re.compile(r"\[ *(\d{1,9})\.(\d{6})\] ?")
_KMSG = re.compile(r"\d{1,9},\d{1,18},(\d{1,15}),[^;]{0,80};")
_ISO = re.compile(
    r"\[?(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d| UTC)?\]?(?:[ ,:]|$)"
)
_CTIME = re.compile(r"\[(?:[A-Z][a-z]{2} )?([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d) (\d{4})\] ?")
_FABRIC = re.compile(r"\[([A-Z][a-z]{2}) +(\d{1,2}) (\d{4}) (\d\d:\d\d:\d\d)\] ?")
_SYSLOG = re.compile(r"([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d)(?:\.(\d{1,9}))? ")
_UNIX = re.compile(r"([1-8]\d{9})\.(\d{1,9}) ")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {month: number for number, month in enumerate(MONTHS, 1)}


@lru_cache(1024)
def _calendar_ns(year: int, month: int, day: int, clock: str, zone_minutes: int) -> int | None:
    hour, minute, second = (int(part) for part in clock.split(":"))
    if not FIRST_YEAR <= year <= LAST_YEAR:
        return None
    try:
        whole = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
    except ValueError:
        return None
    leap = second - min(second, 59)
    return (int(whole.timestamp()) + leap - 60 * zone_minutes) * SECOND_NS


def _zone(text: str | None) -> int:
    """Return the minutes ahead of UTC that "+05:30", "-0800" or "Z" stand for."""
    if text is None or text[0] not in "+-":
        return 0
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return -minutes if text[0] == "-" else minutes


def _fraction(digits: str | None) -> int:
    return int((digits or "0").ljust(9, "0"))


def _year(month: int, now_ns: int) -> int:
    """Return the year of a date without one: the last such month before `now_ns`."""
    now = datetime.fromtimestamp(now_ns / SECOND_NS, UTC)
    return now.year - (month > now.month)


def _named(text: str, now_ns: int) -> Stamp | None:
    """Read the forms that spell the month."""
    found = _CTIME.match(text)
    if found:
        month, day, clock, year = found.groups()
        ns = _calendar_ns(int(year), _MONTHS.get(month, 0), int(day), clock, 0)
        return None if ns is None else Stamp(ns, LOCAL, text[found.end() :])
    found = _FABRIC.match(text)
    if found:
        month, day, year, clock = found.groups()
        ns = _calendar_ns(int(year), _MONTHS.get(month, 0), int(day), clock, 0)
        return None if ns is None else Stamp(ns, LOCAL, text[found.end() :])
    found = _SYSLOG.match(text)
    if found:
        month, day, clock, digits = found.groups()
        number = _MONTHS.get(month, 0)
        ns = _calendar_ns(_year(number, now_ns), number, int(day), clock, 0)
        return None if ns is None else Stamp(ns + _fraction(digits), LOCAL, text[found.end() :])
    return None


def stamp(text: str, now_ns: int) -> Stamp:
    """Take the time off the beginning of a line; `now_ns` gives the year where the line has none."""
    level = _LEVEL.match(text)
    if level:
        text = text[level.end() :]
    found = _BOOT.match(text)
    if found:
        return Stamp(int(found[1]) * SECOND_NS + int(found[2]) * 1000, BOOT, text[found.end() :])
    found = _ISO.match(text)
    if found:
        date, clock, digits, zone = found.groups()
        year, month, day = (int(part) for part in date.split("-"))
        ns = _calendar_ns(year, month, day, clock, _zone(zone))
        if ns is not None:
            rest = text[found.end() :].lstrip()
            return Stamp(ns + _fraction(digits), EXACT if zone else LOCAL, rest)
    found = _UNIX.match(text)
    if found:
        return Stamp(int(found[1]) * SECOND_NS + _fraction(found[2]), EXACT, text[found.end() :])
    found = _KMSG.match(text)
    if found:
        return Stamp(int(found[1]) * 1000, BOOT, text[found.end() :])
    return _named(text, now_ns) or Stamp(0, NONE, text)
