"""The packet ring: a real one on the loopback interface where there is root."""

import os
import socket
import sys
import time

import pytest

from skewscope.core.directory import Directory
from skewscope.core.tables import Heard
from skewscope.sources.live import LiveError, LiveTap
from skewscope.wire.packets import PacketParser


@pytest.fixture
def tap():
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("a packet ring needs Linux and root")
    directory = Directory()
    tap = LiveTap("lo", directory, PacketParser(directory))
    yield tap
    tap.close()


def test_an_interface_that_is_not_there_is_named():
    directory = Directory()
    with pytest.raises(LiveError, match="nonsense0: cannot capture"):
        LiveTap("nonsense0", directory, PacketParser(directory))


@pytest.mark.root
def test_what_was_sent_is_seen_with_its_time_and_silence_tells_the_time(tap):
    start_ns, heard, mine, port = time.time_ns(), [], [], 49_999
    end = time.monotonic() + 1.5
    batches = tap.batches(lambda: time.monotonic() > end)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for batch in batches:
            if isinstance(batch, Heard):
                heard.append(batch.reached_ns)
            elif len(batch["packets"]):
                rows = batch["packets"]
                mine += rows["ts_ns"][rows["dport"] == port].tolist()
            if not mine:
                s.sendto(b"x" * 100, ("127.0.0.1", port))
    assert mine
    assert all(start_ns <= ts <= time.time_ns() for ts in mine)
    assert heard == sorted(heard)
    assert tap.stats.packets >= len(mine)
