"""Kernels of the parsers are compiled as everywhere: see core.jit."""

from skewscope.core.jit import inlined, inner, njit

__all__ = ["inlined", "inner", "njit"]
