"""Which conditions the bed can make, which it should, and which are missing."""

from __future__ import annotations

from dataclasses import dataclass

from skewscope.lab.bed import scenario

WANTED = (
    *(f"c{n:02}" for n in range(1, 13)),
    *("c17", "c18", "c20", "c21", "c22", "c23", "c24", "c25", "c26", "c27", "c28", "c29", "c30", "c31"),
    *("c32", "c33", "c34", "c35", "c36", "c37", "c38", "c39", "c40", "c41", "c43", "c44", "c45", "c46"),
    *("c47", "c48", "c49", "c50"),
)
"""Conditions that real processes and packets on one machine can show; the others need hardware."""


@dataclass(frozen=True)
class Row:
    """One scenario file."""

    name: str
    variants: tuple[str, ...]
    title: str


def rows() -> list[Row]:
    """Return all scenarios; every one has a healthy variant."""
    out = []
    for name in scenario.names():
        table = scenario.load(name)
        variants = tuple(v for v in scenario.VARIANTS if v == "healthy" or v in table)
        out.append(Row(name, variants, str(table["title"])))
    return out


def missing() -> list[str]:
    """Return the conditions that should have a scenario and have none."""
    there = {str(scenario.load(n)["condition"]) for n in scenario.names()}
    return [c for c in WANTED if c not in there]
