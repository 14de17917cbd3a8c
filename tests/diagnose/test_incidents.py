"""Findings to incidents: order, what they carry, and what they say cannot be told."""

import pytest

from skewscope.core.report import Series
from skewscope.diagnose.incidents import MAX_ALSO, diagnose
from tests.diagnose.cases import FAR, RANKS, S, entries, entry, finding, network, rule

ENGINE = f"{RANKS[0]}:8000"


def chunks(key, before, during):
    ts = [(i + 1) * S // 10 for i in range(200)]
    return Series("endpoint", key, "chunks", "1", ts, [before if t <= 10 * S else during for t in ts])


def test_no_findings_no_incidents():
    assert diagnose([], {}, network()) == []


def test_an_incident_carries_its_findings():
    book = entries(entry(20, ("c06", "group")), entry(6))
    found = [finding("c06", f"{RANKS[0]}:8000", 10.4, 12.5), finding("c20", RANKS[1], 10.0, 12.0, own_s=0.2)]
    (one,) = diagnose(found, book, network())
    assert (one.condition, one.id, one.title) == ("c20", "c20-10000", "Title of 20")
    assert (one.onset_ns, one.detected_ns, one.end_ns) == (10 * S, round(10.2 * S), 12 * S)
    assert one.also == ["c06"]
    assert [c.id for c in one.culprits] == [RANKS[1]]
    assert [a.id for a in one.actions] == ["look"]
    assert [e.name for e in one.evidence] == ["own_s"]
    assert {f.condition for f in one.findings} == {"c20", "c06"}
    assert [m.ts_ns for m in one.timeline] == sorted(m.ts_ns for m in one.timeline)
    assert "own 200.0 ms" in one.summary
    assert f"rank on n1 ({RANKS[1]})" in one.summary


def test_one_that_goes_on_has_no_end():
    found = [finding(end=12.0), finding(key=RANKS[1], end=None)]
    (one,) = diagnose(found, entries(entry(20)), network())
    assert one.end_ns is None


def test_findings_of_one_condition_are_one_incident_with_several_suspects():
    found = [finding(key=RANKS[0], score=0.6, onset=10.5), finding(key=RANKS[1], score=0.9)]
    (one,) = diagnose(found, entries(entry(20)), network())
    assert [c.id for c in one.culprits] == [RANKS[1], RANKS[0]]
    assert (one.score, one.onset_ns) == (0.9, 10 * S)


def test_suspects_behind_an_edge_to_itself_stay_suspects():
    found = [finding(key=RANKS[0], score=0.6), finding(key=RANKS[1], score=0.9)]
    (one,) = diagnose(found, entries(entry(20, ("c20", "group"))), network())
    assert [c.id for c in one.culprits] == [RANKS[1], RANKS[0]]
    assert one.also == []


def test_also_holds_the_two_strongest_and_only_along_declared_edges():
    book = entries(
        entry(20, ("c06", "any"), ("c08", "any"), ("c01", "any")),
        entry(6, ("c05", "any")),
        *(entry(n) for n in (1, 5, 8)),
    )
    found = [finding("c20", score=1.0)]
    found += [finding(c, score=s) for c, s in (("c06", 0.7), ("c08", 0.9), ("c01", 0.8), ("c05", 0.95))]
    (one,) = diagnose(found, book, network())
    assert one.also == ["c08", "c01"]
    assert len(one.also) == MAX_ALSO
    assert len(one.findings) == 5


def test_victims_wait_and_are_not_accused():
    (one,) = diagnose([finding(key=RANKS[1])], entries(entry(20)), network())
    assert [v.id for v in one.victims] == [RANKS[0], RANKS[2], RANKS[3], ENGINE]
    assert RANKS[1] not in [v.id for v in one.victims]


def test_the_costliest_comes_first_then_the_surest():
    book = entries(entry(20), entry(23), entry(25))
    context = network([chunks(ENGINE, 8.0, 3.0)])
    found = [
        finding("c25", FAR[0], onset=2.0, end=3.0, score=0.99),
        finding("c20", RANKS[0], onset=10.0, end=20.0, score=0.7),
        finding("c23", FAR[1], onset=25.0, end=26.0, score=0.8),
    ]
    assert [i.condition for i in diagnose(found, book, context)] == ["c20", "c25", "c23"]


def test_ids_are_unique():
    found = [finding(key=RANKS[0]), finding(key=FAR[0])]
    made = diagnose(found, entries(entry(20)), network())
    assert len({i.id for i in made}) == 2


def test_causes_that_are_not_separated_are_said():
    (one,) = diagnose([finding()], entries(entry(20)), network())
    (text,) = one.cannot_tell
    assert "host_cpu, gpu" in text
    sure = entry(20, causes=(rule("host_cpu", 9), rule("gpu", 1)))
    (one,) = diagnose([finding()], entries(sure), network())
    assert one.cannot_tell == []


def test_two_ends_of_a_link_that_are_not_separated_are_said():
    book = entries(entry(23, kind="link", causes=(rule("link", 1),)))
    (one,) = diagnose([finding("c23", RANKS[0]), finding("c23", RANKS[1])], book, network())
    assert one.culprits[0].id == f"{RANKS[0]}->{RANKS[1]}"
    (text,) = one.cannot_tell
    assert "two ends" in text


def test_neighbours_that_were_not_found_are_ruled_out():
    book = entries(
        entry(20, ("c06", "any"), separates={"c23": "no transit grew", "c06": "same"}), entry(6), entry(23)
    )
    (one,) = diagnose([finding("c20"), finding("c06")], book, network())
    assert [(r.condition, r.why) for r in one.ruled_out] == [("c23", "no transit grew")]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(0.25, "s", "250.0 ms"), (2.5, "s", "2.50 s"), (3.0, "1", "3"), (1e6, "bit/s", "1e+06 bit/s")],
)
def test_quantities_in_the_summary(value, unit, text):
    found = finding(x=value)
    found.evidence[0].unit = unit
    found.evidence[0].baseline = value
    (one,) = diagnose([found], entries(entry(20)), network())
    assert f"x {text} (usually {text})" in one.summary
