"""Topologies: what a file says, what a seed completes, what is refused."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewscope.lab.bed import topology

CROWD = 'prefix = 28\n[[node]]\nnames = ["b", "c"]\nrole = "client"\naddress_count = 8\n'
SMALL = '[[node]]\nnames = ["n0", "n1"]\nrole = "rank"\n[[node]]\nnames = ["lg"]\nrole = "client"\n'


@pytest.mark.parametrize("name", topology.builtin_names())
def test_shipped_topologies_are_complete(name):
    bed = topology.parse(topology.builtin(name), seed=1)
    assert bed.name == name
    assert bed.replicas()
    assert bed.of_role("client") or name.startswith("ddp")


@given(st.integers(0, 10_000))
def test_addresses_are_distinct_and_of_one_network(seed):
    bed = topology.parse(topology.builtin("tp4"), seed)
    addresses = [a for n in bed.nodes for a in n.addresses]
    networks = {ipaddress.ip_interface(f"{a}/{bed.prefix}").network for a in addresses}
    assert len(set(addresses)) == len(addresses)
    assert len(networks) == 1
    assert next(iter(networks)).is_private
    assert len({n.mac for n in bed.nodes}) == len(bed.nodes)
    assert bed.http_port not in (bed.router_port, bed.store_port)


def test_same_seed_same_bed_other_seed_other_bed():
    text = topology.builtin("tp4")
    assert topology.parse(text, 5) == topology.parse(text, 5)
    assert topology.parse(text, 5) != topology.parse(text, 6)


def test_the_order_of_addresses_is_not_always_the_order_of_ranks():
    orders = set()
    for seed in range(10):
        ranks = topology.parse(topology.builtin("tp4"), seed).of_role("rank")
        order = [int(ipaddress.ip_address(n.address)) for n in ranks]
        orders.add(order == sorted(order))
    assert False in orders


def test_replicas_group_the_ranks():
    bed = topology.parse(topology.builtin("two_tp2"), 1)
    assert [[n.name for n in r] for r in bed.replicas()] == [["n0", "n1"], ["n2", "n3"]]


def test_given_addresses_and_ports_are_kept():
    text = "http_port = 81\nprefix = 24\n" + SMALL + 'addresses = ["10.1.2.3", "10.1.2.4"]\n'
    bed = topology.parse(text, 1)
    assert bed.http_port == 81
    assert bed.node("lg").addresses == ("10.1.2.3", "10.1.2.4")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "node"),
        ("nodes = 3", "unknown keys"),
        ("[[node]\n", "TOML"),
        ('[[node]]\nnames = ["n0"]\nrole = "king"\n', "role"),
        ('[[node]]\nnames = ["n0", "n0"]\nrole = "rank"\n', "names"),
        ('[[node]]\nnames = ["sw"]\nrole = "rank"\n', "switch"),
        ('[[node]]\nnames = ["with-dash"]\nrole = "rank"\n', "letters"),
        ('[[node]]\nnames = ["n0"]\nrole = "rank"\ncolour = 1\n', "unknown keys"),
        ("mtu = 100\n" + SMALL, "mtu"),
        ("prefix = true\n" + SMALL, "prefix"),
        (SMALL + 'addresses = ["10.0.0.300"]\n', "addresses"),
        (CROWD, "too few"),
    ],
)  # fmt: skip
def test_what_is_no_bed_is_refused_by_name(text, word):
    with pytest.raises(topology.TopologyError, match=word):
        topology.parse(text, 1)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(topology.TopologyError, match="tp4"):
        topology.builtin("nonsense")
