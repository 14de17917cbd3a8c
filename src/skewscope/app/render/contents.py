"""What captures contain, and what cannot be seen from them: the answer of `skewscope inspect`."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from skewscope.app.render import json as report_json
from skewscope.app.render import readings
from skewscope.app.render.figures.names import order
from skewscope.app.render.terminal import console
from skewscope.app.render.units import known, offset, percent, plural, quantity, utc
from skewscope.app.render.wording import base_name, clean, coverage, not_judged
from skewscope.core.report import Input, Report

KEYS = ("inputs", "span_ns", "interrupted", "hosts", "groups", "edges", "no_data", "notes")
TOP_EDGES = 12
FULL_SNAP_BYTES = 1500
ROCE_KINDS = {
    "writes": ("write", "writes"),
    "reads": ("read", "reads"),
    "sends": ("send", "sends"),
    "atomics": ("atomic", "atomics"),
    "acks": ("acknowledgement", "acknowledgements"),
    "naks": ("NAK", "NAKs"),
    "rnr_naks": ("RNR NAK", "RNR NAKs"),
    "cnps": ("congestion notification", "congestion notifications"),
    "marked": ("CE mark", "CE marks"),
    "cut": ("packet cut within its headers", "packets cut within their headers"),
    "not_roce": ("packet on its port that is no RoCE", "packets on its port that are no RoCE"),
}
"""Names of the counts of `Input.roce`, in the order in which they are shown."""
UNCUT = 65_535


def dumps(report: Report) -> str:
    """Return the contents as JSON text."""
    whole = report_json.to_dict(report)
    out: dict[str, Any] = {"schema": "skewscope.contents/1", **{k: whole[k] for k in KEYS}}
    out["clocks"] = clocks(report)
    out["cannot_see"] = cannot_see(report)
    return json.dumps(out, indent=2, allow_nan=False, ensure_ascii=False)


def _with_packets(report: Report) -> list[Input]:
    return [i for i in report.inputs if i.packets and i.last_ns >= i.first_ns]


def clocks(report: Report) -> list[str]:
    """Say which inputs overlap in time, one sentence each."""
    files = _with_packets(report)
    if len(files) < 2:
        return ["One input: nothing to compare its clock with."] if files else []
    start, end = max(i.first_ns for i in files), min(i.last_ns for i in files)
    whole = max(i.last_ns for i in files) - min(i.first_ns for i in files)
    if end > start:
        share = percent((end - start) / whole) if whole else "all"
        return [
            f"All {len(files)} inputs overlap for {quantity((end - start) / 1e9, 's')} ({share} of the span)."
        ]
    out = []
    for one in files:
        alone = not any(
            o is not one and min(o.last_ns, one.last_ns) > max(o.first_ns, one.first_ns) for o in files
        )
        if alone:
            out.append(f"{base_name(one.path)} shares no time with any other input.")
    return out or ["The inputs overlap only in part: no moment is covered by all of them."]


def cannot_see(report: Report) -> list[str]:
    """Say what these inputs cannot show, one sentence each."""
    out = []
    blind = [h.name or h.address for h in report.hosts if not h.tap]
    if blind and len(blind) < len(report.hosts):
        names = ", ".join(blind[:6]) + (f" and {len(blind) - 6} more" if len(blind) > 6 else "")
        out.append(f"No capture taken at {names}: seen only from the other side.")
    cut = [i for i in report.inputs if 0 < i.snap_length < FULL_SNAP_BYTES]
    if cut:
        shortest = min(i.snap_length for i in cut)
        out.append(
            f"{plural(len(cut), 'input')} cut packets off (shortest at {shortest} bytes): texts are partial."
        )
    if not report.groups and not (report.inputs and all(i.rows for i in report.inputs)):
        out.append("No collective group was recognised: no per-rank statement.")
    missing = not_judged(report, shown=8)
    if missing:
        out.append(missing)
    return out


def protocols(report: Report) -> str:
    """Say how many connections spoke what; one that several inputs show counts in each."""
    total: Counter[str] = Counter()
    for one in report.inputs:
        total.update(one.protocols)
    return ", ".join(
        f"{name} {count:,}" for name, count in sorted(total.items(), key=lambda t: (-t[1], t[0]))
    )


def print_contents(report: Report, out: Console | None = None) -> None:
    """Print files, hosts, groups, traffic, clocks and blind spots."""
    out = out or console()
    out.print(Text(coverage(report), style="bold"))
    first, last = report.span_ns
    out.print(Text(f"From {utc(first)} to {utc(last)} UTC.", style="dim"))
    for note in report.notes:
        out.print(Text(clean(note), style="yellow"))
    if any(not i.rows for i in report.inputs):
        _part(out, "Inputs", _inputs(report))
    if any(i.rows for i in report.inputs):
        readings.print_part(out, report)
    for name, note in ((base_name(i.path), note) for i in report.inputs for note in i.notes):
        out.print(Padding(Text(clean(f"{name}: {note}"), style="yellow"), (0, 0, 0, 4)))
    spoken = protocols(report)
    if spoken:
        _part(out, "Connections by protocol", Text(spoken))
    if any(i.roce for i in report.inputs):
        _part(out, "RoCE and InfiniBand", _roce(report))
    if report.hosts:
        _part(out, "Hosts", _hosts(report))
    if report.groups:
        _part(out, "Collective groups", _groups(report))
    if report.edges:
        _part(out, "Traffic, largest first", _edges(report))
    for heading, lines in (("Clocks", clocks(report)), ("Cannot be seen from here", cannot_see(report))):
        if lines:
            _part(out, heading, Text(clean("\n".join(lines))))


def _part(out: Console, heading: str, body: Table | Text) -> None:
    out.print(Text(f"\n{heading}", style="bold"))
    out.print(Padding(body, (0, 0, 0, 2)))


def _table(*headings: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for heading in headings:
        right = heading in ("packets", "bytes", "starts", "lasts", "snap", "a round every", "rounds")
        table.add_column(heading, justify="right" if right else "left", overflow="fold", no_wrap=right)
    return table


def _inputs(report: Report) -> Table:
    table = _table("file", "kind", "packets", "starts", "lasts", "snap", "at host")
    for one in (i for i in report.inputs if not i.rows):
        lasts = quantity((one.last_ns - one.first_ns) / 1e9, "s") if one.packets else "-"
        starts = offset(one.first_ns, report.span_ns[0]) if one.packets else "-"
        snap = str(one.snap_length) if 0 < one.snap_length < UNCUT else "full"
        table.add_row(clean(base_name(one.path)), one.kind, f"{one.packets:,}", starts, lasts, snap, one.host)
    return table


def _roce(report: Report) -> Text:
    """Return two lines per input with RoCE: what its packets are, and what is wrong with them."""
    lines = []
    for one in (i for i in report.inputs if i.roce):
        count: Counter[str] = Counter(one.roce)
        kinds = (plural(count[key], *names) for key, names in ROCE_KINDS.items() if count[key])
        head = f"{plural(count['packets'], 'packet')} to {plural(count['queue_pairs'], 'queue pair')}"
        lines.append(f"{base_name(one.path)}: {head}" + "".join(f", {kind}" for kind in kinds))
        if "icrc_right" in count:
            crcs = f"{count['icrc_right']:,} right, {count['icrc_wrong']:,} wrong"
            lines.append(f"  invariant CRC: {crcs}, {count['icrc_unknown']:,} cut off")
    return Text(clean("\n".join(lines)))


def _hosts(report: Report) -> Table:
    table = _table("address", "name", "roles", "capture")
    for host in report.hosts:
        tap = base_name(host.tap) if host.tap else "none"
        table.add_row(host.address, clean(host.name), ", ".join(host.roles), clean(tap))
    return table


def _groups(report: Report) -> Table:
    table = _table("group", "members", "framing", "a round every", "rounds")
    for group in report.groups:
        step = quantity(group.step_s, "s") if known(group.step_s) else "-"
        table.add_row(
            clean(group.id),
            ", ".join(sorted(group.members, key=order)),
            group.framing,
            step,
            f"{group.rounds:,}",
        )
    return table


def _edges(report: Report) -> Table:
    table = _table("from and to", "kind", "packets", "bytes")
    pairs: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0])
    for edge in report.edges:
        low, high = sorted((edge.a, edge.b))
        pairs[low, high, edge.kind][0] += edge.packets_total
        pairs[low, high, edge.kind][1] += edge.bytes_total
    ranked = sorted(pairs.items(), key=lambda kv: -kv[1][1])
    for (low, high, kind), (packets, size) in ranked[:TOP_EDGES]:
        table.add_row(f"{low} - {high}", kind, f"{packets:,}", quantity(size, "bytes"))
    if len(ranked) > TOP_EDGES:
        table.add_row(f"and {len(ranked) - TOP_EDGES} more in --json")
    return table
