"""README.md is true: first screen, shell examples and Python example, on the shipped recordings."""

import json
import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECORDINGS = Path("src/skewscope/app/recordings")
README = (ROOT / "README.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.slow
CUT = "[...]"
ELSEWHERE = ("pip", "make", "tcpdump")
"""Commands that a test cannot run: they install, or need a network interface."""


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def _commands() -> list[str]:
    lines = [line for block in _blocks("console") for line in block.splitlines() if line.startswith("$ ")]
    return [line.removeprefix("$ ").split("  #")[0].strip() for line in lines]


def _first_screen() -> tuple[str, list[str]]:
    block = re.search(r"\(begin\) -->\n```console\n\$ (.*?)\n(.*?)```", README, flags=re.DOTALL)
    assert block is not None
    return block[1], block[2].splitlines()


@pytest.fixture
def run(tmp_path):
    """Return a function that runs a line of shell in a folder that holds the recordings."""
    (tmp_path / RECORDINGS).parent.mkdir(parents=True)
    shutil.copytree(ROOT / RECORDINGS, tmp_path / RECORDINGS)
    shutil.copytree(ROOT / RECORDINGS, tmp_path / "captures")
    shutil.copy(ROOT / RECORDINGS / "cpu_throttle" / "n0.pcap.gz", tmp_path / "rank0.pcap")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}

    def line(command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, f"{command}: {done.stderr.decode()}"
        return done.stdout.decode()

    line.folder = tmp_path  # type: ignore[attr-defined]
    return line


def test_the_first_screen_is_what_is_printed(run):
    command, shown = _first_screen()
    printed = [line.rstrip() for line in run(command).splitlines()]
    at = 0
    for line in shown:
        if line == CUT:
            continue
        assert line in printed[at:], f"not printed, or not in this order: {line!r}"
        at = printed.index(line, at) + 1
    assert CUT in shown, "what is left out is marked"


def test_nothing_is_left_out_unmarked(run):
    """Between two shown lines without a mark nothing was printed but empty lines."""
    command, shown = _first_screen()
    printed = [line.rstrip() for line in run(command).splitlines()]
    at = printed.index(shown[0])
    for before, line in pairwise(shown):
        if line == CUT:
            continue
        next_at = printed.index(line, at)
        if before != CUT:
            assert not any(printed[at + 1 : next_at])
        at = next_at


def test_the_shell_examples_run(run):
    commands = [c for c in _commands() if c.split()[0] not in ELSEWHERE]
    assert len(commands) >= 10
    for command in commands:
        out = run(command)
        assert out or ">" in command or command.startswith("cp ")
    assert (run.folder / "report.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    assert json.loads((run.folder / "report.json").read_text("utf-8"))["incidents"][0]["condition"] == "c20"


def test_the_python_example_runs(run):
    (code,) = _blocks("python")
    (run.folder / "example.py").write_text(code, encoding="utf-8")
    out = run("python example.py").splitlines()
    assert out[0].startswith("c20 10.77.0.12 0.98 ")
    assert out[-1].endswith("['ts_ns', 'tap', 'frame', 'flow']")


def test_the_exit_statuses_are_those_of_the_command():
    from skewscope.app.commands import _run

    table = {int(n) for n in re.findall(r"^\| (\d+) \|", README, flags=re.MULTILINE)}
    assert table == {_run.OK, _run.PARTIAL, _run.USAGE, _run.NO_INPUT, _run.INTERRUPTED}
