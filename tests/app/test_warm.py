"""The first run: what it compiles, what it says, and that it is the only one."""

import os
import subprocess
import sys

import pytest
from numba.core import config

from skewscope.app import warm
from skewscope.app.commands import _run
from skewscope.core.jit import has_entry

compiled = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="the compiler is off")


@compiled
def test_kernels_are_those_that_python_calls():
    found = warm.kernels()
    assert "skewscope.wire.packets.parse_frames" in found
    assert "skewscope.features.tcp_kernel.scan" in found
    assert all(has_entry(k) for k in found.values())


@compiled
@pytest.mark.slow
def test_warming_leaves_nothing_cold(tmp_path):
    """In a process of its own, since this one may have compiled some already."""
    program = (
        "from skewscope.app import warm; assert warm.is_first_run(); warm.warm();"
        "assert warm.cold() == [], warm.cold(); assert not warm.is_first_run()"
    )
    again = "from skewscope.app import warm; assert warm.cold() == [], warm.cold()"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    for one in (program, again):
        done = subprocess.run([sys.executable, "-c", one], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_the_first_run_says_so_once(monkeypatch, capsys):
    monkeypatch.setattr(warm, "is_first_run", lambda: True)
    _run.tell_first_run()
    assert capsys.readouterr().err == (
        "skewscope: first run: compiling, about half a minute of one core; this happens once\n"
    )
    monkeypatch.setattr(warm, "is_first_run", lambda: False)
    _run.tell_first_run()
    assert capsys.readouterr() == ("", "")


@pytest.fixture
def asked(monkeypatch):
    """Return the real question; the conftest answers it for the commands."""
    monkeypatch.undo()
    return monkeypatch


@pytest.mark.parametrize(("cold", "first"), [(0, False), (2, False), (3, True), (4, True)])
def test_a_kernel_that_captures_seldom_need_is_no_first_run(asked, cold, first):
    names = [str(i) for i in range(4)]
    asked.setattr(warm, "kernels", lambda: dict.fromkeys(names))
    asked.setattr(warm, "cold", lambda: names[:cold])
    assert warm.is_first_run() is first
