"""Kernels of the parsers are compiled as everywhere: see core.jit."""

from skewscope.core.jit import njit

__all__ = ["njit"]
