import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.core.directory import Directory
from skewscope.sources.counters import Counters, leading_number
from skewscope.sources.format import Origin


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("400 Gb/sec (4X NDR)", 400),
        ("4: ACTIVE", 4),
        ("0x10de", 0x10DE),
        ("-1", -1),
        ("2.5 GT/s", 2.5),
        ("1e3", 1000),
    ],
)
def test_a_number_at_the_beginning(text, number):
    assert leading_number(text) == number


@settings(deadline=None)
@given(st.text(max_size=40))
def test_any_text_gives_a_number_or_none(text):
    assert isinstance(leading_number(text), float)


def test_texts_without_a_number_are_not_known():
    assert math.isnan(leading_number("Unknown"))
    assert math.isnan(leading_number("0xzz"))


def test_a_name_that_is_known_and_not_mapped_is_not_unknown():
    origin = Origin(Directory(), 0)
    counters = Counters(origin, "sysfs_infiniband")
    for name in ("fw_ver", "packet_seq_err", "nonsense", "x" * 300):
        counters.add(1, 1, "n1/mlx5_0/1", name, 3.0)
    assert len(counters) == 1
    assert dict(origin.unmapped) == {"nonsense": 1, "x" * 100: 1}
