"""Measure fingerprinting on recorded platforms and write docs/results/fingerprint.{md,json}.

Usage: python -m tools.fingerprint_results FOLDER [AGAIN] [--page FILE]
FOLDER and AGAIN are two recordings of the same platforms by tools/fingerprint_platforms.py. Vectors of
real GPUs are found by SKEWSCOPE_SAMPLES. Needs scikit-learn. Without --page nothing is written.
"""

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import skewscope
from skewscope.app.fingerprinting.recorder import load
from skewscope.fingerprint import svm
from skewscope.fingerprint.arith import fused_dot, matmul
from skewscope.fingerprint.borders import borders, judge
from skewscope.fingerprint.classes import choose_probes, classify
from skewscope.fingerprint.collection import Collection
from skewscope.fingerprint.compare import pair
from skewscope.fingerprint.formats import round_to
from skewscope.fingerprint.grid import grid_of
from skewscope.fingerprint.probes import from_json
from skewscope.fingerprint.units import unit_of
from skewscope.fingerprint.verdict import check, rates_of
from tools.fingerprint_page import page
from tools.score_testbed import least_share

WINDOW = 8
"""Probes per independent check of the false-alarm count."""
REFERENCE = "torch-fp64"
PAIRS = (
    ("torch-fp32", "torch-fp32-eager"),
    ("torch-fp32", "torch-fp32-batch1"),
    ("torch-fp32", "torch-fp32-mkl-avx2"),
    ("torch-fp32", "torch-fp32-mkl-compatible"),
    ("torch-fp32", "numpy-skylakex"),
    ("torch-fp32", "numpy-prescott"),
    ("numpy-skylakex", "numpy-haswell"),
    ("torch-fp32", "torch-fp32-int8"),
    ("torch-fp32", "torch-fp32-e4m3"),
    ("torch-fp32", "torch-fp32-int4"),
    ("torch-fp32", "torch-bf16"),
    ("torch-fp32", "torch-fp16"),
    ("torch-fp16", "torch-bf16"),
    ("torch-bf16", "torch-bf16-eager"),
    ("torch-bf16", "torch-bf16-onednn-avx2"),
    ("torch-bf16", "torch-bf16-int8"),
)
SPEED_ROWS = (
    "V100 fp16",
    "A100 fp16",
    "A100 bf16",
    "H100 fp16",
    "H100 e4m3",
    "MI100 fp16",
    "MI250 fp16",
    "MI300 fp16",
)

Rows = list[list[str]]


def share_interval(right: int, of: int) -> tuple[float, float]:
    """Return the two-sided 95 % interval of a share (Clopper-Pearson)."""
    if not of:
        return 0.0, 1.0
    return least_share(right, of), 1 - least_share(of - right, of)


def vectors(folder: Path) -> dict[str, Any]:
    """Compare the emulator with outputs recorded on GPUs: sets, outputs, and how many are bit-equal."""
    sets = outputs = equal = 0
    short = []
    for file in sorted(folder.glob("*.npz")):
        unit, written = file.stem.split("_")
        fmt, data = written.lower(), np.load(file)
        a, b, c = (data[k].view(np.float32) for k in (f"a_{written}", f"b_{written}", "c_fp32"))
        for out in ("fp32", "fp16"):
            if f"d_{out}" not in data:
                continue
            # Recorded with an accumulator of zero, says the samples' own page.
            start = c * 0 if out == "fp32" and unit in ("H100", "H200") and fmt[0] == "e" else c
            same = fused_dot(a, b, start, unit=unit, fmt=fmt, out=out).view(np.uint32) == data[f"d_{out}"]
            sets, outputs, equal = sets + 1, outputs + same.size, equal + int(same.sum())
            if not same.all():
                short.append(f"{file.stem} {out}")
    return {"sets": sets, "outputs": outputs, "equal": equal, "sets_not_equal": short}


def speed(size: int = 384, tries: int = 4) -> dict[str, float]:
    """Return millions of multiply-adds a second of one thread, best of several, conversions included."""
    random = np.random.default_rng(0)
    a, b = random.normal(size=(size, size)), random.normal(size=(size, size))
    found = {}
    for row in SPEED_ROWS:
        unit, fmt = row.split()
        left, right = round_to(a, fmt), round_to(b, fmt)
        matmul(left, right, unit=unit, fmt=fmt)
        taken = []
        for _ in range(tries):
            start = time.thread_time()
            matmul(left, right, unit=unit, fmt=fmt)
            taken.append(time.thread_time() - start)
        found[row] = size**3 / min(taken) / 1e6
    return found


def separation(platforms: Sequence[Collection]) -> list[dict[str, Any]]:
    """How many classes are told apart: all bits, rounded log-probabilities, tokens alone."""
    rows = []
    for decimals in (None, 6, 4, 3, 2):
        groups = classify(platforms, decimals)
        chosen = choose_probes(groups, decimals=decimals)
        label = "all bits" if decimals is None else f"{decimals} decimals"
        rows.append({"answers": label, "classes": len(groups), "by_probes": chosen.separated})
    tokens = {p.chosen.tobytes() for p in platforms}
    rows.append({"answers": "best token only", "classes": len(tokens), "by_probes": []})
    return rows


def family(name: str) -> str:
    """Return precision and, where weights are quantised or a bit is flipped, that."""
    dtype = next((d for d in ("fp64", "bf16", "fp16") if f"-{d}" in name), "fp32")
    changed = next((f" {w}" for w in ("int8", "int4", "e4m3", "flip") if name.endswith(w)), "")
    return dtype + changed


def distances(platforms: Sequence[Collection]) -> Rows:
    """Median distance and flips between families, over all pairs of different classes."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    groups = classify(platforms)
    for i, a in enumerate(groups):
        for b in groups[i + 1 :]:
            key = tuple(sorted((family(a.name), family(b.name))))
            p = pair(a.answers, b.answers)
            found.setdefault((key[0], key[1]), []).append(
                (float(np.median(p.distance)), float(p.flipped.mean()))
            )
    rows = []
    for (x, y), values in sorted(found.items()):
        if "fp64" in (x, y) or not (x == y or "fp32" in (x, y) or x.split()[0] == y.split()[0]):
            continue
        d, f = (np.array(v) for v in zip(*values, strict=True))
        rows.append(
            [f"{x} / {y}", str(len(values)), f"{np.median(d):.2g}", f"{d.max():.2g}", f"{f.mean():.1%}"]
        )
    return rows


def storage(platforms: Sequence[Collection]) -> dict[str, Any]:
    """Share of platforms whose logits' storage is right, from log-probabilities alone."""
    expected = {p.name: family(p.name).split()[0].replace("fp64", "fp32") for p in platforms}
    seen = {p.name: grid_of(p.logprobs).storage for p in platforms}
    wrong = sorted(n for n in seen if seen[n] != expected[n])
    right = len(seen) - len(wrong)
    return {"right": right, "of": len(seen), "interval": share_interval(right, len(seen)), "wrong": wrong}


def unpaired(platforms: dict[str, Collection]) -> list[dict[str, Any]]:
    """Published and own classifiers on pairs of platforms, prompts of test and training disjoint."""
    exact = platforms[REFERENCE]

    def ours(one: Collection) -> np.ndarray:
        return np.concatenate([svm.grid_features(one), svm.residual_features(one, exact)], axis=1)

    def logprob_bits(one: Collection) -> np.ndarray:
        return svm.bits(np.nan_to_num(one.logprobs))

    methods: dict[str, Callable[[Collection], np.ndarray]] = {
        "logit_bits": svm.bit_features,
        "logprob_bits": logprob_bits,
        "grid": svm.grid_features,
        "grid_and_residual": ours,
    }
    rows = []
    for a, b in PAIRS:
        if a in platforms and b in platforms:
            row: dict[str, Any] = {"pair": f"{a} / {b}"}
            for name, features in methods.items():
                score = svm.pairwise(platforms[a], platforms[b], features)
                row[name], row[f"{name}_vote16"], row["positions"] = score.single, score.vote, score.positions
            rows.append(row)
    return rows


def window(one: Collection, probes: set[str]) -> Collection:
    """Return the answers to some probes only."""
    keep = [i for i, k in enumerate(one.keys) if k[0] in probes]
    return Collection(
        one.provenance,
        [one.keys[i] for i in keep],
        one.repeats[keep],
        one.tokens[keep],
        one.logprobs[keep],
        one.logits[keep],
        one.chosen[keep],
        name=one.name,
    )


def open_set(platforms: Sequence[Collection], again: Sequence[Collection]) -> dict[str, Any]:
    """Refusal of platforms left out of the enrolment, and verdicts on those enrolled, from a second run."""
    # A second run must not have been enrolled: those of the first folder are checked with AGAIN's.
    again = [*again, *(p for p in platforms if "@" in p.name)]
    groups = classify([p for p in platforms if "@" not in p.name])
    refused: Counter[str] = Counter()
    probes_used = []
    for left_out in groups:
        others = [g for g in groups if g is not left_out]
        found = check(left_out.answers, others, rates_of(others))
        refused[found.outcome] += 1
        probes_used.append(max(c.probes_used for c in found.classes))
    rates = rates_of(groups)
    own: Counter[str] = Counter()
    accepted_after = []
    for one in again:
        names = sorted({k[0] for k in one.keys})
        for start in range(0, len(names) - WINDOW + 1, WINDOW):
            found = check(window(one, set(names[start : start + WINDOW])), groups, rates)
            home = next((g for g in groups if one.name.split("@")[0] in g.members), None)
            if home is None:
                continue
            result = next(c for c in found.classes if c.name == home.name)
            own["right" if found.outcome == "match" and found.best == home.name else result.outcome] += 1
            accepted_after.append(result.probes_used)
    count, checks = refused["none"], sum(own.values())
    return {
        "left_out": {"refused": count, "of": len(groups), "interval": share_interval(count, len(groups))},
        "left_out_other_outcomes": {k: v for k, v in refused.items() if k != "none"},
        "left_out_probes": int(max(probes_used, default=0)),
        "again": {
            "right": own["right"],
            "of": checks,
            "wrongly_refused": own["refused"],
            "false_alarm_bound": share_interval(own["refused"], checks)[1] if checks else 1.0,
            "other": {k: v for k, v in own.items() if k not in ("right", "refused")},
            "probes_median": float(np.median(accepted_after)) if accepted_after else 0.0,
        },
    }


def flips(platforms: dict[str, Collection]) -> Rows:
    """One flipped weight bit: positions that changed, size, and probes for 99 % at that rate."""
    rows = []
    for dtype in ("fp32", "bf16", "fp16"):
        good, bad = platforms.get(f"torch-{dtype}"), platforms.get(f"torch-{dtype}-flip")
        if good and bad:
            p = pair(good, bad)
            share = float((~p.equal).mean())
            needed = int(np.ceil(np.log(0.01) / np.log(max(1 - share, 1e-12)))) if share else 0
            rows.append(
                [
                    dtype,
                    f"{share:.1%}",
                    f"{np.median(p.distance):.2g}",
                    f"{p.flipped.mean():.1%}",
                    str(max(needed, 1)),
                ]
            )
    return rows


def border_answers(folder: Path) -> Rows:
    """Answers to border probes by the two platforms that they were made for, and unbiased as a control."""
    rows = []
    for file in sorted(folder.glob("borders/*.json")):
        one, other = file.stem.split("~")
        a, b = load(folder / f"{one}.jsonl"), load(folder / f"{other}.jsonl")
        prompts = [from_json(row) for row in a.provenance["probes"]["items"]]
        found = borders(a, b, prompts)
        row = [f"{one} / {other}", str(len(prompts)), str(len(found))]
        answers = []
        for name in (one, other):
            answered = load(folder / "borders" / f"{file.stem}@{name}.jsonl")
            answers.append({k[0]: int(t) for k, t in zip(answered.keys, answered.chosen, strict=True)})
        one_side, other_side = (judge(found, chosen) for chosen in answers)
        differ = sum(answers[0][x.probe.id] != answers[1][x.probe.id] for x in found)
        control = pair(a, b)
        row += [
            str(differ),
            str(one_side.as_a),
            str(other_side.as_b),
            f"{control.flipped.sum()}/{len(control)}",
        ]
        rows.append(row)
    return rows


def emulated(platforms: Sequence[Collection]) -> dict[str, Any]:
    """Emulated GPUs inside the real model: classes, and positions at which two of them differ."""
    groups = classify(platforms)
    rows = []
    for fmt in ("fp16", "bf16"):
        own = [g for g in groups if g.name.endswith(fmt)]
        pairs = [pair(a.answers, b.answers) for i, a in enumerate(own) for b in own[i + 1 :]]
        if pairs:
            differ = np.concatenate([~p.equal for p in pairs])
            distance = [float(np.median(p.distance)) for p in pairs]
            flipped = [float(p.flipped.mean()) for p in pairs]
            rows.append(
                [
                    fmt,
                    str(len(own)),
                    f"{differ.mean():.1%}",
                    f"{min(distance):.2g} to {max(distance):.2g}",
                    f"{min(flipped):.1%} to {max(flipped):.1%}",
                ]
            )
    return {"platforms": len(platforms), "classes": len(groups), "rows": rows}


def unrecorded() -> list[str]:
    """Units and formats whose rule comes from publications alone."""
    found = []
    for unit in ("T4", "MI100", "MI250", "MI300"):
        for fmt in ("fp16", "bf16", "e4m3", "e5m2"):
            try:
                if not unit_of(unit, fmt, "fp32").recorded:
                    found.append(f"{unit} {fmt}")
            except ValueError:
                continue
    return found


def measure(folder: Path, again: Path | None) -> dict[str, Any]:
    """Return every figure."""
    recorded = {p.stem: load(p) for p in sorted(folder.glob("*.jsonl"))}
    real = {n: c for n, c in recorded.items() if not n.startswith("emulated")}
    second = [load(p) for p in sorted(again.glob("*.jsonl"))] if again else []
    samples = os.environ.get("SKEWSCOPE_SAMPLES", "")
    first = list(real.values())
    return {
        "schema": "skewscope.fingerprint_results/1",
        "version": skewscope.__version__,
        "date": datetime.now(UTC).date().isoformat(),
        "vectors": vectors(Path(samples) / "tensor-core") if samples else None,
        "speed_mmac_s": speed(),
        "published_rules_only": unrecorded(),
        "platforms": len(real),
        "positions": len(next(iter(real.values()))),
        "build": next((c.provenance["platform"] for n, c in real.items() if n == "torch-bf16"), {}),
        "members": [g.members for g in classify(first)],
        "separation": separation(first),
        "distances": distances(first),
        "storage": storage(first),
        "unpaired": unpaired(real),
        "open_set": open_set(first, [c for c in second if not c.name.startswith("emulated")]),
        "flips": flips(real),
        "borders": border_answers(folder),
        "emulated": emulated([c for n, c in recorded.items() if n.startswith("emulated")]),
    }


def main(arguments: list[str]) -> int:
    """Measure, and write the page and the JSON beside it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("again", type=Path, nargs="?")
    parser.add_argument("--page", type=Path)
    options = parser.parse_args(arguments)
    results = measure(options.folder, options.again)
    text = page(results)
    if options.page is None:
        print(text)
        return 0
    options.page.write_text(text, encoding="utf-8")
    options.page.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
