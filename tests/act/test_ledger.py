from dataclasses import replace

import pytest

from skewscope.act.ledger import Ledger, action_from, action_to
from tests.core.test_action import ACTION

INTENT = {"event": "intended", "ts_ns": 5, "action": action_to(ACTION)}


def test_the_life_of_an_action() -> None:
    ledger = Ledger([{"event": "started", "ts_ns": 1}, INTENT, {"event": "applied", "ts_ns": 7, "id": "a1"}])
    assert (ledger.started_ns, ledger.actions["a1"].state, ledger.actions["a1"].applied_ns) == (
        1,
        "applied",
        7,
    )
    ledger.take({"event": "observed", "ts_ns": 8, "id": "a1", "observed_ratio": 0.1, "verdict": "weak"})
    assert ledger.on(ACTION.endpoint) == ledger.actions["a1"]
    ledger.take({"event": "reverting", "ts_ns": 9, "id": "a1", "why": "w"})
    assert [a.id for a in ledger.in_force()] == ["a1"]
    ledger.take({"event": "ended", "ts_ns": 10, "id": "a1", "how": "reverted", "why": "w"})
    assert not list(ledger.in_force())
    assert ledger.last_ended(ACTION.endpoint) == ledger.actions["a1"]
    assert (ledger.actions["a1"].verdict, ledger.actions["a1"].ended_how) == ("weak", "reverted")


def test_the_first_start_counts() -> None:
    assert Ledger([{"event": "started", "ts_ns": 3}, {"event": "started", "ts_ns": 9}]).started_ns == 3


def test_a_proposal_is_not_sent_and_not_in_force() -> None:
    ledger = Ledger([{**INTENT, "event": "proposed"}, {"event": "refused", "ts_ns": 6}])
    assert not list(ledger.in_force())
    assert ledger.sent_since(0) == 0
    assert Ledger([INTENT]).sent_since(5) == 1
    assert Ledger([INTENT]).sent_since(6) == 0


@pytest.mark.parametrize("event", ["applied", "nonsense"])
def test_what_does_not_fit_is_refused(event: str) -> None:
    with pytest.raises(ValueError, match="never decided"):
        Ledger([{"event": event, "ts_ns": 1, "id": "a9"}])
    if event == "nonsense":
        with pytest.raises(ValueError, match="unknown event"):
            Ledger([INTENT, {"event": event, "ts_ns": 1, "id": "a1"}])


def test_an_action_survives_json_and_a_later_version() -> None:
    action = replace(ACTION, why=("a", "b"), before={"weight": 3})
    assert action_from({**action_to(action), "of_tomorrow": 1}) == action
