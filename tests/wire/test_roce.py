"""Transport headers to the `roce` table: built frames, recorded frames, and bytes that are no RoCE."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.core.directory import LID_HIGH, Directory, address_text
from skewscope.core.schemas import PACKETS
from skewscope.core.tables import Table
from skewscope.wire import build, headers, roce
from skewscope.wire import roce_build as rb
from skewscope.wire.packets import PacketParser
from skewscope.wire.roce_codes import (
    AETH,
    CNP,
    DETH,
    FETCH_ADD,
    GRH,
    HEADERS,
    IMMEDIATE,
    LENGTHS,
    RC,
    RD,
    READ_FIRST,
    READ_MIDDLE,
    READ_REQUEST,
    RETH,
    SEND_ONLY,
    SEND_ONLY_INV,
    UC,
    UD,
    WRITE_LAST_IMM,
    WRITE_MIDDLE,
    WRITE_ONLY,
    WRITE_ONLY_IMM,
    XRC,
)

MAC_A, MAC_B = b"\x02SYN\x00\x01", b"\x02SYN\x00\x02"
A4, B4 = bytes([10, 1, 2, 3]), bytes([10, 1, 2, 4])
A6, B6 = bytes.fromhex("20010db8" + "00" * 11 + "01"), bytes.fromhex("20010db8" + "00" * 11 + "02")
OVER_4 = rb.Path(MAC_A, MAC_B, A4, B4, 50_001)
OVER_6 = rb.Path(MAC_A, MAC_B, A6, B6, 50_001, vlans=(7,))
CUT, CONTRADICT, VERSION, RESERVED, OPCODE, NOT_TRANSPORT = range(1, 7)


def parse(frames, kept=None):
    """Parse whole frames, or their first `kept` bytes; returns (tables, the directory)."""
    parser = PacketParser(Directory())
    pieces = [f[:kept] for f in frames]
    sizes = np.array([len(p) for p in pieces], dtype=np.int64)
    wire = np.array([len(f) for f in frames], dtype=np.int64)
    buf = np.frombuffer(b"".join(pieces), np.uint8)
    times = np.arange(len(frames), dtype=np.int64)
    return parser.parse(buf, times, np.cumsum(sizes) - sizes, sizes, wire, 3, 1), parser.directory


def row(frame, kept=None):
    table = parse([frame], kept)[0].roce
    assert len(table) == 1
    return {n: int(table[n][0]) for n in table.columns}


def bare(proto, data, *, kept=None, frame=1):
    """Return a packets table of one packet outside IP, as the link layer leaves it, and its buffer."""
    pieces = data[:kept]
    columns = {
        "frame": [frame], "proto": [proto], "fault": [headers.NOT_IP], "payload_at": [2],
        "captured_bytes": [len(pieces)], "wire_bytes": [len(data) + 2],
    }  # fmt: skip
    table = Table(PACKETS, {n: np.array(v) for n, v in columns.items()})
    return table, np.frombuffer(b"\xaa\xaa" + pieces + b"\xaa" * 9, np.uint8)


def bare_row(proto, data, kept=None):
    """Parse one packet outside IP; returns (row, packets row, the keys that were named)."""
    packets, buf = bare(proto, data, kept=kept)
    named = []

    def intern(keys):
        named.extend((int(h), int(lo)) for h, lo in keys)
        return np.arange(11, 11 + len(keys), dtype=np.uint32)

    table = roce.parse(buf, packets, intern)
    assert len(table) == 1
    return {n: int(table[n][0]) for n in table.columns}, packets, named


@pytest.mark.parametrize("path", [OVER_4, OVER_6])
def test_write_with_immediate(path):
    body = rb.bth(WRITE_ONLY_IMM, 0x123456, 0xABCDEF, ack=True, pad=1, solicited=True)
    body += rb.reth(0x1122334455667788, 9, 4095) + rb.immediate(4095) + bytes(4096)
    got = row(path.frame(body, ecn=rb.CE))
    assert (got["fault"], got["opcode"], got["qp"], got["psn"]) == (0, WRITE_ONLY_IMM, 0x123456, 0xABCDEF)
    assert (got["bits"], got["pkey"], got["has"]) == (1 | 2 | 16, 0xFFFF, RETH | IMMEDIATE)
    assert (got["address"], got["dma_bytes"], got["immediate"]) == (0x1122334455667788, 4095, 4095)
    assert (got["payload_bytes"], got["ecn"], got["tap"], got["frame"]) == (4095, 3, 3, 1)
    assert got["flow"] == 1
    assert got["src"] != got["dst"]


def test_acknowledgements():
    body = rb.bth(17, 5, 6) + rb.aeth(rb.rnr_syndrome(0.64), 77)
    got = row(OVER_4.frame(body))
    assert (got["has"], got["syndrome"], got["msn"], got["payload_bytes"]) == (AETH, 0x20 | 12, 77, 0)


def test_congestion_notification():
    got = row(OVER_4.notification(0x118))
    assert (got["opcode"], got["bits"] & 8, got["qp"], got["payload_bytes"]) == (CNP, 8, 0x118, 0)
    assert (got["dscp"], got["ecn"], got["fault"], got["has"]) == (48, 2, 0, 0)


def test_marks_and_partition():
    got = row(OVER_4.frame(rb.bth(SEND_ONLY, 1, 2, fecn=True, becn=True, pkey=0x8001) + bytes(4)))
    assert (got["bits"] & 12, got["pkey"], got["payload_bytes"]) == (12, 0x8001, 4)


def test_unreliable_datagram():
    got = row(OVER_4.frame(rb.bth(UD | SEND_ONLY, 1, 66) + rb.deth(0x80010000, 0x456) + bytes(256)))
    assert (got["has"], got["src_qp"], got["payload_bytes"]) == (DETH, 0x456, 256)


@pytest.mark.parametrize(
    ("opcode", "length"),
    [
        (RC | READ_REQUEST, 16), (RC | READ_FIRST, 4), (RC | READ_MIDDLE, 0), (RC | WRITE_MIDDLE, 0),
        (RC | WRITE_LAST_IMM, 4), (RC | FETCH_ADD, 28), (RC | 18, 12), (RC | SEND_ONLY_INV, 4),
        (UC | WRITE_ONLY, 16), (UD | 5, 12), (RD | WRITE_ONLY, 28), (RD | READ_MIDDLE, 4), (RD | 17, 8),
        (RD | 21, 12), (XRC | WRITE_ONLY_IMM, 24), (XRC | 17, 4), (XRC | SEND_ONLY_INV, 8), (CNP, 16),
        (RC | 28, 20), (RC | 29, 16),
    ],
)  # fmt: skip
def test_header_lengths(opcode, length):
    assert LENGTHS[opcode] == length
    got = row(OVER_4.frame(rb.bth(opcode, 1, 2) + bytes(length + 40)))
    assert (got["fault"], got["payload_bytes"], got["opcode"]) == (0, 40, opcode)


def test_headers_behind_headers_without_columns():
    extra = rb.reth(5, 6, 7) + rb.immediate(8)
    got = row(OVER_4.frame(rb.bth(XRC | WRITE_ONLY_IMM, 1, 2) + bytes(4) + extra))
    assert (got["address"], got["dma_bytes"], got["immediate"]) == (5, 7, 8)
    got = row(OVER_4.frame(rb.bth(RD | WRITE_ONLY_IMM, 1, 2) + bytes(4) + rb.deth(1, 3) + extra))
    assert (got["src_qp"], got["dma_bytes"], got["immediate"]) == (3, 7, 8)
    got = row(OVER_4.frame(rb.bth(28, 1, 2) + bytes(4) + rb.reth(5, 6, 7)))
    assert (got["address"], got["dma_bytes"]) == (5, 7)


def test_snap_length_leaves_what_was_captured():
    body = rb.bth(WRITE_ONLY_IMM, 1, 2) + rb.reth(3, 4, 4096) + rb.immediate(5) + bytes(4096)
    frame = OVER_4.frame(body)
    whole, headers = row(frame), row(frame, kept=42 + 32)
    assert whole == headers
    partial = row(frame, kept=42 + 30)
    assert (partial["fault"], partial["has"], partial["dma_bytes"], partial["payload_bytes"]) == (
        CUT, RETH, 4096, 4096,
    )  # fmt: skip
    bth_only = row(frame, kept=42 + 12)
    assert (bth_only["fault"], bth_only["has"], bth_only["psn"]) == (CUT, 0, 2)
    nothing = row(frame, kept=42 + 11)
    assert (nothing["fault"], nothing["qp"], nothing["psn"]) == (CUT, 0, 0)


def edited(at, value):
    body = bytearray(rb.bth(SEND_ONLY, 1, 2) + bytes(8))
    body[at] = value
    return row(OVER_4.frame(bytes(body)))


@pytest.mark.parametrize(
    ("at", "value", "fault"),
    [(1, 0x41, VERSION), (4, 0x03, RESERVED), (8, 0x60, RESERVED), (0, 0x80, OPCODE), (0, 0x66, OPCODE),
     (4, 0x20, 0), (8, 0x01, 0)],
)  # fmt: skip
def test_what_is_not_roce(at, value, fault):
    assert edited(at, value)["fault"] == fault


@pytest.mark.parametrize(
    "body",
    [bytes(3), rb.bth(RC | WRITE_ONLY, 1, 2) + bytes(12), rb.bth(4, 1, 2, pad=3), rb.bth(4, 1, 2) + b"odd"],
)
def test_lengths_that_contradict(body):
    frame = OVER_4.frame(body)
    assert row(frame)["fault"] == CONTRADICT


def test_other_ports_are_left_alone():
    frame = build.ethernet(MAC_A, MAC_B, build.ipv4(A4, B4, 17, build.udp(A4, B4, 4791, 53, bytes(40))))
    assert len(parse([frame])[0].roce) == 0


def test_roce_v1_is_named_by_its_gids():
    body = rb.bth(WRITE_ONLY, 1, 2) + rb.reth(3, 4, 5) + bytes(8)
    frame = rb.frame_v1(MAC_A, MAC_B, A6, B6, body)
    got, packets, named = bare_row(headers.PROTO_GRH, frame[14:] + bytes(6))
    assert (got["fault"], got["has"], got["payload_bytes"], got["flow"]) == (0, GRH | RETH, 8, 0)
    assert named == [struct.unpack(">QQ", A6), struct.unpack(">QQ", B6)]
    assert (got["src"], got["dst"], packets["src"][0], packets["dst"][0]) == (11, 12, 11, 12)


def test_native_packets_are_named_by_their_lids():
    body = rb.bth(17, 1, 2) + rb.aeth(rb.NO_CREDITS, 9)
    got, packets, named = bare_row(headers.PROTO_LRH, rb.native(5, 0x1234, body) + b"vc")
    assert (got["fault"], got["has"], got["msn"], got["payload_bytes"]) == (0, AETH, 9, 0)
    assert named == [(LID_HIGH, 5), (LID_HIGH, 0x1234)]
    assert (packets["src"][0], packets["dst"][0]) == (11, 12)


def test_native_packets_with_a_global_route_keep_their_lids():
    packet = rb.native(5, 6, rb.bth(4, 1, 2) + bytes(16), gids=(A6, B6))
    got, _, named = bare_row(headers.PROTO_LRH, packet)
    assert (got["fault"], got["has"], got["payload_bytes"]) == (0, GRH, 16)
    assert named == [(LID_HIGH, 5), (LID_HIGH, 6)]


@pytest.mark.parametrize(
    ("proto", "data", "kept", "fault"),
    [
        (headers.PROTO_LRH, rb.native(5, 6, rb.bth(4, 1, 2)), 7, CUT),
        (headers.PROTO_LRH, rb.native(5, 6, rb.bth(4, 1, 2)), 19, CUT),
        (headers.PROTO_LRH, b"\x00\x01" + rb.native(5, 6, rb.bth(4, 1, 2))[2:], None, NOT_TRANSPORT),
        (
            headers.PROTO_LRH,
            rb.native(5, 6, rb.bth(4, 1, 2), gids=(A6, B6))[:4] + b"\0\x11" + bytes(90),
            None,
            6,
        ),
        (headers.PROTO_GRH, rb.global_route(A6, B6, 16), 39, CUT),
        (headers.PROTO_GRH, b"\x45" + rb.global_route(A6, B6, 16)[1:] + rb.bth(4, 1, 2), None, NOT_TRANSPORT),
        (headers.PROTO_GRH, rb.global_route(A6, B6, 4) + rb.bth(4, 1, 2) + bytes(4), None, CONTRADICT),
    ],
)
def test_damage_outside_ip(proto, data, kept, fault):
    assert bare_row(proto, data, kept)[0]["fault"] == fault


def test_local_ids_are_told_from_addresses():
    assert address_text(LID_HIGH, 5) == "lid 5"
    assert address_text(0, 5) == "::5"


def test_roce_v1_frames_reach_the_packets_table_by_name():
    frame = rb.frame_v1(MAC_A, MAC_B, A6, B6, rb.bth(4, 1, 2) + bytes(8))
    tables, directory = parse([OVER_4.frame(rb.bth(4, 1, 2)), frame])
    assert [directory.addresses[i] for i in tables.packets["src"]] == ["10.1.2.3", "2001:db8::1"]
    assert tables.roce["dst"].tolist() == tables.packets["dst"].tolist()
    assert tables.roce["fault"].tolist() == [0, 0]


def test_addresses_reach_the_directory():
    frame = OVER_4.frame(rb.bth(4, 1, 2))
    tables, directory = parse([frame, OVER_6.frame(rb.bth(4, 1, 2))])
    names = [directory.addresses[i] for i in tables.roce["src"]]
    assert names == ["10.1.2.3", "2001:db8::1"]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=90), min_size=1, max_size=4), st.sampled_from([17, 253, 254]))
def test_any_bytes_give_a_row_with_a_reason(pieces, proto):
    at = np.cumsum([1] + [len(p) + 1 for p in pieces])[:-1]
    buf = np.frombuffer(b"\0" + b"\0".join(pieces), np.uint8)
    sizes = np.array([len(p) for p in pieces])
    columns = {
        "frame": np.arange(len(pieces)), "proto": np.full(len(pieces), proto), "payload_at": at,
        "fault": np.full(len(pieces), 0 if proto == 17 else headers.NOT_IP),
        "dport": np.full(len(pieces), roce.ROCE_PORT), "captured_bytes": sizes, "payload_bytes": sizes,
    }  # fmt: skip
    packets = Table(PACKETS, columns)
    table = roce.parse(buf, packets, lambda keys: np.ones(len(keys), np.uint32))
    assert len(table) == len(pieces)
    assert set(table["fault"].tolist()) <= set(roce.FAULTS)
    good = table.take(table["fault"] == 0)
    assert all(HEADERS[o] for o in good["opcode"])
    assert np.all(table["payload_bytes"] <= 8192)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([o for o in range(256) if HEADERS[o]]),
    st.integers(0, 2**24 - 1),
    st.integers(0, 2**24 - 1),
    st.binary(max_size=50),
    st.sampled_from([OVER_4, OVER_6]),
)
def test_built_frames_read_back(opcode, qp, psn, payload, path):
    pad = rb.padding(len(payload))
    body = rb.bth(opcode, qp, psn, pad=pad) + bytes(int(LENGTHS[opcode])) + payload + bytes(pad)
    got = row(path.frame(body))
    assert (got["fault"], got["opcode"], got["qp"], got["psn"]) == (0, opcode, qp, psn)
    assert got["payload_bytes"] == len(payload)
