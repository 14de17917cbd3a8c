"""`skewscope lab bed` as a user sees it, and one real recording where there is root."""

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from skewscope.app.cli import main
from skewscope.lab.bed import cleanup, needs
from skewscope.lab.bed.truth import read


def run(*words):
    return CliRunner().invoke(main, ["lab", "bed", *words])


def test_list_shows_scenarios_and_what_is_missing():
    done = run("list")
    assert done.exit_code == 0
    assert "c20_tp_str" in done.output
    assert "conditions without one" in done.output


def test_without_root_it_refuses_in_one_line(monkeypatch, tmp_path):
    monkeypatch.setattr(needs.os, "geteuid", lambda: 1000)
    for words in (("record", "c20", "-o", str(tmp_path / "x")), ("down",), ("smoke", "-o", str(tmp_path))):
        done = run(*words)
        assert done.exit_code == 4
        assert "the bed needs root" in done.output
        assert len(done.output.strip().splitlines()) == 1
    assert not (tmp_path / "x").exists()


def test_a_missing_program_is_named_with_its_package(monkeypatch, tmp_path):
    monkeypatch.setattr(needs.os, "geteuid", lambda: 0)
    monkeypatch.setattr(needs, "search_path", lambda: str(tmp_path))
    done = run("down")
    assert done.exit_code == 4
    assert "the program nft (Debian package nftables)" in done.output


def test_unknown_scenarios_and_full_folders_are_wrong_usage(tmp_path):
    assert run("record", "c99", "-o", str(tmp_path / "x")).exit_code == 2
    (tmp_path / "file").touch()
    done = run("record", "c20", "-o", str(tmp_path))
    assert done.exit_code == 2
    assert "not an empty folder" in done.output


@pytest.fixture
def root():
    lacking = needs.missing()
    if lacking:
        pytest.skip(f"the bed cannot run here: {'; '.join(lacking)}")


@pytest.mark.root
@pytest.mark.slow
def test_a_recording_is_a_case_and_nothing_is_left(root, tmp_path):
    done = run("record", "c20.healthy", "--seed", "4", "-o", str(tmp_path / "case"), "--noise", "low")
    if done.exit_code == 5:
        pytest.skip(f"others used the machine: {done.output.strip().splitlines()[-1]}")
    assert done.exit_code == 0, done.output
    truth = read((tmp_path / "case" / "truth.toml").read_text())
    assert truth.source == "bed"
    assert not truth.faults
    taps = sorted((tmp_path / "case" / "taps").iterdir())
    assert len(taps) >= 3
    assert all(t.name.endswith(".pcapng.gz") for t in taps)
    sent = 'node_network_transmit_bytes_total{device="eth0"}'
    assert (tmp_path / "case" / "counters" / "n0.txt").read_text().count(sent) > 3
    assert list(tmp_path.glob("case/metrics/*/*.prom"))
    assert not cleanup.leftovers()


@pytest.mark.root
@pytest.mark.slow
def test_down_removes_what_a_killed_bed_left(root, tmp_path):
    code = (
        "import os, signal\n"
        "from skewscope.lab.bed import topology, network\n"
        "from skewscope.lab.bed.cleanup import Claim\n"
        "claim = Claim()\n"
        "network.up(topology.parse(topology.builtin('tp2'), 1))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    assert subprocess.run([sys.executable, "-c", code], env=env, check=False).returncode == -9
    left = cleanup.leftovers()
    assert "skw-n0" in left.namespaces
    assert left.folder is not None
    done = run("down")
    assert done.exit_code == 0
    assert "namespace skw-n0" in done.output
    assert not cleanup.leftovers()
    assert not left.folder.exists()
    assert "nothing was left" in run("down").output
