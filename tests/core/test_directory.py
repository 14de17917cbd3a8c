"""Names behind ids."""

import ipaddress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewscope.core.directory import LID_HIGH, Directory, Flow, Flows, address_text

MAPPED = 0xFFFF << 32


@pytest.mark.parametrize(
    ("high", "low", "text"),
    [
        (0, MAPPED | 0x0A000001, "10.0.0.1"),
        (0, MAPPED, "0.0.0.0"),
        (0x20010DB8 << 32, 1, "2001:db8::1"),
        (0, 1, "::1"),
        (0, 0, "::"),
        (0xFE80 << 48, 0x5678, "fe80::5678"),
    ],
)
def test_addresses_as_text(high, low, text):
    assert address_text(high, low) == text


@given(st.lists(st.sampled_from([0, 0, 1, 0xFFFF]) | st.integers(0, 0xFFFF), min_size=8, max_size=8))
def test_the_library_writes_the_same(words):
    value = sum(word << 16 * n for n, word in enumerate(words))
    mapped = value >> 32 == 0xFFFF
    want = ipaddress.IPv4Address(value & 0xFFFFFFFF) if mapped else ipaddress.IPv6Address(value)
    if value >> 64 != LID_HIGH:
        assert address_text(value >> 64, value & (1 << 64) - 1) == str(want)


def test_targets_are_interned_without_their_query():
    names = Directory()
    first = names.target("/v1/chat/completions?user=42")
    assert first == names.target("/v1/chat/completions")
    assert names.targets[first] == "/v1/chat/completions"
    assert names.target("/metrics") != first


def test_paths_without_end_are_one_bucket():
    names = Directory()
    ids = [names.target(f"/{i}") for i in range(5_000)]
    assert len(names.targets) == 4096
    assert ids[-1] == 0
    assert names.target("/7") == ids[7]


def test_id_0_is_none_everywhere():
    names = Directory()
    assert (names.addresses, names.targets) == (["-"], [""])
    assert len(names.flows) == 1


def test_flows_come_back_as_they_were_given():
    given = [Flow(1, 65_535, 1 << 20, 80, 6), Flow(2, 0, 3, 0, 17)]
    flows = Flows(given)
    flows.append(given[0])
    flows += given
    assert len(flows) == 5
    assert list(flows) == [*given, given[0], *given]
    assert flows[2] == given[0]
    assert flows == Flows(list(flows))
    again = Flows()
    again.add(*(np.array([getattr(f, n) for f in flows]) for n in ("a", "a_port", "b", "b_port", "proto")))
    assert again == flows
    assert flows != Flows(given)
    with pytest.raises(IndexError):
        flows[5]
