"""Whether to act: pure functions from settings, record and report to decisions with their reasons.

No I/O, no clock: the same arguments give the same decisions and the same ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from skewscope.act import benefit, weights
from skewscope.act.intake import Intake, Trigger
from skewscope.act.ledger import Ledger
from skewscope.act.settings import Endpoint, Pool, Rule, Settings
from skewscope.core.action import VERBS, ExecutedAction

SEND, PROPOSE, SHADOW, REFUSE = "send", "propose", "shadow", "refuse"
NS = 1_000_000_000
HOUR_NS = 3600 * NS
HEALTHY_LEFT = 2
"""Healthy endpoints that must remain where one is taken beyond the share of the pool."""
LEAST_RATIO = 0.01
"""A weight is lowered to no less: whether the endpoint is well again shows only in what it still gets."""
FREE_STEP = 1
"""Up to this step of the ladder one source of evidence is enough."""


@dataclass(frozen=True)
class Outside:
    """What was read from the world before deciding: who is out of rotation already, what cannot be undone."""

    unhealthy: Mapping[str, AbstractSet[str]] = field(default_factory=dict)
    """By pool: ids of endpoints that serve nothing."""
    verbs: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    """By actuator: its verbs, and whether each can be taken back."""


@dataclass(frozen=True)
class Decision:
    """What became of one trigger. `why` argues for the action, `against` holds each reason to refuse.

    `note` says why a decision that nothing speaks against is not sent by itself.
    """

    trigger: Trigger
    verdict: str
    action: ExecutedAction | None = None
    replaces: str = ""
    why: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    note: str = ""


def decide(
    settings: Settings, ledger: Ledger, intake: Intake, outside: Outside, now_ns: int
) -> list[Decision]:
    """Return one decision per trigger, the surest first; what one takes counts for the next."""
    order = sorted(intake.triggers, key=lambda t: (-t.score, t.onset_ns, t.incident, t.culprit))
    out: list[Decision] = []
    for trigger in order:
        taken = [d.action for d in out if d.action is not None and d.verdict != REFUSE]
        out.append(_Case(settings, ledger, intake, outside, now_ns, taken).decide(trigger))
    return out


def place(pools: tuple[Pool, ...], culprit: str) -> tuple[Pool, Endpoint] | None:
    """Return the endpoint that a culprit belongs to, or None where there is none or more than one."""
    parts = [p.split("/")[0] for p in culprit.split("->")]
    found = {}
    for pool in pools:
        for e in pool.endpoints:
            hosts = {_host(e.id), *e.hosts}
            if e.id in parts or any(
                p in hosts or (p not in _ids(pools) and _host(p) in hosts) for p in parts
            ):
                found[e.id] = (pool, e)
    return next(iter(found.values())) if len(found) == 1 else None


def _ids(pools: tuple[Pool, ...]) -> set[str]:
    return {e.id for pool in pools for e in pool.endpoints}


def _host(address: str) -> str:
    """Return an address without its port; IPv6 has one only behind brackets."""
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0] if address.count(":") == 1 else address


def action_id(trigger: Trigger, endpoint: str, verb: str, earlier: int) -> str:
    """Return an id that the same news always gives: no clock and no randomness in it."""
    text = f"{trigger.condition}|{trigger.onset_ns}|{endpoint}|{verb}|{earlier}"
    return f"a{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def _ratio(t: Trigger, rule: Rule, pool: Pool) -> float:
    """Return the weight that is left: by the pool's objective where there is one, else the rule's."""
    if not (pool.objective_s and t.metric):
        return rule.weight_ratio
    return max(weights.ratio(t.usual, t.now, pool.objective_s), LEAST_RATIO)


@dataclass
class _Case:
    """One trigger before the policy; `taken` are the actions that earlier triggers of the report got."""

    settings: Settings
    ledger: Ledger
    intake: Intake
    outside: Outside
    now_ns: int
    taken: list[ExecutedAction]

    def decide(self, trigger: Trigger) -> Decision:
        s = self.settings
        rule = s.rules.get(trigger.condition)
        at = place(s.pools, trigger.culprit)
        if rule is None or at is None:
            lacks = [] if rule else [f"no rule for {trigger.condition}"]
            lacks += [] if at else [f"{trigger.culprit} is not one endpoint of a pool"]
            return Decision(trigger, REFUSE, against=tuple(lacks))
        pool, endpoint = at
        against = self._evidence(trigger, rule)
        verb, replaces, busy = self._verb(rule, trigger, endpoint)
        if verb is None:
            return Decision(trigger, REFUSE, against=(*against, busy))
        actuator = next((a for a in pool.actuators if verb in self.outside.verbs.get(a, {})), None)
        if actuator is None:
            against.append(f"no actuator of pool {pool.name} can {verb}")
        action = self._action(trigger, rule, pool, endpoint, verb, actuator or "")
        against += self._sources(trigger, verb)
        against += self._limits(pool, endpoint, action, replaces)
        if action.id in self.ledger.actions and self.ledger.actions[action.id].state != "proposed":
            against.append(f"{action.id} was done already")
        verdict, note = (REFUSE, "") if against else self._mode(rule, action)
        return Decision(trigger, verdict, action, replaces, action.why, tuple(against), note)

    def _evidence(self, t: Trigger, rule: Rule) -> list[str]:
        need, out = self.settings.evidence, []
        age_s = (self.now_ns - self.intake.last_ns) / NS
        if age_s > self.settings.limits.max_report_age_s:
            out.append(f"the report ended {age_s:.0f} s ago, limit {self.settings.limits.max_report_age_s:g}")
        if t.ended:
            out.append("the incident has ended")
        allowed = min(sum(t.causes.get(c, 0.0) for c in rule.causes), 1.0)
        for name, value, least in (
            ("score", t.score, need.min_score),
            ("probability of the culprit", t.culprit_probability, need.min_culprit_probability),
            ("probability of the allowed causes", allowed, need.min_cause_probability),
        ):
            if value < least - 1e-9:
                out.append(f"{name} is {value:.2f}, at least {least:g} needed")
        return out

    def _verb(self, rule: Rule, t: Trigger, endpoint: Endpoint) -> tuple[str | None, str, str]:
        """Return the verb of the rule that is due, the id of the action that it replaces, or why none is."""
        active = self.ledger.on(endpoint.id)
        if any(a.endpoint == endpoint.id for a in self.taken):
            return None, "", f"another incident of this report acts on {endpoint.id}"
        if active is None:
            return (rule.do[0], "", "") if rule.do else (None, "", "the rule has nothing to do")
        stronger = [v for v in rule.do if VERBS[v] > active.step]
        if active.verdict != benefit.WEAK or active.state != "applied" or active.condition != t.condition:
            return None, "", f"{active.id} ({active.verb}) is in force on {endpoint.id}"
        if not stronger:
            return None, "", f"{active.id} helped little and the rule has nothing stronger"
        return stronger[0], active.id, ""

    def _action(
        self, t: Trigger, rule: Rule, pool: Pool, endpoint: Endpoint, verb: str, actuator: str
    ) -> ExecutedAction:
        ratio = _ratio(t, rule, pool) if verb == "lower_weight" else 0.0
        moved = VERBS[verb] in (1, 3, 4, 5)
        slow = t.now / t.usual if t.metric else 1.0
        predicted = benefit.predict(slow, len(pool.endpoints), ratio) if moved else 0.0
        factor = benefit.learned(self.ledger.actions.values(), t.cause, verb)
        earlier = sum(
            a.endpoint == endpoint.id and a.verb == verb and a.ended_ns > 0
            for a in self.ledger.actions.values()
        )
        why = [
            f"{t.condition} with score {t.score:.2f}; culprit {t.culprit} ({t.culprit_probability:.2f})",
            f"cause {t.cause} ({t.causes.get(t.cause, 0.0):.2f})",
        ]
        if t.metric:
            why.append(f"{t.metric} {t.now:.3g} s, usually {t.usual:.3g}: {slow:.2f} times")
        if moved:
            learned = f", times {factor:.2f} learned" if factor != 1.0 else ""
            why.append(f"predicted: the pool's mean falls by {predicted * factor:.1%}{learned}")
        return ExecutedAction(
            id=action_id(t, endpoint.id, verb, earlier),
            pool=pool.name,
            endpoint=endpoint.id,
            verb=verb,
            actuator=actuator,
            condition=t.condition,
            cause=t.cause,
            incident=t.incident,
            decided_ns=self.now_ns,
            ttl_s=rule.ttl_s,
            weight_ratio=ratio,
            metric=t.metric,
            metric_usual=t.usual,
            metric_now=t.now,
            predicted_ratio=predicted * factor,
            why=tuple(why),
        )

    def _sources(self, t: Trigger, verb: str) -> list[str]:
        if VERBS[verb] <= FREE_STEP or t.two_sources():
            return []
        return [f"{verb} needs two independent sources; there is one"]

    def _limits(self, pool: Pool, endpoint: Endpoint, action: ExecutedAction, replaces: str) -> list[str]:
        limits, out = self.settings.limits, []
        if action.step > 0:
            out += self._cap(pool, endpoint, action)
            if action.step != VERBS["shed_low_priority"]:
                least = self.settings.evidence.min_benefit_ratio
                if action.predicted_ratio < least:
                    out.append(f"predicted benefit {action.predicted_ratio:.1%}, at least {least:.1%} needed")
        sent = self.ledger.sent_since(self.now_ns - HOUR_NS) + len(self.taken)
        if sent >= limits.actions_per_hour:
            out.append(f"{sent} actions within an hour, limit {limits.actions_per_hour}")
        last = self.ledger.last_ended(endpoint.id)
        if last is not None and not replaces:
            rest_s = limits.cool_down_s - (self.now_ns - last.ended_ns) / NS
            if rest_s > 0:
                out.append(f"{endpoint.id} is left alone for another {rest_s:.0f} s")
        return out

    def _cap(self, pool: Pool, endpoint: Endpoint, action: ExecutedAction) -> list[str]:
        """Return why taking one more endpoint of the pool would be too much."""
        limits, total = self.settings.limits, len(pool.endpoints)
        ids = {e.id for e in pool.endpoints} - {endpoint.id}
        touched = {a.endpoint for a in (*self.ledger.in_force(), *self.taken) if a.step > 0} & ids
        gone = (self.outside.unhealthy.get(pool.name, set()) & ids) | touched
        out = []
        within = len(gone) + 1 <= limits.pool_share_ratio * total + 1e-9
        first = not touched and total - 1 - len(gone) >= HEALTHY_LEFT
        if not within and not first:
            out.append(
                f"{len(gone)} of {total} endpoints of {pool.name} are out or changed; "
                f"limit {limits.pool_share_ratio:.0%}, or one where {HEALTHY_LEFT} healthy ones remain"
            )
        before = total - len(gone)
        after = before - 1 + action.weight_ratio
        extra = before / after - 1 if after > 0 else float("inf")
        if action.step != VERBS["shed_low_priority"] and extra > limits.max_extra_load_ratio:
            out.append(f"the others would get {extra:.0%} more work, limit {limits.max_extra_load_ratio:.0%}")
        return out

    def _mode(self, rule: Rule, action: ExecutedAction) -> tuple[str, str]:
        """Return send, propose or shadow, and why it is not sent by itself."""
        mode = rule.mode or self.settings.mode
        started, learn_s = self.ledger.started_ns, self.settings.learn_s
        if mode == "shadow":
            return SHADOW, "mode is shadow"
        if learn_s > 0 and (started is None or self.now_ns - started < learn_s * NS):
            return SHADOW, f"still learning: the first {learn_s:g} s only observe"
        keeps = self.outside.verbs.get(action.actuator, {}).get(action.verb, False)
        if mode == "advise":
            return PROPOSE, "mode is advise"
        if not (keeps or self.settings.limits.irreversible):
            return PROPOSE, "it cannot be taken back"
        return SEND, ""
