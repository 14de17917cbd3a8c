"""Frames against dpkt, an independent parser, and random bytes against nothing but survival."""

import os
import subprocess
import sys

import dpkt
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.wire import build
from skewscope.wire.packets import FAULTS
from tests.wire.frames import MAC_A, MAC_B, parse
from tests.wire.test_tunnels import TUNNELS

LINKS = (0, 1, 12, 14, 101, 108, 113, 195, 197, 228, 229, 247, 276)
u16, u32 = st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1)


@st.composite
def frames(draw):
    """Draw a frame: TCP or UDP over IPv4 or IPv6, with tags and options."""
    six = draw(st.booleans())
    size = 16 if six else 4
    src, dst = draw(st.binary(min_size=size, max_size=size)), draw(st.binary(min_size=size, max_size=size))
    data = draw(st.binary(max_size=60))
    sport, dport = draw(u16), draw(u16)
    if draw(st.booleans()):
        proto, payload = 17, build.udp(src, dst, sport, dport, data)
    else:
        options = build.tcp_options(
            mss=draw(st.sampled_from([0, 1460])),
            wscale=draw(st.integers(-1, 14)),
            timestamps=draw(st.none() | st.tuples(u32, u32)),
            sacks=draw(st.lists(st.tuples(u32, u32), max_size=2)),
        )
        flags, window = draw(st.integers(0, 255)), draw(u16)
        proto = 6
        payload = build.tcp(src, dst, sport, dport, draw(u32), draw(u32), flags, window, data, options[:40])
    tags = draw(st.lists(st.integers(0, 4095), max_size=2))
    if six:
        packet, kind = build.ipv6(src, dst, proto, payload, draw(st.integers(0, 255))), 0x86DD
    else:
        packet, kind = build.ipv4(src, dst, proto, payload, draw(u16), draw(st.integers(0, 255))), 0x0800
    return build.ethernet(MAC_A, MAC_B, packet, kind, tags) + b"\0" * draw(st.sampled_from([0, 0, 6]))


def dpkt_options(segment):
    """Return (tsval, tsecr, first SACK block, mss, wscale + 1) as dpkt reads them."""
    found = {"ts": (0, 0), "sack": (0, 0), "mss": 0, "wscale": 0}
    for kind, data in dpkt.tcp.parse_opts(segment.opts):
        if kind == dpkt.tcp.TCP_OPT_TIMESTAMP and len(data) == 8:
            found["ts"] = (int.from_bytes(data[:4], "big"), int.from_bytes(data[4:], "big"))
        elif kind == dpkt.tcp.TCP_OPT_SACK and len(data) >= 8:
            found["sack"] = (int.from_bytes(data[:4], "big"), int.from_bytes(data[4:8], "big"))
        elif kind == dpkt.tcp.TCP_OPT_MSS and len(data) == 2:
            found["mss"] = int.from_bytes(data, "big")
        elif kind == dpkt.tcp.TCP_OPT_WSCALE and len(data) == 1:
            found["wscale"] = data[0] + 1
    return found


@settings(max_examples=150, deadline=None)
@given(frames())
def test_dpkt_reads_the_same(frame):
    table, _names = parse([frame])
    got = {n: int(v[0]) for n, v in table.items()}
    ip = dpkt.ethernet.Ethernet(frame).data
    inner = ip.data
    assert got["fault"] == 0
    is_tcp = isinstance(inner, dpkt.tcp.TCP)
    assert got["proto"] == (6 if is_tcp else 17)
    assert (got["sport"], got["dport"]) == (inner.sport, inner.dport)
    size = len(inner.data) if is_tcp else inner.ulen - 8
    assert got["payload_bytes"] == size
    assert frame[got["payload_at"] : got["payload_at"] + size] == bytes(inner.data)[:size]
    traffic = ip.fc if isinstance(ip, dpkt.ip6.IP6) else ip.tos
    assert (got["ecn"], got["dscp"]) == (traffic & 3, traffic >> 2)
    if is_tcp:
        assert (got["seq"], got["ack"], got["window"]) == (inner.seq, inner.ack, inner.win)
        assert got["flags"] == inner.flags & 255
        other = dpkt_options(inner)
        assert (got["tsval"], got["tsecr"]) == other["ts"]
        assert (got["sack_lo"], got["sack_hi"]) == other["sack"]
        assert (got["mss"], got["wscale"]) == (other["mss"], other["wscale"])


def test_a_frame_by_hand():
    """A SYN as tcpdump prints it, written out byte by byte (RFC 9293, section 3.1)."""
    frame = bytes.fromhex(
        "020000000002 020000000001 0800"
        "4500 003c 1c46 4000 40 06 0000 ac100a63 ac100a0c"
        "d431 1f90 87d1e1a2 00000000 a0 02 faf0 0000 0000"
        "0204 05b4 0402 080a 0a1b2c3d 00000000 01 0303 07".replace(" ", "")
    )
    table, names = parse([frame])
    got = {n: int(v[0]) for n, v in table.items()}
    assert (got["sport"], got["dport"], got["seq"], got["flags"]) == (54321, 8080, 0x87D1E1A2, 2)
    assert (got["window"], got["mss"], got["wscale"], got["tsval"]) == (64240, 1460, 8, 0x0A1B2C3D)
    assert [names.addresses[got[n]] for n in ("src", "dst")] == ["172.16.10.99", "172.16.10.12"]


@settings(max_examples=40, deadline=None)
@given(st.lists(frames(), min_size=1, max_size=8), st.lists(st.integers(0, 8), max_size=3))
def test_any_batching_gives_the_same_rows(some, cuts):
    """Offsets apart, which are relative to the batch's buffer."""
    whole, directory = parse(some)
    cut, other = parse(some, cuts=cuts)
    assert directory.addresses == other.addresses
    assert directory.flows == other.flows
    for name in whole:
        if name != "payload_at":
            assert whole[name].tolist() == cut[name].tolist(), name


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=160), max_size=5), st.sampled_from(LINKS))
def test_random_bytes_never_raise_and_give_one_row_each(some, link):
    table, _ = parse(some, links=link)
    assert len(table.get("ts_ns", ())) == len(some)
    if some:
        assert set(table["fault"].tolist()) <= set(FAULTS)


def changed(frame, changes, kept):
    data = bytearray(frame)
    for at, value in changes:
        data[at % len(data)] = value
    return bytes(data[: max(kept, 1)])


@settings(max_examples=300, deadline=None)
@given(
    frames() | st.sampled_from([frame for frame, _ in TUNNELS.values()]),
    st.lists(st.tuples(st.integers(0, 150), st.integers(0, 255)), max_size=6),
    st.integers(0, 250),
    st.sampled_from(LINKS),
)
def test_mangled_frames_never_raise_nor_point_outside(frame, changes, kept, link):
    data = changed(frame, changes, kept)
    table, _ = parse([data], link)
    got = {n: int(v[0]) for n, v in table.items()}
    assert got["fault"] in FAULTS
    if got["captured_bytes"]:
        assert 0 <= got["payload_at"] <= got["payload_at"] + got["captured_bytes"] <= len(data)


def untagged(frame):
    return frame[:12] + frame[12 + 4 * len(getattr(dpkt.ethernet.Ethernet(frame), "vlan_tags", ())) :]


@settings(max_examples=150, deadline=None)
@given(frames(), st.lists(st.integers(0, 4095), min_size=1, max_size=8), st.integers(0, 120))
def test_the_fast_way_and_the_general_way_agree(frame, tags, kept):
    """Plain frames skip the walk of headers; behind a tag they do not. All but the tag is equal."""
    frame = untagged(frame)
    tagged = frame[:12] + b"".join(b"\x81\0" + t.to_bytes(2, "big") for t in tags) + frame[12:]
    kept = max(kept, 14)
    one, names = parse([frame], kept=kept)
    two, others = parse([tagged], kept=kept + 4 * len(tags))
    assert (names.addresses, names.flows) == (others.addresses, others.flows)
    more = 4 * len(tags)
    moved = {"wire_bytes": more, "payload_at": more * int(one["payload_at"][0] >= 0)}
    for name in one:
        if name != "encap":
            assert one[name].astype(np.int64) + moved.get(name, 0) == two[name], name


@settings(max_examples=100, deadline=None)
@given(frames(), st.lists(st.integers(0, 4095), min_size=1, max_size=2), u32, u32, st.booleans())
def test_dpkt_reads_the_same_behind_tags_and_in_gre(frame, tags, key, number, bare):
    packet = untagged(frame)
    inside = build.gre(
        int.from_bytes(packet[12:14], "big"),
        packet[14:],
        key=None if bare else key,
        number=None if bare else number,
    )
    carrier = build.ipv4(bytes([9, 9, 9, 1]), bytes([9, 9, 9, 2]), 47, inside)
    whole = build.ethernet(MAC_A, MAC_B, carrier, vlans=tags)
    told = dpkt.ethernet.Ethernet(whole)
    assert [t.id for t in told.vlan_tags] == tags
    ip = told.data.data.data
    table, names = parse([whole])
    got = {n: int(v[0]) for n, v in table.items()}
    assert got["encap"] == 16 | 1 | 2 * (len(tags) > 1)
    assert (got["sport"], got["dport"], got["fault"]) == (ip.data.sport, ip.data.dport, 0)
    version = 6 if isinstance(ip, dpkt.ip6.IP6) else 4
    text = dpkt.utils.inet_to_str(ip.src)
    assert names.addresses[got["src"]] == text or version == 6


def corpus():
    """Return (record, link type) pairs: random bytes and mangled frames, the same on each call."""
    rng = np.random.default_rng(7)
    whole = [frame for frame, _ in TUNNELS.values()]
    made = []
    for k in range(600):
        link = LINKS[k % len(LINKS)] if k % 3 else 1
        if k % 2:
            made.append((rng.bytes(int(rng.integers(0, 160))), link))
            continue
        frame = whole[int(rng.integers(len(whole)))]
        changes = [
            (int(a), int(v)) for a, v in zip(rng.integers(0, 150, 3), rng.integers(0, 256, 3), strict=True)
        ]
        made.append((changed(frame, changes[: k % 4], int(rng.integers(0, 250))), link))
    return made


def digest():
    """Return what the corpus is parsed to, as text."""
    made = corpus()
    table, names = parse([record for record, _ in made], [link for _, link in made], cuts=(1, 100, 317))
    return repr({n: v.tolist() for n, v in table.items()}) + repr(names)


def test_uncompiled_kernels_read_the_same_and_nothing_outside():
    """Plain Python raises IndexError where a kernel would read outside the buffer."""
    command = [sys.executable, "-c", "from tests.wire.test_packets_oracle import digest; print(digest())"]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert done.stderr == ""
    assert done.stdout.strip() == digest()
