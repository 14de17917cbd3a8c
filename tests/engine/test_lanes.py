"""Swim lanes: which rounds are drawn, and what is drawn of them."""

import numpy as np

from skewscope.core.directory import Directory, Tap
from skewscope.core.report import Incident
from skewscope.engine.lanes import ROUNDS_SHOWN, lanes
from skewscope.features import round_kernel as k
from skewscope.features.rounds import Rounds

MS = 1_000_000
A, B = 1, 2


class Remembered:
    """Stands in for the history."""

    def __init__(self, parts):
        self.parts = parts

    def rounds_near(self, group):
        return self.parts if group == A else []


def rounds(count=12, slow=(), stop=()):
    """Rounds every 10 ms of two members; B enters late by 8 ms in `slow` rounds, stops inside in `stop`."""
    rows = []
    now = 0
    for key in range(1, count + 1):
        late = 8 if key in slow else 1
        end = now + late + 3
        for member, entry in ((A, now + 1), (B, now + 1 + late)):
            row = np.zeros(3 + k.R_COLUMNS, dtype=np.int64)
            row[[0, 2]] = A, member
            at = {
                k.KEY: key,
                k.FIRST_OUT: entry * MS,
                k.OWN: (entry - now) * MS,
                k.OWN_FROM: now * MS,
                k.LAST_EVENT: end * MS,
                k.FRAME: (member - 1) << 48 | 100 * key,
            }
            if key in stop and member == B:
                at[k.INSIDE], at[k.INSIDE_END] = 2 * MS, end * MS
            for column, value in at.items():
                row[3 + column] = value
            rows.append(row)
        now += 10 + (late - 1)
    return Rounds.of(np.array(rows))


def draw(made, onset_ms=None):
    names = Directory(addresses=["-", "10.0.0.1", "10.0.0.2"], taps=[Tap(0, "n0.pcap"), Tap(1, "n1.pcap")])
    found = []
    if onset_ms is not None:
        found = [Incident("i", "c20", "t", 0.9, onset_ms * MS, onset_ms * MS, None)]
    return lanes(Remembered([made]), names, found, {"10.0.0.1": A, "10.0.0.2": A})


def test_without_an_incident_there_is_one_usual_stretch():
    (usual,) = draw(rounds())
    assert (usual.label, usual.group) == ("usual", "10.0.0.1")
    assert {s.kind for s in usual.spans} == {"own", "wait", "transit"}
    assert {s.member for s in usual.spans} == {"10.0.0.1", "10.0.0.2"}
    assert all(usual.start_ns <= s.start_ns <= s.end_ns <= usual.end_ns for s in usual.spans)
    assert sum(s.kind == "own" for s in usual.spans) == 2 * ROUNDS_SHOWN


def test_with_an_incident_the_slowest_stretch_stands_beside_it():
    usual, during = draw(rounds(slow=(8, 9, 10)), onset_ms=60)
    assert (usual.label, during.label) == ("usual", "during the incident")
    assert during.end_ns - during.start_ns > usual.end_ns - usual.start_ns
    own = [s.end_ns - s.start_ns for s in during.spans if s.kind == "own" and s.member == "10.0.0.2"]
    assert max(own) == 9 * MS


def test_who_enters_first_waits_and_the_last_one_does_not():
    (usual,) = draw(rounds(slow=range(1, 13)))
    assert {s.member for s in usual.spans if s.kind == "wait"} == {"10.0.0.1"}


def test_a_stop_inside_a_round_is_drawn():
    (usual,) = draw(rounds(stop=range(1, 13)))
    stops = [s for s in usual.spans if s.kind == "inside"]
    assert {s.member for s in stops} == {"10.0.0.2"}
    assert {s.end_ns - s.start_ns for s in stops} == {2 * MS}


def test_every_span_names_its_frame():
    (usual,) = draw(rounds())
    assert {s.frame[0] for s in usual.spans} == {"n0.pcap", "n1.pcap"}
    assert all(s.frame[1] % 100 == 0 for s in usual.spans)


def test_too_few_rounds_draw_nothing():
    assert draw(rounds(ROUNDS_SHOWN)) == []
    assert draw(Rounds.of(np.zeros((0, 3 + k.R_COLUMNS), dtype=np.int64))) == []


def test_a_fault_from_the_first_round_has_no_usual_stretch():
    (only,) = draw(rounds(), onset_ms=0)
    assert only.label == "during the incident"
