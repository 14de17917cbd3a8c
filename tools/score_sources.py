"""Read every recorded sample, and write a page with one row per file, or per set of like files.

`SKEWSCOPE_SAMPLES` names the folder. A row says which format read the file, what came out, what was left
out, and what `skewscope inspect` shows, judged by eye (tools/sources_judged.toml). A file that no format
reads must have its reason there; without one the command fails.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path

import skewscope
from skewscope.core.directory import Directory
from skewscope.core.tables import Table
from skewscope.sources.captures import Capture, CaptureError
from skewscope.sources.documents import Document, DocumentError
from skewscope.sources.unpack import looks_like_capture
from skewscope.wire.packets import PacketParser

JUDGED = Path(__file__).with_name("sources_judged.toml")
LIKE = 3
"""So many files of one folder whose names differ in numbers only are one row."""
NAMES = 4


@dataclass
class Seen:
    """What came out of one file, or of a set of like files."""

    kind: str
    rows: dict[str, int] = field(default_factory=dict)
    entities: set[str] = field(default_factory=set)
    first_ns: int = 0
    last_ns: int = 0
    notes: list[str] = field(default_factory=list)
    files: int = 1

    def add(self, other: Seen) -> None:
        """Add what came out of a like file."""
        for name, count in other.rows.items():
            self.rows[name] = self.rows.get(name, 0) + count
        self.entities |= other.entities
        self.first_ns = min(self.first_ns or other.first_ns, other.first_ns or self.first_ns)
        self.last_ns = max(self.last_ns, other.last_ns)
        self.notes += [n for n in other.notes if n not in self.notes]
        self.files += 1


def _count(seen: Seen, directory: Directory, tables: dict[str, Table]) -> None:
    for name, table in tables.items():
        if not len(table):
            continue
        seen.rows[name] = seen.rows.get(name, 0) + len(table)
        ts = table["ts_ns"]
        seen.first_ns = min(seen.first_ns or int(ts.min()), int(ts.min()))
        seen.last_ns = max(seen.last_ns, int(ts.max()))
        if "entity" in table.schema.columns:
            seen.entities |= {directory.entities[i] for i in set(table["entity"].tolist())}
        elif name == "packets":
            ids = {*table["src"].tolist(), *table["dst"].tolist()} - {0}
            seen.entities |= {directory.addresses[i] for i in ids}


def read(path: Path) -> Seen:
    """Read one file; the kind is "" where nothing reads it."""
    directory = Directory()
    if looks_like_capture(path):
        try:
            capture = Capture(path, directory, PacketParser(directory))
        except CaptureError as error:
            return Seen("", notes=[str(error).removeprefix(f"{path}: ")])
        seen = Seen(capture.kind)
        for tables in capture.batches():
            _count(seen, directory, tables)
        capture.close()
        seen.notes += capture.stats.notes
        return seen
    try:
        document = Document(path, directory)
    except DocumentError as error:
        return Seen("", notes=[str(error).removeprefix(f"{path}: ")])
    seen = Seen(document.kind)
    for tables in document.batches():
        _count(seen, directory, tables)
    document.close()
    seen.notes += document.stats.notes
    if document.stats.unmapped:
        names = ", ".join(list(document.stats.unmapped)[:NAMES])
        seen.notes.append(f"{document.stats.unmapped.total()} readings of names not in the table ({names})")
    return seen


def groups(root: Path) -> Iterator[tuple[str, list[Path]]]:
    """Yield (name of the row, files) in order."""
    found: dict[str, list[Path]] = {}
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        name = path.relative_to(root).as_posix()
        folder, _, file = name.rpartition("/")
        folder = re.sub(r"^testbed/.*", "testbed/*", folder)
        found.setdefault(f"{folder}/{re.sub(r'[0-9]+', '*', file)}".lstrip("/"), []).append(path)
    for like, paths in found.items():
        # Versions in names are numbers too: only a number at the end counts the files of a set.
        if len(paths) > LIKE and re.fullmatch(r"(.*/)?[^/*]*\*?[^/*]*", like):
            yield like, paths
        else:
            for path in paths:
                yield path.relative_to(root).as_posix(), [path]


def _time(ns: int) -> str:
    return datetime.fromtimestamp(ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S")


def row(name: str, paths: list[Path], judged: str) -> str:
    """Return the row of one file or set."""
    seen = read(paths[0])
    for path in paths[1:]:
        seen.add(read(path))
    rows = ", ".join(f"{count} {table}" for table, count in seen.rows.items()) or "none"
    when = f"{_time(seen.first_ns)} to {_time(seen.last_ns)}" if seen.rows else "-"
    notes = "; ".join(seen.notes[:NAMES]) or "nothing"
    title = f"{name} ({len(paths)} files)" if len(paths) > 1 else name
    cells = (title, seen.kind or "not read", rows, str(len(seen.entities)), when, notes, judged or "-")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main() -> int:
    """Read all samples and write the page; 1 where a file is neither read nor excused."""
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("--page", type=Path)
    given = parse.parse_args()
    root = Path(os.environ.get("SKEWSCOPE_SAMPLES", ""))
    if not root.name or not root.is_dir():
        sys.stderr.write("no samples (SKEWSCOPE_SAMPLES)\n")
        return 3
    judged = tomllib.loads(JUDGED.read_text(encoding="utf-8"))
    apart: dict[str, str] = judged["not_inputs"]
    lines: list[str] = []
    unread: list[str] = []
    left: dict[str, int] = {}
    for name, paths in groups(root):
        why = next((reason for pattern, reason in apart.items() if fnmatch(name, pattern)), "")
        if why:
            left[why] = left.get(why, 0) + len(paths)
            continue
        verdict = next((v for pattern, v in judged["inspect"].items() if fnmatch(name, pattern)), "")
        lines.append(row(name, paths, verdict))
        if "| not read |" in lines[-1]:
            unread.append(name)
    text = _page(lines, left, unread)
    if given.page:
        given.page.write_text(text, encoding="utf-8")
    sys.stdout.write(
        text if not given.page else f"{given.page}: {len(lines)} rows, not read: {unread or 'none'}\n"
    )
    return 1 if unread else 0


def _page(lines: list[str], left: dict[str, int], unread: list[str]) -> str:
    rows = "\n".join(lines)
    apart = "\n".join(f"- {count} files: {why}." for why, count in left.items())
    return f"""# Recorded samples, file by file

<!-- Written by `python -m tools.score_sources --page docs/results/sources.md`. Edits are lost. -->

**Data: recorded by others, and by the project's test bed.** What each is, and whose: the manifest of
the samples.

- Date: {datetime.now(UTC).date()}. skewscope {skewscope.__version__}.
- Command: `python -m tools.score_sources`, with `SKEWSCOPE_SAMPLES` set.
- {len(lines)} rows; inputs that no format reads: {len(unread)}.

A file without times of its own gets that of the file on disk. "Left out" is what `inspect` says below the
input. Entities are hosts, parts of hosts, ranks or, of captures, addresses.

| file | read as | rows | entities | first to last | left out, and remarks | judged by eye |
| --- | --- | --- | --: | --- | --- | --- |
{rows}

Not inputs, and therefore not read:

{apart}
"""


if __name__ == "__main__":
    sys.exit(main())
