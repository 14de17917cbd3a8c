"""`skewscope new-condition`: the skeleton of a condition."""

from __future__ import annotations

from pathlib import Path

import click

PLANES = ("north_south", "east_west", "pcie", "host")


@click.command(
    short_help="Write the skeleton of a new condition.",
    epilog="""\b
Examples:
  skewscope new-condition 53 slow_disk
  skewscope new-condition 53 slow_disk --scope host --plane host \\
      --title "A disk holds the host up" """,
)
@click.argument("number", type=click.IntRange(1, 99))
@click.argument("slug")
@click.option("--title", default=None, help="One sentence; made from SLUG if not given.")
@click.option(
    "--plane", type=click.Choice(PLANES), default="east_west", show_default=True, help="Where it shows."
)
@click.option("--scope", default="member", show_default=True, help="The feature table whose rows it accuses.")
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Folder to write to; the installed conditions if not given.",
)
def command(number: int, slug: str, title: str | None, plane: str, scope: str, into: Path | None) -> None:
    """Write the folder cNUMBER_SLUG: detector, runbook entry, scenario, expectations, test.

    It loads, passes the contract tests and never fires: the scenario tests that want it to fire
    stay red until the detector does. CONTRIBUTING.md says what to fill in.
    """
    from skewscope.app import skeleton

    wanted = skeleton.Wanted(number, slug, title or slug.replace("_", " ").capitalize(), plane, scope)
    try:
        written = skeleton.write(wanted, into)
    except skeleton.SkeletonError as error:
        raise click.UsageError(str(error)) from None
    for path in written:
        click.echo(path)
    click.echo(f'Next: fill in entry.toml and detector.py, then make test ARGS="-k {wanted.code}"')
