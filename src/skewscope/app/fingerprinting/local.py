"""Collects from a model that runs in this process."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skewscope.app.fingerprinting.recorder import Recorder, read_probes
from skewscope.fingerprint import local_torch, probes, white_box
from skewscope.fingerprint.gguf import parse_gguf
from skewscope.fingerprint.llama import (
    Arithmetic,
    Model,
    emulated,
    forward,
    model_from_gguf,
    plain,
    quantised,
    random_model,
)

Logits = Callable[[NDArray[np.int64], int], NDArray[np.floating]]


@dataclass(frozen=True)
class Local:
    """One local platform: the engine and everything about it that may change a bit."""

    engine: str = "numpy"
    dtype: str = "fp32"
    unit: str = ""
    attention: str = "sdpa"
    quantise: str = ""
    batch: int = 8
    threads: int = 1
    gguf: str = ""
    head_ids: int = 0
    flip: str = ""


def load_model(local: Local) -> Model:
    """Return the model of the GGUF file, or a small one with random weights where none is named."""
    if local.gguf:
        data = np.memmap(Path(local.gguf), np.uint8, "r")
        model = model_from_gguf(parse_gguf(data), local.head_ids)
    else:
        model = random_model(0)
    return quantised(model, local.quantise) if local.quantise else model


def engine_of(local: Local, model: Model) -> tuple[Logits, dict[str, Any]]:
    """Return the function that computes logits, and what identifies its build."""
    if local.engine == "torch":
        import torch

        torch.set_num_threads(local.threads)
        kept = local_torch.TorchModel(model, dtype=local.dtype, attention=local.attention)
        if local.flip:
            layer, name, index, bit = local.flip.split(":")
            kept.flip_weight_bit(int(layer), name, int(index), int(bit))
        return kept.logits, local_torch.build()
    if local.engine == "emulated":
        math: Arithmetic = emulated(local.unit, local.dtype)
    else:
        math = plain(np.float64 if local.dtype == "fp64" else np.float32)
    return lambda tokens, last: forward(model, tokens, math, last), {"numpy": np.__version__}


def collect(
    local: Local,
    out: Path,
    *,
    seed: int,
    count: int,
    length: int,
    positions: int,
    repeats: int,
    probe_file: Path | None = None,
) -> int:
    """Run the probes that are still missing and append their answers; return how many were added.

    probe_file: probes of one length in place of seeded ones; ValueError where they do not fit the model.
    """
    model = load_model(local)
    vocabulary = model.embedding.shape[0]
    if probe_file:
        asked = read_probes(probe_file)
        count, length = len(asked), len(asked[0].tokens)
        if any(len(p.tokens) != length or not length or max(p.tokens) >= vocabulary for p in asked):
            raise ValueError(f"{probe_file}: prompts differ in length or do not fit the model")
    else:
        asked = probes.token_probes(seed, count, length, vocabulary)
    logits_of, build = engine_of(local, model)
    described = asdict(local) | {"gguf": Path(local.gguf).name, "machine": platform.machine()} | build
    provenance = {
        "platform": described,
        "source": {"kind": "white box"},
        "probes": probes.described(asked, None if probe_file else seed),
        "settings": {"positions": positions, "length": length},
        "created_ns": time.time_ns(),
    }
    added = 0
    with Recorder(out, provenance) as recorder:
        for repeat in range(repeats):
            # Whole batches only: the neighbours in a batch are part of the platform.
            for start in range(0, count, local.batch):
                group = asked[start : start + local.batch]
                if all((p.id, repeat) in recorder.done for p in group):
                    continue
                added += recorder.add(
                    white_box.answer(group, logits_of, positions=positions, batch=local.batch, repeat=repeat)
                )
    return added
