"""The one way in which kernels are compiled: Numba without the GIL, cached on disk."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

import numba
from numba.core.registry import CPUDispatcher

F = TypeVar("F", bound=Callable[..., Any])


@cache
def _package_stamp(folder: Path) -> tuple[float, int]:
    """Return the newest change time and the total size of the sources in `folder` and in core."""
    folders = {folder, Path(__file__).parent}
    stats = [p.stat() for f in sorted(folders) for p in sorted(f.glob("*.py"))]
    return max(s.st_mtime for s in stats), sum(s.st_size for s in stats)


def _compiled(function: Callable[..., Any], *, entry: bool, inline: bool = False) -> Any:
    """Return a dispatcher whose cache is renewed when any kernel of its package changes.

    Numba keys its cache by the file of the function alone, but kernels here call each other
    across files: a cached caller would keep an edited callee's old code. So every kernel's cache
    carries the stamp of its whole package and of core.
    """
    compiled = numba.njit(
        cache=entry, nogil=True, no_cfunc_wrapper=True, no_cpython_wrapper=not entry, forceinline=inline
    )
    dispatcher: Any = compiled(function)
    cache_file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if hasattr(cache_file, "_source_stamp"):
        cache_file._source_stamp = _package_stamp(Path(function.__code__.co_filename).parent)
    return dispatcher


def njit(function: F) -> F:
    """Compile a kernel on first call. With NUMBA_DISABLE_JIT=1 it stays plain Python."""
    return cast(F, _compiled(function, entry=True))


def inner(function: F) -> F:
    """Compile a kernel that only other kernels call: a third of the compiler's time is spared.

    It is cached as a part of its callers, and has no entry for Python: a call raises TypeError.
    """
    dispatcher = _compiled(function, entry=False)
    if isinstance(dispatcher, CPUDispatcher):
        dispatcher.__class__ = _Inner
    return cast(F, dispatcher)


def inlined(function: F) -> F:
    """Compile an inner kernel into the body of its callers.

    For kernels called once a packet: a call hands over seven words for each array and counts references
    to it, which takes 10 to 100 ns. The callers' compile time grows, so this is not for all of them.
    """
    dispatcher = _compiled(function, entry=False, inline=True)
    if isinstance(dispatcher, CPUDispatcher):
        dispatcher.__class__ = _Inner
    return cast(F, dispatcher)


def has_entry(dispatcher: object) -> bool:
    """Return whether Python may call this kernel."""
    return not isinstance(dispatcher, _Inner)


class _Inner(CPUDispatcher):  # type: ignore[misc]
    """Without this, a call from Python would jump to address 0."""

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"{self.py_func.__name__} is an inner kernel: only kernels can call it")
