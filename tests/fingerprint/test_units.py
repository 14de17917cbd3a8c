"""The table of units."""

from __future__ import annotations

import pytest

from skewscope.fingerprint.units import INPUTS, UNITS, classes, unit_of


def test_units_with_one_arithmetic_form_one_class() -> None:
    found = classes("fp16")
    assert ("A100", "A2", "Ada", "L40S") in found
    assert ("H100", "H200", "B200") in found
    assert ("H100", "H200") in classes("e4m3")
    assert sum(map(len, found)) == len(UNITS)


@pytest.mark.parametrize("fmt", INPUTS)
def test_groups_suit_the_kernels(fmt: str) -> None:
    for name in UNITS:
        try:
            row = unit_of(name, fmt, "fp32")
        except ValueError:
            continue
        assert row.kind != "fused" or row.group % 4 == 0
        # The narrow kernel adds 16 products of up to 2^27: F = 25 is the largest that fits int32.
        assert row.kind != "fused" or row.group * 4 * 2.0**row.fraction_bits <= 2.0**31
