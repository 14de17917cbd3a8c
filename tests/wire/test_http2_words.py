from __future__ import annotations

import pytest

from skewscope.core.directory import Directory
from skewscope.wire import http2_words as words
from skewscope.wire.build import http2_frame
from skewscope.wire.streams import StreamFramer
from tests.wire.http2_peer import HELLO, WELCOME, Peer, answer, call, data
from tests.wire.segments import Segment, chop, packets, rows, run

UPDATE = http2_frame(words.WINDOW_UPDATE, 0, 3, b"\0\0\1\0")
PIECE = data(3, b"some bytes of an answer")


def protocols(segments: list[Segment]) -> dict[int, str]:
    framer = StreamFramer(Directory())
    framer.feed(*packets(segments))
    return framer.protocols()


@pytest.mark.parametrize(
    "made",
    [
        [HELLO],
        [HELLO[:14], HELLO[14:]],
        [WELCOME],
        [PIECE, PIECE, PIECE],
        [PIECE + UPDATE + PIECE],
        [UPDATE, PIECE + PIECE],
        [PIECE + PIECE + PIECE[:20]],
    ],
)
def test_what_shows_http2(made: list[bytes]) -> None:
    seq = 1000
    segments = []
    for one in made:
        segments.append(Segment(one, seq))
        seq += len(one)
    whole = len(made) > 1 or made[0] != PIECE + PIECE + PIECE[:20]
    assert protocols(segments) == ({1: "http2"} if whole else {})


@pytest.mark.parametrize(
    "made",
    [
        [PIECE, PIECE],
        [PIECE, b"something else entirely", PIECE, PIECE],
        [b"\0" * 90],
        [b"\0\0\0\1" * 30],
        [b"\0\0\0\0\0\0\0\0\1" * 12],
        [http2_frame(words.DATA, 0, 1 << 25, b"x")] * 4,
        [http2_frame(words.SETTINGS, 0, 0, b"")],
        [http2_frame(words.SETTINGS, 0, 0, b"\xff" * 6)],
    ],
)
def test_what_does_not(made: list[bytes]) -> None:
    seq = 1000
    segments = []
    for one in made:
        segments.append(Segment(one, seq))
        seq += len(one)
    assert protocols(segments) == {}


def test_nothing_is_told_of_frames_before_the_protocol_was_known() -> None:
    reply = b"".join(Peer().headers(k, answer()) for k in (1, 3, 5, 7, 9))
    size = len(reply) // 5
    tables, _ = run(chop(reply, [size], way=1))
    assert rows(tables["http"], "stream", "kind") == [(0, 5), (5, 2), (7, 2), (9, 2)]


def test_a_wrong_guess_is_given_up() -> None:
    noise = chop(b"\xfe" * 4000, [50], seq=1000 + 3 * len(PIECE))
    ask = b"POST /x HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
    tables, _ = run([*chop(PIECE * 3, [len(PIECE)]), *noise, Segment(ask, 1000 + 3 * len(PIECE) + 4000)])
    assert rows(tables["http"], "kind", "stream")[-2:] == [(1, 0), (4, 0)]


def test_call_and_answer_of_one_flow_are_known_together() -> None:
    ask = Peer().headers(1, call("/s/M"), end=True)
    assert protocols([Segment(ask, 1), Segment(UPDATE, 1 + len(ask)), Segment(PIECE, 9000, 1)]) == {
        1: "http2"
    }
