"""What the commands of `skewscope act` share: settings, actuators, journal, report, and words."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skewscope.act import intake, journal, loader, settings
from skewscope.act.actuator import Actuator
from skewscope.act.intake import Intake
from skewscope.act.ledger import Ledger
from skewscope.act.runner import Planned, Runner
from skewscope.act.settings import Settings
from skewscope.conditions.loader import load_entries
from skewscope.core.action import LADDER, ExecutedAction

REPORT_BYTES = 256 << 20
BUSY_S = 10.0
"""How long one command waits for another's journal: longer than the slowest actuator takes."""


class ActError(Exception):
    """A setting, a report or a journal that cannot be used; the message is one line."""


@dataclass(frozen=True)
class Setup:
    """act.toml as read: its settings, its actuators and the place of its journal."""

    settings: Settings
    actuators: dict[str, Actuator]
    journal: Path


def setup(config: Path) -> Setup:
    """Read an act.toml; a relative journal lies beside it. Raises ActError; sends nothing."""
    try:
        read = settings.parse(config.read_text("utf-8"))
        return Setup(read, loader.build(read.actuators), config.parent / read.journal)
    except OSError as error:
        raise ActError(f"{config}: {error.strerror}") from None
    except (settings.SettingsError, UnicodeDecodeError) as error:
        raise ActError(f"{config}: {error}") from None


def report(path: Path) -> Intake:
    """Read a report of `diagnose --json`, or standard input for `-`; raises ActError."""
    try:
        if str(path) == "-":
            text = sys.stdin.read(REPORT_BYTES)
        elif path.stat().st_size > REPORT_BYTES:
            raise ActError(f"{path}: larger than {REPORT_BYTES >> 20} MiB")
        else:
            text = path.read_text("utf-8")
        return intake.read(text, {code: entry.plane for code, entry in load_entries().items()})
    except OSError as error:
        raise ActError(f"{path}: {error.strerror}") from None
    except (intake.IntakeError, UnicodeDecodeError) as error:
        raise ActError(f"{path}: {error}") from None


def open_journal(made: Setup) -> journal.Journal:
    """Open the journal for appending, waiting a little for another command; raises ActError."""
    give_up_s = time.monotonic() + BUSY_S
    while True:
        try:
            return journal.Journal(made.journal)
        except journal.JournalBusyError as error:
            if time.monotonic() > give_up_s:
                raise ActError(str(error)) from None
            time.sleep(0.05)
        except journal.JournalError as error:
            raise ActError(str(error)) from None


def look(made: Setup) -> Ledger:
    """Return what the journal says; raises ActError."""
    try:
        return journal.look(made.journal)
    except journal.JournalError as error:
        raise ActError(str(error)) from None


def now_ns() -> int:
    """Return the wall clock: a time to live outlasts a restart of the machine."""
    return time.time_ns()


def plan_lines(planned: list[Planned]) -> list[str]:
    """Return a plan for a person."""
    out = []
    for p in planned:
        d, a = p.decision, p.decision.action
        out.append(
            f"{d.trigger.condition} on {d.trigger.culprit}: {d.verdict}{f' ({d.note})' if d.note else ''}"
        )
        if a is not None:
            step = f"step {a.step}, {LADDER[a.step]}"
            out.append(
                f"  {a.id}: {a.verb} on {a.endpoint} by {a.actuator or 'nothing'} for {a.ttl_s:g} s ({step})"
            )
        out += [f"  because {line}" for line in d.why]
        out += [f"  against: {line}" for line in d.against]
        if p.requests:
            out.append(f"  found {json.dumps(dict(p.before))}, would be {json.dumps(dict(p.after))}; sent:")
            out += [f"    {line}" for request in p.requests for line in request.lines()]
    return out


def plan_json(planned: list[Planned], notes: list[str]) -> dict[str, Any]:
    """Return a plan as JSON types."""
    rows = []
    for p in planned:
        d, a = p.decision, p.decision.action
        rows.append(
            {
                "incident": d.trigger.incident,
                "condition": d.trigger.condition,
                "culprit": d.trigger.culprit,
                "verdict": d.verdict,
                "note": d.note,
                "why": list(d.why),
                "against": list(d.against),
                "action": None if a is None else action_json(a),
                "before": dict(p.before),
                "after": dict(p.after),
                "requests": [{"what": r.what, "where": r.where, "body": r.body} for r in p.requests],
            }
        )
    return {"schema": "skewscope.plan/1", "decisions": rows, "notes": notes}


def action_json(a: ExecutedAction) -> dict[str, Any]:
    """Return one action as JSON types."""
    out = {k: getattr(a, k) for k in a.__dataclass_fields__}
    return {**out, "why": list(a.why), "step": a.step, "expires_ns": a.expires_ns, "in_force": a.in_force}


def action_line(a: ExecutedAction, ns: int) -> str:
    """Return one action in one line."""
    if a.in_force:
        when = f"{a.state}, ends in {max(a.expires_ns - ns, 0) / 1e9:.0f} s"
    else:
        when = f"{a.ended_how or a.state}{f': {a.note}' if a.note else ''}"
    effect = f", {a.verdict} ({a.observed_ratio:.1%})" if a.observed_ratio is not None else ""
    return f"{a.id}  {a.verb} on {a.endpoint} by {a.actuator}  {a.condition} {a.cause}  {when}{effect}"


def hold(made: Setup, path: Path | None, every_s: float, tell: Callable[[str], None]) -> None:
    """Stay until nothing is in force: take back in time, judge by the report whenever it is rewritten.

    The journal is held for one look at a time, so that `undo` and `tick` find it free.
    """
    seen = _stamp(path)
    while any(look(made).in_force()):
        time.sleep(every_s)
        news = None
        if path is not None and _stamp(path) != seen:
            seen = _stamp(path)
            try:
                news = report(path)
            except ActError as error:
                tell(str(error))
        with open_journal(made) as held:
            for line in Runner(made.settings, made.actuators, held).tick(now_ns(), news):
                tell(line)


def give_up(made: Setup, by: str, tell: Callable[[str], None]) -> None:
    """Take back everything that is in force."""
    with open_journal(made) as held:
        runner = Runner(made.settings, made.actuators, held)
        for action in list(held.ledger.in_force()):
            tell(runner.undo(action.id, now_ns(), by))


def _stamp(path: Path | None) -> tuple[int, int] | None:
    try:
        stat = path.stat() if path is not None else None
    except OSError:
        return None
    return None if stat is None else (stat.st_mtime_ns, stat.st_size)
