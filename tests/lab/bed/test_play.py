"""Playing a scenario on a bed that only takes notes."""

from collections import Counter
from types import SimpleNamespace

import pytest

from skewscope.lab.bed import injector, play
from skewscope.lab.bed.injector import Injector
from skewscope.lab.bed.scenario import Injection, draw


class Noted(Injector):
    NAME, STRENGTH = "noted", "x"

    def prepare(self):
        self.bed.notes.append("prepare")

    def start(self, strength):
        self.how = "noted"
        self.bed.notes.append(f"start {strength:g}")
        if self.bed.fails:
            raise OSError("no")

    def stop(self):
        self.bed.notes.append("stop")


@pytest.fixture
def bed(monkeypatch):
    monkeypatch.setattr(injector, "build", lambda bed, name, settings: Noted(bed))
    monkeypatch.setattr(play.network, "tcp_counters", lambda pid: {"RetransSegs": pid})
    processes = SimpleNamespace(real_time=list, names=list)
    notes = []
    return SimpleNamespace(
        notes=notes, fails=False, processes=processes, go=lambda: notes.append("go"),
        topology=SimpleNamespace(nodes=()),
    )  # fmt: skip


def player(bed, *injections):
    drawn = draw("c20.healthy", 1)
    object.__setattr__(drawn, "injections", injections)
    object.__setattr__(drawn, "fault_s", 0.0)
    return play.Player(bed, drawn, wait=lambda s: bed.notes.append(f"wait {s:.1f}") if s else None)


def test_an_injection_begins_after_the_lead_and_is_taken_off(bed):
    one = player(bed, Injection("noted", 3.0, {}))
    played = one.play(True, lambda: bed.notes.append("taps"))
    lead = f"wait {one.drawn.lead_s:.1f}"
    assert bed.notes == ["prepare", "go", "wait 1.5", "taps", lead, "start 3", "stop", "wait 2.0"]
    assert played.how == "noted"
    assert played.start_ns <= played.during.start_ns <= played.during.end_ns <= played.end_ns


def test_the_paired_run_has_the_same_times_and_no_injection(bed):
    played = player(bed, Injection("noted", 3.0, {})).play(False)
    assert "start 3" not in bed.notes
    assert "stop" not in bed.notes
    assert played.how == ""


def test_a_ramp_ends_at_the_strength(bed):
    player(bed, Injection("noted", 8.0, {}, ramp_from=2.0, ramp_s=0.5)).play(True)
    assert [n for n in bed.notes if n.startswith("start")] == ["start 2", "start 4", "start 8"]


def test_an_injection_that_fails_is_taken_off_all_the_same(bed):
    bed.fails = True
    with pytest.raises(OSError, match="no"):
        player(bed, Injection("noted", 1.0, {})).play(True)
    assert bed.notes[-1] == "stop"


def test_counters_are_differences_over_the_nodes():
    before = {"n0": Counter(a=5), "n1": Counter(a=1), "gone": Counter(a=9)}
    after = {"n0": Counter(a=7, b=2), "n1": Counter(a=4), "gone": Counter(), "new": Counter(a=100)}
    assert play._difference(after, before) == {"a": 5, "b": 2}
