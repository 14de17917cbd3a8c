"""What diagnosis knows besides findings: who belongs together, names, and how service went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from skewscope.core.report import Series


@dataclass
class Context:
    """Structure learned by the graph feature, as addresses in text form, and series over time."""

    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Group id -> members."""
    clients: frozenset[str] = frozenset()
    roles: Mapping[str, Sequence[str]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    """Address -> the name of its own tap, where it has one."""
    links: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Pairs of addresses that talk -> bytes."""
    endpoint_groups: Mapping[str, str] = field(default_factory=dict)
    """Endpoint "addr:port" -> group whose member serves it."""
    series: Sequence[Series] = ()
    first_ns: int = 0
    last_ns: int = 0

    def group_of(self, host: str) -> str | None:
        """Return the group that a host belongs to."""
        for group, members in self.groups.items():
            if host in members:
                return group
        return None

    def groups_of(self, host: str) -> set[str]:
        """Return the host's group, or, for a gateway or client, the groups of those it talks to."""
        own = self.group_of(host)
        if own is not None:
            return {own}
        near = {b if a == host else a for a, b in self.links if host in (a, b)}
        return {g for h in near if (g := self.group_of(h)) is not None}

    def name(self, host: str) -> str:
        """Return how a person would call the host."""
        given = self.names.get(host)
        return f"{given} ({host})" if given and given != host else host


def host_of(text: str) -> str:
    """Return the address in "addr", "addr:port" or "[v6]:port"."""
    if text.startswith("["):
        return text[1:].split("]", 1)[0]
    return text.rsplit(":", 1)[0] if text.count(":") == 1 else text


def hosts_of(key: str) -> list[str]:
    """Return the addresses that a scope key names."""
    return [host_of(part) for part in key.split("->")]
