"""Whatever happens in whatever order, with a crash anywhere: the promises of `act` hold."""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.act.journal import Journal
from skewscope.act.runner import Runner
from tests.act.worlds import NS, T0, Crash, World, make, news, trigger

SIZE = 6
steps = st.lists(
    st.one_of(
        st.tuples(st.just("report"), st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=3, unique=True)),
        st.tuples(st.just("wait"), st.sampled_from((1, 15, 70, 130, 650))),
        st.tuples(st.just("observe"), st.floats(-1, 1)),
        st.tuples(st.just("crash_before"), st.integers(1, 3)),
        st.tuples(st.just("crash_after"), st.integers(1, 3)),
        st.tuples(st.just("refuse"), st.integers(1, 3)),
        st.tuples(st.just("silent"), st.booleans()),
        st.tuples(st.just("undo"), st.none()),
        st.tuples(st.just("restart"), st.none()),
    ),
    max_size=14,
)


class Story:
    def __init__(self, folder: Path, mode: str) -> None:
        more = "[limits]\nactions_per_hour = 9\ncool_down_s = 20\n[rule.c20]\nttl_s = 100\n"
        self.settings = make(endpoints=SIZE, mode=mode, more=more)
        self.world = World([f"r{i}" for i in range(SIZE)])
        self.path, self.now_ns = folder / "act.jsonl", T0
        self.journal: Journal | None = None
        self.restart()

    def restart(self) -> None:
        if self.journal is not None:
            self.journal.close()
        self.journal = Journal(self.path)
        self.runner = Runner(self.settings, {"edge": self.world}, self.journal)
        self.runner.start(self.now_ns)

    def do(self, what: str, value: Any) -> None:
        ids = [a.id for a in self.runner.journal.ledger.in_force()]
        if what == "report":
            self.runner.apply(news(*map(trigger, value), at_ns=self.now_ns), self.now_ns)
        elif what == "wait":
            self.now_ns += value * NS
            self.runner.tick(self.now_ns)
        elif what == "observe":
            for known in ids:
                self.runner.observe(known, value, self.now_ns)
        elif what == "undo":
            for known in ids:
                self.runner.undo(known, self.now_ns)
        elif what == "restart":
            self.restart()
        elif what == "silent":
            self.world.silent = value
        else:
            setattr(self.world, what, self.world.puts + value)

    def play(self, story: list[tuple[str, Any]]) -> None:
        for what, value in story:
            self.now_ns += NS
            try:
                self.do(what, value)
            except Crash:
                self.world.crash_before = self.world.crash_after = 0
                self.restart()
            assert len(self.world.changed()) <= 1  # a fifth of six is one
            in_force = {a.endpoint for a in self.runner.journal.ledger.in_force()}
            changed = {f"10.0.{n[1:]}.1:8000" for n in self.world.changed()}
            assert changed <= in_force  # nothing is changed that is not on record

    def end(self) -> None:
        self.world.silent = False
        self.world.refuse = self.world.crash_before = self.world.crash_after = 0
        self.now_ns += 101 * NS
        self.runner.tick(self.now_ns)
        assert self.journal is not None
        self.journal.close()


@settings(max_examples=150, deadline=None)
@given(steps)
def test_no_crash_order_or_refusal_breaks_the_promises(story: list[tuple[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        told = Story(Path(folder), "auto")
        told.play(story)
        told.end()
        assert not told.world.changed()
        assert not list(told.runner.journal.ledger.in_force())


@settings(max_examples=40, deadline=None)
@given(steps, st.sampled_from(("shadow", "advise")))
def test_nothing_is_sent_in_shadow_or_without_approval(story: list[tuple[str, Any]], mode: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        told = Story(Path(folder), mode)
        told.play(story)
        told.end()
        assert told.world.puts == 0
