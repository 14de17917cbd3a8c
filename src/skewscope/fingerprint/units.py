"""The matrix units that can be emulated: one row per unit and input format.

Sources: Khattak and Mikaitis (arXiv 2512.07004, 2510.15884), MMA-Sim (arXiv 2511.10909), Hawkeye
(arXiv 2603.20421), mmaemu 0.1.0. Rows marked `recorded` agree with every output recorded on that
hardware that is at hand; the others follow the publications alone.
"""

from __future__ import annotations

from dataclasses import dataclass

UNITS = ("V100", "T4", "A100", "A2", "Ada", "L40S", "H100", "H200", "B200", "MI100", "MI250", "MI300")
INPUTS = ("fp16", "bf16", "tf32", "e4m3", "e5m2", "int8")


@dataclass(frozen=True)
class Unit:
    """How one unit adds one group of products to its accumulator.

    kind: `fused` (NVIDIA: everything aligned to the largest exponent and truncated), `late` (fp8 by two
    fp16 instructions, the accumulator added last), `exact`, `tree`, `floor` (AMD CDNA 1, 2, 3), `int`.
    group: products per step; fraction_bits: kept below the largest exponent; min_exponent: floor of that
    exponent; keep: fraction bits of an fp32 accumulator between steps; split: even and odd products are
    aligned apart; input: format whose exponent field the unit reads.
    """

    kind: str
    group: int
    fraction_bits: int = 0
    min_exponent: int = -132
    keep: int = 23
    split: bool = False
    input: str = ""
    recorded: bool = False


VOLTA = {"fp16": Unit("fused", 4, 23, recorded=True)}
TURING = {"fp16": Unit("fused", 8, 24)}
AMPERE = {
    "fp16": Unit("fused", 8, 24, recorded=True),
    "bf16": Unit("fused", 8, 24, recorded=True),
    "tf32": Unit("fused", 4, 24, recorded=True),
}
ADA = AMPERE | {
    "e4m3": Unit("fused", 16, 13, keep=13, recorded=True),
    "e5m2": Unit("fused", 16, 13, keep=13, recorded=True),
}
_HOPPER_16 = {
    "fp16": Unit("fused", 16, 25, -133, recorded=True),
    "bf16": Unit("fused", 16, 25, -133, recorded=True),
    "tf32": Unit("fused", 8, 25, -133, recorded=True),
}
LATE = Unit("late", 16, 25, -133, recorded=True)
"""fp8 through mma.sync on Hopper and Blackwell.

Products 0, 1, 4, 5, 8, 9, ... of each 32 go through one fp16 step of 16, products 2, 3, 6, 7, ...
through the next, from zero; then the accumulator is added, rounded to nearest. Found by search over
orders: the only one that gives all recorded fp16 outputs of H100, H200 and B200."""
HOPPER = _HOPPER_16 | {
    "e4m3": Unit("fused", 32, 13, -133, keep=13, recorded=True),
    "e5m2": Unit("fused", 32, 13, -133, keep=13, recorded=True),
}
BLACKWELL = _HOPPER_16 | {"e4m3": LATE, "e5m2": LATE}
CDNA1 = {"fp16": Unit("exact", 4), "bf16": Unit("exact", 2)}
CDNA2 = {"fp16": Unit("tree", 4), "bf16": Unit("tree", 4)}
CDNA3 = {
    "fp16": Unit("floor", 8, 24),
    "bf16": Unit("floor", 8, 24),
    "e4m3": Unit("floor", 16, 24, split=True, input="e4m3fnuz"),
    "e5m2": Unit("floor", 16, 24, split=True, input="e5m2fnuz"),
}
_FAMILY = {
    "V100": VOLTA,
    "T4": TURING,
    "A100": AMPERE,
    "A2": AMPERE,
    "Ada": ADA,
    "L40S": ADA,
    "H100": HOPPER,
    "H200": HOPPER,
    "B200": BLACKWELL,
    "MI100": CDNA1,
    "MI250": CDNA2,
    "MI300": CDNA3,
}
_NVIDIA_KINDS = ("fused", "late")


def unit_of(unit: str, fmt: str, out: str) -> Unit:
    """Return the row for one product; ValueError where that unit has no such instruction or no model."""
    if unit not in _FAMILY:
        raise ValueError(f"unit {unit!r} is not one of {', '.join(UNITS)}")
    if fmt not in INPUTS:
        raise ValueError(f"fmt {fmt!r} is not one of {', '.join(INPUTS)}")
    if fmt == "int8" and unit != "V100" and out == "fp32":
        return Unit("int", 1)
    row = _FAMILY[unit].get(fmt)
    if row is None:
        raise ValueError(f"{unit} has no matrix instruction for {fmt}, or none whose arithmetic is known")
    if out == "fp32":
        return row
    if out != "fp16":
        raise ValueError(f"out {out!r} is not fp32 or fp16")
    if row.kind not in _NVIDIA_KINDS or fmt in ("bf16", "tf32"):
        raise ValueError(f"{unit} has no {fmt} instruction with fp16 output whose arithmetic is known")
    return LATE if row.group == 32 else row


def classes(fmt: str, out: str = "fp32") -> list[tuple[str, ...]]:
    """Return the units that do the same arithmetic, class by class: nothing tells their members apart."""
    found: dict[Unit, list[str]] = {}
    for name in UNITS:
        try:
            row = unit_of(name, fmt, out)
        except ValueError:
            continue
        found.setdefault(row, []).append(name)
    return [tuple(names) for names in found.values()]
