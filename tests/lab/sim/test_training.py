"""Training: iterations, bubbles and the rank that all wait for."""

import numpy as np
import pytest

from skewscope.lab.sim import training
from skewscope.lab.sim.cluster import parse, shipped
from skewscope.lab.sim.compiled import kernel as k
from skewscope.lab.sim.events import Streams
from skewscope.lab.sim.world import Change, Run


def run(*changes: Change, seconds: float = 60.0) -> Run:
    cluster = parse("train8", shipped("train8"), Streams.of(5).placement)
    return training.run(cluster, list(changes), seconds, 5)


def took(made: Run) -> np.ndarray:
    return made.steps[:, k.T_END] - made.steps[:, k.T_START]


def test_iterations_follow_each_other_and_repeat() -> None:
    one, two = run(), run()
    assert np.array_equal(one.steps, two.steps)
    assert np.allclose(one.steps[1:, k.T_START], one.steps[:-1, k.T_END])


def test_an_iteration_is_compute_bubble_and_what_of_the_gradients_is_not_hidden() -> None:
    made = run()
    r = made.cluster.replicas[0]
    base = training.microbatch_s(r, 2048, 989.0)
    assert np.median(took(made)) == pytest.approx(
        (8 + 2 - 1) * base + np.median(made.steps[:, k.T_NET]), rel=0.05
    )


def test_all_pipelines_wait_for_one_slow_rank() -> None:
    usual, slow = run(), run(Change(0.0, "gpu_slow_ratio", (17,), 1.4))
    assert np.median(took(slow)) > 1.3 * np.median(took(usual))
    assert np.argmax(slow.own_s.mean(axis=0)) == 17


def test_a_full_uplink_lengthens_the_exchange_of_gradients_only() -> None:
    usual, full = run(), run(Change(0.0, "link_load_ratio", (0,), 0.8))
    assert np.median(full.steps[:, k.T_NET]) > 3 * np.median(usual.steps[:, k.T_NET])
    assert np.median(full.own_s) == pytest.approx(float(np.median(usual.own_s)), rel=0.01)
