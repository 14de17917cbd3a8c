"""Numbers as people read them: three significant digits, a unit, one place for both renderers."""

from __future__ import annotations

import math
from datetime import UTC, datetime

_TIME_STEPS = ((60.0, 1.0, "s"), (1.0, 1.0, "s"), (1e-3, 1e-3, "ms"), (1e-6, 1e-6, "µs"), (0.0, 1e-9, "ns"))
_BYTE_STEPS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (0.0, "bytes"))
_BIT_STEPS = ((1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (0.0, "bit/s"))
_PLAIN = {"1": "", "": "", "count": "", "total": "", "pps": "packets/s"}
UNKNOWN = "not seen"


def known(value: float | None) -> bool:
    """Say whether a value is a real number (not None, NaN or infinite)."""
    return value is not None and math.isfinite(value)


def digits(value: float, significant: int = 3) -> str:
    """Format a number with so many significant digits, no exponent, thousands by comma."""
    if value == 0:
        return "0"
    decimals = significant - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, decimals)
    if decimals <= 0 or rounded == int(rounded):
        return f"{int(rounded):,}" if abs(value) < 10**significant else f"{round(value):,}"
    return f"{rounded:,.{min(decimals, 9)}f}"


def _stepped(value: float, steps: tuple[tuple[float, str], ...]) -> str:
    for floor, unit in steps:
        if abs(value) >= floor:
            return f"{digits(value / (floor or 1.0))} {unit}"
    return f"{digits(value)} {steps[-1][1]}"


def seconds(value: float) -> str:
    """Format a duration given in seconds with the unit that suits it."""
    if value == 0:
        return "0 s"
    if abs(value) >= 48 * 3600:
        return f"{value / 86400:,.0f} days"
    if abs(value) >= 600:
        minutes, rest = divmod(round(abs(value)), 60)
        hours, minutes = divmod(minutes, 60)
        sign = "-" if value < 0 else ""
        return f"{sign}{hours} h {minutes:02d} min" if hours else f"{sign}{minutes} min {rest:02d} s"
    for floor, scale, unit in _TIME_STEPS:
        if abs(value) >= floor:
            return f"{digits(value / scale)} {unit}"
    return f"{digits(value)} s"


def quantity(value: float | None, unit: str) -> str:
    """Format a value with its unit: seconds become ms or µs, ratios percent, bytes kB or MB."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if unit == "s":
        return seconds(value)
    if unit == "ns":
        return seconds(value / 1e9)
    if unit in ("ratio", "probability"):
        return percent(value)
    if unit == "bytes":
        return _stepped(value, _BYTE_STEPS)
    if unit in ("bytes/s", "B/s"):
        return _stepped(value, _BYTE_STEPS).replace("bytes", "B") + "/s"
    if unit in ("bps", "bit/s"):
        return _stepped(value, _BIT_STEPS)
    return f"{digits(value)} {_PLAIN.get(unit, unit)}".rstrip()


def percent(value: float) -> str:
    """Format a share 0..1 as a percentage."""
    share = value * 100
    if 99.5 <= share < 100:
        return ">99 %"
    if 0 < abs(share) < 1:
        return f"{digits(share, 1)} %"
    return f"{share:,.0f} %"


def factor(before: float | None, during: float | None) -> str:
    """Say how a value changed: "x1.66", or nothing where that means nothing."""
    if before is None or during is None or not (known(before) and known(during)) or before <= 0 or during < 0:
        return ""
    return f"x{digits(during / before)}"


def utc(ts_ns: int) -> str:
    """Format an absolute time of the capture clock, to the millisecond."""
    if ts_ns <= 0:
        return "unknown time"
    try:
        moment = datetime.fromtimestamp(ts_ns // 1_000_000_000, tz=UTC)
    except (OverflowError, ValueError, OSError):
        return f"{ts_ns} ns"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{ts_ns // 1_000_000 % 1000:03d}"


def offset(ts_ns: int, origin_ns: int) -> str:
    """Format a time relative to the first sample: "+31.40 s"."""
    return f"{(ts_ns - origin_ns) / 1e9:+.2f} s"


def plural(count: int, noun: str, many: str = "") -> str:
    """Format a count and its noun: "1 host", "3 hosts"."""
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"
