"""Write a page per simulated condition: what moves in counters, metrics and logs when it happens.

Usage: python -m tools.show_simulator [--folder docs/results/simulator] [--seed N] [--only c20,c42]
Each page shows, for every variant, the culprit, the effect and the declared signals as lines of 72 seconds,
with the fault and without. Exit code 1: a signal did not move as its scenario says.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from skewscope.core.tables import Array
from skewscope.lab.sim import figures, scenario
from skewscope.lab.sim.case import Case, Moved, simulate

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 72
TRIES = 6
"""Seeds that are tried for one whose signals all move: weak draws exist, and are counted on another page."""


def line(times: Array, values: Array, duration_s: float, low: float, high: float) -> str:
    """Return a series as a line of bars; a place without a sample is a blank."""
    out = []
    place = np.clip((times / duration_s * WIDTH).astype(int), 0, WIDTH - 1)
    for n in range(WIDTH):
        mine = values[(place == n) & np.isfinite(values)]
        if not len(mine):
            out.append(" ")
            continue
        share = 0.0 if high <= low else (float(mine.mean()) - low) / (high - low)
        out.append(BARS[min(len(BARS) - 1, max(0, int(share * len(BARS))))])
    return "".join(out)


def shown(case: Case, moved: Moved) -> list[str]:
    """Return the lines of one signal."""
    series = [figures.series_of(e, moved.signal) for e in (case.emission, case.paired_emission)]
    known = np.concatenate([v[np.isfinite(v)] for _, v in series])
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    duration = case.drawn.duration_s
    onset, end = (int(s / duration * WIDTH) for s in (case.drawn.onset_s, case.drawn.end_s))
    mark = "".join("^" if n == onset else "-" if onset < n < end else " " for n in range(WIDTH))
    what = f" (share above {moved.signal.above:g} s)" if moved.signal.above else ""
    means = f"{moved.fault:.4g} with the fault, {moved.paired:.4g} without"
    return [
        f"`{moved.signal.name}`{what} of `{moved.signal.at}` {moved.signal.moves}: {means}.",
        "",
        "```text",
        f"fault   {line(*series[0], duration, low, high)}".rstrip(),
        f"paired  {line(*series[1], duration, low, high)}".rstrip(),
        f"        {mark.rstrip()}",
        "```",
        "",
    ]


def best(asked: str, seed: int) -> Case:
    """Return the case of the first seed whose signals all move as said, else the last one tried."""
    case = simulate(scenario.draw(asked, seed))
    for other in range(seed + 1, seed + TRIES):
        if case.visible and all(m.as_said for m in case.moved):
            break
        case = simulate(scenario.draw(asked, other))
    return case


def page(name: str, seed: int) -> tuple[str, list[str]]:
    """Return a condition's page and what did not move as said."""
    data = scenario.load(name)
    lines = [
        f"# {data['condition']}: {data['title']}",
        "",
        "Simulated. Made by `python -m tools.show_simulator`.",
        "",
    ]
    problems = []
    for variant in scenario.variants(name):
        case = best(f"{name}.{variant}", seed)
        d, fault = case.drawn, case.truth().faults[0]
        effects = [
            f"{k.removesuffix('_ratio')} x{v:.2f}" for k, v in case.effect.items() if abs(v - 1) >= 0.05
        ]
        lines += [
            f"## {variant}",
            "",
            f"Seed {d.seed} on cluster `{d.cluster.name}`; {fault.strength[0]} {fault.strength[1]:.3g}.",
            f"Culprit {fault.culprit_kind} `{fault.culprit_id}`; cause {' or '.join(fault.cause_right)}.",
            f"Visible from: {', '.join(fault.visible_from)}. Service: {', '.join(effects) or 'as before'}.",
            "",
        ]
        for moved in case.moved:
            lines += shown(case, moved)
            if not moved.as_said:
                problems.append(f"{name}.{variant}: {moved.signal.name} of {moved.signal.at}")
        if not case.moved:
            lines += ["No counter or metric moves: what a tap or the client sees is all there is.", ""]
    return "\n".join(lines).rstrip() + "\n", problems


def main(arguments: list[str]) -> int:
    """Write the pages and their index."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("docs/results/simulator"))
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--only", default="")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    only = [n for n in options.only.split(",") if n]
    index = [
        "# What each simulated fault moves",
        "",
        "Simulated. One page per condition, made by `python -m tools.show_simulator`;",
        "[sim.md](../../sim.md) explains the sources.",
        "",
    ]
    problems: list[str] = []
    for name in scenario.names():
        condition = str(scenario.load(name)["condition"])
        if not condition:
            continue
        index.append(f"- [{condition}: {scenario.load(name)['title']}]({condition}.md)")
        if only and condition not in only:
            continue
        text, found = page(name, options.seed)
        (options.folder / f"{condition}.md").write_text(text, encoding="utf-8")
        problems += found
    (options.folder / "README.md").write_text("\n".join(index) + "\n", encoding="utf-8")
    print(*(f"did not move: {p}" for p in problems), sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
