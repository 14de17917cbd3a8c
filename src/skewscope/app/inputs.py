"""From what the user typed to the files to read: files, folders, globs and standard input."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from skewscope.sources.documents import looks_like_document
from skewscope.sources.tree import sys_of
from skewscope.sources.unpack import STANDARD_INPUT, looks_like_capture, reason

_GLOB = frozenset("*?[")


@dataclass
class Expanded:
    """The files to read, each once, and one sentence for each argument that named none."""

    files: list[Path] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    _seen: set[object] = field(default_factory=set)

    @property
    def bytes_total(self) -> int:
        """Size of all files on disk."""
        return sum(_size(f) for f in self.files)

    def add(self, file: Path) -> None:
        """Add a file unless it is there already, be it under another name."""
        identity: object = file
        try:
            found = file.stat()
            identity = (found.st_dev, found.st_ino)
        except OSError:
            pass  # it will be told of when it is opened
        if identity not in self._seen:
            self._seen.add(identity)
            self.files.append(file)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _folder(path: Path, out: Expanded) -> bool:
    """Add what can be read below a folder; returns whether there is any. Links to folders are not taken."""

    def complain(error: OSError) -> None:
        out.problems.append(f"{error.filename}: cannot read: {reason(error)}")

    any_file = False
    told = len(out.problems)
    for root, folders, names in os.walk(path, onerror=complain):
        if sys_of(Path(root)) == Path(root):  # one input: its thousands of files say nothing each for itself
            any_file, folders[:] = True, []
            out.add(Path(root))
            continue
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in sorted(names):
            file = Path(root) / name
            if (
                not name.startswith(".")
                and file.is_file()
                and (looks_like_capture(file) or looks_like_document(file))
            ):
                any_file = True
                out.add(file)
    return any_file or len(out.problems) > told


def _hits(pattern: str) -> Iterator[Path]:
    path = Path(pattern)
    yield from sorted(Path(path.anchor).glob(pattern[len(path.anchor) :]))


def _add(argument: str, out: Expanded) -> None:
    path = Path(argument)
    if argument == "-":
        out.add(STANDARD_INPUT)
    elif path.is_dir():
        if not _folder(path, out):
            out.problems.append(f"{path}: nothing in this folder that skewscope reads")
    elif path.exists():
        out.add(path)
    elif _GLOB & set(argument):
        any_file = False
        for hit in _hits(argument):
            if hit.is_dir():
                any_file |= _folder(hit, out)
            else:
                any_file = True
                out.add(hit)
        if not any_file:
            out.problems.append(f"{argument}: no file matches")
    else:
        out.problems.append(f"{path}: no such file or folder")


def expand(arguments: Sequence[str | os.PathLike[str]]) -> Expanded:
    """Turn files, folders (searched for what can be read), glob patterns and `-` into a list of files."""
    out = Expanded()
    for argument in [os.fspath(a) for a in arguments]:
        try:
            _add(argument, out)
        except (OSError, ValueError) as error:  # no permission, a name too long, a malformed pattern
            out.problems.append(f"{argument}: cannot read: {reason(error)}")
    return out
