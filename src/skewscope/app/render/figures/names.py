"""Who is who on the page: names of addresses, and whom the incidents accuse."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from skewscope.core.report import Incident, Report


@dataclass
class Names:
    """Names by address; culprits and victims as sets of ids and addresses."""

    names: dict[str, str] = field(default_factory=dict)
    culprits: set[str] = field(default_factory=set)
    culprit_links: set[frozenset[str]] = field(default_factory=set)
    near: set[str] = field(default_factory=set)
    """Hosts whose own link to the network is accused."""
    victims: set[str] = field(default_factory=set)

    def of(self, key: str) -> str:
        """Return the name behind an address, a flow or a link; the key itself where unknown."""
        if key in self.names:
            return self.names[key]
        if "->" in key:
            return " → ".join(self.of(part) for part in key.split("->"))
        host = address_of(key)
        if host != key and host in self.names:
            return f"{self.names[host]}{key[len(host) :]}" if key.startswith(host) else self.names[host]
        return key

    def is_culprit(self, key: str) -> bool:
        """Say whether a series' or host's key is a culprit's, or at the same host."""
        if "->" in key:
            return frozenset(map(address_of, key.split("->"))) in self.culprit_links or key in self.culprits
        return key in self.culprits or address_of(key) in self.culprits


def address_of(key: str) -> str:
    """Return the host part of a canonical id: address, addr:port, host/gpu3."""
    key = key.split("/", 1)[0]
    if key.startswith("["):
        return key[1:].split("]", 1)[0]
    head, _, tail = key.rpartition(":")
    return head if head and tail.isdigit() and ("." in head or head.count(":") > 7) else key


def order(address: str) -> tuple[int, int, str]:
    """Return a sort key: addresses by number, then everything else by name."""
    try:
        value = ipaddress.ip_address(address)
    except ValueError:
        return 99, 0, address
    return value.version, int(value), address


def accused(incident: Incident, least: float = 0.2) -> list[str]:
    """Return the ids of the culprits that carry the blame (always the first)."""
    return [c.id for k, c in enumerate(incident.culprits) if k == 0 or c.probability >= least]


def names_of(report: Report) -> Names:
    """Collect names, culprits and victims of a report."""
    out = Names({h.address: h.name for h in report.hosts if h.name})
    addresses = {h.address for h in report.hosts}
    for incident in report.incidents:
        for key in accused(incident):
            if "->" in key:
                ends = [address_of(end) for end in key.split("->")]
                out.culprit_links.add(frozenset(ends))
                known = [end for end in ends if end in addresses]
                out.near.update(known if len(known) == 1 else [])
            else:
                out.culprits.update({key, address_of(key)})
        out.victims.update(address_of(v.id) for v in incident.victims)
    out.victims -= out.culprits | out.near
    return out
