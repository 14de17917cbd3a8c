"""Decide, write down, send, write down: the order that makes a crash at any point harmless.

The intent is on disk, with the state that was found, before anything is sent. After a crash `reconcile`
reads back what is in force and finishes or takes back; nothing is assumed. Time arrives as an argument.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from skewscope.act import benefit, policy
from skewscope.act import ledger as events
from skewscope.act.actuator import Actuator, ActuatorError, Request, Target
from skewscope.act.intake import Intake
from skewscope.act.journal import Journal
from skewscope.act.ledger import Ledger
from skewscope.act.policy import NS, Decision, Outside
from skewscope.act.settings import Pool, Settings
from skewscope.core.action import ExecutedAction, Settled

ALL = "all"
"""Approves every proposal."""


@dataclass(frozen=True)
class Planned:
    """A decision, and where nothing speaks against it what would be sent."""

    decision: Decision
    before: Settled
    after: Settled
    requests: tuple[Request, ...] = ()


def target(settings: Settings, action: ExecutedAction, now_ns: int = 0) -> Target:
    """Return the endpoint of an action as its actuator knows it; raises ActuatorError if it is gone."""
    for pool in settings.pools:
        for e in pool.endpoints:
            if e.id == action.endpoint:
                return Target(
                    name=e.name_for(action.actuator),
                    id=e.id,
                    node=e.node,
                    peers=tuple(p.name_for(action.actuator) for p in pool.endpoints),
                    action=action.id,
                    reason=f"{action.condition} {action.cause}",
                    now_ns=now_ns,
                    until_ns=action.expires_ns,
                )
    raise ActuatorError(f"endpoint {action.endpoint} of {action.id} is in no pool any more")


def look_outside(settings: Settings, actuators: Mapping[str, Actuator]) -> tuple[Outside, list[str]]:
    """Ask every actuator who is out of rotation; one that does not answer is not used."""
    verbs = {name: dict(a.VERBS) for name, a in actuators.items()}
    unhealthy: dict[str, set[str]] = {}
    notes = []
    for pool in settings.pools:
        for name in pool.actuators:
            ids = {e.name_for(name): e.id for e in pool.endpoints}
            try:
                out = actuators[name].unhealthy(list(ids))
            except ActuatorError as error:
                verbs.pop(name, None)
                notes.append(f"{name}: {error}")
                continue
            unhealthy.setdefault(pool.name, set()).update(ids[n] for n in out if n in ids)
    return Outside(unhealthy, verbs), notes


def plan(
    settings: Settings, actuators: Mapping[str, Actuator], ledger: Ledger, intake: Intake, now_ns: int
) -> tuple[list[Planned], list[str]]:
    """Return what would be done about a report, with what would be sent, and notes. Sends nothing."""
    outside, notes = look_outside(settings, actuators)
    out = []
    for decision in policy.decide(settings, ledger, intake, outside, now_ns):
        if decision.action is None or decision.verdict == policy.REFUSE:
            out.append(Planned(decision, {}, {}))
            continue
        try:
            out.append(_planned(settings, actuators, decision, decision.action, now_ns))
        except ActuatorError as error:
            refused = replace(
                decision, verdict=policy.REFUSE, against=(f"{decision.action.actuator}: {error}",)
            )
            out.append(Planned(refused, {}, {}))
    return out, notes


def _planned(
    settings: Settings,
    actuators: Mapping[str, Actuator],
    decision: Decision,
    action: ExecutedAction,
    now_ns: int,
) -> Planned:
    actuator, where = actuators[action.actuator], target(settings, action, now_ns)
    before = actuator.read(action.verb, where)
    after = actuator.wanted(action.verb, where, before, action.weight_ratio)
    if before == after:
        refused = replace(decision, verdict=policy.REFUSE, against=("it is so already, by another hand",))
        return Planned(refused, before, after)
    return Planned(decision, before, after, tuple(actuator.requests(action.verb, where, after)))


class Runner:
    """Executes decisions and takes them back, on one journal."""

    def __init__(self, settings: Settings, actuators: Mapping[str, Actuator], journal: Journal) -> None:
        self.settings, self.actuators, self.journal = settings, actuators, journal

    def start(self, now_ns: int) -> list[str]:
        """Begin the learning period if this is the first start; then reconcile. Returns what it did."""
        if self.journal.ledger.started_ns is None:
            self.journal.append(events.STARTED, now_ns, mode=self.settings.mode)
        return self.reconcile(now_ns)

    def apply(
        self, intake: Intake, now_ns: int, approved: Collection[str] = (), by: str = ""
    ) -> tuple[list[Planned], list[str]]:
        """Decide about a report and send what may be sent; `approved` are ids that `by` agreed to, or ALL.

        Every decision is recorded. Returns the plan and what was done, one line each.
        """
        planned, done = plan(self.settings, self.actuators, self.journal.ledger, intake, now_ns)
        for p in planned:
            d = p.decision
            if d.action is None or d.verdict == policy.REFUSE:
                known = {"incident": d.trigger.incident, "culprit": d.trigger.culprit, "against": d.against}
                self.journal.append(events.REFUSED, now_ns, **known)
            elif d.verdict == policy.SEND or (
                d.verdict == policy.PROPOSE and {d.action.id, ALL} & set(approved)
            ):
                done.append(self._execute(d, d.action, p, now_ns, by))
            elif d.action.id not in self.journal.ledger.actions:
                self.journal.append(
                    events.PROPOSED, now_ns, verdict=d.verdict, action=events.action_to(d.action)
                )
                done.append(f"{d.action.id} {d.verdict}: {d.note}")
        return planned, done

    def _execute(self, d: Decision, action: ExecutedAction, p: Planned, now_ns: int, by: str) -> str:
        before, after = p.before, p.after
        if d.replaces:
            self._revert(self.journal.ledger.actions[d.replaces], f"replaced by {action.id}", now_ns)
            where = target(self.settings, action, now_ns)
            before = self.actuators[action.actuator].read(action.verb, where)
            after = self.actuators[action.actuator].wanted(action.verb, where, before, action.weight_ratio)
        action = replace(action, before=dict(before), after=dict(after), state=events.INTENDED)
        self.journal.append(events.INTENDED, now_ns, by=by, action=events.action_to(action))
        return self._send(action, now_ns)

    def _send(self, action: ExecutedAction, now_ns: int) -> str:
        try:
            self._put(action, action.after, now_ns)
        except ActuatorError as error:
            return self._revert(action, f"sending failed: {error}", now_ns, failed=True)
        self.journal.append(events.APPLIED, now_ns, id=action.id)
        if not self._of(action).VERBS[action.verb]:
            self.journal.append(events.ENDED, now_ns, id=action.id, how="done", why="it cannot be taken back")
        return f"{action.id} applied: {action.verb} on {action.endpoint} for {action.ttl_s:g} s"

    def _put(self, action: ExecutedAction, state: Settled, now_ns: int) -> None:
        self._of(action).put(action.verb, target(self.settings, action, now_ns), state)

    def _of(self, action: ExecutedAction) -> Actuator:
        actuator = self.actuators.get(action.actuator)
        if actuator is None:
            raise ActuatorError(f"actuator {action.actuator} of {action.id} is not in act.toml any more")
        return actuator

    def _revert(self, action: ExecutedAction, why: str, now_ns: int, failed: bool = False) -> str:
        """Take an action back; where that fails it stays in `reverting` and is tried again.

        What somebody else has changed meanwhile is left alone: it is neither ours nor the former state.
        """
        if action.state != events.REVERTING:
            self.journal.append(events.REVERTING, now_ns, id=action.id, why=why)
        how = "failed" if failed else "reverted"
        try:
            if not self._of(action).VERBS.get(action.verb, False):
                self.journal.append(events.ENDED, now_ns, id=action.id, how="failed", why=why)
                return f"{action.id} failed, and cannot be taken back: {why}"
            now = self._of(action).read(action.verb, target(self.settings, action, now_ns))
            if now in (action.after, action.before, {}) or failed:
                self._put(action, action.before, now_ns)
            else:
                how = "overridden"
        except ActuatorError as error:
            return f"{action.id} could not be taken back yet: {error}"
        self.journal.append(events.ENDED, now_ns, id=action.id, how=how, why=why)
        return f"{action.id} {how}: {why}"

    def reconcile(self, now_ns: int) -> list[str]:
        """Compare the record with what is in force, finish what a crash cut short, take back what is due."""
        done = [self._settle(a, now_ns) for a in list(self.journal.ledger.in_force())]
        return [line for line in done if line]

    def _settle(self, a: ExecutedAction, now_ns: int) -> str:
        if a.state == events.REVERTING:
            return self._revert(a, a.note, now_ns)
        if now_ns >= a.expires_ns:
            return self._revert(a, "its time to live ended", now_ns)
        old_s = (now_ns - a.decided_ns) / NS
        if a.state == events.INTENDED and old_s > self.settings.limits.max_report_age_s:
            return self._revert(a, "a crash came between decision and action", now_ns)
        try:
            now = self._of(a).read(a.verb, target(self.settings, a, now_ns))
        except ActuatorError as error:
            return f"{a.id} could not be read back: {error}"
        if a.state == events.INTENDED and now in (a.before, a.after, {}):
            return self._send(a, now_ns)  # also where it is found: what was written may not be loaded yet
        if now not in (a.after, {}):
            how, why = ("lost", "found undone") if now == a.before else ("overridden", f"found {dict(now)}")
            self.journal.append(events.ENDED, now_ns, id=a.id, how=how, why=why)
            return f"{a.id} {how}: {why}"
        return ""

    def tick(self, now_ns: int, intake: Intake | None = None) -> list[str]:
        """Reconcile, judge effects by a newer report, take back what did not help or was not shown to."""
        done = self.reconcile(now_ns)
        for a in list(self.journal.ledger.in_force()):
            if a.state == events.APPLIED and not a.verdict and a.predicted_ratio > 0:
                seen = None if intake is None else self._seen(a, intake)
                done += [] if seen is None else self.observe(a.id, seen, now_ns)
        done += [self._unproven(a, now_ns) for a in list(self.journal.ledger.in_force())]
        return [line for line in done if line]

    def observe(self, action_id: str, observed_ratio: float, now_ns: int) -> list[str]:
        """Judge one applied action by the share by which the pool's mean really fell."""
        a = self.journal.ledger.actions[action_id]
        if a.state != events.APPLIED:
            return []
        verdict = benefit.verdict(a.predicted_ratio, observed_ratio, self.settings.verify)
        self.journal.append(events.OBSERVED, now_ns, id=a.id, observed_ratio=observed_ratio, verdict=verdict)
        said = f"{a.id} {verdict}: predicted {a.predicted_ratio:.1%}, observed {observed_ratio:.1%}"
        if verdict in (benefit.HELPED, benefit.WEAK):
            return [said]
        return [said, self._revert(self.journal.ledger.actions[a.id], f"{verdict}: {said}", now_ns)]

    def undo(self, action_id: str, now_ns: int, by: str = "") -> str:
        """Take one action back because a person says so; raises KeyError for an unknown id."""
        a = self.journal.ledger.actions[action_id]
        if not a.in_force:
            return f"{a.id} is not in force ({a.ended_how or a.state})"
        return self._revert(a, f"undone by {by or 'a person'}", now_ns)

    def _unproven(self, a: ExecutedAction, now_ns: int) -> str:
        verify = self.settings.verify
        late = now_ns - a.applied_ns >= verify.within_s * NS
        if a.state != events.APPLIED or a.verdict or a.predicted_ratio <= 0 or not late:
            return ""
        if verify.unproven == "keep":
            return ""
        return self._revert(a, f"nobody showed within {verify.within_s:g} s that it helped", now_ns)

    def _seen(self, a: ExecutedAction, intake: Intake) -> float | None:
        """Return the observed benefit by a report that began after the action; None = cannot be told."""
        pool = next((p for p in self.settings.pools if p.name == a.pool), None)
        settled = intake.last_ns >= a.applied_ns + self.settings.verify.settle_s * NS
        if pool is None or not settled or intake.first_ns < a.applied_ns or not intake.streams_seen:
            return None
        slow = _slow_ratios(pool, self.settings.pools, intake)
        if slow is None:
            return None
        count = len(pool.endpoints)
        own = benefit.share_after(count, a.weight_ratio)
        others = (1.0 - own) / (count - 1) if count > 1 else 0.0
        after = 1.0 + sum((r - 1.0) * (own if e == a.endpoint else others) for e, r in slow.items())
        before = 1.0 + (a.metric_now / a.metric_usual - 1.0) / count
        return benefit.observed(before, after)


def _slow_ratios(pool: Pool, pools: tuple[Pool, ...], intake: Intake) -> dict[str, float] | None:
    """Return per endpoint of the pool how many times as slow as usual it is now; None without numbers."""
    slow: dict[str, float] = {}
    for t in intake.triggers:
        at = policy.place(pools, t.culprit)
        if at is None or at[0] != pool or t.ended:
            continue
        if not t.metric:
            return None
        slow[at[1].id] = max(slow.get(at[1].id, 1.0), t.now / t.usual, 1.0)
    return slow
