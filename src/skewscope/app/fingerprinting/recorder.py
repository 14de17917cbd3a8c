"""Writes a collection line by line, and continues one that was interrupted."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from skewscope.fingerprint.collection import Answer, Collection, CollectionError, header_line, parse
from skewscope.fingerprint.probes import Probe, from_json

COMPARED = ("platform", "probes", "settings")
"""What must be the same for two runs to be one collection."""


class Recorder:
    """An open collection; `done` holds the (probe, repeat) pairs that it already has."""

    def __init__(self, path: Path, provenance: dict[str, Any]) -> None:
        self.done: set[tuple[str, int]] = set()
        fresh = not path.exists() or path.stat().st_size == 0
        if not fresh:
            self._continue(path, provenance)
        self._file: IO[str] = path.open("a", encoding="utf-8")
        if fresh:
            self._write(header_line(provenance))

    def _continue(self, path: Path, provenance: dict[str, Any]) -> None:
        text = path.read_text(encoding="utf-8", errors="replace")
        before = parse(text.splitlines(), str(path))
        now = json.loads(header_line(provenance))
        different = [key for key in COMPARED if before.provenance.get(key) != now.get(key)]
        if different:
            raise CollectionError(f"{path} was recorded with other {', '.join(different)}")
        self.done = {(k[0], int(r)) for k, r in zip(before.keys, before.repeats, strict=True)}
        if not text.endswith("\n"):  # the end of a killed run: that answer is asked again
            path.write_text(text[: text.rfind("\n") + 1], encoding="utf-8")

    def _write(self, line: str) -> None:
        self._file.write(line + "\n")
        self._file.flush()

    def add(self, answers: Iterable[Answer]) -> int:
        """Append the answers of whole probes in one write; return how many."""
        lines = [a.line() for a in answers]
        if lines:
            self._write("\n".join(lines))
        return len(lines)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def read_probes(path: Path) -> list[Probe]:
    """Read a file of probes, as `fingerprint borders` writes it; ValueError where it is none."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["probes"]
        found = [from_json(row) for row in rows]
    except (KeyError, TypeError, RecursionError, ValueError) as error:
        raise ValueError(f"{path}: not a file of probes") from error
    if not found or len({p.id for p in found}) < len(found):
        raise ValueError(f"{path}: no probes, or two of one name")
    return found


def load(path: Path) -> Collection:
    """Read one collection; CollectionError where it is none, OSError where it cannot be opened."""
    with path.open(encoding="utf-8", errors="replace") as file:
        return parse(file, path.stem)
