"""From what the user typed to the files to read: files, folders and globs."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_MAGICS = (
    b"\xa1\xb2\xc3\xd4",
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",
    b"\x4d\x3c\xb2\xa1",
    b"\xa1\xb2\xcd\x34",
    b"\x34\xcd\xb2\xa1",
    b"\x0a\x0d\x0d\x0a",
)
_OPENERS = ((b"\x1f\x8b", gzip.open), (b"\xfd7zXZ\x00", lzma.open), (b"BZh", bz2.open))
_GLOB = frozenset("*?[")


@dataclass
class Expanded:
    """The files to read, each once, and one sentence for each argument that named none."""

    files: list[Path] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def bytes_total(self) -> int:
        """Size of all files on disk."""
        return sum(_size(f) for f in self.files)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def looks_like_capture(path: Path) -> bool:
    """Say whether a file starts as pcap or pcapng does, also under gzip, xz or bzip2."""
    try:
        with path.open("rb") as raw:
            head = raw.read(6)
        for magic, opener in _OPENERS:
            if head.startswith(magic):
                with opener(path) as packed:
                    head = packed.read(4)
                break
    except (OSError, EOFError, lzma.LZMAError, zlib.error):
        return False
    return head[:4] in _MAGICS


def _folder(path: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(path):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in sorted(names):
            file = Path(root) / name
            if not name.startswith(".") and file.is_file() and looks_like_capture(file):
                yield file


def expand(arguments: Sequence[str | os.PathLike[str]]) -> Expanded:
    """Turn files, folders (searched for captures) and glob patterns into a list of files."""
    out = Expanded()
    seen: set[Path] = set()

    def add(files: Iterator[Path] | Sequence[Path]) -> bool:
        any_file = False
        for file in files:
            any_file = True
            if file not in seen:
                seen.add(file)
                out.files.append(file)
        return any_file

    for argument in arguments:
        path = Path(argument)
        if path.is_dir():
            if not add(_folder(path)):
                out.problems.append(f"{path}: no captures in this folder")
        elif path.exists():
            add([path])
        elif _GLOB & set(str(argument)):
            hits = sorted(Path(path.anchor).glob(str(path)[len(path.anchor) :]))
            if not add([f for h in hits for f in (_folder(h) if h.is_dir() else [h])]):
                out.problems.append(f"{argument}: no file matches")
        else:
            out.problems.append(f"{path}: no such file or folder")
    return out
