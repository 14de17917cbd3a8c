"""The invariant CRC: built by one implementation (zlib), checked by another, and on recorded frames."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.core.directory import Directory
from skewscope.core.schemas import PACKETS
from skewscope.core.tables import Table
from skewscope.wire import build, headers, icrc, roce
from skewscope.wire import roce_build as rb
from skewscope.wire.packets import PacketParser
from skewscope.wire.pcap import parse_header, walk_records

MAC_A, MAC_B = b"\x02SYN\x00\x01", b"\x02SYN\x00\x02"
A4, B4 = bytes([10, 1, 2, 3]), bytes([10, 1, 2, 4])
A6, B6 = bytes.fromhex("20010db8" + "00" * 11 + "01"), bytes.fromhex("20010db8" + "00" * 11 + "02")
PATHS = [
    rb.Path(MAC_A, MAC_B, *ends, 50_001, vlans=vlans)
    for ends in ((A4, B4), (A6, B6))
    for vlans in ((), (5,), (5, 6))
]
BODY = rb.bth(10, 7, 9, ack=True, pad=3) + rb.reth(1, 2, 13) + bytes(range(13)) + bytes(3)
SAMPLES = os.environ.get("SKEWSCOPE_SAMPLES", "")


def results(frames, kept=None):
    pieces = [f[:kept] for f in frames]
    sizes = np.array([len(p) for p in pieces], dtype=np.int64)
    wire = np.array([len(f) for f in frames], dtype=np.int64)
    buf = np.frombuffer(b"".join(pieces), np.uint8)
    return verify(buf, np.zeros(len(frames), np.int64), np.cumsum(sizes) - sizes, sizes, wire)


def verify(buf, *columns):
    tables = PacketParser(Directory()).parse(buf, *columns, 0, 1)
    return icrc.verify(buf, tables.packets).tolist()


def outside_ip(proto, data, kept=None):
    size = len(data[:kept])
    columns = {
        "frame": [1], "proto": [proto], "fault": [headers.NOT_IP], "payload_at": [1],
        "captured_bytes": [size],
    }  # fmt: skip
    packets = Table(PACKETS, {n: np.array(v) for n, v in columns.items()})
    return icrc.verify(np.frombuffer(b"\0" + data[:kept], np.uint8), packets).tolist()


@pytest.mark.parametrize("path", PATHS)
def test_right_wrong_and_cut(path):
    frame = path.frame(BODY)
    broken = frame[:-20] + bytes([frame[-20] ^ 1]) + frame[-19:]
    assert results([frame, broken]) == [icrc.RIGHT, icrc.WRONG]
    assert results([frame], kept=len(frame) - 1) == [icrc.UNKNOWN]
    assert results([frame + bytes(8)]) == [icrc.RIGHT]


def test_fields_that_routers_change_are_not_covered():
    frame = bytearray(PATHS[0].frame(BODY))
    for at in (15, 22, 24, 25, 40, 41, 46):  # TOS, TTL, IP checksum, UDP checksum, FECN and BECN
        frame[at] ^= 0xC0
    assert results([bytes(frame)]) == [icrc.RIGHT]
    six = bytearray(PATHS[3].frame(BODY))
    for at in (15, 16, 17, 21, 60, 61, 66):  # class, flow label, hop limit, UDP checksum, FECN and BECN
        six[at] ^= 0xC0
    assert results([bytes(six)]) == [icrc.RIGHT]


def test_ipv4_options_are_covered():
    packet = bytearray(PATHS[0].frame(BODY)[14:])
    head = bytes([0x46]) + bytes(packet[1:2]) + (len(packet) + 4).to_bytes(2, "big") + bytes(packet[4:20])
    options, rest = b"\x01\x01\x01\x00", bytes(packet[20:-4])
    masked = bytearray(b"\xff" * 8 + head + options + rest[:8])
    for at in (9, 16, 18, 19, -1, -2):
        masked[at] = 0xFF
    whole = head + options + rest + rb.icrc(bytes(masked), rest[8:])
    assert results([build.ethernet(MAC_A, MAC_B, whole)]) == [icrc.RIGHT]


def test_link_layers_are_passed_over():
    vlan = rb.frame_v1(MAC_A, MAC_B, A6, B6, BODY)
    assert results([vlan, vlan[:12] + b"\x81\x00\x00\x05" + vlan[12:] + bytes(2)]) == [icrc.RIGHT] * 2


def test_roce_v1_and_native():
    one = rb.frame_v1(MAC_A, MAC_B, A6, B6, BODY)[14:]
    assert outside_ip(headers.PROTO_GRH, one + bytes(4)) == [icrc.RIGHT]
    assert outside_ip(headers.PROTO_GRH, one[:50] + b"\x99" + one[51:]) == [icrc.WRONG]
    assert outside_ip(headers.PROTO_GRH, one, kept=30) == [icrc.UNKNOWN]
    for gids in (None, (A6, B6)):
        two = rb.native(5, 6, BODY, level=3, gids=gids)
        lane = bytes([two[0] | 0x70]) + two[1:]
        assert outside_ip(headers.PROTO_LRH, lane + b"vc") == [icrc.RIGHT]
        rerouted = outside_ip(headers.PROTO_LRH, two[:2] + b"\x00\x07" + two[4:])
        assert rerouted == [icrc.RIGHT if gids else icrc.WRONG]
        for kept in (0, 9, 20, 47, len(two) - 1):
            assert outside_ip(headers.PROTO_LRH, two, kept=kept) == [icrc.UNKNOWN]


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=80), st.sampled_from([17, 253, 254]), st.integers(-1, 90), st.integers(0, 200))
def test_any_bytes_and_any_references_end(data, proto, at, payload):
    columns = {
        "frame": [1], "proto": [proto], "fault": [0 if proto == 17 else 3], "payload_at": [at],
        "dport": [roce.ROCE_PORT], "captured_bytes": [payload], "payload_bytes": [payload],
    }  # fmt: skip
    packets = Table(PACKETS, {n: np.array(v) for n, v in columns.items()})
    buf = np.frombuffer(data, np.uint8)
    rows = len(roce.parse(buf, packets, lambda keys: np.ones(len(keys), np.uint32)))
    found = icrc.verify(buf, packets).tolist()
    assert set(found) <= {icrc.UNKNOWN, icrc.RIGHT, icrc.WRONG}
    assert len(found) == rows
    assert rows == (at >= 0)


@pytest.mark.samples
@pytest.mark.skipif(not SAMPLES, reason="SKEWSCOPE_SAMPLES names no folder with recorded captures")
@pytest.mark.parametrize(
    ("name", "frames"),
    [("cnp_connectx4lx", 1), ("softroce_cm_write_read_2025-09", 12), ("softroce_cm_write_read_2025-12", 12)],
)
def test_recorded_frames_are_right(name, frames):
    path = Path(SAMPLES) / "pcap-roce" / f"{name}.pcap"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    data = path.read_bytes()
    header = parse_header(data)
    buf = np.frombuffer(data, np.uint8)[24:]
    columns = [np.zeros(64, np.int64) for _ in range(4)]
    n, _, _ = walk_records(buf, 0, header.big_endian, header.unit_ns, 16, *columns)
    assert verify(buf, *(c[:n] for c in columns)) == [icrc.RIGHT] * frames


@pytest.mark.samples
@pytest.mark.skipif(not SAMPLES, reason="SKEWSCOPE_SAMPLES names no folder with recorded captures")
@pytest.mark.parametrize("name", ["cnp_connectx4lx", "uc_send_only_icrc"])
def test_known_answers(name):
    path = Path(SAMPLES) / "hexdump" / f"{name}.hex.txt"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    lines = [line.split()[1:] for line in path.read_text().splitlines() if not line.startswith("#")]
    assert results([bytes.fromhex("".join(word for line in lines for word in line))]) == [icrc.RIGHT]
