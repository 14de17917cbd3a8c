from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.core.tables import Table
from skewscope.wire.http1 import TRANSITIONS
from tests.wire.segments import FIN, SYN, Segment, chop, rows, run, same

POST = b'POST /v1/chat/completions?key=s3cret HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\n\r\n{"a":1}'
SSE_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
)
EVENT = b'data: {"token": 1}\n\n'


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


STREAM = SSE_HEAD + chunk(EVENT) + chunk(EVENT + EVENT) + chunk(b": ping\n\n") + b"0\r\n\r\n"


def talk(*turns: bytes, sizes: tuple[int, ...] = (1460,), kept: int | None = None) -> list[Segment]:
    """Return the segments of alternating requests (way 0) and responses (way 1)."""
    seq = [1000, 9000]
    out: list[Segment] = []
    for k, turn in enumerate(turns):
        way = k % 2
        out += [Segment(s.data, s.seq, way, seq[1 - way], kept=kept) for s in chop(turn, sizes, seq=seq[way])]
        seq[way] += len(turn)
    return out


def heads(table: Table, *names: str) -> list[tuple[int, ...]]:
    return rows(table.take(table["kind"] <= 2), *names)


def kinds(table: Table, way: int) -> list[int]:
    return table["kind"][table["way"] == way].tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("sizes", [(1460,), (50, 7), (9, 1, 1, 30)])
def test_streamed_answer(sizes: tuple[int, ...]) -> None:
    tables, directory = run(talk(POST, STREAM, sizes=sizes))
    http = tables["http"]
    request, response = http.take(http["way"] == 0), http.take(http["way"] == 1)
    assert heads(request, "kind", "method", "nbytes", "status") == [(1, 2, 7, 0)]
    assert directory.targets[request["target"][0]] == "/v1/chat/completions"
    assert "s3cret" not in " ".join(directory.targets)
    assert sum(n for k, n in rows(request, "kind", "nbytes") if k == 3) == 7
    assert request["kind"][-1] == 4
    assert rows(response, "kind", "status", "streaming", "nbytes", "events") == [
        (2, 200, 1, 0, 0),
        (3, 0, 0, 20, 1),
        (3, 0, 0, 40, 2),
        (3, 0, 0, 8, 0),
        (4, 0, 0, 0, 0),
    ]


def test_times_are_those_of_the_completing_segment() -> None:
    tables, _ = run(talk(POST, STREAM, sizes=(len(SSE_HEAD) + 10, 16, 500)))
    http = tables["http"]
    http = http.take(http["way"] == 1)
    assert rows(http, "kind", "frame") == [(2, 2), (3, 3), (3, 4), (3, 4), (4, 4)]


def test_content_length_pieces_and_pipelining() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 300\r\n\r\n" + b"x" * 300
    tables, _ = run(talk(POST + POST, answer + answer, sizes=(200,)))
    http = tables["http"]
    assert heads(http, "kind", "way") == [(1, 0), (1, 0), (2, 1), (2, 1)]
    response = http.take(http["way"] == 1)
    assert heads(response, "streaming", "nbytes") == [(2, 300), (2, 300)]
    assert sum(n for k, n in rows(response, "kind", "nbytes") if k == 3) == 600
    assert kinds(http, 1).count(4) == 2


def test_answers_without_body() -> None:
    head = b"HEAD /health HTTP/1.1\r\n\r\n"
    get = b"GET /health HTTP/1.1\r\n\r\n"
    answers = (
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n"
        b"HTTP/1.1 204 No Content\r\n\r\n"
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 50\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    )
    tables, _ = run(talk(head + get + get + get, answers))
    assert kinds(tables["http"], 1) == [2, 4, 2, 4, 2, 4, 2, 3, 4]
    assert heads(tables["http"], "method")[:4] == [(3,), (1,), (1,), (1,)]


def test_interim_answer_and_trailers() -> None:
    answer = b"HTTP/1.1 100 Continue\r\n\r\n" + STREAM[:-2] + b"Grpc-Status: 0\r\nX: y\r\n\r\n"
    tables, _ = run(talk(POST, answer + SSE_HEAD))
    http = tables["http"].take(tables["http"]["way"] == 1)
    assert heads(http, "status") == [(100,), (200,), (200,)]
    assert http["kind"].tolist() == [2, 2, 3, 3, 3, 4, 2]


def test_body_until_close() -> None:
    answer = b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + EVENT * 3
    segments = talk(POST, answer)
    end = Segment(b"", 9000 + len(answer), 1, flags=FIN, ack=1000)
    tables, _ = run([*segments, end])
    assert kinds(tables["http"], 1) == [2, 3, 4]
    assert tables["http"]["events"].sum() == 3
    assert kinds(run(segments)[0]["http"], 1) == [2, 3]


def test_upgrade_and_tunnel_end_the_parsing() -> None:
    upgrade = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n" + b"GET / HTTP/1.1\r\n\r\n"
    tables, _ = run(talk(b"GET /ws HTTP/1.1\r\nUpgrade: x\r\n\r\n", upgrade))
    assert heads(tables["http"], "kind", "status") == [(1, 0), (2, 101)]
    tunnel = talk(b"CONNECT a:443 HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n", b"\x16\x03\x01\x00\x04abcd")
    tables, directory = run(tunnel)
    assert rows(tables["records"], "kind", "nbytes") == [(22, 4)]
    assert directory.targets == [""]


def test_snap_length_cuts_heads_and_skips_chunks_by_their_size() -> None:
    turns = (POST, SSE_HEAD)
    segments = talk(*turns, kept=48)
    seq = 9000 + len(SSE_HEAD)
    for data in (chunk(EVENT * 9), chunk(EVENT * 20), chunk(EVENT) + b"0\r\n\r\n"):
        segments.append(Segment(data, seq, 1, kept=48))
        seq += len(data)
    tables, directory = run(segments)
    http = tables["http"]
    assert directory.targets[http["target"][0]] == "/v1/chat/completions"
    assert rows(http.take(http["way"] == 1), "kind", "status", "streaming", "nbytes", "events") == [
        (2, 200, 1, 0, 0),
        (5, 0, 0, 0, 0),
        (3, 0, 0, 180, 0),
        (3, 0, 0, 400, 0),
        (3, 0, 0, 20, 1),
        (4, 0, 0, 0, 0),
    ]


def test_cut_off_target_has_no_name() -> None:
    tables, directory = run([Segment(b"GET /" + b"a" * 80 + b" HTTP/1.1\r\n\r\n", kept=48)])
    assert heads(tables["http"], "kind", "method", "target") == [(1, 1, 0)]
    assert directory.targets == [""]


def test_capture_starts_inside_a_stream() -> None:
    tables, _ = run(chop(chunk(EVENT * 2) + chunk(EVENT) + b"0\r\n\r\n", [500], way=1))
    assert rows(tables["http"], "kind", "events") == [(5, 0), (3, 2), (3, 1), (4, 0)]


def test_hole_in_a_chunk_is_skipped_and_one_over_a_size_is_resynchronised() -> None:
    big = chunk(EVENT * 100)
    parts = [SSE_HEAD, big, chunk(EVENT), chunk(EVENT), chunk(EVENT)]
    stream = b"".join(parts)
    at = len(SSE_HEAD)
    lost = at + len(big)
    segments = [
        Segment(stream[: at + 100], 0, 1),
        Segment(stream[at + 600 : lost], at + 600, 1),
        Segment(stream[lost + len(parts[2]) :], lost + len(parts[2]), 1),
    ]
    tables, _ = run(segments)
    assert rows(tables["http"], "kind", "nbytes", "events") == [
        (2, 0, 0),
        (3, 2000, 0),
        (5, 0, 0),
        (3, 20, 1),
        (3, 20, 1),
    ]
    assert tables["holes"]["nbytes"].tolist() == [500, len(parts[2])]


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_events_end_with_a_blank_line_behind_data(newline: bytes) -> None:
    lines = [
        b"event: x",
        b"data: 1",
        b"data: 2",
        b"",
        b": ping",
        b"",
        b"",
        b"id: 3",
        b"",
        b"data:4",
        b"",
        b"data: 5",
    ]
    stream = SSE_HEAD + chunk(newline.join(lines) + newline) + chunk(newline)
    for sizes in ((1460,), (len(SSE_HEAD), 1, 1, 2, 3)):
        tables, _ = run(talk(POST, stream, sizes=sizes))
        http = tables["http"].take(tables["http"]["way"] == 1)
        assert rows(http, "kind", "events") == [(2, 0), (3, 2), (3, 1)]


@pytest.mark.parametrize(
    "bad",
    [
        b"HTTP/1.1 2x0 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"f" * 40 + b"\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 20000,
        b"HTTP/1.1 200 OK\r\n" + b"a" * 70000,
        b"PRI * HTTP/3.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_malformed_input_loses_the_place_until_the_next_head(bad: bytes) -> None:
    good = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    tables, _ = run([*chop(bad, [1460], seq=0, way=1), Segment(good, len(bad), 1)])
    assert tables["http"]["kind"].tolist()[-2:] == [2, 4]


def test_every_phase_can_be_reached_and_left() -> None:
    assert {b for nexts in TRANSITIONS.values() for b in nexts} == set(TRANSITIONS)


turn = st.tuples(
    st.sampled_from([POST, POST + POST, b"GET / HTTP/1.1\r\n\r\n", b"HEAD / HTTP/1.1\r\n\r\n"]),
    st.sampled_from(
        [
            STREAM,
            STREAM[:-3],
            b"HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n" + b"y" * 30,
            b"HTTP/1.1 304 X\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n\r\nclose",
            b"HTTP/1.1 garbage",
        ]
    ),
)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(turn, min_size=1, max_size=4),
    st.lists(st.integers(1, 120), min_size=1, max_size=5),
    st.lists(st.integers(0, 200), max_size=5),
    st.sampled_from([None, 48]),
    st.booleans(),
)
def test_any_split_gives_the_same_tables(turns, sizes, cuts, kept, syn) -> None:  # type: ignore[no-untyped-def]
    segments = talk(*(t for pair in turns for t in pair), sizes=tuple(sizes), kept=kept)
    if syn:
        segments = [Segment(seq=999, flags=SYN), Segment(seq=8999, way=1, flags=SYN, ack=1000), *segments]
    whole, names = run(segments)
    again, names_again = run(segments, cuts)
    assert same(whole, again)
    assert names.targets == names_again.targets
    assert same(whole, run(segments, range(len(segments)))[0])
