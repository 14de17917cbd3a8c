"""Probe sets: what is asked of a platform, versioned by a digest of its content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

WORDS = [
    "time",
    "year",
    "people",
    "way",
    "day",
    "man",
    "thing",
    "woman",
    "life",
    "child",
    "world",
    "school",
    "state",
    "family",
    "student",
    "group",
    "country",
    "problem",
    "hand",
    "part",
    "place",
    "case",
    "week",
    "company",
    "system",
    "program",
    "question",
    "work",
    "government",
    "number",
    "night",
    "point",
    "home",
    "water",
    "room",
    "mother",
    "area",
    "money",
    "story",
    "fact",
    "month",
    "lot",
    "right",
    "study",
    "book",
    "eye",
    "job",
    "word",
    "business",
    "issue",
    "side",
    "kind",
    "head",
    "house",
    "service",
    "friend",
    "father",
    "power",
    "hour",
    "game",
    "line",
    "end",
    "member",
    "law",
    "car",
    "city",
    "community",
    "name",
]
"""Common English nouns: a few of them in random order make a prompt that no cache holds and that leaves
the next token open, so that its top log-probabilities lie close together."""


@dataclass(frozen=True)
class Probe:
    """One question: token ids or text, how many tokens to answer, and biases on token ids."""

    id: str
    tokens: tuple[int, ...] = ()
    text: str = ""
    answer_tokens: int = 1
    bias: dict[int, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the probe as plain data, without what is empty."""
        row: dict[str, Any] = {"id": self.id, "answer_tokens": self.answer_tokens}
        if self.tokens:
            row["tokens"] = list(self.tokens)
        if self.text:
            row["text"] = self.text
        if self.bias:
            row["bias"] = {str(k): v for k, v in self.bias.items()}
        return row


def from_json(row: dict[str, Any]) -> Probe:
    """Return the probe that `as_json` wrote; ValueError where a field does not fit."""
    try:
        tokens = tuple(int(t) for t in row.get("tokens", ()))
        bias = {int(k): float(v) for k, v in row.get("bias", {}).items()}
        answer_tokens = int(row.get("answer_tokens", 1))
        probe = Probe(str(row["id"]), tokens, str(row.get("text", "")), answer_tokens, bias)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise ValueError("not a probe") from error
    if not (probe.tokens or probe.text) or probe.answer_tokens < 1 or min(probe.tokens, default=0) < 0:
        raise ValueError(f"probe {probe.id!r} asks nothing")
    return probe


def described(probes: Sequence[Probe], seed: int | None) -> dict[str, Any]:
    """Return what a collection records of its probes: all of them, so that it can be asked again."""
    items = [p.as_json() for p in probes]
    return {"digest": digest(probes), "count": len(probes), "seed": seed, "items": items}


def token_probes(seed: int, count: int, length: int, vocabulary: int, answer_tokens: int = 1) -> list[Probe]:
    """Return prompts of uniformly random token ids below `vocabulary`."""
    random = np.random.default_rng(seed)
    table = random.integers(0, vocabulary, size=(count, length))
    return [
        Probe(f"t{seed}.{i}", tokens=tuple(int(x) for x in row), answer_tokens=answer_tokens)
        for i, row in enumerate(table)
    ]


def text_probes(seed: int, count: int, length: int, answer_tokens: int = 1) -> list[Probe]:
    """Return prompts of random common words, for endpoints that take text only."""
    random = np.random.default_rng(seed)
    table = random.integers(0, len(WORDS), size=(count, length))
    return [
        Probe(f"w{seed}.{i}", text=" ".join(WORDS[x] for x in row), answer_tokens=answer_tokens)
        for i, row in enumerate(table)
    ]


def digest(probes: Sequence[Probe]) -> str:
    """Return the version of a probe set: equal content, equal digest."""
    text = json.dumps([p.as_json() for p in probes], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


@dataclass(frozen=True)
class Estimate:
    """What a collection will take, before it starts; `cost` only where prices are known."""

    requests: int
    prompt_tokens: int
    answer_tokens: int
    seconds: float
    cost: float | None


def estimate(
    probes: Sequence[Probe],
    repeats: int,
    rate_per_s: float,
    *,
    prompt_price: float | None = None,
    answer_price: float | None = None,
) -> Estimate:
    """Return requests, tokens, time at the given rate and cost at prices per million tokens.

    Text counts 1.4 tokens a word, above what common tokenisers need for common English words.
    """
    requests = len(probes) * repeats
    asked = repeats * sum(len(p.tokens) + int(np.ceil(1.4 * len(p.text.split()))) for p in probes)
    answered = repeats * sum(p.answer_tokens for p in probes)
    cost = None
    if prompt_price is not None or answer_price is not None:
        cost = (asked * (prompt_price or 0.0) + answered * (answer_price or 0.0)) / 1e6
    return Estimate(requests, asked, answered, requests / rate_per_s, cost)
