"""Border probes: biases that make two platforms answer with different tokens, where no log-probs are given.

Where the two best tokens of a prompt are apart by gap g_a on one platform and g_b on another, a bias of
(g_a + g_b) / 2 on the second token ties them half-way: the platform with the larger gap still answers the
first token, the other one the second. Found from two collections of the same prompts; no gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

from skewscope.fingerprint.collection import Collection
from skewscope.fingerprint.probes import Probe

LEAST_MARGIN = 1e-6
"""Nat. A server adds the bias to a logit of about 16, whose fp32 ulp this is: below, rounding decides."""


@dataclass(frozen=True)
class Border:
    """One biased prompt and what each of the two platforms must answer.

    margin: distance of either platform from the tie, in nat.
    """

    probe: Probe
    answer_a: int
    answer_b: int
    margin: float


def borders(
    a: Collection,
    b: Collection,
    prompts: Sequence[Probe],
    *,
    most: int = 64,
    least_margin: float = LEAST_MARGIN,
) -> list[Border]:
    """Return biased probes that separate two platforms, the widest margins first.

    Uses one position per prompt, the last one recorded; prompts whose two best tokens differ between the
    platforms, or whose tokens are known by text only, give none.
    """
    left, right = a.rows_of_repeat(0), b.rows_of_repeat(0)
    last: dict[str, int] = {}
    for name, position in left:
        last[name] = max(position, last.get(name, position))
    found = []
    for prompt in prompts:
        key = (prompt.id, last.get(prompt.id, -1))
        if key not in left or key not in right:
            continue
        border = _border(a, left[key], b, right[key], prompt)
        if border is not None and border.margin >= least_margin:
            found.append(border)
    return sorted(found, key=lambda x: -x.margin)[:most]


def _border(a: Collection, i: int, b: Collection, j: int, prompt: Probe) -> Border | None:
    first, second = (int(t) for t in a.tokens[i, :2])
    if {first, second} != {int(t) for t in b.tokens[j, :2]} or min(first, second) < 0:
        return None
    gap_a = float(a.logprobs[i, 0]) - float(a.logprobs[i, 1])
    gap_b = float(b.logprobs[j, 0]) - float(b.logprobs[j, 1])
    if int(b.tokens[j, 0]) != first:
        gap_b = -gap_b
    margin = abs(gap_a - gap_b) / 2
    bias = (gap_a + gap_b) / 2
    probe = Probe(f"{prompt.id}+b", prompt.tokens, prompt.text, 1, {second: bias})
    return Border(probe, *((first, second) if gap_a > gap_b else (second, first)), margin)


@dataclass(frozen=True)
class BorderResult:
    """Answers to border probes: how many as each platform would answer, and how many as neither.

    side: `a`, `b`, or `neither` where no side explains the answers; p_value: of a fair coin giving such a
    majority, a bound on the chance of a wrong side.
    """

    as_a: int
    as_b: int
    neither: int
    side: str
    p_value: float


def judge(found: Sequence[Border], chosen: dict[str, int]) -> BorderResult:
    """Count votes of answered border probes; `chosen` maps probe ids to the answered token."""
    answered = [(x, chosen[x.probe.id]) for x in found if x.probe.id in chosen]
    as_a = sum(token == x.answer_a for x, token in answered)
    as_b = sum(token == x.answer_b for x, token in answered)
    votes, most = as_a + as_b, max(as_a, as_b)
    p_value = min(1.0, float(2 * sum(_binomial(votes, k) for k in range(most, votes + 1))))
    side = "neither" if p_value > 1e-3 or votes < len(answered) / 2 else "a" if as_a > as_b else "b"
    return BorderResult(as_a, as_b, len(answered) - votes, side, p_value)


def _binomial(n: int, k: int) -> float:
    return float(comb(n, k) / 2**n)
