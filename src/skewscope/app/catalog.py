"""Runbook entries by any of their names, for the command line and the renderers."""

from __future__ import annotations

from skewscope.conditions.loader import load_entries
from skewscope.core.entry import Entry


def find(name: str) -> Entry | None:
    """Return the entry called c20, 20, tp_straggler or c20_tp_straggler."""
    wanted = name.strip().lower().replace("-", "_")
    for entry in load_entries().values():
        if wanted in (entry.id, str(entry.number), entry.slug, f"{entry.id}_{entry.slug}"):
            return entry
    return None


def full_name(code: str) -> str:
    """Return "c20 tp_straggler" for "c20", and the code itself where the runbook lacks it."""
    entry = load_entries().get(code)
    return f"{entry.id} {entry.slug}" if entry else code
