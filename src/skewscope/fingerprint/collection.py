"""Recorded answers of one platform: JSON lines, the first of them says where they come from.

Lines are written as answers arrive, so a collection that was interrupted is continued, and a damaged or
unfinished last line costs one answer.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

SCHEMA = "skewscope.answers/1"
MOST_TOP, MOST_LOGITS = 1024, 4096
"""Per position. More would let one line of a damaged file decide how much memory all others take."""
MOST_INTEGER = 2**62
LARGEST = 1e6
"""No log-probability is larger in size; infinite ones are left out by the writers."""


class CollectionError(ValueError):
    """The lines are not a collection of answers."""


@dataclass(frozen=True)
class Answer:
    """The distribution of one answered position, best token first.

    tokens: ids or texts; logprobs: their log-probabilities, natural logarithm; logits: of the first ids,
    white box only.
    """

    probe: str
    position: int
    repeat: int
    tokens: Sequence[int | str]
    logprobs: Sequence[float]
    logits: NDArray[np.float32] | None = None
    chosen: int | str | None = None

    def line(self) -> str:
        """Return the answer as one line of JSON."""
        row: dict[str, Any] = {"probe": self.probe, "position": self.position, "repeat": self.repeat}
        row |= {"tokens": list(self.tokens), "logprobs": [float(x) for x in self.logprobs]}
        if self.chosen is not None:
            row["chosen"] = self.chosen
        if self.logits is not None:
            row["logits"] = base64.b64encode(self.logits.astype("<f4").tobytes()).decode()
        return json.dumps(row, allow_nan=False)


def header_line(provenance: dict[str, Any]) -> str:
    """Return the first line: the schema and where the answers come from."""
    return json.dumps({"schema": SCHEMA} | provenance, sort_keys=True)


@dataclass
class Collection:
    """Answers as columns, ordered by (probe, position, repeat).

    keys: (probe, position) per row; repeats (n,); tokens (n, k) int64, ids, or hashes of texts with the
    top bit set, -1 where absent; logprobs (n, k) float32, NaN where absent; logits (n, ids) or empty;
    chosen (n,) int64, the token that was answered; damaged: lines that could not be read.
    """

    provenance: dict[str, Any]
    keys: list[tuple[str, int]]
    repeats: NDArray[np.int64]
    tokens: NDArray[np.int64]
    logprobs: NDArray[np.float32]
    logits: NDArray[np.float32]
    chosen: NDArray[np.int64]
    damaged: int = 0
    name: str = field(default="")

    def __len__(self) -> int:
        return len(self.keys)

    def rows_of_repeat(self, repeat: int) -> dict[tuple[str, int], int]:
        """Return the row of each (probe, position) in one repetition."""
        return {key: i for i, key in enumerate(self.keys) if self.repeats[i] == repeat}


def token_code(token: int | str) -> int:
    """Return a token id as it is, a text as a negative hash that is the same everywhere."""
    if isinstance(token, int):
        return token
    value = int.from_bytes(hashlib.blake2b(token.encode("utf-8", "replace"), digest_size=8).digest(), "big")
    return -2 - (value >> 2)


def parse(lines: Iterable[str], name: str = "") -> Collection:
    """Read a collection; unreadable lines are counted, a file without header raises CollectionError."""
    found = iter(lines)
    try:
        provenance = json.loads(next(found, ""))
        if provenance.pop("schema") != SCHEMA:
            raise CollectionError("not a collection of answers")
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise CollectionError(f"{name or 'input'}: not a collection of answers") from error
    rows: dict[tuple[str, int, int], Answer] = {}
    damaged = 0
    for line in found:
        answer = _answer(line)
        if answer is None:
            damaged += bool(line.strip())
        else:
            rows[answer.probe, answer.position, answer.repeat] = answer
    return _columns(provenance, [rows[key] for key in sorted(rows)], damaged, name)


def _answer(line: str) -> Answer | None:
    try:
        row = json.loads(line)
        tokens, logprobs = row["tokens"], row["logprobs"]
        if not (isinstance(tokens, list) and 0 < len(tokens) == len(logprobs) <= MOST_TOP):
            return None
        if not all(map(_is_token, tokens)) or not (np.abs(np.asarray(logprobs, float)) <= LARGEST).all():
            return None
        logits = None
        if "logits" in row:
            logits = np.frombuffer(base64.b64decode(row["logits"], validate=True), "<f4").astype(np.float32)
            if logits.size > MOST_LOGITS:
                return None
        where = (str(row["probe"]), int(row["position"]), int(row["repeat"]))
        if max(map(abs, where[1:])) >= MOST_INTEGER:
            return None
        chosen = row.get("chosen")
        return Answer(*where, tokens, logprobs, logits, chosen if _is_token(chosen) else None)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _is_token(value: object) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return 0 <= value < MOST_INTEGER
    return isinstance(value, str)


def _columns(provenance: dict[str, Any], rows: list[Answer], damaged: int, name: str) -> Collection:
    count = len(rows)
    most = max((len(r.tokens) for r in rows), default=0)
    wide = max((r.logits.size for r in rows if r.logits is not None), default=0)
    tokens = np.full((count, most), -1, np.int64)
    logprobs = np.full((count, most), np.nan, np.float32)
    logits = np.full((count, wide), np.nan, np.float32)
    chosen = np.full(count, -1, np.int64)
    for i, row in enumerate(rows):
        # Sorted by value, then by token: servers order equal log-probabilities as they like.
        codes = np.array([token_code(t) for t in row.tokens], np.int64)
        values = np.asarray(row.logprobs, np.float32)
        order = np.lexsort((codes, -values))
        tokens[i, : codes.size], logprobs[i, : codes.size] = codes[order], values[order]
        if row.logits is not None:
            logits[i, : row.logits.size] = row.logits
        if row.chosen is not None:
            chosen[i] = token_code(row.chosen)
        elif codes.size:
            chosen[i] = tokens[i, 0]
    repeats = np.array([r.repeat for r in rows], np.int64)
    keys = [(r.probe, r.position) for r in rows]
    return Collection(provenance, keys, repeats, tokens, logprobs, logits, chosen, damaged, name)
