"""A detector over the windows of its scope: missing data, state, limits, evidence."""

import numpy as np
import pytest

from skewscope.core.condition import NO_DATA, Verdicts
from skewscope.core.directory import Directory, Tap
from skewscope.core.entry import Timing
from skewscope.core.features import FeatureRows, Slice
from skewscope.core.report import FrameSpan
from skewscope.core.schemas import PACKETS
from skewscope.core.tables import Table
from skewscope.engine import judge as module
from skewscope.engine.judge import Judge
from skewscope.engine.sight import Sight
from tests.engine.tables import Above, entry, rows

TICK = 100_000_000
NOWHERE = Directory(taps=[Tap(0, "one.pcap")])


def judged(judge, made, number=0, sight=None):
    slice_ = Slice(number * TICK, (number + 1) * TICK, {}, NOWHERE)
    return judge.step(slice_, made, sight or Sight())


def test_rows_that_lack_a_needed_feature_never_reach_the_detector():
    detector = Above()
    judge = Judge(entry(needs=("x", "y")), detector)
    fired, _ = judged(judge, rows(x=[5, np.nan, 5], y=[1, 1, np.nan], other=[np.nan, 0, 0]))
    (window,) = detector.windows
    assert list(window.keys) == ["a"]
    assert [f.key for f in fired] == ["a"]
    assert judge.judged == 1
    assert judge.known == {"x", "y"}


def test_a_window_without_data_is_not_judged_at_all():
    detector = Above()
    judge = Judge(entry(), detector)
    for made in (None, rows(), rows(x=[np.nan, np.nan])):
        assert judged(judge, made) == ([], [])
    assert detector.windows == []
    assert (judge.judged, judge.known) == (0, set())


def test_a_verdict_of_no_data_is_neither_for_nor_against():
    class Unsure(Above):
        def step(self, window):
            made = super().step(window)
            return Verdicts(np.where(window["x"] < 0, NO_DATA, made.state), made.score, made.onset_ns)

    judge = Judge(entry(timing=Timing(2, 2, 10.0)), Unsure())
    fired = [judged(judge, rows(x=[x]), i)[0] for i, x in enumerate([5, -1, -1, 5])]
    assert [len(f) for f in fired] == [0, 0, 0, 1]


def test_state_follows_the_scope_and_not_the_row():
    detector = Above()
    judge = Judge(entry(), detector)
    judged(judge, FeatureRows("host", ["a", "b"], {"x": np.zeros(2)}), 0)
    judged(judge, FeatureRows("host", ["b", "c"], {"x": np.zeros(2)}), 1)
    judged(judge, FeatureRows("host", ["c", "b"], {"x": np.zeros(2)}), 2)
    last = detector.windows[-1]
    assert dict(zip(last.keys, last.state["seen"][last.slot], strict=True)) == {"c": 2, "b": 3}


def test_state_grows_with_its_initial_value_and_keeps_what_was_known():
    class Counting(Above):
        STATE = {"seen": 7.0}

    judge = Judge(entry(), Counting())
    for count in (3, 40, 200):
        keys = [str(i) for i in range(count)]
        judged(judge, FeatureRows("host", keys, {"x": np.zeros(count)}))
    seen = judge._state["seen"]
    assert seen[:3].tolist() == [10, 10, 10]
    assert set(seen[40:200].tolist()) == {8}
    assert set(seen[200:].tolist()) == {7}


def test_scopes_beyond_the_limit_are_refused_and_counted(monkeypatch):
    monkeypatch.setattr(module, "MAX_SCOPES", 2)
    detector = Above()
    judge = Judge(entry(), detector)
    fired, _ = judged(judge, rows(x=[5, 5, 5]))
    assert [f.key for f in fired] == ["a", "b"]
    assert judge.refused == 1
    judged(judge, FeatureRows("host", ["c", "a"], {"x": np.full(2, 5.0)}), 1)
    assert list(detector.windows[-1].keys) == ["a"]


def test_evidence_carries_units_baseline_and_packets():
    judge = Judge(entry(), Above())
    made = rows(x=[5.0])
    made.frames["x"] = np.array([[0, 42]])
    made.onset_ns["x"] = np.array([17])
    ((finding,), _) = judged(judge, made)
    (evidence,) = finding.evidence
    assert (evidence.name, evidence.value, evidence.unit, evidence.baseline) == ("x", 5.0, "s", 0.5)
    assert evidence.packets == [("one.pcap", 42)]
    assert finding.onset_ns == 17


def test_every_number_has_the_frames_of_its_scope():
    judge, sight = Judge(entry(), Above()), Sight()
    directory = Directory(addresses=["-", "a"], taps=NOWHERE.taps)
    packets = Table(PACKETS, {"ts_ns": np.array([5, 6]), "frame": np.array([3, 4]), "src": np.array([1, 1])})
    slice_ = Slice(0, TICK, {"packets": packets}, directory)
    sight.note(slice_)
    ((finding,), _) = judge.step(slice_, rows(x=[5.0]), sight)
    assert finding.evidence[0].spans == [FrameSpan("one.pcap", 3, 4, 2, "ip.addr == a")]


def test_evidence_is_that_of_the_highest_score():
    judge = Judge(entry(), Above())
    ((finding,), _) = judged(judge, rows(x=[5.0]))
    for number, value in enumerate((9.0, 7.0), 1):
        judged(judge, rows(x=[value]), number)
    assert finding.evidence[0].value == (9.0 if finding.score > 0 else 5.0)
    assert finding.windows == 3


@pytest.mark.parametrize("at", [[-1, 5], [0, 0], [0, -1]])
def test_unknown_frames_are_no_packets(at):
    judge = Judge(entry(), Above())
    made = rows(x=[5.0])
    made.frames["x"] = np.array([at])
    ((finding,), _) = judged(judge, made)
    assert finding.evidence[0].packets == []


def test_an_unknown_onset_is_the_window_s_start():
    judge = Judge(entry(), Above())
    ((finding,), _) = judged(judge, rows(x=[5.0]), 3)
    assert (finding.onset_ns, finding.detected_ns) == (3 * TICK, 4 * TICK)


def test_findings_end_also_while_their_scope_is_out_of_sight():
    judge = Judge(entry(timing=Timing(1, 1, 0.2)), Above())
    judged(judge, rows(x=[5.0]))
    assert [f.key for f in judge.open_findings()] == ["a"]
    ended = [judged(judge, None, i)[1] for i in range(1, 5)]
    assert [len(e) for e in ended] == [0, 1, 0, 0]
    assert judge.open_findings() == []
