"""When each token left an engine and reached its client: from steps and requests, all at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skewscope.core.tables import Array
from skewscope.lab.sim.compiled import kernel as k
from skewscope.lab.sim.params import load
from skewscope.lab.sim.world import Run

SLOW_READER_TOKENS_PER_S = 12.0
"""A slow reader takes less than an engine makes (40 tokens/s and more)."""


@dataclass(frozen=True)
class Tokens:
    """All tokens in the order of requests: arrays of shape (tokens,)."""

    request: Array
    number: Array
    """0 for a request's first token."""
    made_s: Array
    """End of the step that made it, and of what the engine does before it hands it on."""
    sent_s: Array
    """When it left for the client, as a tap before the gateway sees it."""
    read_s: Array
    """When the client had it."""

    @property
    def first(self) -> Array:
        """Places of the first tokens, one per request that was answered."""
        return np.flatnonzero(self.number == 0)

    @property
    def last(self) -> Array:
        """Places of the last tokens so far, in the same order."""
        return np.append(self.first, len(self.number))[1:] - 1


def tokens(run: Run) -> Tokens:
    """Compute the times of all tokens of a run."""
    ends = _ends(run)
    first = run.times[:, k.Q_FIRST]
    made = run.counts[:, k.N_DONE]
    answered = np.flatnonzero((first > 0) & (made > 0) & (run.replica >= 0))
    request = np.repeat(answered, made[answered])
    offsets = np.cumsum(made[answered]) - made[answered]
    number = np.arange(len(request)) - np.repeat(offsets, made[answered])
    at = np.empty(len(request))
    lost = _preempted(run)
    for q, offset in zip(answered, offsets, strict=True):
        n, r = int(made[q]), int(run.replica[q])
        at[offset : offset + n] = _times_of(run, ends[r], int(q), n, lost.get(int(q)))
    returned = _at_step(run, "return_s", request, at)
    made_s = at + returned
    sent = _sent(run, request, number, made_s)
    return Tokens(request, number, made_s, sent, _read(run, request, number, sent))


def _ends(run: Run) -> list[Array]:
    """Return per replica the ends of its steps."""
    return [run.steps[run.steps[:, k.T_REPLICA] == r.index, k.T_END] for r in run.cluster.replicas]


def _preempted(run: Run) -> dict[int, float]:
    """Return when each preempted request was first preempted."""
    rows = run.log[run.log[:, 2] == k.LOG_PREEMPTED]
    out: dict[int, float] = {}
    for at_s, q, _ in rows:
        out.setdefault(int(q), float(at_s))
    return out


def _times_of(run: Run, ends: Array, q: int, n: int, preempted_s: float | None) -> Array:
    """Return the times of a request's n tokens: one per step from its first, less a pause."""
    first = float(run.times[q, k.Q_FIRST])
    if run.prefilled_by[q] >= 0 and run.prefilled_by[q] != run.replica[q]:
        # The first token comes from the prefill engine, the others from the one that decodes.
        at = int(np.searchsorted(ends, run.times[q, k.Q_ADMITTED] + 1e-9, "right"))
        rest = ends[at : at + n - 1]
        return np.concatenate([[first], rest, np.full(n - 1 - len(rest), run.duration_s)])
    at = int(np.searchsorted(ends, first - 1e-9))
    last = float(run.times[q, k.Q_END])
    until = int(np.searchsorted(ends, last - 1e-9)) + 1 if last > 0 else len(ends)
    if preempted_s is None or until - at <= n:
        out = ends[at : at + n]
    else:
        before = min(n - 1, max(1, int(np.searchsorted(ends, preempted_s)) - at))
        out = np.concatenate([ends[at : at + before], ends[until - (n - before) : until]])
    if len(out) < n:
        out = np.concatenate([out, np.full(n - len(out), run.duration_s)])
    return out


def _at_step(run: Run, knob: str, request: Array, at_s: Array) -> Array:
    """Return a replica's knob at the time of each token."""
    if not run.settings.changed(knob):
        return np.full(len(at_s), float(run.settings.now[knob][0]))
    order = np.argsort(at_s, kind="stable")
    out = np.empty(len(at_s))
    values = run.settings.at(knob, at_s[order])
    out[order] = values[np.arange(len(order)), run.replica[request[order]]]
    return out


def _sent(run: Run, request: Array, number: Array, made_s: Array) -> Array:
    """Add what the serving layer and the way out cost; tokens of a stream keep their order."""
    noise = np.random.default_rng([run.streams.noise_key, 1])
    jitter = _at_step(run, "egress_jitter_s", request, made_s)
    at = made_s + 0.0003 + jitter * noise.exponential(1.0, len(made_s)) + 0.0002 * noise.random(len(made_s))
    host = np.array([r.hosts[0] for r in run.cluster.replicas])[run.replica[request]]
    if run.settings.changed("egress_loss_ratio"):
        order = np.argsort(made_s, kind="stable")
        lost = np.empty(len(at))
        lost[order] = run.settings.at("egress_loss_ratio", made_s[order])[np.arange(len(order)), host[order]]
        timer = load()["network"]["rto_s"]
        at += np.where(noise.random(len(at)) < lost, timer * (1 + (noise.random(len(at)) < lost)), 0.0)
    if run.settings.changed("front_load_ratio"):
        order = np.argsort(made_s, kind="stable")
        full = np.empty(len(at))
        full[order] = run.settings.at("front_load_ratio", made_s[order])[np.arange(len(order)), host[order]]
        # A bulk flow fills the queue in front of a saturated port: a few ms, and their spread.
        at += np.where(full > 0.9, 0.02 + 0.02 * noise.random(len(at)), 0.0)
    return _in_order(number, _grouped(number, at, int(run.settings.one("tokens_per_event"))))


def _grouped(number: Array, at_s: Array, per_event: int) -> Array:
    """Return times where several tokens of a stream travel in one event: when the last of them is there."""
    if per_event <= 1 or len(number) == 0:
        return at_s
    closes = (number % per_event == per_event - 1) | np.append(number[1:] == 0, True)
    group = np.cumsum(np.append(0, closes[:-1].astype(np.int64)))
    out: Array = at_s[np.flatnonzero(closes)][group]
    return out


def _read(run: Run, request: Array, number: Array, sent_s: Array) -> Array:
    at: Array = sent_s + load()["network"]["client_rtt_s"] / 2
    if not run.settings.changed("slow_reader_share"):
        return at
    share = run.settings.at("slow_reader_share", np.minimum(sent_s, run.duration_s))[:, 0]
    slow = (run.demand.client[request] * 53 % 97) / 97 < share
    begun = np.maximum.accumulate(np.where(number == 0, np.arange(len(at)), 0))
    paced = at[begun] + number / SLOW_READER_TOKENS_PER_S
    out: Array = np.where(slow, np.maximum(at, paced), at)
    return out


def _in_order(number: Array, at_s: Array) -> Array:
    """Return times that do not go back within a stream: what is sent later arrives later."""
    if len(at_s) == 0:
        return at_s
    stream = np.cumsum(number == 0) - 1
    span = float(at_s.max() - at_s.min()) + 1.0
    out: Array = np.maximum.accumulate(at_s - at_s.min() + stream * span) - stream * span + at_s.min()
    return out
