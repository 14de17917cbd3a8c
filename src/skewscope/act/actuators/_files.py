"""Configuration files that a proxy reads: bounded reading, and replacing in one step."""

from __future__ import annotations

import os
from difflib import unified_diff
from pathlib import Path

from skewscope.act.actuator import ActuatorError

FILE_BYTES = 8 << 20


def read(path: Path) -> str:
    """Return the text of a file; raises ActuatorError."""
    try:
        if path.stat().st_size > FILE_BYTES:
            raise ActuatorError(f"{path}: larger than {FILE_BYTES >> 20} MiB")
        return path.read_text("utf-8")
    except OSError as error:
        raise ActuatorError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ActuatorError(f"{path}: not UTF-8") from None


def replace(path: Path, text: str) -> None:
    """Replace a file by renaming a complete one over it, with the same rights: readers see old or new.

    Envoy notices nothing but a rename; for the others it means that no half file is ever read.
    """
    path = path.resolve()
    draft = path.with_name(f".{path.name}.skewscope")
    try:
        mode = path.stat().st_mode & 0o777
        with draft.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise ActuatorError(f"{path}: {error.strerror}") from None


def diff(path: Path, before: str, after: str) -> str:
    """Return what changes in a file, as a unified diff without its two head lines."""
    lines = unified_diff(before.splitlines(), after.splitlines(), "", "", n=1, lineterm="")
    return "\n".join(list(lines)[2:])
