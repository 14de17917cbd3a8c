"""Read the folders of `src/skewscope/conditions` for the docs tools, without importing them."""

import ast
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HEADINGS = ("Symptom", "Signal", "Why these thresholds", "Looks like", "Blind to", "Cost", "References")
TEXTS = ("meaning", "impact", "diagnosis", "mitigation")


@dataclass(frozen=True)
class Entry:
    """One condition folder: its entry.toml and the sections of its detector's docstring."""

    folder: Path
    data: dict[str, Any]
    sections: dict[str, str]

    @property
    def id(self) -> str:
        """The condition's id, such as c20."""
        return f"c{self.data['number']:02d}"

    @property
    def page(self) -> str:
        """The name of its generated page."""
        return f"{self.folder.name}.md"


def split_sections(docstring: str) -> dict[str, str]:
    """Cut a docstring at its fixed headings; a heading stands alone on a line or opens it with a colon."""
    names = "|".join(re.escape(h) for h in HEADINGS)
    pieces = re.split(rf"^({names})[ \t]*(?::|$)", docstring, flags=re.MULTILINE)
    return {
        name: re.sub(r"^[ \t]*([-=~]{3,}[ \t]*$)?", "", body, flags=re.MULTILINE).strip()
        for name, body in zip(pieces[1::2], pieces[2::2], strict=True)
    }


def load_entry(folder: Path) -> Entry:
    """Read one condition folder."""
    data = tomllib.loads((folder / "entry.toml").read_text(encoding="utf-8"))
    tree = ast.parse((folder / "detector.py").read_text(encoding="utf-8"))
    return Entry(folder, data, split_sections(ast.get_docstring(tree) or ""))


def load_entries(root: Path) -> list[Entry]:
    """Read every condition folder below the root, by number."""
    folders = sorted((root / "src" / "skewscope" / "conditions").glob("c[0-9][0-9]_*/entry.toml"))
    return sorted((load_entry(f.parent) for f in folders), key=lambda e: int(e.data["number"]))


def problems_of(entry: Entry) -> list[str]:
    """Return what the entry lacks for its page."""
    at = f"conditions/{entry.folder.name}"
    lacks = [
        f"{at}/entry.toml: {key} is missing or empty" for key in ("title", *TEXTS) if not entry.data.get(key)
    ]
    lacks += [
        f"{at}/entry.toml: threshold {name} lacks its {key}"
        for name, threshold in entry.data.get("thresholds", {}).items()
        for key in ("value", "unit", "why")
        if threshold.get(key) in (None, "")
    ]
    lacks += [
        f"{at}/detector.py: the docstring lacks the heading {heading!r}, or nothing follows it"
        for heading in HEADINGS
        if not entry.sections.get(heading)
    ]
    if entry.folder.name != f"{entry.id}_{entry.data['slug']}":
        lacks.append(f"{at}: the folder's name is not number and slug")
    return lacks
