"""Interfaces of one file as taps."""

from pathlib import Path

import numpy as np

from skewscope.core.directory import Directory
from skewscope.sources.taps import MAX_TAPS, Taps
from skewscope.wire.records import Interface

ETH0, ETH1 = Interface(0, "eth0", 1, 96), Interface(1, "eth1", 113, 0)


def made():
    directory = Directory()
    return Taps(Path("a.pcapng"), directory), directory


def place(taps, which, interfaces):
    tap, link = taps.place(np.array(which), interfaces)
    return (tap, link) if isinstance(tap, int) else (tap.tolist(), link.tolist())


def test_one_interface_is_the_first_tap():
    taps, directory = made()
    assert place(taps, [0, 0], [ETH0]) == (0, 1)
    assert [(t.path, t.link_type, t.snap_length) for t in directory.taps] == [("a.pcapng", 1, 96)]
    assert taps.notes() == []


def test_each_interface_with_packets_is_a_tap():
    taps, directory = made()
    assert place(taps, [1, 0, 1], [ETH0, ETH1]) == ([1, 0, 1], [113, 1, 113])
    assert [t.link_type for t in directory.taps] == [1, 113]
    assert taps.notes() == ["2 interfaces, each a tap of its own: eth0 (1 packets), eth1 (2 packets)"]


def test_taps_of_several_files_are_numbered_through():
    directory = Directory()
    one, two = Taps(Path("a"), directory), Taps(Path("b"), directory)
    assert place(two, [0], [ETH0]) == (1, 1)
    assert place(one, [0, 1], [ETH0, ETH1]) == ([0, 2], [1, 113])
    assert [t.path for t in directory.taps] == ["a", "b", "a"]


def test_a_later_section_continues_the_taps():
    taps, directory = made()
    assert place(taps, [0, 1, 2, 3], [ETH0, ETH1, ETH0, ETH1._replace(name="eth9")]) == (
        [0, 1, 0, 2],
        [1, 113, 1, 113],
    )
    assert len(directory.taps) == 3


def test_what_is_not_read_is_counted():
    taps, _ = made()
    wlan = Interface(1, "wlan0", 127, 0)
    assert place(taps, [0, 1, -1, 1], [ETH0, wlan]) == ([0, -1, -1, -1], [1, 127, 0, 127])
    assert place(taps, [-1, -1], [ETH0, wlan]) == (-1, 0)
    assert taps.notes() == [
        "3 frames were left out: their interface is not described",
        "2 frames were left out: link type 127 is not read",
    ]


def test_the_number_of_taps_is_bounded():
    taps, directory = made()
    interfaces = [Interface(i, f"eth{i}", 1, 0) for i in range(MAX_TAPS + 5)]
    tap, _ = place(taps, list(range(len(interfaces))), interfaces)
    assert tap[-6:] == [MAX_TAPS - 1] * 6
    assert len(directory.taps) == MAX_TAPS
    assert "and 24 more" in taps.notes()[0]
