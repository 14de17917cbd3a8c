"""Cluster files: what they give, and what is refused."""

import numpy as np
import pytest

from skewscope.lab.sim.cluster import ClusterError, names, parse, shipped

ONE = '[[replica]]\nmodel = "llama70b-tp8-h100"\n'


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


@pytest.mark.parametrize("name", names())
def test_shipped_clusters_are_valid(name: str) -> None:
    cluster = parse(name, shipped(name), rng())
    assert len(set(cluster.addresses)) == cluster.hosts
    assert sorted(h for r in cluster.replicas for h in r.hosts) == list(range(cluster.hosts))


def test_ids_are_canonical() -> None:
    cluster = parse("t", ONE + "hosts = 2\ncount = 2", rng())
    assert cluster.hosts == 4
    assert cluster.gpu(17) == f"{cluster.addresses[2]}/gpu1"
    assert cluster.nic(8) == f"{cluster.addresses[1]}/mlx5_0/1"
    assert cluster.endpoint(1) == f"{cluster.addresses[2]}:8000"
    assert cluster.replica_of(3) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = [", "not TOML"),
        ("", r"no \[\[replica\]\]"),
        ("[[replica]]\nmodel = 'gpt'\n", "replica 1"),
        (ONE + "count = 0", "count"),
        (ONE + "colour = 1", "colour"),
        (ONE + 'role = "king"', "role"),
    ],
)
def test_bad_files_are_named(text: str, said: str) -> None:
    with pytest.raises(ClusterError, match=said):
        parse("t", text, rng())
