"""skewscope: which part of a multi-GPU inference service is slow, why, and what it costs."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skewscope.app.api import Report, diagnose, tables

__version__ = "0.1.0"
__all__ = ["Report", "__version__", "diagnose", "tables"]


class _Package(ModuleType):
    """The public names, imported on first use: `skewscope --help` must not pay for NumPy and Numba."""

    def __getattribute__(self, name: str) -> Any:
        # The subpackage `skewscope.diagnose` is bound here by the import system under the name of the
        # public function; whoever wants the subpackage imports from it.
        if name in ("Report", "diagnose", "tables"):
            from skewscope.app import api

            return getattr(api, name)
        return super().__getattribute__(name)


sys.modules[__name__].__class__ = _Package
