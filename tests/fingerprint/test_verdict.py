"""Classes, the open-set verdict, the sequential test, watching."""

from __future__ import annotations

import numpy as np
import pytest

from skewscope.fingerprint import enrolment
from skewscope.fingerprint.classes import choose_probes, classify
from skewscope.fingerprint.collection import CollectionError
from skewscope.fingerprint.verdict import check, rates_of, sequential
from skewscope.fingerprint.watching import ALARM, IN_CLASS, OTHER_CLASS, UNKNOWN, UNSTABLE, watch
from tests.fingerprint.answers import collection

KERNELS = {f"k{i}": {"error": 1e-5, "platform": i, "repeats": 2} for i in range(1, 5)}
NOISY = {"error": 1e-2, "noise": 1e-2, "noisy_share": 0.7, "platform": 9, "probes": 150}
"""A busy replica: about one position in ten is equal between repetitions."""


@pytest.fixture(scope="module")
def known():  # type: ignore[no-untyped-def]
    kernels = [collection(name, **settings) for name, settings in KERNELS.items()]
    groups = classify([*kernels, collection("noisy", repeats=4, **NOISY)])
    return groups, rates_of(groups)


def test_bit_equal_recordings_form_one_class() -> None:
    groups = classify([collection("a"), collection("b", error=1e-5, platform=1), collection("a2")])
    assert [g.members for g in groups] == [["a", "a2"], ["b"]]
    assert (groups[0].pairs, groups[0].equal) == (80, 80)
    assert len(classify([collection("a"), collection("b", error=1e-5, platform=1)], decimals=1)) == 1


def test_every_class_is_recognised_with_few_probes(known) -> None:  # type: ignore[no-untyped-def]
    for name, settings in KERNELS.items():
        found = check(collection("again", **settings), *known)
        assert (found.outcome, found.best, found.unstable) == ("match", name, False)
        assert found.classes[0].probes_used <= 3
        assert found.classes[0].probability > 0.999
        others = {c.name: c.outcome for c in found.classes[1:]}
        assert others.pop("noisy") != "accepted"  # its noise is larger than what separates kernels
        assert set(others.values()) == {"refused"}


def test_an_unknown_platform_is_none_of_them(known) -> None:  # type: ignore[no-untyped-def]
    groups = [g for g in known[0] if g.name != "noisy"]
    known = groups, rates_of(groups)
    for settings in ({"error": 1e-5, "platform": 77}, {"grid": "bf16"}, {"error": 0.1, "platform": 78}):
        found = check(collection("new", **settings), *known)
        assert found.outcome == "none"
        assert found.none_probability > 0.999


def test_noise_of_a_busy_replica_is_not_taken_for_drift(known) -> None:  # type: ignore[no-untyped-def]
    found = check(collection("busy", seed=5, repeats=2, **NOISY), *known)
    assert (found.outcome, found.best, found.unstable) == ("match", "noisy", False)
    other = check(collection("other", seed=5, **(NOISY | {"platform": 10, "error": 0.3})), *known)
    assert other.outcome == "none"


def test_false_refusals_stay_below_the_stated_rate() -> None:
    random = np.random.default_rng(1)
    own, other = 0.9, 0.2
    ratio = np.log([(1 - own) / (1 - other), own / other])
    runs = [sequential(ratio[(random.random(60) < own).astype(int)], 0.01)[0] for _ in range(2000)]
    assert runs.count("refused") <= 2000 * 0.01 * 1.5
    assert runs.count("accepted") > 1900
    assert sequential(np.zeros(3)) == ("open", 3, 0.0)
    assert sequential(np.zeros(0)) == ("open", 0, 0.0)


def test_too_few_probes_leave_it_open_and_none_is_no_data(known) -> None:  # type: ignore[no-untyped-def]
    assert check(collection("one", probes=1, **KERNELS["k1"]), *known).outcome == "undecided"
    empty = collection("empty", probes=0)
    assert check(empty, *known).outcome == "no data"


def test_probes_are_chosen_by_what_they_separate(known) -> None:  # type: ignore[no-untyped-def]
    groups, _ = known
    assert choose_probes(groups).separated == [5]
    coarse = choose_probes(groups, decimals=3)
    assert coarse.separated == sorted(coarse.separated)
    assert len(set(coarse.order)) == len(coarse.order)


def test_an_enrolment_returns_as_it_was(known) -> None:  # type: ignore[no-untyped-def]
    groups, rates = known
    again, decimals = enrolment.loads(enrolment.dumps(groups))
    assert decimals is None
    assert [g.members for g in again] == [g.members for g in groups]
    assert rates_of(again) == rates
    for text in ("", "{}", "[]", '{"schema": "skewscope.enrolment/1"}', enrolment.dumps(groups)[:500]):
        with pytest.raises(CollectionError):
            enrolment.loads(text)


def test_three_ways_of_leaving_a_class(known) -> None:  # type: ignore[no-untyped-def]
    def state(**settings: float) -> tuple[str, str, str]:
        found = watch(collection("r", **settings), "k1", *known)  # type: ignore[arg-type]
        assert (found.alarm_probe >= 0) == (found.statistic >= ALARM)
        return found.state, found.condition, found.seen

    assert state(**KERNELS["k1"]) == (IN_CLASS, "", "k1")
    assert state(**KERNELS["k2"]) == (OTHER_CLASS, "c51", "k2")
    assert state(error=1e-5, platform=50, repeats=2)[:2] == (UNKNOWN, "c51")
    with pytest.raises(KeyError):
        watch(collection("r"), "nobody", *known)


def test_a_replica_that_contradicts_itself_is_unstable() -> None:
    groups = classify([collection(n, **s) for n, s in KERNELS.items()])
    sick = collection("sick", noise=1e-2, noisy_share=0.3, **KERNELS["k1"])  # type: ignore[arg-type]
    found = watch(sick, "k1", groups, rates_of(groups))
    assert (found.state, found.condition) == (UNSTABLE, "c41")
