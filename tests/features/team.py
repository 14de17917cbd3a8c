"""A ring of hosts that runs rounds, each at its own tap: for the features that stand on rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tests.features.packet_tables import Net

ADDRESSES = ("10.0.0.1", "10.0.0.2", "10.0.0.3")
TRANSIT_MS = 0.5


def ring(
    rounds: int = 20,
    own_ms: float = 20.0,
    late: Mapping[tuple[int, int], float] | None = None,
    size: Callable[[int], int] = lambda _: 512,
    members: Sequence[str] = ADDRESSES,
    missing: Sequence[tuple[int, int]] = (),
    net: Net | None = None,
    start_ms: float = 1.0,
) -> Net:
    """Every member sends its part to the next one when it has computed; a round ends when all have all.

    late: (round, member) -> further ms of own time. missing: (round, member) that never sends.
    """
    net = net or Net([f"n{i}" for i in range(len(members))])
    count = len(members)
    flows = [net.flow(members[i], members[(i + 1) % count], 41_000 + i, 42_000) for i in range(count)]
    now = start_ms
    for number in range(rounds):
        enter = [now + own_ms + (late or {}).get((number, i), 0.0) for i in range(count)]
        for i in range(count):
            if (number, i) not in missing:
                put(net, flows[i], enter[i], i, (i + 1) % count, number + 1, size(number))
        now = max(enter) + TRANSIT_MS
    return net


def put(net: Net, flow: int, ms: float, source: int, target: int, tag: int, size: int) -> None:
    """Send a data message from tap to tap."""
    net.message(ms, flow, tag, 0, source, nbytes=size)
    net.message(ms + TRANSIT_MS, flow, tag, 0, target, nbytes=size)
