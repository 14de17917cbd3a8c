"""How late, how often and for how long a member must be."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, Verdicts, Window

CONDITION = load_all()["c20"]
LIMIT = CONDITION.entry.params
TENTH_NS = 100_000_000
USUAL = {
    "excess_ratio": 0.5,
    "late_rounds": 4.0,
    "rounds": 5.0,
    "peer_ratio": 0.5,
    "excess_z": 1.0,
    "group_slowdown": 1.5,
    "unsteady_ratio": 0.0,
    "unsteady_late_share": 0.0,
    "unsteady_level_share": 0.0,
}
UNSTEADY = {
    "excess_ratio": 0.0,
    "late_rounds": 0.0,
    "unsteady_ratio": 0.5,
    "unsteady_late_share": 0.4,
    "unsteady_level_share": 0.5,
}


def judge(*changes: dict[str, float]) -> list[Verdicts]:
    """Return the verdicts on consecutive windows of one scope: the usual one but for the changes."""
    detector = CONDITION.fresh()
    state = {n: np.array([v]) for n, v in detector.STATE.items()}
    slot = np.zeros(1, dtype=np.int64)
    found = []
    for i, changed in enumerate(changes):
        columns = defaultdict(lambda: np.full(1, np.nan))
        columns.update({n: np.array([v]) for n, v in (USUAL | changed).items()})
        start = (10 + i) * TENTH_NS
        onset = {"late_rounds": np.array([start + 1000 - 1000 * i])}
        found.append(detector.step(Window(start, start + TENTH_NS, ["x"], columns, slot, state, onset)))
    return found


def state_of(**changed: float) -> int:
    """Return the state of a single window."""
    return int(judge(changed)[0].state[0])


def hits(count: int, **changed: float) -> list[dict[str, float]]:
    """Return `count` windows with the same changes."""
    return [changed] * count


def windows_to_fire() -> int:
    """Return how many hit windows in a row the sequential test needs."""
    return int(np.ceil(LIMIT.limit / np.log(LIMIT.hit_share_fault / LIMIT.hit_share_healthy)))


def test_it_fires_after_as_many_hits_as_the_test_needs():
    need = windows_to_fire()
    states = [v.state[0] for v in judge(*hits(need))]
    assert states == [CLEAR] * (need - 1) + [FINDING]


def test_a_window_hits_at_the_threshold():
    need = windows_to_fire()
    least = {"excess_ratio": LIMIT.min_excess_ratio, "late_rounds": 1.0}
    assert judge(*hits(need, **least))[-1].state[0] == FINDING
    assert judge(*hits(9, **least | {"excess_ratio": 0.9 * LIMIT.min_excess_ratio}))[-1].state[0] == CLEAR
    assert judge(*hits(9, excess_ratio=0.3, rounds=100.0))[-1].state[0] == CLEAR


def test_half_a_round_counts_however_few_rounds_were_late():
    rare = {"rounds": 50.0, "late_rounds": 1.0}
    assert judge(*hits(windows_to_fire(), **rare, excess_ratio=0.6))[-1].state[0] == FINDING


def test_hits_now_and_then_do_not_add_up():
    quiet = {"excess_ratio": 0.0, "late_rounds": 0.0}
    states = [v.state[0] for v in judge(*[{}, quiet, quiet, quiet, quiet] * 20)]
    assert FINDING not in states


def test_the_onset_is_that_of_the_first_hit():
    quiet = {"excess_ratio": 0.0, "late_rounds": 0.0}
    assert judge(quiet, quiet, *hits(5))[-1].onset_ns[0] == 12 * TENTH_NS - 1000


def test_weak_hits_shortly_before_do_not_date_a_strong_fault():
    quiet = {"excess_ratio": 0.0, "late_rounds": 0.0}
    pause = [quiet] * 2
    weak = {"excess_ratio": 0.9 * LIMIT.strong_excess_ratio}
    strong = {"excess_ratio": LIMIT.strong_excess_ratio}

    def dated(*changes: dict[str, float]) -> int:
        """Return the number of the window by which the last of them is dated."""
        last = judge(*changes)[-1]
        assert last.state[0] == FINDING
        return round((last.onset_ns[0] - 1000) / (TENTH_NS - 1000)) - 10

    assert dated(weak, *pause, *hits(4, **strong)) == 1 + len(pause)
    assert dated(weak, *pause, weak, quiet, *hits(4, **strong)) == 1 + len(pause)
    assert dated(strong, *pause, *hits(4, **strong)) == 0
    assert dated(weak, *pause, *hits(4, **weak)) == 0


def test_a_quiet_time_forgets_the_onset():
    quiet = {"excess_ratio": 0.0, "late_rounds": 0.0}
    *_, last = judge(*hits(5), *[quiet] * 40, *hits(5))
    assert last.state[0] == FINDING
    assert last.onset_ns[0] == 55 * TENTH_NS + 1000 - 45_000


def test_without_a_reference_a_large_excess_must_last():
    new = {"excess_ratio": 0.0, "late_rounds": 0.0}
    need = int(np.ceil(LIMIT.blind_enough / (LIMIT.blind_step - LIMIT.blind_leak)))
    states = [v.state[0] for v in judge(*hits(need, **new, peer_ratio=5.0))]
    assert states == [CLEAR] * (need - 1) + [FINDING]
    assert judge(*hits(60, **new, peer_ratio=0.9 * LIMIT.blind_ratio))[-1].state[0] == CLEAR


def test_a_large_excess_that_begins_late_has_a_reference():
    quiet = {"excess_ratio": 0.0, "late_rounds": 0.0}
    late = judge(*[quiet] * 30, *hits(20, **quiet, peer_ratio=5.0))
    assert late[-1].state[0] == CLEAR


def test_a_handicap_that_ends_is_known_by_the_relief():
    held = {"excess_ratio": 0.0, "late_rounds": 0.0, "group_slowdown": 1.0}
    freed = {"excess_ratio": -0.4, "late_rounds": 0.0, "excess_z": -9.0, "group_slowdown": 0.7}
    need = int(LIMIT.relief_windows)
    *_, before, last = judge(*[held] * 20, *[freed] * need)
    assert (before.state[0], last.state[0]) == (CLEAR, FINDING)
    assert last.onset_ns[0] == 10 * TENTH_NS, "it was there from the first window"
    assert judge(*[held] * 20, *[freed | {"group_slowdown": 1.0}] * 20)[-1].state[0] == CLEAR


def test_a_group_that_is_faster_than_usual_is_not_held_up():
    assert judge(*hits(9, group_slowdown=0.9))[-1].state[0] == CLEAR


def test_a_window_late_as_a_whole_counts_without_a_late_round():
    whole = {"late_rounds": 0.0, "excess_ratio": LIMIT.min_steady_ratio}
    assert judge(*hits(windows_to_fire(), **whole, excess_z=LIMIT.min_z))[-1].state[0] == FINDING
    assert judge(*hits(9, **whole, excess_z=0.9 * LIMIT.min_z))[-1].state[0] == CLEAR


def test_a_larger_excess_scores_higher():
    small, large = judge(*hits(5, excess_ratio=0.2))[-1], judge(*hits(5, excess_ratio=1.5))[-1]
    assert small.score[0] < large.score[0]


def test_lateness_that_comes_and_goes_from_the_first_packet_is_found_at_once():
    assert state_of(**UNSTEADY) == FINDING


def test_lateness_in_every_round_is_an_order_of_entry():
    assert state_of(**UNSTEADY | {"unsteady_level_share": 0.05}) == CLEAR


def test_ordinary_irregularity_is_none():
    assert state_of(**UNSTEADY | {"unsteady_ratio": 0.25}) == CLEAR
    assert state_of(**UNSTEADY | {"unsteady_late_share": 0.1}) == CLEAR
