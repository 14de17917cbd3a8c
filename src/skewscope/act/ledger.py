"""What is on record of all actions: a fold over the journal's lines, and questions about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from skewscope.core.action import ExecutedAction

PROPOSED, INTENDED, APPLIED, OBSERVED = "proposed", "intended", "applied", "observed"
REVERTING, ENDED, STARTED, REFUSED = "reverting", "ended", "started", "refused"


class Ledger:
    """The state of every action. `take` folds one record in; nothing here reads or writes."""

    def __init__(self, records: Iterable[Mapping[str, Any]] = ()) -> None:
        self.actions: dict[str, ExecutedAction] = {}
        self.started_ns: int | None = None
        for record in records:
            self.take(record)

    def take(self, record: Mapping[str, Any]) -> None:
        """Fold one record in; raises ValueError for a record that does not fit the ones before."""
        event, ts_ns = record["event"], int(record["ts_ns"])
        if event == STARTED:
            self.started_ns = ts_ns if self.started_ns is None else self.started_ns
        elif event in (PROPOSED, INTENDED):
            action = action_from(record["action"])
            self.actions[action.id] = replace(action, state=event)
        elif event != REFUSED:
            before = self.actions.get(record["id"])
            if before is None:
                raise ValueError(f"{event} of an action that was never decided: {record['id']}")
            self.actions[before.id] = _next(before, record, ts_ns)

    def in_force(self) -> Iterator[ExecutedAction]:
        """Yield the actions because of which the world may differ."""
        return (a for a in self.actions.values() if a.in_force)

    def on(self, endpoint: str) -> ExecutedAction | None:
        """Return the action in force on one endpoint."""
        return next((a for a in self.in_force() if a.endpoint == endpoint), None)

    def last_ended(self, endpoint: str) -> ExecutedAction | None:
        """Return the action on one endpoint that ended last, if it was ever sent."""
        done = [a for a in self.actions.values() if a.endpoint == endpoint and a.ended_ns]
        return max(done, key=lambda a: a.ended_ns, default=None)

    def sent_since(self, ns: int) -> int:
        """Return how many actions were sent since `ns`."""
        return sum(a.state != PROPOSED and a.decided_ns >= ns for a in self.actions.values())


def _next(a: ExecutedAction, record: Mapping[str, Any], ts_ns: int) -> ExecutedAction:
    event = record["event"]
    if event == APPLIED:
        return replace(a, state=APPLIED, applied_ns=ts_ns)
    if event == OBSERVED:
        return replace(a, observed_ratio=float(record["observed_ratio"]), verdict=str(record["verdict"]))
    if event == REVERTING:
        return replace(a, state=REVERTING, note=str(record["why"]))
    if event == ENDED:
        note = str(record["why"])
        return replace(a, state=ENDED, ended_ns=ts_ns, ended_how=str(record["how"]), note=note)
    raise ValueError(f"unknown event {event!r}")


def action_to(action: ExecutedAction) -> dict[str, Any]:
    """Return an action as JSON types."""
    return asdict(action)


def action_from(data: Mapping[str, Any]) -> ExecutedAction:
    """Return an action from JSON types; keys of a later version are ignored."""
    known = {f.name for f in fields(ExecutedAction)}
    kept = {k: v for k, v in data.items() if k in known}
    return ExecutedAction(**{**kept, "why": tuple(kept.get("why", ()))})
