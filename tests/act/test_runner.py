from dataclasses import replace
from pathlib import Path

import pytest

from skewscope.act import policy
from skewscope.act.journal import Journal, look
from skewscope.act.runner import ALL, Runner, plan
from skewscope.act.settings import Settings
from tests.act.worlds import NS, T0, Crash, World, make, news, trigger

HARD = '[rule.c20]\ndo = ["drain_endpoint"]\n'


class Bench:
    """A runner over a world, with a journal that can be opened again."""

    def __init__(self, folder: Path, settings: Settings | None = None) -> None:
        self.settings = settings or make()
        self.world = World([e.name for p in self.settings.pools for e in p.endpoints])
        self.path = folder / "act.jsonl"
        self.open(T0 - 60 * NS)

    def open(self, now_ns: int) -> list[str]:
        self.journal = Journal(self.path)
        self.runner = Runner(self.settings, {"edge": self.world}, self.journal)
        return self.runner.start(now_ns)

    def restart(self, now_ns: int) -> list[str]:
        self.journal.close()
        return self.open(now_ns)

    def act(self, *endpoints: int, now_ns: int = T0, approved: tuple[str, ...] = ()) -> list[str]:
        return self.runner.apply(
            news(*map(trigger, endpoints or (0,)), at_ns=now_ns), now_ns, approved, "ann"
        )[1]

    def ends(self) -> list[str]:
        return [a.ended_how or a.state for a in self.journal.ledger.actions.values()]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_an_action_is_applied_and_ends_at_its_time_to_live(bench: Bench) -> None:
    assert "applied: lower_weight" in bench.act()[0]
    assert bench.world.weights == {"r0": 25, "r1": 100, "r2": 100}
    (a,) = bench.journal.ledger.in_force()
    bench.runner.observe(a.id, 0.3, T0 + 20 * NS)
    assert bench.runner.tick(a.expires_ns - 1) == []
    assert bench.runner.tick(a.expires_ns) == [f"{a.id} reverted: its time to live ended"]
    assert not bench.world.changed()


def test_done_twice_is_done_once(bench: Bench) -> None:
    bench.act()
    assert bench.act() == []
    assert bench.world.puts == 1


def test_a_plan_sends_nothing_and_says_what_would_be_sent(bench: Bench) -> None:
    ledger = look(bench.path)
    (p,), notes = plan(bench.settings, {"edge": bench.world}, ledger, news(trigger()), T0)
    assert (p.decision.verdict, p.before, p.after) == (policy.SEND, {"weight": 100}, {"weight": 25})
    assert [r.lines() for r in p.requests] == [['world: lower_weight {"weight": 25}']]
    assert (notes, bench.world.puts) == ([], 0)


def test_an_actuator_that_does_not_answer_is_not_used(bench: Bench) -> None:
    bench.world.silent = True
    (p,), notes = plan(bench.settings, {"edge": bench.world}, look(bench.path), news(trigger()), T0)
    assert p.decision.against == ("no actuator of pool p0 can lower_weight",)
    assert notes == ["edge: no answer"]


@pytest.mark.parametrize("mode", ["shadow", "advise"])
def test_nothing_is_sent_that_nobody_approved(tmp_path: Path, mode: str) -> None:
    bench = Bench(tmp_path, make(mode=mode))
    assert len(bench.act()) == 1
    assert bench.act() == []  # a proposal is recorded once
    assert bench.world.puts == 0
    (known,) = bench.journal.ledger.actions
    bench.act(approved=(known,))
    assert bench.world.puts == (1 if mode == "advise" else 0)


def test_all_approves_every_proposal_and_the_log_names_the_person(tmp_path: Path) -> None:
    bench = Bench(tmp_path, make(mode="advise"))
    bench.act(approved=(ALL,))
    assert bench.world.changed() == {"r0"}
    assert '"event":"intended"' in bench.path.read_text()
    assert '"by":"ann"' in bench.path.read_text()


@pytest.mark.parametrize(("seen", "kept"), [(0.26, True), (0.05, True), (0.01, False), (-0.3, False)])
def test_what_did_not_help_is_taken_back(bench: Bench, seen: float, kept: bool) -> None:
    bench.act()
    (a,) = bench.journal.ledger.in_force()
    said = bench.runner.observe(a.id, seen, T0 + 20 * NS)
    assert bool(bench.world.changed()) == kept, said
    assert len(said) == (1 if kept else 2)
    assert bench.runner.observe(a.id, seen, T0 + 20 * NS) == [] or kept


def test_what_nobody_can_show_to_help_is_taken_back(bench: Bench) -> None:
    bench.act()
    assert bench.runner.tick(T0 + 59 * NS) == []
    assert "nobody showed within 60 s" in bench.runner.tick(T0 + 60 * NS)[0]
    assert not bench.world.changed()


def test_or_kept_where_the_settings_say_so(tmp_path: Path) -> None:
    bench = Bench(tmp_path, make(more='[verify]\nunproven = "keep"\n'))
    bench.act()
    assert bench.runner.tick(T0 + 500 * NS) == []
    assert bench.world.changed()


def test_a_newer_report_without_the_incident_shows_that_it_helped(bench: Bench) -> None:
    bench.act()
    early = news(at_ns=T0 + 25 * NS, seen_s=30)  # began before the action
    assert bench.runner.tick(T0 + 25 * NS, early) == []
    assert "helped" in bench.runner.tick(T0 + 30 * NS, news(at_ns=T0 + 30 * NS))[0]


def test_a_wrong_diagnosis_is_noticed_and_taken_back(bench: Bench) -> None:
    bench.act(1)  # the healthy one was blamed
    later = news(trigger(0), at_ns=T0 + 25 * NS)
    said = bench.runner.tick(T0 + 25 * NS, later)
    assert "harmed" in said[0]
    assert not bench.world.changed()


def test_a_weak_effect_is_followed_by_the_next_verb(bench: Bench) -> None:
    bench.act()
    (a,) = bench.journal.ledger.in_force()
    bench.runner.observe(a.id, 0.05, T0 + 20 * NS)
    bench.act(now_ns=T0 + 30 * NS)
    assert bench.world.draining == {"r0"}
    assert bench.world.weights["r0"] == 100
    assert bench.ends() == ["reverted", "applied"]


def test_undo(bench: Bench) -> None:
    bench.act()
    (a,) = bench.journal.ledger.in_force()
    assert bench.runner.undo(a.id, T0 + NS, "bob") == f"{a.id} reverted: undone by bob"
    assert not bench.world.changed()
    assert bench.runner.undo(a.id, T0 + NS) == f"{a.id} is not in force (reverted)"


def test_what_a_person_changed_meanwhile_is_left_alone(bench: Bench) -> None:
    bench.act()
    bench.world.weights["r0"] = 60
    assert "overridden" in bench.restart(T0 + 5 * NS)[0]
    assert bench.world.weights["r0"] == 60
    assert bench.runner.tick(T0 + 3600 * NS) == []


def test_what_a_restarted_router_forgot_is_noticed(bench: Bench) -> None:
    bench.act()
    bench.world.weights["r0"] = 100
    assert "lost: found undone" in bench.restart(T0 + 5 * NS)[0]


def test_a_refusal_leaves_nothing_behind(bench: Bench) -> None:
    bench.world.refuse = 1
    assert "failed: sending failed: refused" in bench.act()[0]
    assert not bench.world.changed()
    assert bench.ends() == ["failed"]


def test_what_cannot_be_taken_back_now_is_tried_again(bench: Bench) -> None:
    bench.act()
    bench.world.silent = True
    assert "could not be taken back yet" in bench.runner.tick(T0 + 600 * NS)[0]
    bench.world.silent = False
    assert "reverted" in bench.runner.tick(T0 + 610 * NS)[0]
    assert not bench.world.changed()


def test_what_cannot_be_undone_is_on_record_and_over_at_once(tmp_path: Path) -> None:
    more = '[limits]\nirreversible = true\n[rule.c20]\ndo = ["restart_group"]\n'
    bench = Bench(tmp_path, make(more=more))
    bench.act()
    assert (bench.world.restarted, bench.ends()) == (["r0"], ["done"])
    bench.restart(T0 + 700 * NS)
    assert bench.world.restarted == ["r0"]


@pytest.mark.parametrize("moment", ["crash_before", "crash_after"])
@pytest.mark.parametrize("late", [False, True])
def test_a_crash_between_decision_and_action(bench: Bench, moment: str, late: bool) -> None:
    setattr(bench.world, moment, 1)
    with pytest.raises(Crash):
        bench.act()
    assert bench.ends() == ["intended"]
    bench.restart(T0 + (130 if late else 5) * NS)
    assert bench.world.changed() == (set() if late else {"r0"})
    bench.runner.tick(T0 + 600 * NS)
    assert not bench.world.changed()


@pytest.mark.parametrize("moment", ["crash_before", "crash_after"])
def test_a_crash_while_taking_back(bench: Bench, moment: str) -> None:
    bench.act()
    setattr(bench.world, moment, 2)
    with pytest.raises(Crash):
        bench.runner.tick(T0 + 600 * NS)
    bench.restart(T0 + 601 * NS)
    assert (bench.world.changed(), bench.ends()) == (set(), ["reverted"])


def test_an_endpoint_or_actuator_that_left_the_settings(bench: Bench) -> None:
    bench.act()
    bench.runner.actuators = {}
    assert "is not in act.toml any more" in bench.runner.tick(T0 + 600 * NS)[0]
    bench.runner.actuators, bench.runner.settings = {"edge": bench.world}, replace(make(), pools=())
    assert "in no pool any more" in bench.runner.tick(T0 + 600 * NS)[0]
