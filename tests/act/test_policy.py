from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from skewscope.act.intake import Trigger
from skewscope.act.ledger import Ledger, action_to
from skewscope.act.policy import PROPOSE, REFUSE, SEND, SHADOW, Decision, Outside, decide, place
from skewscope.act.settings import Settings
from skewscope.core.action import ExecutedAction
from tests.act.worlds import NS, T0, WITNESS, World, address, make, news, trigger

STARTED = {"event": "started", "ts_ns": T0 - 3600 * NS}
DO = '[rule.c20]\ndo = ["{}"]\n'


def outside(settings: Settings, **unhealthy: set[str]) -> Outside:
    return Outside(unhealthy, {a: dict(World.VERBS) for a in settings.actuators})


def one(
    t: Trigger,
    settings: Settings | None = None,
    ledger: Ledger | None = None,
    now_ns: int = T0,
    **down: set[str],
) -> Decision:
    s = settings or make()
    (got,) = decide(s, ledger or Ledger([STARTED]), news(t), outside(s, **down), now_ns)
    return got


def after(*actions: ExecutedAction, **last: Any) -> Ledger:
    """A ledger in which the actions were applied, and the last event happened to each."""
    ledger = Ledger([STARTED])
    for a in actions:
        ledger.take({"event": "intended", "ts_ns": a.decided_ns, "action": action_to(a)})
        ledger.take({"event": "applied", "ts_ns": a.decided_ns + NS, "id": a.id})
        if last:
            ledger.take({"id": a.id, **last})
    return ledger


def done(endpoint: int = 0, **changes: Any) -> ExecutedAction:
    got = one(trigger(endpoint), make(endpoints=10)).action
    assert got is not None
    return replace(got, **changes)


def test_a_sure_straggler_gets_a_lower_weight() -> None:
    got = one(trigger())
    assert (got.verdict, got.against) == (SEND, ())
    assert got.action is not None
    assert (got.action.verb, got.action.endpoint, got.action.actuator) == ("lower_weight", address(0), "edge")
    assert got.action.predicted_ratio == pytest.approx(1 - (11 / 9) / (5 / 3))
    assert "predicted: the pool's mean falls by 26.7%" in got.why


def test_with_an_objective_the_weight_follows_from_it() -> None:
    s = make()
    for objective_s, left in ((1.0, (1 / 0.3 - 1) / 9), (0.25, 0.01), (0.0, 0.25)):
        pools = tuple(replace(p, objective_s=objective_s) for p in s.pools)
        got = one(trigger(), replace(s, pools=pools)).action
        assert got is not None
        assert got.weight_ratio == pytest.approx(left)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"score": 0.5}, "score is 0.50, at least 0.8 needed"),
        ({"culprit_probability": 0.5}, "probability of the culprit is 0.50"),
        ({"causes": {"client": 0.9, "gpu": 0.1}}, "probability of the allowed causes is 0.10"),
        ({"causes": {}}, "probability of the allowed causes is 0.00"),
        ({"ended": True}, "the incident has ended"),
        ({"condition": "c99"}, "no rule for c99"),
        ({"culprit": "10.9.9.9"}, "10.9.9.9 is not one endpoint of a pool"),
        ({"culprit": "10.0.0.2->10.0.1.2"}, "is not one endpoint of a pool"),
        ({"metric": ""}, "predicted benefit 0.0%, at least 2.0% needed"),
        ({"now": 0.1}, "predicted benefit 0.0%"),
    ],
)
def test_each_gate_refuses_with_its_reason(changes: Mapping[str, Any], reason: str) -> None:
    got = one(trigger(**changes))
    assert got.verdict == REFUSE
    assert any(reason in line for line in got.against), got.against


def test_old_news_is_refused() -> None:
    assert one(trigger(), now_ns=T0 + 121 * NS).against == ("the report ended 121 s ago, limit 120",)


@pytest.mark.parametrize(("verb", "sources", "verdict"), [
    ("lower_weight", 1, SEND), ("drain_endpoint", 1, REFUSE), ("drain_endpoint", 2, SEND),
    ("restart_group", 1, REFUSE), ("restart_group", 2, PROPOSE),
])  # fmt: skip
def test_two_sources_above_step_one(verb: str, sources: int, verdict: str) -> None:
    t = trigger() if sources == 2 else trigger(witnesses=(WITNESS, WITNESS))
    got = one(t, make(more=DO.format(verb)))
    assert got.verdict == verdict
    if verdict == REFUSE:
        assert got.against == (f"{verb} needs two independent sources; there is one",)


def test_what_cannot_be_undone_waits_for_a_person_unless_told_otherwise() -> None:
    rule = DO.format("restart_group")
    assert one(trigger(), make(more=rule)).note == "it cannot be taken back"
    assert one(trigger(), make(more="[limits]\nirreversible = true\n" + rule)).verdict == SEND


def test_modes() -> None:
    assert one(trigger(), make(mode="advise")).verdict == PROPOSE
    assert one(trigger(), make(mode="shadow")).verdict == SHADOW
    assert one(trigger(), make(more='[rule.c20]\nmode = "shadow"\n')).verdict == SHADOW
    assert one(trigger(), make(mode="shadow", more='[rule.c20]\nmode = "auto"\n')).verdict == SEND


def test_a_new_installation_only_observes() -> None:
    assert one(trigger(), make(learn_s=3601)).verdict == SHADOW
    assert one(trigger(), make(learn_s=3600)).verdict == SEND
    assert one(trigger(), make(learn_s=1), Ledger()).verdict == SHADOW
    assert one(trigger(), make(learn_s=0), Ledger()).verdict == SEND


def test_two_of_three_must_stay_healthy() -> None:
    assert one(trigger(), make(endpoints=2)).verdict == REFUSE
    assert one(trigger(), make(endpoints=3)).verdict == SEND
    assert one(trigger(), make(endpoints=3), p0={address(2)}).verdict == REFUSE
    assert one(trigger(), make(endpoints=3), p0={address(0)}).verdict == SEND  # the culprit itself is down


def test_a_fifth_of_a_large_pool() -> None:
    ten = make(endpoints=10)
    assert one(trigger(1), ten, after(done(0))).verdict == SEND
    refused = one(trigger(2), ten, after(done(0), done(1)))
    assert refused.verdict == REFUSE
    assert "2 of 10 endpoints of p0 are out or changed" in refused.against[0]


def test_one_report_cannot_take_a_pool_apart() -> None:
    s = make(endpoints=10, more="[limits]\nactions_per_hour = 99\n")
    got = decide(s, Ledger([STARTED]), news(*map(trigger, range(10))), outside(s), T0)
    assert [d.verdict for d in got].count(SEND) == 2


def test_the_others_must_be_able_to_take_the_work() -> None:
    rule = DO.format("drain_endpoint")
    assert one(trigger(), make(more=rule)).verdict == SEND
    got = one(trigger(), make(more="[limits]\nmax_extra_load_ratio = 0.4\n" + rule))
    assert got.against == ("the others would get 50% more work, limit 40%",)


def test_cool_down_and_blast_radius() -> None:
    ended = {"event": "ended", "ts_ns": T0 + 10 * NS, "how": "reverted", "why": ""}
    ledger = after(done(0), **ended)
    assert one(trigger(0), make(), ledger, T0 + 100 * NS).against == (
        "10.0.0.1:8000 is left alone for another 210 s",
    )
    assert one(trigger(1), make(), ledger, T0 + 100 * NS).verdict == SEND
    four = after(*[done(i) for i in range(1, 5)], **ended)
    assert (
        "4 actions within an hour, limit 4" in one(trigger(0), make(endpoints=10), four, T0 + 60 * NS).against
    )


def test_one_action_at_a_time_on_an_endpoint_and_a_stronger_one_after_a_weak_effect() -> None:
    a = done(0)
    assert one(trigger(), make(), after(a)).against == (f"{a.id} (lower_weight) is in force on {a.endpoint}",)
    weak = after(a, event="observed", ts_ns=T0 + 20 * NS, observed_ratio=0.05, verdict="weak")
    got = one(trigger(), make(), weak, T0 + 30 * NS)
    assert got.action is not None
    assert (got.verdict, got.action.verb, got.replaces) == (SEND, "drain_endpoint", a.id)
    helped = after(a, event="observed", ts_ns=T0 + 20 * NS, observed_ratio=0.3, verdict="helped")
    assert one(trigger(), make(), helped, T0 + 30 * NS).verdict == REFUSE


def test_no_actuator_for_the_verb() -> None:
    s = make()
    (got,) = decide(s, Ledger([STARTED]), news(trigger()), Outside({}, {"edge": {"notify": True}}), T0)
    assert got.against == ("no actuator of pool p0 can lower_weight",)


def test_places() -> None:
    pools = make().pools
    for culprit in (
        "10.0.1.1",
        "10.0.1.1:8000",
        "10.0.1.2",
        "10.0.1.2->fabric",
        "10.0.1.2/gpu3",
        "10.0.1.2:9",
    ):
        at = place(pools, culprit)
        assert at is not None, culprit
        assert at[1].id == address(1)
    for culprit in ("", "10.0.1.9", "10.0.1.2->10.0.2.2", "fe80::1"):
        assert place(pools, culprit) is None


def test_a_port_tells_endpoints_of_one_host_apart() -> None:
    two = make().pools[0]
    first, second = two.endpoints[0], replace(two.endpoints[1], id="10.0.0.1:9000", hosts=())
    pools = (replace(two, endpoints=(first, second)),)
    for culprit, name in (("10.0.0.1:8000", "r0"), ("10.0.0.1:9000", "r1")):
        at = place(pools, culprit)
        assert at is not None, culprit
        assert at[1].name == name
    assert place(pools, "10.0.0.1") is None


def test_the_same_news_gives_the_same_id() -> None:
    a, b = one(trigger()).action, one(trigger(score=0.9, incident="x")).action
    assert a is not None
    assert b is not None
    assert a.id == b.id
    again = one(trigger(), make(), after(a))
    assert again.action is None


triggers = st.builds(
    trigger,
    st.integers(0, 11),
    score=st.sampled_from((0.1, 0.9, 1.0)),
    now=st.floats(0.05, 10),
    ended=st.booleans(),
    condition=st.sampled_from(("c20", "c25", "c42", "c01", "c99")),
    causes=st.sampled_from(({"gpu": 1.0}, {"nic": 1.0}, {"workload": 1.0}, {})),
    witnesses=st.sampled_from(((WITNESS,), trigger().witnesses)),
)


@hypothesis_settings(deadline=None)
@given(
    st.lists(triggers, max_size=12),
    st.integers(1, 12),
    st.sets(st.integers(0, 11), max_size=6),
    st.floats(0, 0.2),
    st.sampled_from(("shadow", "advise", "auto")),
)
def test_whatever_a_report_says_the_cap_holds(
    reported: list[Trigger], size: int, down: set[int], share: float, mode: str
) -> None:
    s = make(endpoints=size, mode=mode, more=f"[limits]\npool_share_ratio = {share}\nactions_per_hour = 99\n")
    got = decide(s, Ledger([STARTED]), news(*reported), outside(s, p0={address(i) for i in down}), T0)
    taken = [d.action for d in got if d.action is not None and d.verdict != REFUSE]
    assert len({a.endpoint for a in taken}) == len(taken)
    out = {a.endpoint for a in taken} | {address(i) for i in down if i < size}
    if taken:
        within = len(out) <= share * size + 1e-9
        first = len(taken) == 1 and size - len(out) >= 2
        assert within or first
    assert all(d.verdict != SEND for d in got) or mode == "auto"
    for d in got:
        assert (d.verdict == REFUSE) == bool(d.against)
        if d.action is not None and d.verdict != REFUSE and d.action.step > 1:
            assert d.trigger.two_sources()
    assert got == decide(
        s, Ledger([STARTED]), news(*reversed(reported)), outside(s, p0={address(i) for i in down}), T0
    ) or len({(t.score, t.onset_ns, t.incident, t.culprit) for t in reported}) < len(reported)
