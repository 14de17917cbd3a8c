"""Ranked culprits and causes."""

import pytest

from skewscope.diagnose.blame import MAX_CULPRITS, MOST_CERTAIN, causes, culprits
from tests.diagnose.cases import RANKS, entry, finding, network, rule

A, B, C, D = RANKS


def named(made, *found):
    return [(c.kind, c.id, c.probability) for c in culprits(made, found, network())]


def test_one_suspect_is_certain():
    ((kind, who, p),) = named(entry(20), finding(key=A))
    assert (kind, who) == ("rank", A)
    assert p == pytest.approx(MOST_CERTAIN)


def test_shares_of_several_sum_to_one_and_the_strongest_comes_first():
    got = named(entry(20), finding(key=A, score=0.6), finding(key=B, score=0.9), finding(key=A, score=0.3))
    assert [who for _, who, _ in got] == [B, A]
    assert sum(p for *_, p in got) == pytest.approx(MOST_CERTAIN)
    assert got[0][2] == pytest.approx(0.9, abs=0.03), "0.9 against 0.6 takes nine tenths"


def test_equal_suspects_come_in_order_of_their_ids():
    assert [who for _, who, _ in named(entry(20), finding(key=B), finding(key=A))] == [A, B]


def test_the_list_is_short_and_probabilities_are_not_inflated():
    got = named(entry(20), *(finding(key=f"10.0.1.{i}") for i in range(10)))
    assert len(got) == MAX_CULPRITS
    assert sum(p for *_, p in got) == pytest.approx(MOST_CERTAIN * MAX_CULPRITS / 10)


@pytest.mark.parametrize(("key", "who"), [("self", A), ("from", A), ("to", B)])
def test_the_accused_end_of_a_pair(key, who):
    assert named(entry(23, key=key), finding(key=f"{A}->{B}"))[0][1] == who


def test_ids_are_addresses_without_ports():
    assert named(entry(1, kind="endpoint"), finding(key=f"{A}:8000"))[0][1] == A
    assert named(entry(1, kind="gateway"), finding(key=f"{A}:8000"))[0][1] == A
    assert named(entry(1, kind="host"), finding(key="[2001:db8::1]:80"))[0][1] == "2001:db8::1"


def test_a_link_is_one_of_a_host_to_the_fabric():
    got = named(entry(23, kind="link"), finding(key=A, score=0.9), finding(key=B, score=0.5))
    assert [who for _, who, _ in got] == [f"{A}->fabric", f"{B}->fabric"]


def test_two_ends_that_cannot_be_told_apart_are_one_link():
    got = named(
        entry(23, kind="link"),
        finding(key=A, score=0.9),
        finding(key=B, score=0.89),
        finding(key=C, score=0.5),
    )
    assert [who for _, who, _ in got] == [f"{A}->{B}", f"{C}->fabric"]
    assert sum(p for *_, p in got) == pytest.approx(MOST_CERTAIN)
    assert got[0][2] > 0.95


def test_hosts_that_never_talk_are_no_link():
    got = named(entry(23, kind="link"), finding(key=A), finding(key="10.9.0.1"))
    assert [who for _, who, _ in got] == [f"{A}->fabric", "10.9.0.1->fabric"]


def test_names_are_for_people():
    (rank,) = culprits(entry(20), [finding(key=B)], network())
    assert rank.name == f"rank on n1 ({B})"
    (link,) = culprits(entry(23, kind="link"), [finding(key=A)], network())
    assert link.name == f"link of {A}"
    (engine,) = culprits(entry(1, kind="endpoint"), [finding(key=f"{B}:8000")], network())
    assert engine.name == f"engine at {B}:8000 on n1"
    (client,) = culprits(entry(5, kind="client"), [finding(key=A)], network())
    assert client.name == f"client {A}"


def ranked(found, *rules):
    return [(c.cause, round(c.probability, 3)) for c in causes(entry(20, causes=rules), found)]


def test_causes_are_ranked_by_weight():
    assert ranked(finding(), rule("gpu", 1), rule("host_cpu", 3)) == [("host_cpu", 0.75), ("gpu", 0.25)]


def test_evidence_opens_and_closes_causes():
    rules = (rule("gpu", 1), rule("link", 3, "loss > 0.5"), rule("nic", 2, "loss <= 0.5"))
    assert ranked(finding(loss=0.9), *rules) == [("link", 0.75), ("gpu", 0.25)]
    assert ranked(finding(loss=0.5), *rules) == [("nic", 0.667), ("gpu", 0.333)]
    assert ranked(finding(), *rules) == [("gpu", 1.0)]
    assert ranked(finding(loss=float("nan")), *rules) == [("gpu", 1.0)]


def test_rules_of_one_cause_do_not_add_up():
    rules = (rule("gpu", 1), rule("gpu", 3, "x > 0"), rule("nic", 3))
    assert ranked(finding(x=1.0), *rules) == [("gpu", 0.5), ("nic", 0.5)]


def test_without_a_candidate_the_cause_is_unknown():
    assert ranked(finding(), rule("gpu", 1, "x > 0")) == [("unknown", 1.0)]
    assert ranked(finding()) == [("unknown", 1.0)]
