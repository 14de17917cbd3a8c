"""Which findings belong together, and which of them explains which."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.diagnose.relate import BREAK_NS, SLACK_NS, clusters, explains, leaders
from tests.diagnose.cases import FAR, RANKS, S, entries, entry, finding, network

GATE, CLIENT = "10.0.0.2", "10.0.0.3"


def sizes(*findings):
    return sorted(len(c) for c in clusters(findings, network()))


def test_findings_close_in_time_and_place_are_one_cluster():
    assert sizes(finding(onset=10, end=11), finding(key=RANKS[2], onset=12, end=13)) == [2]


def test_findings_far_apart_in_time_are_two():
    gap = BREAK_NS / S
    assert sizes(finding(onset=10, end=11), finding(onset=11 + gap, end=20)) == [2]
    assert sizes(finding(onset=10, end=11), finding(onset=11.1 + gap, end=20)) == [1, 1]


def test_a_finding_that_has_not_ended_reaches_to_the_end_of_the_capture():
    assert sizes(finding(onset=1, end=None), finding(onset=25, end=26)) == [2]


def test_parts_of_the_network_that_never_talk_are_apart():
    assert sizes(finding(), finding(key=FAR[0])) == [1, 1]
    assert sizes(finding(), finding(key=f"{GATE}:8000"), finding(key=f"{CLIENT}->{GATE}")) == [3]


def test_a_finding_between_two_clusters_joins_them():
    early, late = finding(onset=1, end=2), finding(onset=7, end=8)
    bridge = finding("c21", onset=3.5, end=5.5)
    for order in itertools.permutations([early, late, bridge]):
        assert sizes(*order) == [3]


def test_unknown_hosts_are_one_place():
    assert sizes(finding(key="10.5.5.5"), finding(key="10.6.6.6")) == [2]


@pytest.mark.parametrize(
    ("where", "key", "holds"),
    [
        ("same", RANKS[0], True),
        ("same", RANKS[1], False),
        ("same", f"{RANKS[0]}->{RANKS[1]}", False),
        ("host", f"{RANKS[0]}->{RANKS[1]}", True),
        ("host", f"{RANKS[0]}:8000", True),
        ("host", RANKS[1], False),
        ("group", RANKS[3], True),
        ("group", f"{GATE}:8000", True),
        ("group", f"{CLIENT}->{GATE}", True),
        ("group", FAR[0], False),
        ("any", FAR[0], True),
    ],
)
def test_an_edge_holds_at_its_place_only(where, key, holds):
    book = entries(entry(20, ("c06", where)), entry(6))
    assert explains(finding("c20"), finding("c06", key), book, network()) is holds


def test_no_edge_no_explanation():
    book = entries(entry(20), entry(6))
    assert not explains(finding("c20"), finding("c06"), book, network())


def test_an_edge_has_a_direction():
    book = entries(entry(20, ("c06", "any")), entry(6))
    assert explains(finding("c20"), finding("c06"), book, network())
    assert not explains(finding("c06"), finding("c20"), book, network())


def test_a_late_cause_does_not_hide_an_early_effect():
    book = entries(entry(20, ("c06", "any")), entry(6))
    slack = SLACK_NS / S
    assert explains(finding("c20", onset=10 + slack), finding("c06", onset=10), book, network())
    assert not explains(finding("c20", onset=10.01 + slack), finding("c06", onset=10), book, network())


def test_a_weak_cause_does_not_hide_a_strong_effect():
    book = entries(entry(20, ("c06", "any")), entry(6))
    assert explains(finding("c20", score=0.45), finding("c06", score=0.9), book, network())
    assert not explains(finding("c20", score=0.44), finding("c06", score=0.9), book, network())


def split(found, book):
    lead, explained = leaders(found, book, network())
    return [f.condition for f in lead], {
        f.condition: sorted(e.condition for e in explained[id(f)]) for f in lead
    }


def test_the_cause_leads_and_carries_its_effects():
    book = entries(entry(20, ("c06", "any"), ("c08", "any")), entry(6), entry(8), entry(5))
    found = [finding("c06"), finding("c20"), finding("c08"), finding("c05")]
    assert split(found, book) == (["c20", "c05"], {"c20": ["c06", "c08"], "c05": []})


def test_effects_of_effects_go_to_the_first_cause():
    book = entries(entry(20, ("c06", "any")), entry(6, ("c08", "any")), entry(8))
    found = [finding("c08"), finding("c06"), finding("c20")]
    assert split(found, book) == (["c20"], {"c20": ["c06", "c08"]})


def test_the_stronger_of_two_causes_takes_the_effect():
    book = entries(entry(20, ("c06", "any")), entry(23, ("c06", "any")), entry(6))
    found = [finding("c20", score=0.6), finding("c23", score=0.9), finding("c06")]
    assert split(found, book)[1] == {"c20": [], "c23": ["c06"]}


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_that_explain_each_other_the_stronger_leads(first):
    book = entries(entry(20, ("c23", "any")), entry(23, ("c20", "any")))
    found = [finding("c20", score=0.8), finding("c23", score=0.9)]
    assert split(found[first:] + found[:first], book) == (["c23"], {"c23": ["c20"]})


def test_of_two_equals_the_earlier_leads():
    book = entries(entry(20, ("c23", "any")), entry(23, ("c20", "any")))
    assert split([finding("c20", onset=11), finding("c23", onset=10)], book)[0] == ["c23"]


def test_of_two_alike_in_all_one_is_left():
    book = entries(entry(20, ("c23", "any")), entry(23, ("c20", "any")))
    assert len(split([finding("c20"), finding("c23")], book)[0]) == 1


def test_of_a_circle_the_strongest_is_left():
    book = entries(entry(20, ("c23", "any")), entry(23, ("c25", "any")), entry(25, ("c20", "any")))
    found = [finding("c20", score=0.7), finding("c23", score=0.8), finding("c25", score=0.75)]
    lead, carried = split(found, book)
    assert lead == ["c23"]
    assert carried == {"c23": ["c20", "c25"]}


edges = st.lists(
    st.tuples(st.sampled_from([1, 2, 3, 4]), st.sampled_from(["c01", "c02", "c03", "c04"])), max_size=10
)
drawn = st.lists(
    st.builds(
        finding,
        st.sampled_from(["c01", "c02", "c03", "c04"]),
        st.sampled_from(RANKS),
        st.sampled_from([10.0, 10.5, 13.0]),
        score=st.sampled_from([0.3, 0.6, 0.9]),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=200, deadline=None)
@given(drawn, edges)
def test_every_finding_leads_or_is_explained_exactly_once(found, pairs):
    book = entries(*(entry(n, *((c, "any") for m, c in pairs if m == n)) for n in range(1, 5)))
    lead, explained = leaders(found, book, network())
    assert lead
    carried = [id(f) for group in explained.values() for f in group]
    assert sorted([*map(id, lead), *carried]) == sorted(map(id, found))
    assert set(explained) == set(map(id, lead))
