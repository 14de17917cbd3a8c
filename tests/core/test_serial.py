"""Arithmetic on circles (RFC 1982)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewscope.core.serial import serial16, serial32


@pytest.mark.parametrize(
    ("a", "b", "gap"),
    [(5, 3, 2), (3, 5, -2), (0, 2**32 - 1, 1), (2**32 - 1, 0, -1), (2**31, 0, -(2**31)), (7, 7, 0)],
)
def test_sequence_numbers(a, b, gap):
    assert serial32(a, b) == gap


@pytest.mark.parametrize(
    ("a", "b", "gap"), [(0, 65_535, 1), (65_535, 0, -1), (2**15, 0, -(2**15)), (9, 4, 5)]
)
def test_ids(a, b, gap):
    assert serial16(a, b) == gap


@given(st.integers(0, 2**32 - 1), st.integers(-(2**31), 2**31 - 1))
def test_a_distance_is_found_again(start, gap):
    assert serial32((start + gap) % 2**32, start) == gap


@given(st.integers(0, 2**16 - 1), st.integers(-(2**15), 2**15 - 1))
def test_a_distance_of_ids_is_found_again(start, gap):
    assert serial16((start + gap) % 2**16, start) == gap
