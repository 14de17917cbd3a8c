"""Kernels of the parsers are compiled as everywhere: see core.jit."""

from skewscope.core.jit import inner, njit

__all__ = ["inner", "njit"]
