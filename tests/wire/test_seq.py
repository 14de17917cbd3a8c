from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skewscope.wire.seq import WRAP, delta, extend

HALF = WRAP // 2

U32 = st.integers(0, WRAP - 1)


@given(U32, st.integers(-HALF, HALF - 1))
def test_delta_undoes_an_addition_modulo_2_32(a: int, d: int) -> None:
    assert delta((a + d) % WRAP, a) == d


@given(st.integers(WRAP, 1 << 40), st.integers(-HALF + 1, HALF - 1))
def test_extend_finds_the_nearest_position(near: int, d: int) -> None:
    assert extend((near + d) % WRAP, near) == near + d


def test_wrap_around() -> None:
    assert delta(5, 0xFFFFFFFB) == 10
    assert delta(0xFFFFFFFB, 5) == -10
    assert extend(5, WRAP - 5) == WRAP + 5
