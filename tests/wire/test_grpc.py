from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.core.jit import njit
from skewscope.core.tables import Array
from skewscope.wire import grpc
from skewscope.wire.build import grpc_message
from skewscope.wire.layout import H2STREAM, Rows


@njit
def scan(rows: Rows, data: Array, cuts: Array) -> None:
    """Scan data in the pieces that the cuts make; each begins a DATA frame."""
    for k in range(len(cuts) - 1):
        grpc.begin_frame(rows[0], cuts[k + 1] - cuts[k])
        grpc.scan(rows[0], data, cuts[k], cuts[k + 1] - cuts[k])


def count(pieces: list[bytes], known: int = 1) -> int:
    rows = np.zeros(1, H2STREAM)
    rows["known"] = known
    data = np.frombuffer(b"".join(pieces), np.uint8).copy()
    scan(rows, data, np.cumsum([0] + [len(p) for p in pieces]).astype(np.int64))
    return int(rows[0]["events"])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 300), max_size=12), st.lists(st.integers(1, 200), min_size=1, max_size=6))
def test_messages_do_not_depend_on_frames(sizes: list[int], frames: list[int]) -> None:
    whole = b"".join(grpc_message(b"m" * n) for n in sizes)
    pieces = []
    while whole:
        size = frames[len(pieces) % len(frames)]
        pieces.append(whole[:size])
        whole = whole[size:]
    assert count(pieces) == len(sizes)


def test_a_lost_place_is_found_at_a_message_that_fills_its_frame() -> None:
    one = grpc_message(b"token")
    assert count([b"in the middle", b"\0\0\0\0\x63short", one, one + one], known=0) == 3


@pytest.mark.parametrize("broken", [b"\x02\0\0\0\0", b"{json}"])
def test_what_is_no_message_is_not_counted(broken: bytes) -> None:
    assert count([grpc_message(b"x") + broken + grpc_message(b"x")]) == 1


def test_every_grpc_status_has_an_http_one() -> None:
    assert sorted(grpc.HTTP_STATUS) == list(range(17))
    assert grpc.HTTP_STATUS[0] == 0
    assert all(400 <= v < 600 for k, v in grpc.HTTP_STATUS.items() if k)
