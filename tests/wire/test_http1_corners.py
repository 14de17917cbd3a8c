"""Corners of RFC 9112 that servers and proxies do meet."""

from __future__ import annotations

import pytest

from tests.wire.segments import Segment, chop, rows, run
from tests.wire.test_http1 import EVENT, POST, SSE_HEAD, STREAM, chunk, heads, kinds, talk

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
EACH = [(1460,), (40, 7), (12, 2, 3)]


def answers(answer: bytes, ask: bytes = POST, sizes: tuple[int, ...] = (1460,)) -> list[tuple[int, ...]]:
    """Return (kind, status, nbytes, events) of the rows of the answer, body pieces joined."""
    tables, _ = run([*chop(ask, [1460]), *chop(answer, sizes, seq=9000, way=1, ack=1000 + len(ask))])
    got = rows(tables["http"].take(tables["http"]["way"] == 1), "kind", "status", "nbytes", "events")
    out: list[tuple[int, ...]] = []
    for row in got:
        if row[0] == 3 and out and out[-1][0] == 3:
            out[-1] = (3, 0, out[-1][2] + row[2], out[-1][3] + row[3])
        else:
            out.append(row)
    return out


@pytest.mark.parametrize("code", [100, 102, 103])
def test_interim_answers_come_before_the_final_one(code: int) -> None:
    interim = b"HTTP/1.1 %d Wait\r\nLink: </x>; rel=preload\r\n\r\n" % code
    assert answers(interim + interim + OK) == [
        (2, code, 0, 0),
        (2, code, 0, 0),
        (2, 200, 2, 0),
        (3, 0, 2, 0),
        (4, 0, 0, 0),
    ]


def test_an_interim_answer_is_not_the_answer_to_a_head() -> None:
    ask = b"HEAD /x HTTP/1.1\r\n\r\n" + POST
    early = b"HTTP/1.1 103 Early Hints\r\n\r\n"
    got = answers(early + b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n" + OK, ask)
    assert got == [(2, 103, 0, 0), (2, 200, 99, 0), (4, 0, 0, 0), (2, 200, 2, 0), (3, 0, 2, 0), (4, 0, 0, 0)]


@pytest.mark.parametrize("sizes", EACH)
def test_chunk_extensions_and_trailers(sizes: tuple[int, ...]) -> None:
    body = (
        b'14;name="v"\r\n'
        + EVENT
        + b"\r\n"
        + b"014 ; a=b\r\n"
        + EVENT
        + b"\r\n0;last\r\nX-Sum: 1\r\nX: y\r\n\r\n"
    )
    assert len(EVENT) == 20
    assert answers(SSE_HEAD + body + OK, sizes=sizes) == [
        (2, 200, 0, 0), (3, 0, 40, 2), (4, 0, 0, 0), (2, 200, 2, 0), (3, 0, 2, 0), (4, 0, 0, 0),
    ]  # fmt: skip


@pytest.mark.parametrize("sizes", EACH)
def test_bare_line_feeds_are_tolerated(sizes: tuple[int, ...]) -> None:
    assert answers((SSE_HEAD + b"14\n" + EVENT + b"\n0\n\n").replace(b"\r\n", b"\n") + OK, sizes=sizes) == [
        (2, 200, 0, 0), (3, 0, 20, 1), (4, 0, 0, 0), (2, 200, 2, 0), (3, 0, 2, 0), (4, 0, 0, 0),
    ]  # fmt: skip


@pytest.mark.parametrize("sizes", EACH)
def test_folded_lines_are_part_of_the_line_before(sizes: tuple[int, ...]) -> None:
    folded = b"HTTP/1.1 200 OK\r\nX-Note: one\r\n Content-Length: 500\r\n\tTransfer-Encoding: chunked\r\n"
    folded += b"Content-Length: 2\r\n\r\nok"
    assert answers(folded + OK, sizes=sizes)[1:] == [
        (3, 0, 2, 0), (4, 0, 0, 0), (2, 200, 2, 0), (3, 0, 2, 0), (4, 0, 0, 0),
    ]  # fmt: skip


@pytest.mark.parametrize("order", [0, 1])
def test_transfer_encoding_prevails_over_content_length(order: int) -> None:
    fields = [b"Content-Length: 5\r\n", b"Transfer-Encoding: gzip, chunked\r\n"]
    head = b"HTTP/1.1 200 OK\r\n" + b"".join(fields[::-1] if order else fields) + b"\r\n"
    assert answers(head + chunk(b"x" * 30) + b"0\r\n\r\n" + OK)[1:3] == [(3, 0, 30, 0), (4, 0, 0, 0)]


def test_huge_head() -> None:
    head = b"HTTP/1.1 200 OK\r\n" + b"X-Filler: " + b"f" * 40_000 + b"\r\nCookie: " + b"c" * 20_000
    assert answers(head + b"\r\nContent-Length: 2\r\n\r\nok" + OK)[0] == (2, 200, 2, 0)


def test_expected_body_follows_the_permission() -> None:
    ask = b"PUT /v1/files HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 300\r\n\r\n"
    tables, _ = run(talk(ask, b"HTTP/1.1 100 Continue\r\n\r\n", b"f" * 300 + POST, OK + OK, sizes=(100,)))
    http = tables["http"]
    assert kinds(http, 0) == [1, 3, 3, 3, 4, 1, 3, 4]
    assert heads(http.take(http["way"] == 1), "status") == [(100,), (200,), (200,)]


def test_keep_alive_of_many_requests() -> None:
    tables, _ = run(talk(*([POST, STREAM] * 40), sizes=(77,)))
    assert kinds(tables["http"], 0).count(4) == 40
    assert int(tables["http"]["events"].sum()) == 120


def test_more_requests_in_line_than_can_be_remembered() -> None:
    ask = b"GET /x HTTP/1.1\r\n\r\n" * 30 + b"HEAD /x HTTP/1.1\r\n\r\n" + b"GET /x HTTP/1.1\r\n\r\n" * 20
    tables, _ = run(talk(ask, OK * 30 + b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" + OK * 20))
    assert kinds(tables["http"], 0).count(1) == 51
    assert kinds(tables["http"], 1) == [2, 3, 4] * 30 + [2, 4] + [2, 3, 4] * 20


@pytest.mark.parametrize("lost", [1, 2])
def test_a_hole_in_a_head_loses_the_place_and_is_flagged(lost: int) -> None:
    ask = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\n\r\n" + b'{"a":1}'
    segments = chop(ask, [20])
    after = Segment(POST, 1000 + len(ask))
    answered = Segment(b"", 9000, 1, ack=1000 + len(ask) + len(POST))
    kept = [s for k, s in enumerate(segments) if k != lost]
    tables, directory = run([*kept, after, answered])
    assert rows(tables["http"], "kind", "nbytes") == [(5, 0), (1, 7), (3, 7), (4, 0)]
    assert directory.targets[1:] == ["/v1/chat/completions"]
    assert len(tables["holes"]) == 1


def test_a_hole_in_a_body_of_known_length_passes() -> None:
    ask = b"POST /x HTTP/1.1\r\nContent-Length: 400\r\n\r\n" + b"b" * 400
    segments = chop(ask, [100])
    tables, _ = run(
        [
            *segments[:2],
            *segments[3:],
            Segment(POST, 1000 + len(ask)),
            Segment(b"", 9000, 1, ack=1500 + len(POST)),
        ]
    )
    http = tables["http"]
    assert kinds(http, 0)[-4:] == [4, 1, 3, 4]
    assert sum(n for k, n in rows(http, "kind", "nbytes") if k == 3) <= 407
    assert 5 not in http["kind"].tolist()


def test_a_capture_that_starts_in_a_body_waits_for_an_element() -> None:
    middle = b"rest of an event\n\n\r\n"
    stream = [Segment(middle, 9000, 1), Segment(chunk(EVENT), 9000 + len(middle), 1)]
    end = 9000 + len(middle) + len(chunk(EVENT))
    tables, _ = run([*stream, Segment(b"0\r\n\r\n", end, 1), Segment(OK, end + 5, 1)])
    assert rows(tables["http"], "kind", "events") == [(5, 0), (3, 1), (4, 0), (2, 0), (3, 0), (4, 0)]
