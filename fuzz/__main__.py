"""Fuzz the readers with atheris, and write what was run to a page.

Usage: python -m fuzz [TARGET ...] [--seconds N] [--jobs N] [--page FILE]
Each target runs in a process of its own, kernels uncompiled. The corpus stays in out/fuzz/TARGET and
grows from run to run; an input that fails is kept in out/fuzz and named. Exit code 1: a finding.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "out" / "fuzz"
ONE_INPUT_S = 30
MEMORY_MIB = 3072


@dataclass
class Run:
    """What one target's run came to."""

    target: str
    inputs: int
    edges: int
    corpus: int
    seconds: int
    finding: str


def fuzz_here(target: str, seconds: int) -> None:
    """Run one target in this process; does not return."""
    import atheris

    with atheris.instrument_imports(include=["skewscope"]):
        from fuzz.corpus import SEEDS
        from fuzz.targets import TARGETS
    folder = OUT / target
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(SEEDS[target]()):
        (folder / f"seed{number:03}").write_bytes(seed)
    atheris.Setup(
        [
            target,
            f"-max_total_time={seconds}",
            f"-timeout={ONE_INPUT_S}",
            f"-rss_limit_mb={MEMORY_MIB}",
            f"-artifact_prefix={OUT}/{target}-",
            "-max_len=65536",
            "-print_final_stats=1",
            str(folder),
        ],
        TARGETS[target],
    )
    atheris.Fuzz()


def run(target: str, seconds: int) -> Run:
    """Run one target in a process of its own and read what libFuzzer says of it."""
    command = [sys.executable, "-m", "fuzz", target, "--here", "--seconds", str(seconds)]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    (OUT / f"{target}.log").write_text(said, encoding="utf-8")
    inputs = re.findall(r"stat::number_of_executed_units:\s+(\d+)", said) or re.findall(
        r"^#(\d+)", said, re.MULTILINE
    )
    edges = re.findall(r"cov: (\d+)", said) or ["0"]
    finding = ""
    if done.returncode:
        kept = re.findall(r"Test unit written to (\S+)", said)
        error = [line for line in said.splitlines() if "Error" in line or "ERROR" in line or "ALARM" in line]
        what = error[0].strip() if error else f"exit code {done.returncode}"
        finding = f"{what} ({Path(kept[0]).name if kept else 'see log'})"
    count = sum(1 for _ in (OUT / target).glob("*"))
    return Run(target, int((inputs or ["0"])[-1]), int(edges[-1]), count, seconds, finding)


def page(runs: list[Run]) -> str:
    """Return the results page."""
    rows = "\n".join(
        f"| {r.target} | {r.seconds} | {r.inputs:,} | {r.edges:,} | {r.corpus:,} | {r.finding or 'none'} |"
        for r in runs
    )
    return f"""# Fuzzing

<!-- Written by `make fuzz ARGS="--page docs/results/fuzz.md"`. Edits are lost. -->

- Date: {datetime.now(UTC).date()}. {os.cpu_count()} cores, Python {platform.python_version()}.
- Command: `make fuzz`. Kernels uncompiled, so every index is checked; a hang of {ONE_INPUT_S} s or
  {MEMORY_MIB} MiB of memory is a finding, as is any exception.

| target | seconds | inputs | branches reached | corpus | findings |
| --- | --- | --- | --- | --- | --- |
{rows}

What each target takes and compares: `fuzz/targets.py`.
"""


def main() -> int:
    """Run the targets that were named, or all."""
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("targets", nargs="*")
    parse.add_argument("--seconds", type=int, default=300)
    parse.add_argument("--jobs", type=int, default=os.cpu_count())
    parse.add_argument("--page", type=Path)
    parse.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parse.parse_args()
    if given.here:
        fuzz_here(given.targets[0], given.seconds)
    from fuzz.targets import TARGETS

    names = given.targets or list(TARGETS)
    if unknown := sorted(set(names) - set(TARGETS)):
        sys.exit(f"no target {', '.join(unknown)}; there are {', '.join(TARGETS)}")
    OUT.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(given.jobs) as pool:
        runs = list(pool.map(lambda name: run(name, given.seconds), names))
    text = page(runs)
    sys.stdout.write(text)
    if given.page:
        given.page.write_text(text, encoding="utf-8")
    return 1 if any(r.finding for r in runs) else 0


if __name__ == "__main__":
    sys.exit(main())
