"""What is known of enrolled classes, as one JSON document."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from skewscope.fingerprint.classes import Platforms, Spread, choose_probes
from skewscope.fingerprint.collection import Collection, CollectionError

SCHEMA = "skewscope.enrolment/1"


def dumps(groups: Sequence[Platforms], decimals: int | None = None) -> str:
    """Write classes with the answers of their first members."""
    chosen = choose_probes(groups, decimals=decimals)
    return json.dumps(
        {
            "schema": SCHEMA,
            "decimals": decimals,
            "separation": asdict(chosen),
            "classes": [_class(g) for g in groups],
        },
        sort_keys=True,
    )


def _class(group: Platforms) -> dict[str, Any]:
    first = group.answers.rows_of_repeat(0)
    rows = [first[k] for k in sorted(first)]
    return {
        "members": group.members,
        "provenance": group.answers.provenance,
        "pairs": group.pairs,
        "equal": group.equal,
        "noise": asdict(group.noise),
        "keys": sorted(first),
        "width": group.answers.tokens.shape[1],
        "tokens": _packed(group.answers.tokens[rows], "<i8"),
        "logprobs": _packed(group.answers.logprobs[rows], "<f4"),
    }


def _packed(values: np.ndarray[Any, Any], kind: str) -> str:
    return base64.b64encode(values.astype(kind).tobytes()).decode()


def loads(text: str) -> tuple[list[Platforms], int | None]:
    """Read classes and the decimals to compare; CollectionError where the text is something else."""
    try:
        data = json.loads(text)
        if data["schema"] != SCHEMA:
            raise CollectionError("not an enrolment")
        decimals = data["decimals"]
        if decimals is not None and not isinstance(decimals, int):
            raise CollectionError("decimals is not a number")
        return [_group(row) for row in data["classes"]], decimals
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise CollectionError(f"not an enrolment: {type(error).__name__}") from error


def _group(row: dict[str, Any]) -> Platforms:
    keys = [(str(p), int(i)) for p, i in row["keys"]]
    shape = (len(keys), int(row["width"]))
    tokens = np.frombuffer(base64.b64decode(row["tokens"]), "<i8").reshape(shape).astype(np.int64)
    logprobs = np.frombuffer(base64.b64decode(row["logprobs"]), "<f4").reshape(shape).astype(np.float32)
    members = [str(m) for m in row["members"]]
    pairs, equal, noise = int(row["pairs"]), int(row["equal"]), row["noise"]
    if not 0 <= equal <= pairs or not np.isfinite(logprobs[:, :1]).all():
        raise CollectionError("figures of a class contradict each other")
    none = np.zeros((len(keys), 0), np.float32)
    answers = Collection(
        dict(row["provenance"]),
        keys,
        np.zeros(len(keys), np.int64),
        tokens,
        logprobs,
        none,
        tokens[:, 0] if shape[1] else np.full(len(keys), -1),
        name=members[0],
    )
    spread = Spread(int(noise["count"]), float(noise["mean"]), max(float(noise["deviation"]), 1e-6))
    return Platforms(answers, members, pairs, equal, spread)
