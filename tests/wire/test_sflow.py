import struct
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.wire.sflow import INTERFACE, decode, looks_right

HEADER = bytes(12) + b"\x08\x00" + bytes(40)


def word(*values):
    return struct.pack(f">{len(values)}I", *values)


def piece(kind, body):
    return word(kind, len(body)) + body + bytes(-len(body) & 3)


def datagram(*samples, family=1):
    agent = bytes([10, 0, 0, 9]) if family == 1 else b"\xfd" + bytes(14) + b"\x09"
    return word(5, family) + agent + word(0, 1, 1000, len(samples)) + b"".join(samples)


def flow(*records, rate=2048, wide=False):
    source = word(0, 7, rate, 9, 5, 0, 3, 0, 4) if wide else word(7, rate, 9, 5, 3, 4)
    return piece(3 if wide else 1, word(1) + source + word(len(records)) + b"".join(records))


def interface(values, wide=False):
    body = b"".join(values.get(name, 0).to_bytes(width, "big") for name, width in INTERFACE)
    source = word(0, 7) if wide else word(7)
    return piece(4 if wide else 2, word(1) + source + word(1) + piece(1, body))


RAW = piece(1, word(1, 1500, 4, len(HEADER)) + HEADER)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("family", "agent"), [(1, "10.0.0.9"), (2, "fd00::9")])
def test_sampled_headers_and_counters(wide, family, agent):
    counts: Counter[str] = Counter()
    data = datagram(
        flow(RAW, wide=wide),
        interface({"ifIndex": 7, "ifInOctets": 1 << 40, "ifInErrors": 0xFFFFFFFF}, wide),
        family=family,
    )
    assert looks_right(data)
    said = decode(data, counts)
    (sample,), (counters,) = said.samples, said.counters
    assert (said.agent, said.drops) == (agent, 5)
    assert (sample.interface, sample.rate, sample.frame_bytes, sample.link, sample.header) == (
        3,
        2048,
        1500,
        1,
        HEADER,
    )
    assert counters.interface == 7
    assert counters.values["ifInOctets"] == 1 << 40
    assert counters.values["ifInErrors"] == -1
    assert not counts


def test_fields_stand_for_a_header_that_was_not_sent():
    record = piece(3, word(1400, 17) + bytes([10, 0, 0, 1, 10, 0, 0, 2]) + word(4791, 4791, 0, 0xB8))
    (sample,) = decode(datagram(flow(record)), Counter()).samples
    assert sample.link == 101
    assert sample.header[:2] == b"\x45\xb8"
    assert sample.header[12:24] == bytes([10, 0, 0, 1, 10, 0, 0, 2]) + struct.pack(">HH", 4791, 4791)
    both = decode(datagram(flow(RAW, record)), Counter()).samples
    assert [s.link for s in both] == [1]


def test_what_cannot_be_read_is_counted():
    counts: Counter[str] = Counter()
    said = decode(
        datagram(piece(9, b"abcd"), flow(piece(1, word(7, 60, 0, 4) + b"abcd")), interface({})[:-8]), counts
    )
    assert said.samples == []
    assert counts == {
        "samples of other kinds": 1,
        "sampled frames of another link type": 1,
        "damaged datagrams": 1,
    }
    assert decode(b"\x00\x00\x00\x04" + bytes(40), counts) is None


@settings(deadline=None)
@given(st.binary(max_size=120))
def test_any_bytes_are_taken(data):
    whole = datagram(flow(RAW), interface({}))
    for raw in (data, whole[: len(data)], whole[:28] + data, whole[:28] + piece(1, data) + piece(4, data)):
        decode(raw, Counter())
