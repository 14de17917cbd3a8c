"""When requests arrive and how long they are: synthetic processes and published traces. Pure, seeded.

A length is given as `16` (fixed), `8-64` (uniform), `8~640` (log-uniform) or `8|200` (in turn).
Traces: Azure LLM inference 2023 (CSV: TIMESTAMP, ContextTokens, GeneratedTokens) and Mooncake
(JSON lines: timestamp in ms, input_length, output_length).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from random import Random


@dataclass(frozen=True)
class Arrival:
    """One request: when it is due (s from the start), and its lengths in tokens."""

    due_s: float
    prompt: int
    answer: int


class TraceError(ValueError):
    """A trace file is not in a known form; the message names the line."""


class Lengths:
    """Draws lengths of one form. Raises ValueError for a form that is not known."""

    def __init__(self, form: str, rng: Random) -> None:
        self._rng = rng
        self._parts = [self._parsed(p) for p in form.split("|")]
        self._turn = 0

    @staticmethod
    def _parsed(part: str) -> tuple[str, int, int]:
        for mark in ("~", "-"):
            low, found, high = part.partition(mark)
            if found:
                if not 1 <= int(low) <= int(high):
                    raise ValueError(f"length {part!r}: 1 <= low <= high is needed")
                return mark, int(low), int(high)
        if int(part) < 1:
            raise ValueError(f"length {part!r}: at least 1 is needed")
        return "", int(part), int(part)

    def draw(self) -> int:
        """Return the next length in tokens."""
        mark, low, high = self._parts[self._turn % len(self._parts)]
        self._turn += 1
        if mark == "~":
            return round(math.exp(self._rng.uniform(math.log(low), math.log(high))))
        return self._rng.randint(low, high)


def synthetic(
    rate: float, cv: float, burst: int, prompt: Lengths, answer: Lengths, rng: Random
) -> Iterator[Arrival]:
    """Yield arrivals for ever: gamma-distributed gaps with coefficient of variation `cv` (1 = Poisson).

    `rate` in requests/s; `burst` requests come together.
    """
    shape = 1.0 / (cv * cv)
    due = 0.0
    while True:
        due += rng.gammavariate(shape, burst / rate / shape)
        for _ in range(burst):
            yield Arrival(due, prompt.draw(), answer.draw())


def trace(
    path: Path, rate: float, most_prompt: int, most_answer: int, start_s: float = 0.0
) -> Iterator[Arrival]:
    """Yield the arrivals of a trace from `start_s` on, its time scaled to a mean of `rate` requests/s.

    The mean is taken over the first 1000 requests. Lengths are scaled down by one factor each so that the
    largest of them is `most_prompt`, `most_answer`: the mix stays, a tiny engine can serve it.
    """
    rows = [r for r in _rows(path) if r[0] >= start_s][:1000]
    if len(rows) < 2:
        raise TraceError(f"{path}: fewer than two requests from {start_s} s on")
    span = rows[-1][0] - rows[0][0]
    scale = (len(rows) - 1) / max(span, 1e-9) / rate
    prompt = min(1.0, most_prompt / max(r[1] for r in rows))
    answer = min(1.0, most_answer / max(r[2] for r in rows))
    for at, asked, said in rows:
        yield Arrival((at - rows[0][0]) * scale, max(1, round(asked * prompt)), max(1, round(said * answer)))


def _rows(path: Path) -> Iterator[tuple[float, int, int]]:
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip() or line.startswith("TIMESTAMP"):
                continue
            try:
                yield _mooncake(line) if line.startswith("{") else _azure(line)
            except (ValueError, KeyError, TypeError, IndexError):
                raise TraceError(f"{path}:{number}: neither an Azure nor a Mooncake row") from None


def _azure(line: str) -> tuple[float, int, int]:
    when, asked, said = line.strip().split(",")
    # Seven digits of a second: datetime takes six.
    return datetime.fromisoformat(when[:26]).timestamp(), int(asked), int(said)


def _mooncake(line: str) -> tuple[float, int, int]:
    row = json.loads(line)
    return row["timestamp"] / 1e3, int(row["input_length"]), int(row["output_length"])
