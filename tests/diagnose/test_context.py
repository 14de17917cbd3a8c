"""Addresses in scope keys, and who belongs to which group."""

import pytest

from skewscope.diagnose.context import Context, host_of, hosts_of
from tests.diagnose.cases import FAR, RANKS, network


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("10.0.0.1:8000", "10.0.0.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]:8000", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("::1", "::1"),
    ],
)
def test_the_address_in_a_key(text, host):
    assert host_of(text) == host


def test_the_addresses_of_a_pair():
    assert hosts_of("10.0.0.1->10.0.0.2:80") == ["10.0.0.1", "10.0.0.2"]
    assert hosts_of("2001:db8::1->[2001:db8::2]:80") == ["2001:db8::1", "2001:db8::2"]


def test_groups_of_members_and_of_those_who_talk_to_them():
    context = network()
    assert context.group_of(RANKS[2]) == RANKS[0]
    assert context.groups_of(RANKS[2]) == {RANKS[0]}
    assert context.groups_of("10.0.0.2") == {RANKS[0]}
    assert context.groups_of("10.0.0.3") == set()
    assert context.groups_of(FAR[0]) == set()


def test_names():
    context = Context(names={"10.0.0.1": "n1", "10.0.0.2": "10.0.0.2"})
    assert [context.name(f"10.0.0.{i}") for i in (1, 2, 3)] == ["n1 (10.0.0.1)", "10.0.0.2", "10.0.0.3"]
