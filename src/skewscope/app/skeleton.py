"""The skeleton of a new condition: a folder that the loader accepts and that never fires."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from skewscope.conditions.loader import load_entries
from skewscope.core.features import FeatureSpec
from skewscope.features.loader import load_all

SLUG = re.compile(r"^[a-z][a-z0-9]*(_[a-z0-9]+)*$")
FILES = {
    "detector.py.j2": "detector.py",
    "entry.toml.j2": "entry.toml",
    "scenario.py.j2": "scenario.py",
    "expect.toml.j2": "expect.toml",
    "test_condition.py.j2": "test_{code}.py",
}
# What a scope accuses, where the scope's own name is no kind of culprit.
_CULPRITS = {
    "member": "rank",
    "group": "rank",
    "pair": "link",
    "link": "link",
    "endpoint": "endpoint",
    "router": "router",
    "flow": "flow",
    "gpu": "gpu",
    "port": "port",
}


class SkeletonError(ValueError):
    """The skeleton cannot be written; the message says why."""


@dataclass(frozen=True)
class Wanted:
    """What the author asked for."""

    number: int
    slug: str
    title: str
    plane: str
    scope: str

    @property
    def code(self) -> str:
        """The short name, such as c53."""
        return f"c{self.number:02d}"


def scopes() -> dict[str, FeatureSpec]:
    """Return the feature families by scope."""
    return {family.SPEC.scope: family.SPEC for family in load_all() if family.SPEC.columns}


def _check(wanted: Wanted, folder: Path) -> FeatureSpec:
    if not SLUG.match(wanted.slug):
        raise SkeletonError(f"{wanted.slug!r} is no slug: lower case, digits and underscores")
    for entry in load_entries().values():
        if entry.number == wanted.number or entry.slug == wanted.slug:
            raise SkeletonError(f"taken by {entry.id} {entry.slug}")
    if folder.exists():
        raise SkeletonError(f"{folder.name} exists")
    known = scopes()
    if wanted.scope not in known:
        raise SkeletonError(f"no features of scope {wanted.scope!r}; there are {', '.join(sorted(known))}")
    if '"' in wanted.title or "\\" in wanted.title or not wanted.title.isprintable():
        raise SkeletonError("the title must be one line without quotes and backslashes")
    return known[wanted.scope]


def write(wanted: Wanted, into: Path | None = None) -> list[Path]:
    """Write the folder of a new condition and return its files; raises SkeletonError."""
    parent = into or Path(str(resources.files("skewscope.conditions")))
    folder = parent / f"{wanted.code}_{wanted.slug}"
    spec = _check(wanted, folder)
    feature, column = next(iter(spec.columns.items()))
    env = Environment(
        loader=PackageLoader("skewscope.app", "skeleton_files"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # Python and TOML, not HTML
    )
    words = {
        "number": wanted.number,
        "code": wanted.code,
        "slug": wanted.slug,
        "title": wanted.title,
        "plane": wanted.plane,
        "scope": wanted.scope,
        "culprit": _CULPRITS.get(wanted.scope, "host"),
        "feature": feature,
        "unit": column.unit,
        "doc": column.doc.replace('"', "'"),
    }
    folder.mkdir(parents=True)
    written = [folder / "__init__.py"]
    written[0].write_text("", encoding="utf-8")
    for template, name in FILES.items():
        path = folder / name.format(code=wanted.code)
        path.write_text(env.get_template(template).render(words), encoding="utf-8")
        written.append(path)
    return written
