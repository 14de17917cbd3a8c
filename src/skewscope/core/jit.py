"""The one way in which wire kernels are compiled: Numba without the GIL, cached on disk."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


@cache
def _package_stamp(folder: Path) -> tuple[float, int]:
    """Return the newest change time and the total size of the sources in `folder` and in core."""
    folders = {folder, Path(__file__).parent}
    stats = [p.stat() for f in sorted(folders) for p in sorted(f.glob("*.py"))]
    return max(s.st_mtime for s in stats), sum(s.st_size for s in stats)


def njit(function: F) -> F:
    """Compile a kernel on first call. With NUMBA_DISABLE_JIT=1 it stays plain Python.

    Numba keys its cache by the file of the function alone, but kernels here call each other
    across files: a cached caller would keep an edited callee's old code. So every kernel's cache
    carries the stamp of its whole package and of core.
    """
    dispatcher: Any = numba.njit(cache=True, nogil=True)(function)
    cache_file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if hasattr(cache_file, "_source_stamp"):
        cache_file._source_stamp = _package_stamp(Path(function.__code__.co_filename).parent)
    return cast(F, dispatcher)
