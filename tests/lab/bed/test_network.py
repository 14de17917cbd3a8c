"""What the network tells about itself, without building one."""

import os
import sys

import pytest

from skewscope.lab.bed import network

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc of Linux")


def test_tcp_counters_of_this_process_are_numbers_by_name():
    found = network.tcp_counters(os.getpid())
    assert {"RetransSegs", "OutSegs", "OutRsts", "TCPLossProbes", "TCPToZeroWindowAdv"} <= set(found)
    assert all(isinstance(v, int) for v in found.values())


def test_a_process_that_is_gone_has_none():
    assert network.tcp_counters(2**22 + 1) == {}


def test_receive_drops_only_grow():
    assert 0 <= network.receive_drops() <= network.receive_drops()
