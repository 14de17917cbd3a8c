"""`skewscope lab sim`: simulated clusters with faults of every kind."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skewscope.app.commands._run import say

if TYPE_CHECKING:
    from skewscope.lab.sim.scenario import Drawn

USAGE, NO_CASE = 2, 5
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(
    short_help="Simulated clusters: every fault, every counter, any size.",
    epilog="""\b
Examples:
  skewscope lab sim list
  skewscope lab sim describe c20
  skewscope lab sim run c20.gpu --seed 7 -o case
  skewscope lab sim run c42 --form files -o case""",
)
def command() -> None:
    """Simulate a serving cluster from a seed, with a fault, and write what its counters and logs say.

    Needs nothing but skewscope. What is written is simulated, and says so.
    """


@command.command(
    "list",
    short_help="Show all scenarios and clusters.",
    epilog="""\b
Example:
  skewscope lab sim list""",
)
def list_scenarios() -> None:
    """Show the scenarios with their variants; those named ok are negative controls."""
    from rich.console import Console
    from rich.table import Table

    from skewscope.lab.sim import cluster, scenario

    table = Table("scenario", "variants", "what it does", box=None, pad_edge=False)
    for name in scenario.names():
        table.add_row(name, ", ".join(scenario.variants(name)), str(scenario.load(name)["title"]))
    console = Console()
    console.print(table)
    console.print(f"{len(scenario.names())} scenarios on the clusters {', '.join(cluster.names())}")


@command.command(
    short_help="Say what one scenario does and which signals move.",
    epilog="""\b
Example:
  skewscope lab sim describe c42.flap --seed 3""",
)
@click.argument("scenario")
@click.option("--seed", default=1, show_default=True, help="Culprit, strength and times follow from it.")
def describe(scenario: str, seed: int) -> None:
    """Draw SCENARIO from a seed without running it."""
    from skewscope.lab.sim.case import entity

    drawn = _drawn(scenario, seed)
    click.echo(f"{drawn.name}.{drawn.variant}: {drawn.title}")
    click.echo(
        f"  {drawn.condition or 'negative control'} on {drawn.cluster.name}, {drawn.cluster.hosts} hosts"
    )
    if drawn.condition:
        click.echo(
            f"  culprit {drawn.culprit_kind} {drawn.culprit_id}, cause {' or '.join(drawn.cause_right)}"
        )
        click.echo(
            f"  {drawn.strength[0]} {drawn.strength[1]:.3g}, {drawn.onset_s:.1f} s to {drawn.end_s:.1f} s"
        )
    for signal in drawn.signals:
        click.echo(f"  {signal.name} of {entity(drawn, signal.at)} {signal.moves}")


@command.command(
    short_help="Run one scenario and write a case folder.",
    epilog="""\b
Examples:
  skewscope lab sim run c20 --seed 7 -o case
  skewscope lab sim run c27 --strength 0.1 --duration 120 -o slow
  skewscope lab sim run ok_restart -o control --form files""",
)
@click.argument("scenario")
@click.option("--seed", default=1, show_default=True, help="Everything that is open follows from it.")
@click.option(
    "-o", "--output", "folder", required=True, type=click.Path(path_type=Path), help="Folder to make."
)
@click.option(
    "--duration", default=90.0, show_default=True, type=click.FloatRange(20.0, 86400.0), help="Simulated s."
)
@click.option("--strength", type=float, help="Strength instead of the one drawn.")
@click.option(
    "--ramp", type=click.FloatRange(0.0), help="Seconds in which it grows, instead of what is drawn."
)
@click.option("--cluster", type=FILE, help="Cluster file instead of the scenario's.")
@click.option(
    "--form", type=click.Choice(["tables", "files"]), default="tables", show_default=True,
    help="Sample tables as Parquet, or counters, metrics pages and logs as files.",
)  # fmt: skip
@click.option(
    "--taps", is_flag=True, help="Also packets and HTTP elements at the front-end ports (tables only)."
)
def run(
    scenario: str,
    seed: int,
    folder: Path,
    duration: float,
    strength: float | None,
    ramp: float | None,
    cluster: Path | None,
    form: str,
    taps: bool,
) -> None:
    """Run SCENARIO (c20, c20.gpu, ok_restart) with and without its fault; write samples and the truth.

    An injection without a visible effect is no case: then nothing is written and the status is 5.
    """
    from skewscope.lab.sim.case import simulate
    from skewscope.lab.sim.folder import write

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        say(f"{folder}: exists and is not an empty folder")
        sys.exit(USAGE)
    case = simulate(_drawn(scenario, seed, duration, strength, ramp, cluster), taps)
    if case.drawn.condition and not case.visible:
        moved = ", ".join(f"{k} {v:.2f}" for k, v in case.effect.items())
        say(f"{case.truth().name}: no visible effect ({moved})")
        sys.exit(NO_CASE)
    write(case, folder, form)
    click.echo(f"{folder}: {case.truth().name}, simulated, {case.emission.rows()} rows")
    for fault in case.truth().faults:
        ratios = [
            f"{k.removesuffix('_ratio')} x{v:.2f}" for k, v in fault.effect.items() if abs(v - 1) >= 0.05
        ]
        click.echo(f"  {fault.condition} {fault.culprit_kind} {fault.culprit_id} from {fault.onset_s:.2f} s")
        click.echo(f"  {', '.join(ratios) or 'service as before'}")
    for m in case.moved:
        click.echo(f"  {m.signal.name} of {m.signal.at}: {m.fault:.4g}, without the fault {m.paired:.4g}")


def _drawn(
    scenario: str,
    seed: int,
    duration: float = 90.0,
    strength: float | None = None,
    ramp: float | None = None,
    cluster: Path | None = None,
) -> Drawn:
    from skewscope.lab.sim.cluster import ClusterError
    from skewscope.lab.sim.scenario import ScenarioError, draw

    try:
        return draw(
            scenario, seed, duration_s=duration, strength=float("nan") if strength is None else strength,
            ramp_s=float("nan") if ramp is None else ramp,
            cluster=cluster.read_text(encoding="utf-8") if cluster else "",
        )  # fmt: skip
    except (ScenarioError, ClusterError) as error:
        say(str(error))
        sys.exit(USAGE)


@command.command(
    "suite",
    short_help="Run a suite of scenarios drawn from a mix.",
    epilog="""\b
Examples:
  skewscope lab sim suite balanced --count 20 -o out/sim
  skewscope lab sim suite natural --count 200 --seed 3 -o out/natural""",
)
@click.argument("mix", type=click.Choice(["balanced", "natural", "shifted"]))
@click.option(
    "--seed", default=1, show_default=True, help="Scenarios, their seeds and shifts follow from it."
)
@click.option(
    "--count", default=20, show_default=True, type=click.IntRange(1, 100_000), help="Cases to draw."
)
@click.option(
    "--controls", default=0.3, show_default=True, type=click.FloatRange(0, 1), help="Share of controls."
)
@click.option(
    "--duration", default=90.0, show_default=True, type=click.FloatRange(20.0, 86400.0), help="Simulated s."
)
@click.option(
    "-o", "--output", "folder", required=True, type=click.Path(path_type=Path), help="Folder for the cases."
)
def suite(mix: str, seed: int, count: int, controls: float, duration: float, folder: Path) -> None:
    """Run COUNT scenarios of a MIX (balanced, natural or shifted) into one case folder each.

    Injections without a visible effect are counted and written nowhere. What is there already is kept.
    """
    from skewscope.lab.sim import mix as mixes
    from skewscope.lab.sim.case import simulate
    from skewscope.lab.sim.folder import write
    from skewscope.lab.sim.scenario import draw

    written = unseen = 0
    for name, own in mixes.draw(mix, seed, count, controls):
        place = folder / f"{name}.s{own}"
        if place.exists():
            continue
        case = simulate(draw(name, own, duration_s=duration))
        if case.drawn.condition and not case.visible:
            unseen += 1
            continue
        write(case, place)
        written += 1
    click.echo(f"{folder}: {written} cases of the {mix} mix, simulated; {unseen} injections without effect")
