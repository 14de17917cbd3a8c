import os
import signal
import subprocess
import sys
import time

import pytest

from tests.app.commands.act.helper import Place


def test_auto_sends(place: Place) -> None:
    got = place.apply()
    assert got.exit_code == 0
    assert "applied: lower_weight on 10.0.0.1:8000 for 600 s" in got.output
    assert place.weight() == 10


@pytest.mark.parametrize("mode", ["shadow", "advise"])
def test_the_other_modes_do_not(place: Place, mode: str) -> None:
    place.settings(mode=mode)
    place.apply()
    assert place.weight() == 100
    (known,) = place.ids()
    place.apply("--approve", "a0000000000")
    assert place.weight() == 100
    place.apply("--approve", known)
    assert place.weight() == (10 if mode == "advise" else 100)


def test_all_is_approved_at_once(place: Place) -> None:
    place.settings(mode="advise")
    place.apply("--approve", "all")
    assert place.weight() == 10


def test_it_stays_until_the_time_to_live_has_ended(place: Place) -> None:
    place.settings(more="[rule.c20]\nttl_s = 1\n[verify]\nsettle_s = 0\nwithin_s = 60\n")
    got = place.run("apply", str(place.folder / "report.json"), "--every", "0.05")
    assert "reverted: its time to live ended" in got.output
    assert place.weight() == 100


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_takes_everything_back(place: Place, end: signal.Signals) -> None:
    command = [sys.executable, "-W", "ignore", "-m", "skewscope.app.cli", "act", "apply"]
    command += [str(place.folder / "report.json"), "--config", str(place.folder / "act.toml")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        give_up_s = time.monotonic() + 30
        while place.weight() == 100 and time.monotonic() < give_up_s:
            time.sleep(0.05)
        assert place.weight() == 10
        time.sleep(0.5)
        os.kill(process.pid, end)
        said = process.communicate(timeout=30)[0].decode()
    assert process.returncode == 130, said
    assert place.weight() == 100
    assert "Traceback" not in said


@pytest.mark.slow
def test_killed_hard_it_is_taken_back_by_the_next_tick(place: Place) -> None:
    place.settings(more="[rule.c20]\nttl_s = 3\n")
    command = [sys.executable, "-W", "ignore", "-m", "skewscope.app.cli", "act", "apply"]
    command += [str(place.folder / "report.json"), "--config", str(place.folder / "act.toml")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        give_up_s = time.monotonic() + 30
        while place.weight() == 100 and time.monotonic() < give_up_s:
            time.sleep(0.02)
        process.kill()
        process.wait()
    assert place.weight() == 10
    time.sleep(3)
    assert "its time to live ended" in place.run("tick").output
    assert place.weight() == 100
