"""Kernels: with and without an entry for Python, and a cache that follows the sources."""

import numpy as np
import pytest
from numba.core import config

from skewscope.core import jit
from skewscope.core.jit import has_entry, inner, njit

compiled = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="the compiler is off")


@inner
def _doubled(x):
    return 2 * x


@njit
def total(values):
    out = 0.0
    for v in values:
        out += _doubled(v)
    return out


def test_kernels_call_each_other():
    assert total(np.arange(4.0)) == 12.0
    assert total.__name__ == "total"


@compiled
def test_an_inner_kernel_is_not_for_python():
    """Without the guard this would end the process."""
    assert has_entry(total)
    assert not has_entry(_doubled)
    total(np.arange(2.0))
    with pytest.raises(TypeError, match="_doubled is an inner kernel"):
        _doubled(1.0)


@compiled
def test_inner_kernels_are_kept_in_their_callers_only():
    assert hasattr(total._cache, "_cache_file")
    assert not hasattr(_doubled._cache, "_cache_file")


def test_the_stamp_follows_every_file_of_the_package(tmp_path):
    (tmp_path / "a.py").write_text("1")
    before = jit._package_stamp.__wrapped__(tmp_path)
    (tmp_path / "b.py").write_text("22")
    after = jit._package_stamp.__wrapped__(tmp_path)
    assert after[1] == before[1] + 2
