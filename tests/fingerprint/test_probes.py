"""Probe sets and estimates."""

from __future__ import annotations

import pytest

from skewscope.fingerprint.probes import (
    Probe,
    described,
    digest,
    estimate,
    from_json,
    text_probes,
    token_probes,
)


def test_a_seed_gives_one_set_and_content_one_digest() -> None:
    a = token_probes(1, 5, 8, 100)
    assert a == token_probes(1, 5, 8, 100)
    assert digest(a) == digest(token_probes(1, 5, 8, 100))
    assert len({digest(x) for x in (a, token_probes(2, 5, 8, 100), a[:4], text_probes(1, 5, 8))}) == 4
    assert all(0 <= t < 100 for p in a for t in p.tokens)
    assert len({p.id for p in a}) == 5
    assert Probe("x", bias={3: 1.0}).as_json() == {"id": "x", "answer_tokens": 1, "bias": {"3": 1.0}}


def test_the_estimate_counts_requests_tokens_time_and_money() -> None:
    found = estimate(text_probes(1, 10, 10, 2), 3, 2.0, answer_price=5.0)
    assert (found.requests, found.prompt_tokens, found.answer_tokens, found.seconds) == (30, 420, 60, 15)
    assert found.cost == pytest.approx(60 * 5 / 1e6)
    assert estimate([], 1, 1.0).cost is None


def test_probes_return_from_json_and_others_are_refused() -> None:
    for probe in (*token_probes(1, 2, 3, 9), *text_probes(1, 1, 2), Probe("x", (1,), bias={3: 1.5})):
        assert from_json(probe.as_json()) == probe
    for row in (
        {},
        {"id": "a"},
        {"id": "a", "tokens": [-1]},
        {"id": "a", "tokens": "x"},
        None,
        {"id": 1, "bias": 3},
    ):
        with pytest.raises(ValueError, match="probe"):
            from_json(row)  # type: ignore[arg-type]
    described_set = described(token_probes(1, 2, 3, 9), 1)
    assert digest([from_json(x) for x in described_set["items"]]) == described_set["digest"]
