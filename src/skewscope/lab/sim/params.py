"""The calibrated parameters of params.toml, and interpolation in its tables."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from skewscope.core.tables import Array


@cache
def load() -> dict[str, Any]:
    """Return the parameters, as the file says them."""
    text = files("skewscope.lab.sim").joinpath("params.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@dataclass(frozen=True)
class StepModel:
    """Times of a step of one model on one kind of group, in s (tokens: 1)."""

    name: str
    decode_s: float
    per_seq_s: float
    per_kv_token_s: float
    prefill_s: float
    prefill_context_s: float
    host_s: float
    host_seq_s: float
    host_prefill_s: float
    layers: int
    hidden: int
    kv_token_bytes: int
    weights_bytes: float

    def kernels_s(self, sequences: int, kv_tokens: int, prefill_tokens: int = 0, context: float = 0) -> float:
        """Return the kernel sum of one step; a prefill reads the weights that decoding reads too."""
        prefill = prefill_tokens * (self.prefill_s + self.prefill_context_s * context)
        read = self.decode_s if sequences else 0.0
        return max(read, prefill) + sequences * self.per_seq_s + kv_tokens * self.per_kv_token_s

    def overhead_s(self, sequences: int, prefill_tokens: int = 0) -> float:
        """Return the host's part of one step: launches, sampling, scheduling."""
        return self.host_s + sequences * self.host_seq_s + (self.host_prefill_s if prefill_tokens else 0.0)


@cache
def step_model(name: str) -> StepModel:
    """Return a step model; raises KeyError for a name that params.toml lacks."""
    table = load()["step"][name]
    us = 1e-6
    return StepModel(
        name=name,
        decode_s=table["decode_us"] * us,
        per_seq_s=table["per_seq_us"] * us,
        per_kv_token_s=table["per_kv_token_us"] * us,
        prefill_s=table["prefill_us"] * us,
        prefill_context_s=table["prefill_context_us"] * us,
        host_s=table["host_us"] * us,
        host_seq_s=table["host_seq_us"] * us,
        host_prefill_s=table["host_prefill_us"] * us,
        layers=table["layers"],
        hidden=table["hidden"],
        kv_token_bytes=table["kv_token_bytes"],
        weights_bytes=table["weights_bytes"],
    )


def collective_s(name: str, nbytes: Array | float) -> Array:
    """Return times in s of a collective for message sizes in bytes, interpolated in logarithms.

    Above the largest size of the table time grows in proportion to bytes, below the smallest it stays.
    """
    table = load()["collective"][name]
    sizes, us = np.array(table["bytes"], float), np.array(table["us"], float)
    asked = np.asarray(nbytes, float)
    inside = np.exp(np.interp(np.log(np.maximum(asked, 1.0)), np.log(sizes), np.log(us)))
    out: Array = np.where(asked > sizes[-1], us[-1] * asked / sizes[-1], inside) * 1e-6
    return out
