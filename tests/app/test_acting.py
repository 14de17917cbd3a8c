import json
from pathlib import Path

import pytest

from skewscope.act.runner import Runner
from skewscope.app import acting
from tests.act.worlds import World, act_toml, news, report, trigger


@pytest.fixture
def made(tmp_path: Path) -> acting.Setup:
    (tmp_path / "act.toml").write_text(act_toml())
    return acting.setup(tmp_path / "act.toml")


def test_a_journal_lies_beside_its_settings(made: acting.Setup, tmp_path: Path) -> None:
    assert made.journal == tmp_path / "act.jsonl"
    assert list(made.actuators) == ["edge"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mode = 1", "act.toml: mode: must be text"),
        ("=", "act.toml: not valid TOML"),
        ('[[actuator]]\nname = "a"\nkind = "x"', "actuator.0..kind"),
        (b"\xff", "act.toml: "),
        (None, "act.toml: No such file"),
    ],
)
def test_a_wrong_act_toml_is_one_line(tmp_path: Path, text: str | bytes | None, words: str) -> None:
    path = tmp_path / "act.toml"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(acting.ActError, match=words) as caught:
        acting.setup(path)
    assert "\n" not in str(caught.value)


def test_every_condition_has_a_signal(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps(report()))
    (t,) = acting.report(tmp_path / "r.json").triggers
    assert {w.signal for w in t.witnesses} == {"east_west"}


@pytest.mark.parametrize("text", [None, "", "{}", b"\xff"])
def test_what_is_no_report_is_one_line(tmp_path: Path, text: str | bytes | None) -> None:
    path = tmp_path / "r.json"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(acting.ActError, match=r"r\.json: "):
        acting.report(path)


def test_hold_stays_until_nothing_is_in_force_and_judges_by_a_newer_report(
    made: acting.Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(["r0", "r1", "r2"])
    held = acting.Setup(made.settings, {"edge": world}, made.journal)
    now = [1_000_000_000 * 10**9]
    monkeypatch.setattr(acting, "now_ns", lambda: now[0])
    with acting.open_journal(held) as journal:
        runner = Runner(held.settings, held.actuators, journal)
        runner.start(now[0])
        runner.apply(news(trigger(), at_ns=now[0]), now[0])
    assert world.changed() == {"r0"}
    path = tmp_path / "r.json"

    def sleep(_: float) -> None:
        now[0] += 12 * 10**9
        later = report(culprits=[{"kind": "rank", "id": "10.0.1.2", "probability": 0.9}])
        later["span_ns"] = [now[0] - 11 * 10**9, now[0]]
        path.write_text(json.dumps(later))

    monkeypatch.setattr(acting.time, "sleep", sleep)
    said: list[str] = []
    acting.hold(held, path, 1.0, said.append)
    assert not world.changed()
    assert "harmed" in said[0]


def test_a_report_that_breaks_meanwhile_is_told_and_the_time_to_live_holds(
    made: acting.Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(["r0", "r1", "r2"])
    held = acting.Setup(made.settings, {"edge": world}, made.journal)
    now = [1_000_000_000 * 10**9]
    monkeypatch.setattr(acting, "now_ns", lambda: now[0])
    with acting.open_journal(held) as journal:
        runner = Runner(held.settings, held.actuators, journal)
        runner.start(now[0])
        runner.apply(news(trigger(), at_ns=now[0]), now[0])

    def sleep(_: float) -> None:
        now[0] += 601 * 10**9
        (tmp_path / "r.json").write_text("{")

    monkeypatch.setattr(acting.time, "sleep", sleep)
    said: list[str] = []
    acting.hold(held, tmp_path / "r.json", 1.0, said.append)
    assert "not a report" in said[0]
    assert not world.changed()


def test_a_busy_journal_is_waited_for_and_then_given_up(
    made: acting.Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acting, "BUSY_S", 0.1)
    with acting.open_journal(made), pytest.raises(acting.ActError, match="another skewscope holds it"):
        acting.open_journal(made)
    acting.open_journal(made).close()
