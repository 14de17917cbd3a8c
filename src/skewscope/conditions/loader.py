"""Finds the conditions: every folder cNN_slug of this package with entry.toml and detector.py."""

from __future__ import annotations

import importlib
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

from skewscope.core.condition import Detector
from skewscope.core.entry import Entry, EntryError, parse_entry


@dataclass(frozen=True)
class Condition:
    """A loaded condition: its entry and its detector class."""

    entry: Entry
    detector: type[Detector]
    doc: str

    def fresh(self) -> Detector:
        """Return a new detector with the entry's thresholds."""
        return self.detector(self.entry.params)


@cache
def load_entries() -> dict[str, Entry]:
    """Return all runbook entries by id, in order of number, without importing any detector.

    Raises EntryError where an entry is not valid or two share a number or slug.
    """
    entries: dict[str, Entry] = {}
    slugs: set[str] = set()
    root = resources.files("skewscope.conditions")
    for folder in sorted(f.name for f in root.iterdir() if f.name[:1] == "c" and f.name[1:3].isdigit()):
        text = root.joinpath(folder, "entry.toml").read_text(encoding="utf-8")
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise EntryError(f"{folder}/entry.toml: {error}") from None
        entry = parse_entry(folder, data)
        if entry.id in entries or entry.slug in slugs:
            raise EntryError(f"{folder}/entry.toml: number or slug is taken")
        entries[entry.id] = entry
        slugs.add(entry.slug)
    return entries


@cache
def load_all() -> dict[str, Condition]:
    """Return all conditions by id; raises EntryError where a folder breaks the contract."""
    conditions: dict[str, Condition] = {}
    for id_, entry in load_entries().items():
        module = importlib.import_module(f"skewscope.conditions.{id_}_{entry.slug}.detector")
        kind = getattr(module, "Detector", None)
        if kind is None or not isinstance(getattr(kind, "STATE", None), dict):
            raise EntryError(f"{id_}_{entry.slug}/detector.py: no class Detector with a STATE dict")
        conditions[id_] = Condition(entry, kind, module.__doc__ or "")
    return conditions
