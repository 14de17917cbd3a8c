"""Counters, metrics and logs as `skewscope inspect` shows them: what they are, and their last values."""

from __future__ import annotations

import re
from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from skewscope.app.render.units import offset, plural, quantity
from skewscope.app.render.wording import base_name, clean
from skewscope.core.report import Input, Reading, Report

SHOWN = 40
"""Readings shown of one input; all are in --json."""

SHOWN_NAMES = 12
THOUSANDS = 10_000
"""From here on a value is shown without a fraction and with commas."""

_PAIR = re.compile(r'(\w+="(?:[^"\\]|\\.)*")')
ROW_WORDS = {
    "counters": ("counter reading", "counter readings"),
    "metrics": ("metric reading", "metric readings"),
    "events": ("event", "events"),
    "flow_records": ("flow record", "flow records"),
    "requests": ("request", "requests"),
}


def print_part(out: Console, report: Report) -> None:
    """Print each input that is no capture: kind, rows, times, last values and names left out."""
    out.print(Text("\nCounters, metrics and logs", style="bold"))
    for one in (i for i in report.inputs if i.rows):
        out.print(Padding(Text(clean(heading(one, report.span_ns[0]))), (0, 0, 0, 2)))
        shared = common_labels(one.readings)
        if shared:
            out.print(Padding(Text(clean(f"all: {', '.join(shared)}"), style="dim"), (0, 0, 0, 4)))
        if one.readings:
            out.print(Padding(_table(one.readings, set(shared)), (0, 0, 0, 4)))
        for line in (_more(one), kinds(one), left_out(one)):
            if line:
                out.print(Padding(Text(clean(line), style="dim"), (0, 0, 0, 4)))


def heading(one: Input, zero_ns: int) -> str:
    """Say in a line what an input is: "n1.prom: prometheus text, 45 counter readings about 6 entities"."""
    files = f" ({one.files} files)" if one.files > 1 else ""
    counts = ", ".join(plural(n, *ROW_WORDS.get(name, (name, name))) for name, n in one.rows.items() if n)
    about = f" about {plural(one.entities, 'entity', 'entities')}"
    lasts = (one.last_ns - one.first_ns) / 1e9
    when = f"at {offset(one.first_ns, zero_ns)}" + (f" for {quantity(lasts, 's')}" if lasts else "")
    return f"{base_name(one.path)}{files}: {one.kind}, {counts}{about}, {when}"


def kinds(one: Input) -> str:
    """Say how many events of each kind there are."""
    events = one.rows.get("events", 0)
    if not events:
        return ""
    read = {r.name for r in one.readings}
    told = [f"{name} {count:,}" for name, count in one.names.items() if name not in read]
    rest = f" and {len(told) - SHOWN_NAMES} more" if len(told) > SHOWN_NAMES else ""
    return "events: " + ", ".join(told[:SHOWN_NAMES]) + rest


def left_out(one: Input) -> str:
    """Say which names the name table does not have, the most frequent first."""
    if not one.unmapped:
        return ""
    listed = list(one.unmapped)
    rest = f" and {len(listed) - SHOWN_NAMES} more" if len(listed) > SHOWN_NAMES else ""
    return f"not mapped: {', '.join(listed[:SHOWN_NAMES])}{rest}"


def value_text(reading: Reading) -> str:
    """Return a value with its unit; of a histogram the mean and the number of observations."""
    unit = "" if reading.unit in ("1", "code", "bitmask") else reading.unit
    if reading.value is None:
        text = "not known"
    elif unit in ("s", "bytes", "bytes/s"):
        text = quantity(reading.value, unit.removesuffix("/s")) + ("/s" if unit.endswith("/s") else "")
    else:
        number = f"{reading.value:,.0f}" if abs(reading.value) >= THOUSANDS else f"{reading.value:.4g}"
        text = f"{number} {unit}".rstrip()
    return text if reading.count is None else f"{text} (mean of {reading.count:,})"


def common_labels(shown: list[Reading]) -> list[str]:
    """Return the labels that all labelled readings share, where there are several readings."""
    sets = [set(_PAIR.findall(r.labels)) for r in shown if r.labels]
    return sorted(set.intersection(*sets)) if len(sets) > 1 else []


def _table(shown: list[Reading], shared: set[str]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    listed = shown[:SHOWN]
    table.add_column(no_wrap=True, min_width=max(len(r.name) for r in listed) + 2)
    table.add_column(justify="right", no_wrap=True, min_width=max(len(value_text(r)) for r in listed))
    table.add_column(overflow="ellipsis", no_wrap=True, style="dim")
    lines = 0
    for entity, group in groupby(shown, key=lambda r: r.entity):
        if lines >= SHOWN:
            break
        table.add_row(Text(clean(entity), style="bold"), "", "")
        for reading in list(group)[: SHOWN - lines]:
            own = ", ".join(p for p in _PAIR.findall(reading.labels) if p not in shared)
            table.add_row(f"  {clean(reading.name)}", value_text(reading), clean(own))
            lines += 1
    return table


def _more(one: Input) -> str:
    return (
        f"and {plural(len(one.readings) - SHOWN, 'more reading')} in --json"
        if len(one.readings) > SHOWN
        else ""
    )
