"""Who talks to whom: clients on the left, gateways, then each collective group as a ring."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from skewscope.app.render.figures.names import Names, order
from skewscope.app.render.units import plural, quantity
from skewscope.core.report import Edge, HostRole, Report

MAX_NODES, MAX_EDGES = 48, 120
_COLUMNS = (("client",), ("gateway", "router"), ("engine", "endpoint", "replica", "prefill", "decode"))
_SHAPES = ("square", "diamond", "circle", "hexagon")


@dataclass
class Node:
    """A host: place, shape by role, and where its label stands."""

    address: str
    name: str
    roles: str
    shape: str
    state: str
    tip: str
    x: float = 0.0
    y: float = 0.0
    anchor: str = "middle"
    label_x: float = 0.0
    label_y: float = 0.0
    detail: bool = True


@dataclass
class Wire:
    """Traffic between two hosts, both directions together."""

    path: str
    width: float
    kind: str
    culprit: bool
    tip: str


@dataclass
class Drawing:
    """One layout of the picture."""

    width: int
    height: int
    nodes: list[Node]
    wires: list[Wire]


@dataclass
class Topology:
    """The picture for wide and for narrow pages, and the same as rows for a table."""

    wide: Drawing
    narrow: Drawing
    kinds: list[str]
    rows: list[tuple[str, str, str, str, str]]
    hidden: int = 0
    shapes: list[tuple[str, str]] = field(default_factory=list)


def topology(report: Report, names: Names) -> Topology | None:
    """Return the picture, or None where no host was seen."""
    if not report.hosts:
        return None
    traffic = _traffic(report.edges)
    members = {m: g.id for g in report.groups for m in g.members}
    hosts = _choose(report.hosts, traffic, members, names)
    known = {h.address for h in hosts}
    pairs = [(k, v) for k, v in traffic.items() if k[0] in known and k[1] in known][:MAX_EDGES]
    drawings = [_draw(hosts, pairs, members, names, upright) for upright in (False, True)]
    rows = [
        (names.of(a), names.of(b), kind, f"{packets:,}", quantity(size, "bytes"))
        for (a, b, kind), (size, packets) in pairs
    ]
    used = {n.shape for n in drawings[0].nodes}
    words = {
        "square": "client",
        "diamond": "gateway or router",
        "circle": "engine or rank",
        "hexagon": "other",
    }
    return Topology(
        wide=drawings[0],
        narrow=drawings[1],
        kinds=sorted({k[2] for k, _ in pairs}),
        rows=rows,
        hidden=len(report.hosts) - len(hosts),
        shapes=[(s, words[s]) for s in _SHAPES if s in used],
    )


def _traffic(edges: list[Edge]) -> dict[tuple[str, str, str], tuple[int, int]]:
    sums: dict[tuple[str, str, str], tuple[int, int]] = {}
    for edge in edges:
        low, high = sorted((edge.a, edge.b))
        size, packets = sums.get((low, high, edge.kind), (0, 0))
        sums[low, high, edge.kind] = (size + edge.bytes_total, packets + edge.packets_total)
    return dict(sorted(sums.items(), key=lambda kv: -kv[1][0]))


def _choose(
    hosts: list[HostRole],
    traffic: dict[tuple[str, str, str], tuple[int, int]],
    members: dict[str, str],
    names: Names,
) -> list[HostRole]:
    load: dict[str, int] = {}
    for (a, b, _), (size, _packets) in traffic.items():
        load[a] = load.get(a, 0) + size
        load[b] = load.get(b, 0) + size
    ranked = sorted(
        hosts,
        key=lambda h: (
            not _state(h.address, names).startswith("culprit"),
            h.address not in members,
            -load.get(h.address, 0),
        ),
    )
    keep = {h.address for h in ranked[:MAX_NODES]}
    return [h for h in hosts if h.address in keep]


def _column(host: HostRole, members: dict[str, str]) -> int:
    if host.address in members:
        return 3
    for index, words in enumerate(_COLUMNS):
        if any(w in role for role in host.roles for w in words):
            return index
    return 4


def _state(address: str, names: Names) -> str:
    if names.is_culprit(address):
        return "culprit"
    if address in names.near:
        return "culprit-link"
    return "victim" if address in names.victims else ""


def _node(host: HostRole, column: int, names: Names) -> Node:
    shape = ("square", "diamond", "circle", "circle", "hexagon")[column]
    state = _state(host.address, names)
    roles = ", ".join(host.roles)
    seen = "own capture" if host.tap else "no capture of its own"
    tip = f"{names.of(host.address)}, {host.address}, {roles or 'no role learned'}, {seen}"
    return Node(
        host.address, names.of(host.address), roles, shape, state, tip + (f", {state}" if state else "")
    )


def _draw(
    hosts: list[HostRole],
    pairs: list[tuple[tuple[str, str, str], tuple[int, int]]],
    members: dict[str, str],
    names: Names,
    upright: bool,
) -> Drawing:
    columns: dict[int, list[Node]] = {}
    rings: dict[str, list[Node]] = {}
    for host in sorted(hosts, key=lambda h: order(h.address)):
        column = _column(host, members)
        node = _node(host, column, names)
        if column == 3:
            rings.setdefault(members[host.address], []).append(node)
        else:
            columns.setdefault(column, []).append(node)
    width, height = _upright(columns, rings) if upright else _sideways(columns, rings)
    nodes = [n for part in (*columns.values(), *rings.values()) for n in part]
    centre = {n.address: n for n in nodes}
    most = max((size for _, (size, _) in pairs), default=1)
    wires = [_wire(k, v, centre, most, names) for k, v in pairs]
    return Drawing(width, height, nodes, wires)


def _radius(count: int) -> float:
    return max(84.0, count * 46 / (2 * math.pi))


def _ring(nodes: list[Node], cx: float, cy: float, radius: float) -> None:
    for k, node in enumerate(nodes):
        angle = 2 * math.pi * k / len(nodes) - math.pi / 2 - (math.pi / 4 if len(nodes) == 4 else 0)
        node.x, node.y = round(cx + radius * math.cos(angle), 1), round(cy + radius * math.sin(angle), 1)
        side, rise = math.cos(angle), math.sin(angle)
        above = abs(side) < 0.25 or (len(nodes) <= 4 and abs(rise) > 0.5)
        node.anchor = "middle" if above else "start" if side > 0 else "end"
        node.detail = len(nodes) <= 8
        reach = 20 if node.anchor != "middle" else 0
        node.label_x = round(node.x + math.copysign(reach, side), 1)
        up = -32 if node.detail and node.name != node.address else -18
        node.label_y = round(
            node.y + (-1 if node.detail else 5) if reach else node.y + (30 if rise > 0 else up), 1
        )


def _sideways(columns: dict[int, list[Node]], rings: dict[str, list[Node]]) -> tuple[int, int]:
    """Place columns from left to right, the rings after them; return width and height."""
    heights = [2 * _radius(len(r)) + 90 for r in rings.values()]
    tallest = max((len(c) for c in columns.values()), default=0) * 72 + 40
    height = max(sum(heights), tallest, 200)
    x = 84.0
    for column in (0, 1, 2):
        if column in columns:
            _stack(columns[column], x, height)
            x += 168
    if rings:
        widest = max(_radius(len(r)) for r in rings.values())
        x += 34 if columns else 60
        y = (height - sum(heights)) / 2
        for ring, tall in zip(rings.values(), heights, strict=True):
            _ring(ring, x + widest, y + tall / 2, _radius(len(ring)))
            y += tall
        x += 2 * widest + 160
    if 4 in columns:
        _stack(columns[4], x, height)
        x += 120
    return round(max(x, 420)), round(height)


def _stack(nodes: list[Node], x: float, height: float) -> None:
    for k, node in enumerate(nodes):
        node.x, node.y = x, round((k + 0.5) * height / len(nodes) - 12, 1)
        node.label_x, node.label_y = node.x, node.y + 28


def _upright(columns: dict[int, list[Node]], rings: dict[str, list[Node]]) -> tuple[int, int]:
    """Place columns from top to bottom on a page 360 wide; return width and height."""
    width, y = 360, 30.0
    for column in (0, 1, 2, 4):
        nodes = columns.get(column, [])
        for start in range(0, len(nodes), 3):
            row = nodes[start : start + 3]
            for k, node in enumerate(row):
                node.x, node.y = round((k + 0.5) * width / len(row), 1), y
                node.label_x, node.label_y = node.x, y + 28
            y += 84
    for ring in rings.values():
        radius = min(_radius(len(ring)), 88.0) if len(ring) <= 8 else 120.0
        _ring(ring, width / 2, y + radius + 24, radius)
        y += 2 * radius + 84
    return width, round(max(y, 200))


def _wire(
    key: tuple[str, str, str], load: tuple[int, int], centre: dict[str, Node], most: int, names: Names
) -> Wire:
    a, b, kind = key
    size, packets = load
    start, end = centre[a], centre[b]
    width = 1.0 + 4.0 * math.sqrt(size / most) if most else 1.0
    dx, dy = end.x - start.x, end.y - start.y
    bend = 0.06
    mx, my = (start.x + end.x) / 2 - dy * bend, (start.y + end.y) / 2 + dx * bend
    path = f"M{start.x:g} {start.y:g}Q{mx:.1f} {my:.1f} {end.x:g} {end.y:g}"
    tip = f"{names.of(a)} and {names.of(b)}: {kind}, {quantity(size, 'bytes')}, {plural(packets, 'packet')}"
    accused = frozenset((a, b)) in names.culprit_links or a in names.near or b in names.near
    return Wire(path, round(width, 2), kind, accused, tip)
