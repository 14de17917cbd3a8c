from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.core.directory import Directory
from skewscope.core.tables import Table
from skewscope.wire import http2_words as words
from skewscope.wire.build import grpc_message, http2_frame
from skewscope.wire.http2 import MAX_BLOCK_BYTES, TRANSITIONS
from skewscope.wire.http2_streams import MAX_STREAMS
from skewscope.wire.streams import Limits, StreamFramer
from tests.wire.http2_peer import HELLO, WELCOME, Peer, answer, call, data, reset
from tests.wire.segments import ACK, SYN, Segment, chop, packets, rows, run, same

TOKEN = grpc_message(b"a token")
EVENT = b'data: {"token": 1}\n\n'


def talk(*turns: bytes, sizes: tuple[int, ...] = (1460,), kept: int | None = None) -> list[Segment]:
    """Return the segments of alternating turns of client (way 0) and server (way 1)."""
    seq = [1000, 9000]
    out: list[Segment] = []
    for k, turn in enumerate(turns):
        way = k % 2
        out += [Segment(s.data, s.seq, way, seq[1 - way], kept=kept) for s in chop(turn, sizes, seq=seq[way])]
        seq[way] += len(turn)
    return out


def way(table: Table, number: int) -> Table:
    return table.take(table["way"] == number)


def unary(client: Peer, server: Peer, stream: int, path: str = "/s/M") -> tuple[bytes, bytes]:
    """Return both turns of a gRPC call with a streamed answer of three messages."""
    ask = client.headers(stream, call(path)) + data(stream, grpc_message(b"prompt"), end=True)
    reply = server.headers(stream, answer()) + data(stream, TOKEN) + data(stream, TOKEN + TOKEN)
    return ask, reply + server.headers(stream, [("grpc-status", "0")], end=True)


@pytest.mark.parametrize("sizes", [(1460,), (50, 7), (9, 1, 1, 30)])
def test_grpc_call(sizes: tuple[int, ...]) -> None:
    ask, reply = unary(Peer(), Peer(), 1, "/inference.Engine/Generate")
    tables, directory = run(talk(HELLO, WELCOME, ask, reply, sizes=sizes if sizes[0] > 20 else (24, *sizes)))
    http = tables["http"]
    columns = ("stream", "kind", "method", "status", "streaming", "nbytes", "events")
    size = len(TOKEN)
    assert rows(way(http, 0), *columns) == [
        (1, 1, 2, 0, 0, 0, 0),
        (1, 3, 0, 0, 0, 11, 1),
        (1, 4, 0, 0, 0, 0, 0),
    ]
    assert rows(way(http, 1), *columns) == [
        (1, 2, 0, 200, 1, 0, 0),
        (1, 3, 0, 0, 0, size, 1),
        (1, 3, 0, 0, 0, 2 * size, 2),
        (1, 4, 0, 0, 0, 0, 0),
    ]
    assert directory.targets == ["", "/inference.Engine/Generate"]


@pytest.mark.parametrize(
    ("grpc_status", "status"), [(0, 0), (1, 499), (4, 504), (8, 429), (13, 500), (14, 503), (99, 500)]
)
def test_grpc_status_is_told_by_the_end(grpc_status: int, status: int) -> None:
    reply = Peer().headers(1, [*answer(), ("grpc-status", str(grpc_status))], end=True)
    tables, _ = run(talk(HELLO, WELCOME, Peer().headers(1, call("/s/M"), end=True), reply))
    assert rows(way(tables["http"], 1), "kind", "status") == [(2, 200), (4, status)]


def test_names_of_the_protocols() -> None:
    framer = StreamFramer(Directory())
    ask, reply = unary(Peer(), Peer(), 1)
    plain = talk(HELLO, WELCOME, Peer().headers(1, call("/x", "application/json"), end=True))
    segments = [
        *talk(HELLO, WELCOME, ask, reply),
        *(Segment(s.data, s.seq, s.way, s.ack, flow=2) for s in plain),
    ]
    framer.feed(*packets(segments))
    assert framer.protocols() == {1: "grpc", 2: "http2"}


def test_interleaved_streams_keep_their_messages_apart() -> None:
    client, server = Peer(), Peer()
    long = grpc_message(b"x" * 50)
    ask = b"".join(client.headers(k, call("/s/M"), end=True) for k in (1, 3))
    reply = server.headers(1, answer()) + server.headers(3, answer("text/event-stream"))
    reply += data(1, long[:20]) + data(3, EVENT[:9]) + data(1, long[20:]) + data(3, EVENT[9:] + EVENT, True)
    tables, _ = run(talk(HELLO, WELCOME, ask, reply))
    http = way(tables["http"], 1)
    got = rows(http.take(http["kind"] >= 3), "stream", "kind", "nbytes", "events")
    assert got == [(1, 3, 20, 0), (3, 3, 9, 0), (1, 3, 35, 1), (3, 3, 31, 2), (3, 4, 0, 0)]


def test_padding_priority_and_continuations() -> None:
    client, server = Peer(), Peer()
    ask = client.headers(1, call("/s/M"), cuts=(3, 9, 9), pad=11, priority=True) + data(
        1, TOKEN, True, pad=200
    )
    reply = server.headers(1, answer(), pad=0, cuts=(1,)) + data(1, b"", True, pad=5)
    tables, directory = run(talk(HELLO, WELCOME, ask, reply, sizes=(31,)))
    assert rows(tables["http"], "kind", "nbytes", "events") == [
        (1, 0, 0), (3, len(TOKEN), 1), (4, 0, 0), (2, 0, 0), (4, 0, 0),
    ]  # fmt: skip
    assert directory.targets[1:] == ["/s/M"]


def test_other_frames_pass() -> None:
    ask, reply = unary(Peer(), Peer(), 1)
    others = (
        http2_frame(words.PING, 0, 0, b"8 bytes.")
        + http2_frame(words.WINDOW_UPDATE, 0, 0, b"\0\0\1\0")
        + http2_frame(words.WINDOW_UPDATE, 0, 1, b"\0\0\1\0")
        + http2_frame(words.PRIORITY, 0, 1, b"\0\0\0\0\1")
        + http2_frame(words.GOAWAY, 0, 0, b"\0\0\0\1\0\0\0\0no more")
        + http2_frame(0x10, 0x55, 0, b"u=1")  # PRIORITY_UPDATE, RFC 9218
    )
    tables, _ = run(talk(HELLO + others, WELCOME + others, ask + others, reply + others, sizes=(700,)))
    assert way(tables["http"], 0)["kind"].tolist() == [1, 3, 4]
    assert way(tables["http"], 1)["kind"].tolist() == [2, 3, 3, 4]


@pytest.mark.parametrize(("code", "status"), [(0, 0), (8, 499), (7, 503), (11, 429), (2, 500)])
def test_reset_ends_a_stream(code: int, status: int) -> None:
    ask = Peer().headers(1, call("/s/M")) + reset(1, code)
    tables, _ = run(talk(HELLO, WELCOME, ask))
    assert rows(tables["http"], "stream", "kind", "status") == [(1, 1, 0), (1, 4, status)]


def test_interim_heads_do_not_end_the_wait() -> None:
    server = Peer()
    reply = (
        server.headers(1, [(":status", "103"), ("link", "x")]) + server.headers(1, answer()) + data(1, TOKEN)
    )
    tables, _ = run(talk(HELLO, WELCOME, Peer().headers(1, call("/s/M"), end=True), reply))
    got = rows(way(tables["http"], 1), "kind", "status", "events")
    assert got == [(2, 103, 0), (2, 200, 0), (3, 0, 1)]


def test_server_push_keeps_the_tables_in_step() -> None:
    client, server = Peer(), Peer()
    reply = server.promise(1, 2, [(":method", "GET"), (":path", "/pushed"), ("x-new", "entry")])
    reply += server.headers(1, [*answer("text/event-stream"), ("x-new", "entry")]) + data(1, EVENT, True)
    reply += server.headers(2, answer("text/css")) + data(2, b"css", True)
    tables, directory = run(talk(HELLO, WELCOME, client.headers(1, call("/s/M"), end=True), reply))
    got = rows(way(tables["http"], 1), "stream", "kind", "streaming", "events")
    assert got == [(1, 2, 1, 0), (1, 3, 0, 1), (1, 4, 0, 0), (2, 2, 2, 0), (2, 3, 0, 0), (2, 4, 0, 0)]
    assert directory.targets[1:] == ["/s/M"]


def test_upgrade_from_http1() -> None:
    ask = b"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    switch = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    server = Peer()
    first = switch + WELCOME + server.headers(1, answer("application/json")) + data(1, b"{}", True)
    client = Peer()
    more = client.headers(3, call("/s/M"), end=True)
    second = server.headers(3, answer()) + data(3, TOKEN, True)
    tables, directory = run(talk(ask, first, HELLO + more, second))
    got = rows(tables["http"], "way", "stream", "kind", "status", "events")
    assert got == [
        (0, 0, 1, 0, 0), (0, 0, 4, 0, 0), (1, 0, 2, 101, 0),
        (1, 1, 2, 200, 0), (1, 1, 3, 0, 0), (1, 1, 4, 0, 0),
        (0, 3, 1, 0, 0), (0, 3, 4, 0, 0), (1, 3, 2, 200, 0), (1, 3, 3, 0, 1), (1, 3, 4, 0, 0),
    ]  # fmt: skip
    assert directory.targets[1:] == ["/v1/models", "/s/M"]


def test_capture_that_starts_in_a_connection() -> None:
    client, server = Peer(), Peer()
    unary(client, server, 1, "/s/Old")  # not captured: the tables hold its fields
    turns = [unary(client, server, k, path) for k, path in ((3, "/s/Old"), (5, "/s/New"), (7, "/s/New"))]
    tables, directory = run(talk(*(t for turn in turns for t in turn)))
    http = tables["http"]
    heads = http.take(http["kind"] <= 2)
    # Three headers in a row are seen in the first request, none of which can be read back.
    named = [directory.targets[t] for t in way(heads, 0)["target"].tolist()]
    assert set(named) <= {"", "/s/New"}
    assert named[-1] == "/s/New"
    assert set(way(heads, 1)["status"].tolist()) == {200}
    assert rows(http.take(http["kind"] == 5), "stream") == [(0,), (0,)]
    # What the answers carry is named by an entry that was not seen.
    assert set(way(heads, 1)["streaming"].tolist()) == {0}
    assert len(way(heads, 1)) >= 2


def test_hole_costs_the_table_and_is_flagged() -> None:
    client, server = Peer(), Peer()
    turns = [unary(client, server, k, f"/s/{k}") for k in (1, 3, 5)]
    segments = talk(HELLO, WELCOME, *(t for turn in turns for t in turn))
    lost = [s for s in segments if not (s.way == 0 and s.data == turns[1][0])]
    tables, directory = run(
        [*lost, Segment(b"", 20000, 1, 1000 + len(HELLO) + sum(len(t[0]) for t in turns))]
    )
    request = way(tables["http"], 0)
    assert rows(request, "stream", "kind") == [(1, 1), (1, 3), (1, 4), (0, 5), (5, 1), (5, 3), (5, 4)]
    assert [directory.targets[t] for t in request["target"][request["kind"] == 1].tolist()] == [
        "/s/1",
        "/s/5",
    ]
    assert len(tables["holes"]) == 1


def test_hole_inside_data_passes_by_length() -> None:
    server = Peer()
    body = grpc_message(b"x" * 3000)
    reply = server.headers(1, answer()) + data(1, body) + data(1, TOKEN) + data(1, TOKEN, True)
    segments = talk(HELLO, WELCOME, Peer().headers(1, call("/s/M"), end=True), reply, sizes=(500,))
    lost = [s for s in segments if s.way == 0 or s.seq != 9000 + len(WELCOME) + 1000]
    tables, _ = run([*lost, Segment(b"", 5000, 0, 9000 + len(WELCOME + reply))])
    got = rows(way(tables["http"], 1), "kind", "nbytes", "events")
    assert got == [(2, 0, 0), (3, 3005, 0), (3, len(TOKEN), 1), (3, len(TOKEN), 1), (4, 0, 0)]


def test_snap_length_cuts_header_blocks() -> None:
    client = Peer()
    ask = client.headers(
        1, [(":method", "POST"), (":path", "/s/M"), ("x-long", "y" * 400)], True, huffman=False
    )
    again = client.headers(3, [(":method", "POST"), (":path", "/s/M"), ("x-long", "y" * 400)], True)
    segments = [Segment(HELLO, 1000, ack=1), Segment(ask, 1000 + len(HELLO), kept=40)]
    tables, directory = run([*segments, Segment(again, 1000 + len(HELLO + ask))])
    request = tables["http"]
    assert rows(request, "stream", "kind", "method", "target") == [
        (1, 1, 2, 1), (1, 4, 0, 0), (3, 1, 2, 0), (3, 4, 0, 0),
    ]  # fmt: skip
    assert directory.targets == ["", "/s/M"]


@pytest.mark.parametrize(
    "bad",
    [
        http2_frame(words.DATA, 0, 0, b"stream 0"),
        http2_frame(words.HEADERS, 4 | words.PADDED, 1, b"\xff too much padding"),
        http2_frame(words.HEADERS, 0, 1, b"\x82") + http2_frame(words.DATA, 0, 1, b"between"),
        http2_frame(words.CONTINUATION, 4, 1, b"\x82"),
        http2_frame(words.PING, 0, 0, b"short"),
        struct.pack(">IBI", 0xFFFFFF << 8, 0, 1),
    ],
)
def test_malformed_frames_lose_the_place_until_the_next_segment(bad: bytes) -> None:
    ask, _ = unary(Peer(), Peer(), 1)
    tables, _ = run([*chop(HELLO + bad, [1460]), *chop(ask, [1460], seq=1000 + len(HELLO + bad))])
    assert rows(tables["http"], "stream", "kind") == [(0, 5), (1, 1), (1, 3), (1, 4)]


def test_damaged_header_block_says_what_its_beginning_says() -> None:
    block = b"\x83\x04\x04/s/M" + b"\xff\xff\xff\xff\xff\xff\xff\xff"
    tables, directory = run(talk(HELLO + http2_frame(words.HEADERS, 5, 1, block)))
    assert rows(tables["http"], "kind", "method", "target") == [(1, 2, 1), (4, 0, 0)]
    assert directory.targets == ["", "/s/M"]


def test_continuation_flood_is_bounded() -> None:
    framer = StreamFramer(Directory())
    flood = http2_frame(words.HEADERS, 0, 1, b"\x83") + 40 * http2_frame(
        words.CONTINUATION, 0, 1, b"\x86" * 8000
    )
    framer.feed(*packets(chop(HELLO + flood, [30000])))
    assert framer._heads._pending <= MAX_BLOCK_BYTES
    rest = http2_frame(words.CONTINUATION, 4, 1, b"")
    tables = framer.feed(*packets([Segment(rest, 1000 + len(HELLO + flood), ts=10**9)]))
    assert rows(tables["http"], "kind", "method") == [(1, 2)]
    assert framer._heads._pending == 0


def test_streams_that_never_end_are_bounded() -> None:
    server = Peer()
    count = 3 * MAX_STREAMS
    reply = b"".join(server.headers(2 * k + 1, answer()) for k in range(count))
    segments = talk(HELLO, WELCOME, b"", reply + data(1, TOKEN) + data(2 * count - 1, TOKEN))
    spread = [Segment(s.data, s.seq, s.way, s.ack, ts=k * 10**9) for k, s in enumerate(segments)]
    table, buffer = packets(spread)
    framer = StreamFramer(Directory())
    pieces = framer.feed(table, buffer)["http"]
    assert rows(pieces.take(pieces["kind"] == 3), "stream", "events") == [(1, 0), (2 * count - 1, 1)]
    assert framer._framing.h2[0]["id"] == MAX_STREAMS
    few = StreamFramer(Directory(), Limits(h2_streams=10))
    few.feed(table, buffer)
    assert len(few._framing.h2) == 11
    framer.finish()
    assert framer._framing.h2[0]["id"] == 0


def test_header_blocks_beyond_the_rate_are_not_decoded() -> None:
    client = Peer()
    ask = b"".join(client.headers(2 * k + 1, call("/s/M"), end=True) for k in range(1500))
    tables, _ = run([Segment(HELLO, 1000, ts=10**9), *chop(ask, [30000], seq=1000 + len(HELLO), ts=10**9)])
    kinds = tables["http"]["kind"].tolist()
    assert kinds.count(1) == 1000
    assert kinds.count(4) == 1500


def test_every_phase_can_be_reached_and_left() -> None:
    assert {b for nexts in TRANSITIONS.values() for b in nexts} == set(TRANSITIONS)


part = st.tuples(
    st.sampled_from(["ask", "reply", "event", "push", "reset", "junk", "open", "upgrade"]), st.integers(0, 5)
)


def script(parts: list[tuple[str, int]], start: bool) -> list[bytes]:
    """Return turns of a random conversation, not always a legal one."""
    client, server = Peer(), Peer()
    turns = [HELLO, WELCOME] if start else [b"", b""]
    for what, k in parts:
        stream = 2 * k + 1
        ask, reply = b"", b""
        if what == "ask":
            ask, reply = unary(client, server, stream, f"/s/{k}")
        elif what == "reply":
            reply = server.headers(stream, answer(), cuts=(k, 7), pad=k) + data(stream, TOKEN[k:], pad=3)
        elif what == "event":
            reply = server.headers(stream, answer("text/event-stream")) + data(stream, EVENT * k, end=k > 2)
        elif what == "push":
            reply = server.promise(stream, stream + 1, call(f"/p{k}"))
        elif what == "reset":
            ask = reset(stream, 8)
        elif what == "junk":
            ask = reply = bytes(range(40 * k))
        elif what == "open":
            ask = client.headers(stream, call("/open"))[:-k]
        else:
            ask = b"GET / HTTP/1.1\r\nUpgrade: h2c\r\n\r\n"
            reply = b"HTTP/1.1 101 x\r\nUpgrade: h2c\r\n\r\n"
        turns += [ask, reply]
    return turns


@settings(max_examples=80, deadline=None)
@given(
    st.lists(part, min_size=1, max_size=6),
    st.booleans(),
    st.lists(st.integers(1, 300), min_size=1, max_size=5),
    st.lists(st.integers(0, 200), max_size=5),
    st.sampled_from([None, None, 30]),
    st.sets(st.integers(0, 40), max_size=2),
)
def test_any_split_gives_the_same_tables(parts, start, sizes, cuts, kept, lost) -> None:  # type: ignore[no-untyped-def]
    segments = talk(*script(parts, start), sizes=tuple(sizes), kept=kept)
    segments = [Segment(seq=999, flags=SYN), Segment(seq=8999, way=1, flags=SYN | ACK, ack=1000), *segments]
    segments = [s for k, s in enumerate(segments) if k - 2 not in lost]
    whole, names = run(segments)
    again, names_again = run(segments, cuts)
    assert same(whole, again)
    assert names.targets == names_again.targets
    assert same(whole, run(segments, range(len(segments)))[0])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 11), st.integers(0, 255), st.integers(0, 9), st.binary(max_size=60)),
        max_size=12,
    ),
    st.lists(st.integers(1, 200), min_size=1, max_size=4),
)
def test_any_bytes_never_raise(frames, sizes) -> None:  # type: ignore[no-untyped-def]
    raw = HELLO + b"".join(http2_frame(kind, flags, stream, body) for kind, flags, stream, body in frames)
    tables, _ = run([*chop(raw, sizes), *chop(raw, sizes, seq=9000, way=1)])
    http = tables["http"]
    assert set(http["kind"].tolist()) <= {1, 2, 3, 4, 5}
    assert int(http["nbytes"][http["kind"] == 3].sum()) <= 2 * len(raw)
