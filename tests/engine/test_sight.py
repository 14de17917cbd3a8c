"""Which frames are named as those behind a number."""

import numpy as np
import pytest

from skewscope.core.directory import Directory, Tap
from skewscope.core.features import Slice
from skewscope.core.report import FrameSpan
from skewscope.core.schemas import PACKETS
from skewscope.core.tables import Table
from skewscope.engine import sight as module
from skewscope.engine.sight import Sight

TICK = 100_000_000
A, B, C, V6, LID = 1, 2, 3, 4, 5
DIRECTORY = Directory(
    addresses=["-", "10.0.0.1", "10.0.0.2", "10.0.0.3", "fd00::1", "lid 5"],
    taps=[Tap(0, "a.pcap"), Tap(1, "b.pcap")],
)


def fed(sight, number, *packets):
    """Feed one slice; a packet is (tap, frame, src, sport, dst, dport)."""
    columns = list(zip(*packets, strict=True)) or [()] * 6
    names = ("tap", "frame", "src", "sport", "dst", "dport")
    made = dict(zip(names, map(np.array, columns), strict=True))
    ts = number * TICK + np.arange(len(packets))
    table = Table(PACKETS, {**made, "ts_ns": ts})
    sight.note(Slice(number * TICK, (number + 1) * TICK, {"packets": table}, DIRECTORY))


def test_a_host_has_the_frames_at_the_tap_that_saw_most_of_it():
    sight = Sight()
    fed(sight, 0, (0, 1, A, 9, B, 80), (0, 2, B, 80, A, 9), (1, 1, A, 9, B, 80), (0, 3, C, 9, B, 80))
    fed(sight, 1, (0, 4, A, 9, C, 80), (0, 5, B, 1, C, 2))
    assert sight.spans("10.0.0.1", 0, DIRECTORY) == [FrameSpan("a.pcap", 1, 4, 3, "ip.addr == 10.0.0.1")]


def test_what_lies_between_two_hosts_shows_at_both_taps():
    sight = Sight()
    fed(sight, 0, (0, 1, A, 9, B, 80), (1, 7, A, 9, B, 80), (1, 8, B, 80, A, 9), (0, 2, A, 9, C, 80))
    text = "ip.addr == 10.0.0.1 && ip.addr == 10.0.0.2"
    assert sight.spans("10.0.0.1->10.0.0.2", 0, DIRECTORY) == [
        FrameSpan("a.pcap", 1, 1, 1, text),
        FrameSpan("b.pcap", 7, 8, 2, text),
    ]


@pytest.mark.parametrize(
    ("key", "last", "text"),
    [
        ("10.0.0.1:80", 2, "ip.addr == 10.0.0.1 && tcp.port == 80"),
        ("[fd00::1]:80", 4, "ipv6.addr == fd00::1 && tcp.port == 80"),
        ("fd00::1", 5, "ipv6.addr == fd00::1"),
        ("lid 5", 6, ""),
    ],
)
def test_keys_of_all_kinds(key, last, text):
    sight = Sight()
    fed(
        sight, 0, (0, 1, B, 7, A, 80), (0, 2, A, 80, B, 7), (0, 3, A, 7, B, 80),
        (0, 4, V6, 80, B, 7), (0, 5, V6, 81, B, 7), (0, 6, LID, 0, B, 0),
    )  # fmt: skip
    (span,) = sight.spans(key, 0, DIRECTORY)
    assert (span.last, span.display_filter) == (last, text)


def test_only_frames_since_the_onset_count():
    sight = Sight()
    fed(sight, 0, (0, 1, A, 9, B, 80))
    fed(sight, 1, (0, 2, A, 9, B, 80), (0, 3, A, 9, B, 80))
    (span,) = sight.spans("10.0.0.1", TICK + 1, DIRECTORY)
    assert (span.first, span.last, span.packets) == (3, 3, 1)


def test_of_a_silent_host_the_last_frame_is_named():
    sight = Sight()
    fed(sight, 0, (0, 41, A, 9, B, 80), (0, 42, B, 80, A, 9))
    for number in range(1, 30):
        fed(sight, number, (0, 42 + number, B, 9, C, 80))
    assert sight.spans("10.0.0.1", 20 * TICK, DIRECTORY) == [
        FrameSpan("a.pcap", 42, 42, 1, "ip.addr == 10.0.0.1")
    ]


@pytest.mark.parametrize("key", ["10.9.9.9", "10.0.0.1->10.9.9.9", "", "group 7"])
def test_who_was_never_seen_has_no_frames(key):
    sight = Sight()
    fed(sight, 0, (0, 1, A, 9, B, 80))
    assert sight.spans(key, 0, DIRECTORY) == []


def test_memory_is_bounded_by_time_and_by_rows(monkeypatch):
    sight = Sight()
    for number in range(100):
        fed(sight, number, (0, number + 1, A, 9, B, 80))
    assert len(sight._recent) <= 11
    monkeypatch.setattr(module, "KEPT_ROWS", 3)
    fed(sight, 100, *[(0, 200 + k, A, 9, B, 80) for k in range(9)])
    assert len(sight._recent) == 1
    (span,) = sight.spans("10.0.0.1", 0, DIRECTORY)
    assert (span.first, span.packets) == (200, 9)
