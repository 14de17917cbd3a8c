"""Border probes between platforms that differ in their last bits only."""

from __future__ import annotations

import numpy as np

from skewscope.fingerprint.arith import matmul
from skewscope.fingerprint.borders import borders, judge
from skewscope.fingerprint.collection import Collection, header_line, parse
from skewscope.fingerprint.formats import round_to
from skewscope.fingerprint.llama import Arithmetic, forward, plain, random_model
from skewscope.fingerprint.probes import Probe, token_probes
from skewscope.fingerprint.white_box import answer

MODEL = random_model(3)
PROMPTS = token_probes(1, 40, 6, 256)


def ask(math: Arithmetic, prompts: list[Probe]) -> Collection:
    rows = answer(prompts, lambda t, last: forward(MODEL, t, math, last), positions=1, batch=1)
    return parse([header_line({}), *(r.line() for r in rows)])


def tf32(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return matmul(round_to(x, "tf32"), round_to(w.T, "tf32"), unit="A100", fmt="tf32")


TF32 = Arithmetic(tf32, plain(np.float32).store)


def chosen(found: Collection) -> dict[str, int]:
    return {key[0]: int(token) for key, token in zip(found.keys, found.chosen, strict=True)}


def test_tokens_alone_tell_two_platforms_apart_where_unbiased_ones_do_not() -> None:
    one, other = plain(np.float32), TF32
    a, b = ask(one, PROMPTS), ask(other, PROMPTS)
    assert np.mean(a.tokens[:, 0] != b.tokens[:, 0]) < 0.1
    found = borders(a, b, PROMPTS)
    assert len(found) >= 8
    assert [x.margin for x in found] == sorted((x.margin for x in found), reverse=True)
    probes = [x.probe for x in found]
    for math, side in ((one, "a"), (other, "b")):
        result = judge(found, chosen(ask(math, probes)))
        assert result.side == side
        assert (result.as_a, result.as_b)[side == "b"] >= 0.8 * len(found)


def test_answers_of_neither_platform_are_said_to_be_so() -> None:
    a, b = ask(TF32, PROMPTS), ask(plain(np.float32), PROMPTS)
    found = borders(a, b, PROMPTS)
    assert judge(found, {x.probe.id: -5 for x in found}).side == "neither"
    half = {x.probe.id: (x.answer_a, x.answer_b)[i % 2] for i, x in enumerate(found)}
    assert judge(found, half).side == "neither"
    assert judge(found, {}).side == "neither"


def test_equal_platforms_and_foreign_prompts_give_no_border() -> None:
    a = ask(plain(np.float32), PROMPTS)
    assert borders(a, a, PROMPTS) == []
    assert borders(a, a, token_probes(9, 3, 6, 256)) == []
