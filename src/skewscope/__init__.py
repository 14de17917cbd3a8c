"""skewscope: which part of a multi-GPU inference service is slow, why, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skewscope.app.api import Report, diagnose

__version__ = "0.1.0"
__all__ = ["Report", "__version__", "diagnose"]


def __getattr__(name: str) -> Any:
    # Imported on first use: `skewscope --help` must not pay for NumPy and Numba.
    if name in ("Report", "diagnose"):
        from skewscope.app import api

        return getattr(api, name)
    raise AttributeError(f"module 'skewscope' has no attribute {name!r}")
