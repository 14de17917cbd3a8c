"""The loop: exact repetition, conservation of requests and tokens, causes and their effects."""

import dataclasses

import numpy as np
import pytest

from skewscope.lab.sim.cluster import parse, shipped
from skewscope.lab.sim.compiled import kernel as k
from skewscope.lab.sim.events import Streams
from skewscope.lab.sim.workload import Demand, synthetic
from skewscope.lab.sim.world import Change, Run, World


def run(
    name: str = "serve4", seconds: float = 20.0, changes: tuple[Change, ...] = (), rate: float = 0.0
) -> Run:
    streams = Streams.of(11)
    cluster = parse(name, shipped(name), streams.placement)
    demand = synthetic("azure-conv", rate or cluster.rate_rps, 0.0, seconds, 40, streams.placement)
    return World(cluster, demand, list(changes), seconds, 11).run()


def test_the_same_seed_gives_the_same_run_to_the_last_bit() -> None:
    one, two = run(), run()
    for name in ("steps", "own_s", "times", "counts", "log"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name


@pytest.mark.parametrize("name", ["serve4", "tp16", "pd", "dp8"])
def test_requests_and_tokens_are_conserved(name: str) -> None:
    made = run(name)
    ended = made.times[:, k.Q_END] > 0
    assert ended.mean() > 0.3
    assert np.all(made.counts[ended, k.N_DONE] == made.counts[ended, k.N_OUTPUT])
    assert np.all(made.times[ended, k.Q_FIRST] <= made.times[ended, k.Q_END])
    assert np.all(made.times[ended, k.Q_READY] >= made.demand.at_s[ended])
    # Steps of one replica neither overlap nor go back.
    for r in range(len(made.cluster.replicas)):
        rows = made.steps[made.steps[:, k.T_REPLICA] == r]
        assert np.all(rows[1:, k.T_START] >= rows[:-1, k.T_END] - 1e-9)


def test_caches_come_back_to_zero_when_all_is_served() -> None:
    streams = Streams.of(2)
    cluster = parse("serve4", shipped("serve4"), streams.placement)
    demand = synthetic("azure-conv", 8.0, 0.0, 5.0, 40, streams.placement)
    world = World(cluster, demand, [], 60.0, 2)
    world.run()
    assert np.all(world.state[:, k.S_USED] == 0)
    assert np.all(world.state[:, [k.S_RUNNING, k.S_WAITING]] == 0)


def test_a_small_cache_preempts_and_still_serves() -> None:
    made = run(changes=(Change(0.0, "kv_blocks_ratio", (0, 1, 2, 3), 0.01),))
    assert made.counts[:, k.N_PREEMPTED].sum() > 0
    ended = made.times[:, k.Q_END] > 0
    assert np.all(made.counts[ended, k.N_DONE] == made.counts[ended, k.N_OUTPUT])


def test_a_slow_rank_slows_its_replica_only_and_waits_least() -> None:
    usual, slowed = run("tp16"), run("tp16", changes=(Change(0.0, "gpu_slow_ratio", (3,), 1.5),))
    took = [
        np.median(np.diff(m.steps[m.steps[:, 2] == r][:, :2], axis=1))
        for m in (usual, slowed)
        for r in (0, 1)
    ]
    assert took[2] > 1.1 * took[0]
    assert took[3] == pytest.approx(took[1], rel=0.1)
    mine = slowed.steps[:, k.T_REPLICA] == 0
    assert np.argmax(slowed.own_s[mine].mean(axis=0)) == 3


def test_a_stopped_rank_stops_its_engine_until_it_goes_on() -> None:
    gpu = 3
    made = run(
        "tp16",
        30.0,
        (Change(8.0, "rank_pause_period_s", (gpu,), 1e3), Change(8.0, "rank_pause_s", (gpu,), 10.0)),
    )
    rows = made.steps[made.steps[:, k.T_REPLICA] == 0]
    assert float((rows[:, k.T_END] - rows[:, k.T_START]).max()) > 7.0
    assert np.any(rows[:, k.T_START] > 20.0)


def test_a_restart_fails_what_the_engine_held() -> None:
    made = run(changes=(Change(10.0, "restarting", (1,), 1.0), Change(15.0, "restarting", (1,), 0.0)))
    failed = ~np.isnan(made.failed_s)
    assert failed.sum() > 3
    assert set(made.replica[failed]) == {1}
    came = (made.demand.at_s > 10.1) & (made.demand.at_s < 14.9)
    assert 1 not in set(made.replica[came])


def test_added_requests_leave_the_noise_of_the_others_alone() -> None:
    streams = Streams.of(4)
    cluster = parse("serve4", shipped("serve4"), streams.placement)
    base = synthetic("azure-conv", 4.0, 0.0, 10.0, 40, streams.placement)
    extra = synthetic("azure-conv", 4.0, 5.0, 10.0, 40, streams.faults)
    extra = dataclasses.replace(extra, number=extra.number + 1_000_000)
    both = Demand.merged([base, extra])
    one = World(cluster, base, [], 10.0, 4)
    two = World(cluster, both, [], 10.0, 4)
    assert np.array_equal(one._aborts, two._aborts[both.number < 1_000_000])
