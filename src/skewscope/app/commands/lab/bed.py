"""`skewscope lab bed`: the live test bed on this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from skewscope.app.commands._run import say

USAGE, UNAVAILABLE, NO_CASE = 2, 4, 5

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
VARIANTS = ("healthy", "faulty", "near_miss")
NOISE = click.Choice(["none", "low", "mid", "high"])


@click.group(
    short_help="Real engines, real packets, real faults on this machine.",
    epilog="""\b
Examples:
  skewscope lab bed list
  sudo skewscope lab bed record c20 --seed 7 -o case
  skewscope diagnose case/taps
  sudo skewscope lab bed down

\b
Exit status: 0 done; 2 wrong usage; 4 the bed cannot run here;
5 no case was made (no measurable effect, or others took the bed's time).""",
)
def command() -> None:
    """Run a small serving cluster in network namespaces, inject a fault, record what a tap sees.

    Needs Linux, root, iproute2, nftables, ethtool, tcpdump and PyTorch. Touches nothing outside its own
    namespaces and control groups (their names start with skw-) and its temporary folder.
    """


@command.command(
    "list",
    short_help="Show all scenarios and what is missing.",
    epilog="""\b
Example:
  skewscope lab bed list""",
)
def list_scenarios() -> None:
    """Show the scenarios with their variants, and the conditions that have none yet."""
    from rich.console import Console
    from rich.table import Table

    from skewscope.lab.bed import catalogue

    table = Table("scenario", "variants", "what it does", box=None, pad_edge=False)
    for row in catalogue.rows():
        table.add_row(row.name, ", ".join(row.variants), row.title)
    console = Console()
    console.print(table)
    missing = catalogue.missing()
    console.print(
        f"{len(catalogue.rows())} scenarios; conditions without one: {', '.join(missing) or 'none'}"
    )


@command.command(
    short_help="Record one scenario as a case folder.",
    epilog="""\b
Examples:
  sudo skewscope lab bed record c20 --seed 7 -o case
  sudo skewscope lab bed record c25.near_miss -o near --noise high
  sudo skewscope lab bed record c20 -o traced --trace azure.csv --rate 4""",
)
@click.argument("scenario")
@click.option(
    "--seed", default=1, show_default=True, help="Addresses, ranks, rates and strengths follow from it."
)
@click.option(
    "-o", "--output", "folder", required=True, type=click.Path(path_type=Path), help="Folder to make."
)
@click.option(
    "--snap", default=114, show_default=True, help="Bytes kept of each frame at the ranks; 0 keeps all."
)
@click.option("--noise", type=NOISE, help="Noise level instead of the scenario's.")
@click.option("--topology", type=FILE, help="Topology file instead of the scenario's.")
@click.option("--trace", type=FILE, help="Load by this trace (Azure or Mooncake) instead of the scenario's.")
@click.option("--rate", default=3.0, show_default=True, help="Requests/s of the trace, on average.")
def record(
    scenario: str,
    seed: int,
    folder: Path,
    snap: int,
    noise: str | None,
    topology: Path | None,
    trace: Path | None,
    rate: float,
) -> None:
    """Record SCENARIO (c20, c20.near_miss, c20.healthy): taps, logs, the truth with its measured effect."""
    from skewscope.lab.bed.record import record as make
    from skewscope.lab.bed.scenario import ScenarioError, draw, with_trace

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        say(f"{folder}: exists and is not an empty folder")
        sys.exit(USAGE)
    try:
        drawn = draw(scenario, seed, noise, topology.read_text(encoding="utf-8") if topology else None)
        if trace:
            drawn = with_trace(drawn, trace, rate)
    except ScenarioError as error:
        say(str(error))
        sys.exit(USAGE)
    with _Complaints():
        case = make(drawn, folder, snap, say)
    click.echo(f"{case.folder}: {case.truth.name}")
    for fault in case.truth.faults:
        moved = [
            f"{k.removesuffix('_ratio')} x{v:.2f}" for k, v in fault.effect.items() if k.endswith("_ratio")
        ]
        click.echo(f"  {fault.condition} {fault.culprit_kind} {fault.culprit_id} from {fault.onset_s:.2f} s")
        click.echo(f"  {', '.join(moved)}")


@command.command(
    short_help="Remove what a bed left behind.",
    epilog="""\b
Example:
  sudo skewscope lab bed down""",
)
def down() -> None:
    """Remove namespaces, control groups and the temporary folder of a bed that ended badly."""
    from skewscope.lab.bed import cleanup
    from skewscope.lab.bed.needs import require

    with _Complaints():
        require(torch=False)
        found = cleanup.down()
    for line in found.lines() or ["nothing was left"]:
        click.echo(line)


@command.command(
    short_help="Record and judge a suite of scenarios.",
    epilog="""\b
Example:
  sudo skewscope lab bed smoke --seed 1 -o out/smoke""",
)
@click.option("--seed", default=1, show_default=True, help="Seed of every scenario of the suite.")
@click.option(
    "-o", "--output", "folder", required=True, type=click.Path(path_type=Path), help="Folder for the cases."
)
@click.option("--only", default="", help="Comma-separated names instead of the whole suite.")
@click.option("--all", "everything", is_flag=True, help="Every variant of every scenario.")
@click.option("--variant", type=click.Choice(VARIANTS), help="This variant of every scenario.")
@click.option("--length", default=0.7, show_default=True, help="Times of the scenarios, multiplied by this.")
@click.option("--calm", default=1.0, show_default=True, help="The engine's times, multiplied: fewer packets.")
@click.option("--noise", type=NOISE, help="Noise level instead of the scenarios'.")
def smoke(
    seed: int,
    folder: Path,
    only: str,
    everything: bool,
    variant: str | None,
    length: float,
    calm: float,
    noise: str | None,
) -> None:
    """Record a dozen scenarios, run diagnose on each, print expected, found and delay.

    Cases that are already in the folder are not recorded again. An injection without effect is no case: up to
    two more seeds are tried, and said. The folder keeps a ledger (ledger.tsv): time, case, verdict, exposure.
    Every verdict counts, wrong ones too.
    """
    from skewscope.app.smoke import SUITE, run_suite

    with _Complaints():
        from skewscope.lab.bed import catalogue
        from skewscope.lab.bed.needs import require

        require()
        names = [n for n in only.split(",") if n] or list(SUITE)
        if everything:
            names = [f"{row.name}.{v}" for row in catalogue.rows() for v in row.variants]
        elif variant:
            names = [f"{row.name}.{variant}" for row in catalogue.rows() if variant in row.variants]
        run_suite(names, seed, folder, noise, length, calm)


@command.command(
    short_help="Add hours of healthy and control traffic to a ledger.",
    epilog="""\b
Example:
  sudo skewscope lab bed healthy --minutes 90 -o out/healthy""",
)
@click.option("--minutes", default=60.0, show_default=True, help="Stop beginning new pieces after this long.")
@click.option("--piece", "piece_s", default=120.0, show_default=True, help="Length of one recording in s.")
@click.option(
    "-o",
    "--output",
    "folder",
    default="out/healthy",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder for what had a false alarm.",
)
@click.option(
    "--ledger", type=click.Path(path_type=Path), help="The ledger; ledger.tsv in the folder if not given."
)
def healthy(minutes: float, piece_s: float, folder: Path, ledger: Path | None) -> None:
    """Record pieces of traffic with nothing wrong in them, run diagnose on each, note what it said.

    Scenarios (healthy ones and near misses) and levels of noise take turns. The ledger gets a line per piece;
    a later run goes on behind its last line. `python -m tools.score_healthy LEDGER` sums it up.
    """
    from skewscope.app.healthy import run

    with _Complaints():
        from skewscope.lab.bed.needs import require

        require()
        run(ledger or folder / "ledger.tsv", folder, minutes, piece_s, say)


class _Complaints:
    """Turn what a bed can complain of into one line and an exit status."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        from skewscope.lab.bed.cleanup import BedInUseError
        from skewscope.lab.bed.needs import BedUnavailableError
        from skewscope.lab.bed.processes import ProcessError
        from skewscope.lab.bed.record import BusyError, NoEffectError
        from skewscope.lab.bed.system import CommandError

        if isinstance(error, (BedUnavailableError, BedInUseError, ProcessError, CommandError)):
            say(str(error))
            raise SystemExit(UNAVAILABLE) from None
        if isinstance(error, (BusyError, NoEffectError)):
            say(str(error))
            raise SystemExit(NO_CASE) from None
