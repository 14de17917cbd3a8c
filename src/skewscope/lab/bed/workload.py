"""What runs on the nodes: engine, front ends, router or gateway, clients. Declarative; `bed.py` starts it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any


class WorkloadError(ValueError):
    """The settings do not describe a workload; the message names the key."""


@dataclass(frozen=True)
class Workload:
    """Settings of the workload `tp`; lengths in tokens, times in ms where the name says so."""

    engine: str = "own"
    """`own`, or `vllm`: real vLLM, for which only what concerns clients, probes and gateways counts."""
    layers: tuple[int, ...] = (1,)
    """Layers of each pipeline stage; a step has two all-reduces a layer."""
    hidden: int = 256
    compute_ms: float = 20.0
    """Time of half a layer before its all-reduce, where an accelerator would work."""
    prompt_token_ms: float = 0.02
    expert_rows: int = 0
    """Rows that each token sends through the experts of all ranks after each all-reduce; 0 = no experts."""
    expert_ms: float = 2.0
    training: bool = False
    """A data-parallel training loop in place of the engine: no requests, no front end."""
    noise: str = "mid"
    slots: int = 8
    chunk: int = 0
    static: bool = False
    pool_tokens: int = 0
    work_list: int = 64
    """Words of the broadcast that starts a step."""
    hold_on_crash: bool = False
    front_end: Mapping[str, Any] = field(default_factory=dict)
    router: Mapping[str, Any] = field(default_factory=dict)
    gateway: Mapping[str, Any] = field(default_factory=dict)
    clients: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"main": {"clients": 4}})
    """Groups of clients by name. `main` and those that begin with `main` run from the start."""
    probes_every_s: float = 1.0
    """How often the management node asks each front end for its health and its metrics; 0 = never."""
    kv_token_bytes: int = 4096
    """Bytes of keys and values of one token at one rank, where prefill and decode are apart."""
    heartbeats_every_s: float = 0.0
    flows: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Bulk flows by name that run from the start: `src`, `dst` and settings of `programs.bulk`."""

    def __post_init__(self) -> None:
        if not self.layers or not all(1 <= n <= 80 for n in self.layers):
            raise WorkloadError("layers: 1 to 80 for each stage")
        if self.engine not in ("own", "vllm"):
            raise WorkloadError("engine: own or vllm")
        if not 16 <= self.hidden <= 8192:
            raise WorkloadError("hidden: 16 to 8192")
        if self.noise not in ("none", "low", "mid", "high"):
            raise WorkloadError("noise: none, low, mid or high")
        if self.work_list < 5:
            raise WorkloadError("work_list: at least 5 words")

    @property
    def stages(self) -> int:
        """Pipeline stages."""
        return len(self.layers)


def parse(table: Mapping[str, Any]) -> Workload:
    """Return the workload of a table of settings; raises WorkloadError."""
    known = {f.name for f in fields(Workload)}
    unknown = set(table) - known
    if unknown:
        raise WorkloadError(f"unknown keys: {', '.join(sorted(unknown))}")
    settings = dict(table)
    if "layers" in settings:
        given = settings["layers"]
        settings["layers"] = tuple(given) if isinstance(given, list) else (given,)
    try:
        return Workload(**settings)
    except TypeError as error:
        raise WorkloadError(str(error)) from None
