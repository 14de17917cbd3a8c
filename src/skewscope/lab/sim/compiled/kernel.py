"""The engines' kernel: continuous batching of all replicas, step by step, up to a point in time.

Between two events of the queue the replicas do not touch each other, so each runs its steps here, in
compiled code. The state is a handful of arrays (`Arrays`, layout below); `world.py` owns them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from skewscope.core.jit import inner, njit
from skewscope.core.tables import Array

(
    C_DECODE, C_SEQ, C_KV, C_PREFILL, C_CONTEXT, C_HOST, C_HOST_SEQ, C_HOST_PREFILL, C_BUDGET, C_BATCH,
    C_BLOCKS, C_STATIC, C_RANKS, C_STAGES, C_DP, C_NET_MULT, C_NET_ADD, C_EP, C_ENTRY, C_STEP_NOISE,
    C_RANK_NOISE, C_OUTLIERS,
) = range(22)  # fmt: skip
"""Columns of `config`: the step model, token budget, largest batch, KV blocks, static batching, ranks,
pipeline stages, data-parallel ranks, what the network multiplies and adds (s) per step, 1 where experts are
spread, network entries per step, spread of steps and of ranks, share of steps that something delays."""
CONFIG_COLUMNS = 22

S_NOW, S_RUNNING, S_WAITING, S_USED, S_STEPS, S_FILLING, S_PREEMPTED, S_REFUSED = range(8)
"""Columns of `state`."""

R_SLOW, R_PREFILL, R_DELAY, R_FROM, R_TO, R_LATE, R_LOAD = range(7)
"""Rows of `ranks`: multiplier of the step, of its prefill part, delay (s), a pause from and to (s), share of
a step by which a rank drawn anew in each step is late, expert load."""

Q_READY, Q_FIRST, Q_END, Q_ADMITTED = range(4)
"""Columns of `times`, in s; 0 = not yet."""
N_PROMPT, N_OUTPUT, N_DONE, N_LEFT, N_REPLICA, N_RANK, N_PREEMPTED, N_CONTEXT = range(8)
"""Columns of `counts`: prompt, output and made tokens, prompt tokens still to prefill, replica,
data-parallel rank, preemptions, tokens in the cache."""

(
    T_START, T_END, T_REPLICA, T_PREFILL, T_BATCH, T_USED, T_RUNNING, T_WAITING, T_NET, T_BASE, T_HOST,
) = range(11)  # fmt: skip
STEP_COLUMNS = 11
"""Columns of `steps`: start and end (s), replica, prefill tokens, sequences decoded, KV blocks, running,
waiting, s in the network, kernel and host s of an unharmed rank."""

LOG_ADMITTED, LOG_FIRST, LOG_PREEMPTED, LOG_FINISHED = range(1, 5)
BLOCK = 16


class Arrays(NamedTuple):
    """What the kernel works on; float64 but for `counts`, `waiting`, `slots`, `fill` (int64) and `own`,
    `share` (float32).
    """

    config: Array
    """(replicas, CONFIG_COLUMNS)"""
    ranks: Array
    """(7, replicas, ranks)"""
    state: Array
    """(replicas, 8)"""
    times: Array
    """(requests, 4)"""
    counts: Array
    """(requests, 8)"""
    waiting: Array
    """(replicas, places): requests in the queue"""
    slots: Array
    """(replicas, places): requests in the batch"""
    network: Array
    """(replicas, 20): s between nodes per step of 2^0, 2^1, ... tokens"""
    steps: Array
    """(rows, STEP_COLUMNS), written"""
    own: Array
    """(rows, ranks): own time of each rank, written"""
    share: Array
    """(rows, ranks): sequences per data-parallel rank, written"""
    log: Array
    """(rows, 3): time, request, LOG_*, written"""
    fill: Array
    """(2,): rows written of `steps` and of `log`"""


@inner
def _hash(key: int, a: int, b: int) -> Any:
    """Mix three integers (splitmix64's finaliser)."""
    x = (
        np.uint64(key)
        ^ (np.uint64(a) * np.uint64(0x9E3779B97F4A7C15))
        ^ (np.uint64(b) * np.uint64(0xC2B2AE3D27D4EB4F))
    )
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inner
def _uniform(key: int, a: int, b: int) -> float:
    """Return a number in (0, 1) that follows from three integers."""
    return (float(_hash(key, a, b) >> np.uint64(11)) + 0.5) / 9007199254740992.0


@inner
def _normal(key: int, a: int, b: int) -> float:
    """Return a standard normal number that follows from three integers (Box and Muller)."""
    u, v = _uniform(key, a, b), _uniform(key, a, b + 1)
    return math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * v)


@inner
def _blocks(tokens: int) -> int:
    return (tokens + BLOCK - 1) // BLOCK


@inner
def _note(e: Arrays, at_s: float, q: int, kind: int) -> None:
    """Add a row to the log."""
    row = e.fill[1]
    e.log[row, 0], e.log[row, 1], e.log[row, 2] = at_s, q, kind
    e.fill[1] = row + 1


@inner
def _admit(r: int, e: Arrays) -> None:
    """Move ready requests from the queue into the batch, first come first served, while memory lasts."""
    now = e.state[r, S_NOW]
    static = e.config[r, C_STATIC] > 0
    if static and e.state[r, S_RUNNING] > 0 and e.state[r, S_FILLING] == 0:
        return
    e.state[r, S_FILLING] = 0.0
    at = 0
    while at < int(e.state[r, S_WAITING]) and e.state[r, S_RUNNING] < e.config[r, C_BATCH]:
        q = e.waiting[r, at]
        if e.times[q, Q_READY] > now:
            at += 1
            continue
        need = _blocks(e.counts[q, N_CONTEXT] + e.counts[q, N_LEFT] + 1)
        if e.state[r, S_USED] + need > e.config[r, C_BLOCKS] and e.state[r, S_RUNNING] > 0:
            break
        for k in range(at, int(e.state[r, S_WAITING]) - 1):
            e.waiting[r, k] = e.waiting[r, k + 1]
        e.state[r, S_WAITING] -= 1
        e.state[r, S_USED] += need
        e.slots[r, int(e.state[r, S_RUNNING])] = q
        e.state[r, S_RUNNING] += 1
        if e.config[r, C_DP] > 1:
            e.counts[q, N_RANK] = _least_rank(r, e)
        if e.times[q, Q_ADMITTED] == 0:
            e.times[q, Q_ADMITTED] = now
            _note(e, now, q, LOG_ADMITTED)


@inner
def _least_rank(r: int, e: Arrays) -> int:
    """Return the data-parallel rank with the fewest sequences; the last slot is the one to place."""
    load = np.zeros(int(e.config[r, C_DP]), np.int64)
    for k in range(int(e.state[r, S_RUNNING]) - 1):
        load[e.counts[e.slots[r, k], N_RANK]] += 1
    return int(np.argmin(load))


@inner
def _drop(r: int, k: int, e: Arrays) -> None:
    """Take slot k out of the batch, keeping the order of the others."""
    for j in range(k, int(e.state[r, S_RUNNING]) - 1):
        e.slots[r, j] = e.slots[r, j + 1]
    e.state[r, S_RUNNING] -= 1


@inner
def _make_room(r: int, e: Arrays) -> None:
    """Preempt the newest sequences until all that decode can grow by a token (recompute, as vLLM does)."""
    while e.state[r, S_RUNNING] > 1:
        need = 0
        for k in range(int(e.state[r, S_RUNNING])):
            q = e.slots[r, k]
            if e.counts[q, N_LEFT] == 0 and (e.counts[q, N_CONTEXT] + 1) % BLOCK == 0:
                need += 1
        if e.state[r, S_USED] + need <= e.config[r, C_BLOCKS]:
            break
        last = int(e.state[r, S_RUNNING]) - 1
        q = e.slots[r, last]
        e.state[r, S_USED] -= _blocks(e.counts[q, N_CONTEXT] + e.counts[q, N_LEFT] + 1)
        e.counts[q, N_LEFT] += e.counts[q, N_CONTEXT]
        e.counts[q, N_CONTEXT] = 0
        e.counts[q, N_PREEMPTED] += 1
        e.state[r, S_PREEMPTED] += 1
        _drop(r, last, e)
        for j in range(int(e.state[r, S_WAITING]), 0, -1):
            e.waiting[r, j] = e.waiting[r, j - 1]
        e.waiting[r, 0] = q
        e.state[r, S_WAITING] += 1
        _note(e, e.state[r, S_NOW], q, LOG_PREEMPTED)


@inner
def _duration(r: int, e: Arrays, decoding: int, base: float, prefill: float, host: float, key: int) -> float:
    """Fill `own` (s per rank) and return the step's length without the network: that of the slowest rank."""
    own, share = e.own[e.fill[0]], e.share[e.fill[0]]
    config = e.config[r]
    number, start = int(e.state[r, S_STEPS]), e.state[r, S_NOW]
    stages, dp = config[C_STAGES], config[C_DP]
    common = math.exp(config[C_STEP_NOISE] * _normal(key, r, 64 * number))
    if _uniform(key, r, 64 * number + 2) < config[C_OUTLIERS]:
        common *= 1.0 + 0.5 * _uniform(key, r, 64 * number + 3)
    late = int(_uniform(key, r, 64 * number + 4) * config[C_RANKS])
    slowest = 0.0
    for g in range(int(config[C_RANKS])):
        part = base
        if dp > 1 and decoding > 0:  # each rank decodes its own sequences, the weights are read by all
            part += (share[g] * dp - decoding) / decoding * (base - config[C_DECODE]) * 0.5
        if config[C_EP] > 0:
            part *= 0.6 + 0.4 * e.ranks[R_LOAD, r, g]
        part += prefill * e.ranks[R_PREFILL, r, g]
        spread = 1.0 + config[C_RANK_NOISE] * abs(_normal(key, r * 1024 + g + 7, 64 * number + 8))
        time = (part / stages + host) * e.ranks[R_SLOW, r, g] * spread * common + e.ranks[R_DELAY, r, g]
        if e.ranks[R_LATE, r, g] > 0 and late == g:
            time *= 1.0 + e.ranks[R_LATE, r, g] * _uniform(key, r, 64 * number + 5)
        if start < e.ranks[R_TO, r, g] and start + time > e.ranks[R_FROM, r, g]:
            time += e.ranks[R_TO, r, g] - max(start, e.ranks[R_FROM, r, g])
        own[g] = time
        slowest = max(slowest, time)
    # A pipeline is paced by its slowest stage; every token passes all of them.
    length: float = (slowest - host) * stages + host
    return length


@inner
def _network(r: int, e: Arrays, tokens: float) -> float:
    """Return the s that a step of so many tokens spends between nodes."""
    at = math.log2(max(tokens, 1.0))
    low = min(int(at), e.network.shape[1] - 2)
    share = min(at - low, 1.0)
    time = e.network[r, low] * (1.0 - share) + e.network[r, low + 1] * share
    if time == 0.0 and e.config[r, C_ENTRY] == 0.0:
        return 0.0
    out: float = time * e.config[r, C_NET_MULT] + e.config[r, C_NET_ADD]
    return out


@inner
def _gather(r: int, e: Arrays) -> tuple[int, int]:
    """Return sequences to decode and their tokens in the cache; fill `share`."""
    share = e.share[e.fill[0]]
    share[:] = 0.0
    decoding, kv_tokens = 0, 0
    for k in range(int(e.state[r, S_RUNNING])):
        q = e.slots[r, k]
        if e.counts[q, N_LEFT] == 0:
            decoding += 1
            kv_tokens += e.counts[q, N_CONTEXT]
            share[e.counts[q, N_RANK]] += 1.0
    return decoding, kv_tokens


@inner
def _prefill(r: int, e: Arrays, budget: int) -> tuple[int, float]:
    """Take prompt tokens into the step up to a budget; returns tokens, and tokens times context.

    A prompt that is then complete is marked by -1: its first token comes at the end of the step.
    """
    tokens, context = 0, 0.0
    for k in range(int(e.state[r, S_RUNNING])):
        q = e.slots[r, k]
        if e.counts[q, N_LEFT] > 0 and budget > 0:
            chunk = min(e.counts[q, N_LEFT], budget)
            context += chunk * (e.counts[q, N_CONTEXT] + 0.5 * chunk)
            e.counts[q, N_LEFT] -= chunk
            e.counts[q, N_CONTEXT] += chunk
            budget -= chunk
            tokens += chunk
            if e.counts[q, N_LEFT] == 0:
                e.counts[q, N_LEFT] = -1
    return tokens, context


@inner
def _hand_out(r: int, e: Arrays) -> None:
    """Give every sequence of the step its token and let go those that are complete."""
    now = e.state[r, S_NOW]
    k = 0
    while k < int(e.state[r, S_RUNNING]):
        q = e.slots[r, k]
        if e.counts[q, N_LEFT] > 0:
            k += 1
            continue
        if e.counts[q, N_LEFT] == -1:
            e.counts[q, N_LEFT] = 0
        else:
            if (e.counts[q, N_CONTEXT] + 1) % BLOCK == 0:
                e.state[r, S_USED] += 1
            e.counts[q, N_CONTEXT] += 1
        e.counts[q, N_DONE] += 1
        if e.times[q, Q_FIRST] == 0:
            e.times[q, Q_FIRST] = now
            _note(e, now, q, LOG_FIRST)
        if e.counts[q, N_DONE] < e.counts[q, N_OUTPUT]:
            k += 1
            continue
        e.times[q, Q_END] = now
        e.state[r, S_USED] -= _blocks(e.counts[q, N_CONTEXT] + 1)
        _drop(r, k, e)
        _note(e, now, q, LOG_FINISHED)


@inner
def _step(r: int, e: Arrays, key: int) -> None:
    """Run one step of a replica that has something in its batch."""
    _make_room(r, e)
    config, running = e.config[r], e.state[r, S_RUNNING]
    decoding, kv_tokens = _gather(r, e)
    tokens, context = _prefill(r, e, max(int(config[C_BUDGET]) - decoding, 0))
    read = config[C_DECODE] if decoding > 0 else 0.0
    base = read + decoding * config[C_SEQ] + kv_tokens * config[C_KV]
    # A prefill reads the weights that decoding reads anyway.
    prefill = max(tokens * config[C_PREFILL] + context * config[C_CONTEXT] - read, 0.0)
    host = config[C_HOST] + decoding * config[C_HOST_SEQ]
    if tokens > 0:
        host += config[C_HOST_PREFILL]
    net = _network(r, e, float(decoding + tokens))
    took = _duration(r, e, decoding, base, prefill, host, key) + net
    row = e.steps[e.fill[0]]
    row[T_START], row[T_REPLICA], row[T_PREFILL], row[T_BATCH] = e.state[r, S_NOW], r, tokens, decoding
    row[T_USED], row[T_RUNNING], row[T_WAITING] = e.state[r, S_USED], running, e.state[r, S_WAITING]
    row[T_NET], row[T_BASE], row[T_HOST] = net, base + prefill, host
    e.state[r, S_NOW] += took
    row[T_END] = e.state[r, S_NOW]
    e.state[r, S_STEPS] += 1
    e.fill[0] += 1
    _hand_out(r, e)


@njit
def advance(first: int, last: int, until_s: float, e: Arrays, key: int) -> bool:
    """Run the replicas first..last-1 until each has passed `until_s` or has nothing to do before it.

    `key` is that of the noise. Returns False where a buffer is nearly full: empty them and call again.
    """
    for r in range(first, last):
        while e.state[r, S_NOW] < until_s:
            if e.fill[0] >= len(e.steps) or e.fill[1] + 4 * e.slots.shape[1] >= len(e.log):
                return False
            _admit(r, e)
            if e.state[r, S_RUNNING] == 0:
                ready = until_s
                for k in range(int(e.state[r, S_WAITING])):
                    ready = min(ready, e.times[e.waiting[r, k], Q_READY])
                e.state[r, S_NOW] = max(ready, e.state[r, S_NOW] + 1e-6)
                continue
            _step(r, e, key)
    return True
