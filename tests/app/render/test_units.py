"""Numbers as people read them."""

import math

import pytest

from skewscope.app.render import units


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0954, "s", "95.4 ms"),
        (0.00021, "s", "210 µs"),
        (2.5e-8, "s", "25 ns"),
        (1.234567, "s", "1.23 s"),
        (92.0, "s", "92 s"),
        (725.0, "s", "12 min 05 s"),
        (7325.0, "s", "2 h 02 min"),
        (0.0, "s", "0 s"),
        (-0.005, "s", "-5 ms"),
        (41_000_000, "ns", "41 ms"),
        (0.38, "ratio", "38 %"),
        (0.004, "ratio", "0.4 %"),
        (5_400_000, "bytes", "5.40 MB"),
        (999, "bytes", "999 bytes"),
        (2e9, "bps", "2 Gbit/s"),
        (1500.0, "bytes/s", "1.50 kB/s"),
        (1234.5, "1", "1,234"),
        (38.2, "tokens/s", "38.2 tokens/s"),
        (120.0, "pps", "120 packets/s"),
        (0.0, "count", "0"),
        (math.nan, "s", "not seen"),
        (math.inf, "1", "not seen"),
        (None, "s", "not seen"),
    ],
)
def test_quantity(value, unit, text):
    assert units.quantity(value, unit) == text


def test_digits_round_up_across_a_power_of_ten():
    assert units.digits(99.96) == "100"
    assert units.digits(999.6) == "1,000"
    assert units.digits(0.0001234) == "0.000123"


def test_factor_only_where_it_means_something():
    assert units.factor(0.086, 0.143) == "x1.66"
    assert units.factor(0.0, 1.0) == ""
    assert units.factor(None, 1.0) == ""
    assert units.factor(1.0, math.nan) == ""


def test_times():
    ts = 1_796_047_362_584_615_200
    assert units.utc(ts) == "2026-11-30 14:02:42.584"
    assert units.utc(0) == "unknown time"
    assert units.utc(10**30).endswith(" ns")
    assert units.offset(ts + 31_400_000_000, ts) == "+31.40 s"


def test_plural():
    assert units.plural(1, "host") == "1 host"
    assert units.plural(1_200, "host") == "1,200 hosts"
