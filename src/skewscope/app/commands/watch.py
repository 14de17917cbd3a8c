"""`skewscope watch`: interfaces and endpoints in, incidents out as they begin and end."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import click

from skewscope.app.commands import _run


@click.command(
    short_help="Watch interfaces live.",
    epilog="""\b
Examples:
  sudo skewscope watch --iface eth0
  sudo skewscope watch --iface p-n0 --iface p-n1 --iface p-lg
  sudo skewscope watch --iface eth0 --for 60 --json
  sudo skewscope watch --iface eth0 --scrape 10.0.0.3:8000 --receive 4318

\b
Exit status: 0 done, with or without incidents; 2 wrong usage;
3 an interface or endpoint cannot be read;
130 interrupted (the report is still printed).""",
)
@click.option("--iface", "interfaces", multiple=True, help="Interface; may be given several times.")
@click.option(
    "--scrape", multiple=True, metavar="URL", help="Fetch metrics of this endpoint every 5 s; likewise."
)
@click.option(
    "--receive",
    metavar="[ADDRESS:]PORT",
    default="",
    help="Take remote write and OTLP metrics there; on the loopback interface without an address.",
)
@click.option(
    "--spool",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep what was fetched and received in this folder, as files that `diagnose` reads.",
)
@click.option(
    "--for", "duration_s", type=float, default=0.0, help="Stop after so many seconds; 0: until Ctrl-C."
)
@click.option(
    "--json", "as_json", is_flag=True, help="At the end print the report as JSON, and nothing before."
)
def command(
    interfaces: tuple[str, ...],
    scrape: tuple[str, ...],
    receive: str,
    spool: Path | None,
    duration_s: float,
    as_json: bool,
) -> None:
    """Watch interfaces with the engine of `diagnose`; print each incident when it begins and when it ends.

    Give the ports of all hosts of a group together: each one adds what it alone can see. Needs Linux and the
    right to capture (root or CAP_NET_RAW). Metrics of engines and exporters are joined by their time.
    """
    if not interfaces and not scrape and not receive:
        raise click.UsageError("give --iface, --scrape or --receive")
    where = _listen(receive) if receive else None
    with _run.interruptible() as stopped:
        from skewscope.app.watch import Watch
        from skewscope.sources.live import LiveError
        from skewscope.sources.receive import ReceiveError
        from skewscope.sources.scrape import ScrapeError

        _run.tell_first_run()
        try:
            watch = Watch(interfaces, scrape, where, spool)
        except (LiveError, ScrapeError, ReceiveError) as error:
            _run.say(str(error))
            raise SystemExit(_run.NO_INPUT) from None
        end = time.monotonic() + duration_s if duration_s else float("inf")
        for change in watch.changes(lambda: stopped() or time.monotonic() > end):
            if not as_json:
                click.echo(_line(change.what, change.incident))
        watch.close()
        report = watch.report()
    if as_json:
        from skewscope.app.render import json

        click.echo(json.dumps(report))
    else:
        from skewscope.app.render import terminal

        terminal.print_report(report, quiet=True)
    raise SystemExit(_run.INTERRUPTED if stopped() else _run.OK)


def _listen(text: str) -> tuple[str, int]:
    """Return address and port; the loopback address where only a port is given."""
    from skewscope.sources.receive import ADDRESS

    address, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise click.UsageError(f"--receive: {text!r} is no port and no ADDRESS:PORT")
    return address.strip("[]") or ADDRESS, int(port)


def _line(what: str, incident: object) -> str:
    from skewscope.core.report import Incident

    assert isinstance(incident, Incident)
    at = datetime.fromtimestamp((incident.end_ns or incident.onset_ns) / 1e9, UTC).strftime("%H:%M:%S.%f")[
        :-3
    ]
    who = f"{incident.culprits[0].kind} {incident.culprits[0].id}" if incident.culprits else "-"
    cause = incident.causes[0].cause if incident.causes else "unknown"
    return f"{at}  {what:5}  {incident.condition} {incident.title}: {who}, most likely {cause}"
