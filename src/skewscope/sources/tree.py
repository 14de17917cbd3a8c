"""A /sys tree, of this machine or copied into a folder, as the text that the format `sysfs` reads.

Only files of known use are opened: reading others can be slow, or change something.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

MOST_FILES = 1 << 18
MOST_BYTES = 1 << 12
"""Files of /sys hold a page at most."""

PATTERNS = (
    "class/infiniband/*/ports/*/counters/*",
    "class/infiniband/*/ports/*/hw_counters/*",
    "class/infiniband/*/ports/*/state",
    "class/infiniband/*/ports/*/phys_state",
    "class/infiniband/*/ports/*/rate",
    "class/net/*/statistics/*",
    "class/net/*/speed",
    "class/net/*/mtu",
    "class/net/*/carrier",
    "class/net/*/carrier_changes",
    "bus/pci/devices/*/vendor",
    "bus/pci/devices/*/class",
    "bus/pci/devices/*/numa_node",
    "bus/pci/devices/*/*_link_*",
    "bus/pci/devices/*/aer_*",
)
"""Files that are read, below /sys."""
ROOTS = ("class/infiniband", "class/net", "bus/pci/devices")


def sys_of(folder: Path) -> Path | None:
    """Return where in a folder the tree of /sys begins: `folder`, `folder/sys`, else None."""
    for root in (folder, folder / "sys"):
        if any((root / part).is_dir() for part in ROOTS):
            return root
    return None


def is_tree(folder: Path) -> bool:
    """Whether a folder is a copy of /sys, or of a root folder with one in it."""
    try:
        return folder.is_dir() and sys_of(folder) is not None
    except OSError:
        return False


def dump(folder: Path) -> Iterator[bytes]:
    """Yield the tree as lines `<path below /sys>:<line of the file>`; unreadable files are left out."""
    root = sys_of(folder)
    count = 0
    for pattern in PATTERNS if root else ():
        assert root is not None
        for file in sorted(root.glob(pattern)):
            if count >= MOST_FILES:
                return
            count += 1
            yield from _lines(file, root)


def _lines(file: Path, root: Path) -> Iterator[bytes]:
    try:
        # A link that leads nowhere or to a device, or a file that asks for another right, is no reading.
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    try:
        data = os.read(handle, MOST_BYTES)
    except OSError:
        return
    finally:
        os.close(handle)
    path = os.fsencode(file.relative_to(root).as_posix())
    for line in data.splitlines():
        yield path + b":" + line + b"\n"


class TreeStream:
    """A tree as a stream: what `unpack.Stream` is for a file."""

    def __init__(self, folder: Path) -> None:
        self._parts = dump(folder)
        self._rest = b""
        self.size = self.position = 0

    def readinto(self, view: memoryview) -> int:
        """Fill the view; returns how many bytes there were, 0 at the end."""
        have = bytearray(self._rest)
        for part in self._parts:
            have += part
            if len(have) >= len(view):
                break
        count = min(len(have), len(view))
        view[:count] = have[:count]
        self._rest = bytes(have[count:])
        self.position += count
        return count

    def close(self) -> None:
        """Do nothing: each file is closed when it was read."""
