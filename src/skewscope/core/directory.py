"""Ids of one run: addresses, flows, targets and taps are interned once and named at the edges."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from skewscope.core.tables import Array


@dataclass
class Tap:
    """A tap point: one capture file or interface."""

    index: int
    path: str
    link_type: int = 1
    snap_length: int = 0


@dataclass(slots=True)
class Flow:
    """A connection: two endpoints as (address id, port), in the order first seen."""

    a: int
    a_port: int
    b: int
    b_port: int
    proto: int


class Flows:
    """The connections of a run by id, in 13 bytes each: a scan makes millions of them.

    One thread may append while another reads ids that it was given.
    """

    def __init__(self, flows: Iterable[Flow] = ()) -> None:
        self._columns = tuple(array(kind) for kind in "IHIHB")
        self.extend(flows)

    def append(self, flow: Flow) -> None:
        """Add a flow; its id is the length before."""
        values = (flow.a, flow.a_port, flow.b, flow.b_port, flow.proto)
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)

    def extend(self, flows: Iterable[Flow]) -> None:
        """Add flows in order."""
        for flow in flows:
            self.append(flow)

    def add(self, *columns: Array) -> None:
        """Add flows in order, given as columns of shape (n,): a, a_port, b, b_port, proto."""
        for column, values in zip(self._columns, columns, strict=True):
            column.frombytes(values.astype(column.typecode).tobytes())

    def __iadd__(self, flows: Iterable[Flow]) -> Flows:
        self.extend(flows)
        return self

    def __len__(self) -> int:
        return len(self._columns[-1])  # the last one to grow

    def __getitem__(self, number: int) -> Flow:
        return Flow(*(column[number] for column in self._columns))

    def __iter__(self) -> Iterator[Flow]:
        return (self[number] for number in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Flows) and self._columns == other._columns

    def __repr__(self) -> str:
        return f"Flows({list(self)})"

    __hash__ = None  # type: ignore[assignment]


class Names:
    """Texts by id; 0 is the empty text, and what everything is once `limit` texts are known."""

    def __init__(self, limit: int = 1 << 20) -> None:
        self._texts = [""]
        self._ids = {"": 0}
        self._limit = limit

    def id(self, text: str) -> int:
        """Return the id of a text, creating it where new."""
        known = self._ids.get(text)
        if known is None:
            if len(self._texts) >= self._limit:  # hostile input: texts without end are one bucket
                return 0
            known = self._ids[text] = len(self._texts)
            self._texts.append(text)
        return known

    def __getitem__(self, number: int) -> str:
        return self._texts[number]

    def __len__(self) -> int:
        return len(self._texts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Names) and self._texts == other._texts

    def __repr__(self) -> str:
        return f"Names({self._texts[1:]})"

    __hash__ = None  # type: ignore[assignment]


@dataclass
class Directory:
    """Names behind the ids in the tables. Id 0 means "none", but for taps and sources."""

    addresses: list[str] = field(default_factory=lambda: ["-"])
    flows: Flows = field(default_factory=lambda: Flows([Flow(0, 0, 0, 0, 0)]))
    targets: list[str] = field(default_factory=lambda: [""])
    taps: list[Tap] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    """Paths of the files, or addresses of the endpoints, that counters, metrics and events were read from."""
    entities: Names = field(default_factory=Names)
    """What they are about: "10.0.0.3", "host/gpu3", "host/mlx5_0/1", "10.0.0.3:8000", "metric:job/name"."""
    names: Names = field(default_factory=Names)
    """Canonical names of counters, metrics and events, as in the name table."""
    labels: Names = field(default_factory=Names)
    """Labels as key="value",key="value", sorted by key."""
    texts: Names = field(default_factory=Names)
    """Request ids and fields of events."""
    _target_ids: dict[str, int] = field(default_factory=dict)

    def target(self, path: str) -> int:
        """Return the id of a request target, its query cut off, creating it where new."""
        path = path.split("?", 1)[0]
        if path not in self._target_ids:
            if len(self.targets) >= 4096:  # hostile input: paths without end are one bucket
                return 0
            self._target_ids[path] = len(self.targets)
            self.targets.append(path)
        return self._target_ids[path]


LID_HIGH = 0x004C_4944_0000_0000
"""Upper half of the key of an InfiniBand local id, the lower half being the id. No host can have it as
an IPv6 address: 0000::/8 is reserved (RFC 4291)."""


def address_text(high: int, low: int) -> str:
    """Format a 128-bit address key.

    IPv4 is stored as an IPv4-mapped IPv6 address, a global id (GID) as the IPv6 address that it is, and
    a local id below LID_HIGH ("lid 5").
    """
    if high == LID_HIGH:
        return f"lid {low}"
    if high == 0 and low >> 32 == 0xFFFF:
        return f"{low >> 24 & 255}.{low >> 16 & 255}.{low >> 8 & 255}.{low & 255}"
    # As the module ipaddress writes it (RFC 5952), which takes several times longer for each.
    words = [half >> shift & 0xFFFF for half in (high, low) for shift in (48, 32, 16, 0)]
    zeros = "".join("x" if word else "0" for word in words)
    texts = [f"{word:x}" for word in words]
    for size in range(8, 1, -1):
        at = zeros.find("0" * size)
        if at >= 0:
            return ":".join(texts[:at]) + "::" + ":".join(texts[at + size :])
    return ":".join(texts)
