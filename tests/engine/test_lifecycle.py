"""The life of a finding: pending, firing, ended, firing again."""

import pytest

from skewscope.core.entry import Timing
from skewscope.core.report import Evidence
from skewscope.engine.lifecycle import ScopeLife, Verdict
from tests.engine.tables import entry

TICK = 100_000_000


def live(pattern, timing, *, scores=None, onsets=None):
    """Play a pattern of found windows (x), clear ones (.), and windows without data (_).

    Returns (life, fired findings with their window, ended findings with their window).
    """
    life = ScopeLife(entry(timing=timing), "a")
    fired, ended = [], []
    for i, mark in enumerate(pattern):
        now = (i + 1) * TICK
        if mark != "_":
            score = scores[i] if scores else 0.6
            onset = onsets[i] if onsets else now - TICK
            finding = life.step(Verdict(now, mark == "x", score, onset, [Evidence("n", i, "1")]))
            if finding is not None:
                fired.append((i, finding))
        done = life.advance(now)
        if done is not None:
            ended.append((i, done))
    return life, fired, ended


@pytest.mark.parametrize(
    ("fire", "of", "pattern", "fires"),
    [
        (1, 1, "..x..", [2]),
        (3, 5, "x.x..", []),
        (3, 5, "x.x.x", [4]),
        (3, 5, "x.x...x.", []),
        (2, 2, "x.x.xx", [5]),
        (3, 3, "xx_x", [3]),
        (2, 3, "x______x", [7]),
    ],
)
def test_m_of_the_last_n_judged_windows_fire(fire, of, pattern, fires):
    _, fired, _ = live(pattern, Timing(fire, of, 10.0))
    assert [i for i, _ in fired] == fires


def test_a_finding_is_dated_by_its_first_window_and_detected_by_its_last():
    _, fired, _ = live("x.xx", Timing(3, 4, 10.0))
    ((at, finding),) = fired
    assert at == 3
    assert (finding.onset_ns, finding.detected_ns, finding.windows) == (0, 4 * TICK, 3)


def test_it_shows_its_strongest_window():
    life, fired, _ = live("xxxx", Timing(2, 2, 10.0), scores=[0.3, 0.6, 0.9, 0.5])
    finding = fired[0][1]
    assert life.open is finding
    assert finding.score == 0.9
    assert [e.value for e in finding.evidence] == [2]
    assert finding.windows == 4


def test_an_earlier_onset_that_is_found_later_counts():
    _, fired, _ = live("xx", Timing(1, 1, 10.0), onsets=[70, 30])
    assert fired[0][1].onset_ns == 30


def test_it_ends_when_keep_has_passed_and_is_dated_by_its_last_window():
    _, fired, ended = live("xx.....", Timing(1, 1, 0.3))
    ((at, finding),) = ended
    assert (at, finding.end_ns) == (4, 2 * TICK)
    assert finding is fired[0][1]


def test_missing_data_ends_it_as_well():
    """Event time passes without windows: what is not seen any more is not kept for ever."""
    _, _, ended = live("x____", Timing(1, 1, 0.3))
    assert [i for i, _ in ended] == [3]


def test_a_pause_shorter_than_keep_is_one_finding():
    life, fired, ended = live("x..x..x", Timing(1, 1, 0.35))
    assert (len(fired), len(ended)) == (1, 0)
    assert life.open is not None
    assert life.open.windows == 3


def test_it_fires_again_after_its_end_and_needs_new_windows_for_it():
    _, fired, ended = live("xx....x..x", Timing(2, 4, 0.3))
    assert [i for i, _ in fired] == [1, 9]
    assert [i for i, _ in ended] == [4]
    assert fired[0][1] is not fired[1][1]
    assert fired[1][1].onset_ns == 6 * TICK


def test_nothing_ends_that_never_fired():
    life = ScopeLife(entry(timing=Timing(2, 2, 0.1)), "a")
    life.step(Verdict(TICK, True, 0.9, 0))
    assert life.advance(100 * TICK) is None
    assert life.open is None
