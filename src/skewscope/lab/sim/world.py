"""One run of a cluster: requests through gateway, router, engines and the transfer of caches."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from skewscope.core.tables import Array
from skewscope.lab.sim.cluster import GPUS, Cluster
from skewscope.lab.sim.compiled import kernel as k
from skewscope.lab.sim.events import EventQueue, Streams
from skewscope.lab.sim.knobs import GPU, KNOBS, Settings
from skewscope.lab.sim.params import load
from skewscope.lab.sim.rates import config_of, net_tables, rank_settings
from skewscope.lab.sim.routing import Router
from skewscope.lab.sim.workload import ADDED, Demand

CHANGE, PAUSE, TICK, ARRIVAL = range(4)
"""Priorities of events at one time: settings change before anything happens under them."""
TICK_S = 0.05
"""Longest stretch in which caches that are ready wait for the loop to see them; they lose no time by it."""
SLOTS = 288
QUEUE = 4096
ABORTED_SHARE = 0.01


@dataclass(frozen=True)
class Change:
    """A knob gets a value at some places of its axis."""

    at_s: float
    knob: str
    places: tuple[int, ...]
    value: float


@dataclass
class Transfer:
    """A cache that moved from a prefill to a decode replica; times in s."""

    request: int
    source: int
    target: int
    ready_s: float
    start_s: float
    end_s: float
    nbytes: float
    pieces: int
    tcp: bool
    failed: bool


@dataclass
class Run:
    """Everything that happened in a run: the truth, which no source may see as such."""

    cluster: Cluster
    settings: Settings
    demand: Demand
    duration_s: float
    streams: Streams
    steps: Array
    own_s: Array
    """Own time of each rank in each step, float32, shape (steps, most ranks)."""
    share: Array
    """Sequences decoded per data-parallel rank, float32, shape (steps, most ranks)."""
    log: Array
    times: Array
    counts: Array
    replica: Array
    """Replica that decodes each request; -1 = refused."""
    left_s: Array
    """Minus the tokens after which its client hung up, NaN where it did not."""
    cached: Array
    """Prompt tokens found in the prefix cache."""
    failed_s: Array
    """When its engine was gone, NaN for almost all."""
    prefilled_by: Array
    transfers: list[Transfer] = field(default_factory=list)
    pauses: list[tuple[int, float, float]] = field(default_factory=list)
    """(GPU, from, to) of every stop of a process."""
    lost_in: list[tuple[float, int, int]] = field(default_factory=list)
    """(time, host, segments) lost on the way in."""
    announced: list[tuple[float, int]] = field(default_factory=list)
    """(time, replica) of restarts that were announced."""
    defect: str = ""
    """What is wrong with the recording: see scenario.Drawn."""

    def __len__(self) -> int:
        return len(self.demand)

    def hung_up_s(self, request: Array, number: Array, at_s: Array) -> Array:
        """Return when clients hung up, given all tokens (request, number, time)."""
        out: Array = at_s[number == -self.left_s[request] - 1]  # NaN compares false
        return out


def _drawn(key: int, stream: int, number: Array) -> Array:
    """Return a number in (0, 1) for each request, whatever other requests there are."""
    usual = np.random.default_rng([key, 20 + stream]).random(int(number[number < ADDED].max(initial=0)) + 1)
    more = np.random.default_rng([key, 30 + stream]).random(int(number.max(initial=0)) % ADDED + 1)
    is_added = number >= ADDED
    return np.where(
        is_added, more[np.where(is_added, number - ADDED, 0)], usual[np.where(is_added, 0, number)]
    )


class World:
    """The loop of one run."""

    def __init__(
        self,
        cluster: Cluster,
        demand: Demand,
        changes: list[Change],
        duration_s: float,
        seed: int,
        biased: int = -1,
    ) -> None:
        """`biased` is the replica that a biased router and added clients pick on."""
        self.cluster, self.demand, self.duration_s = cluster, demand, duration_s
        self.streams = Streams.of(seed)
        self.settings = Settings(cluster)
        self.router = Router(cluster, self.settings, self.streams.policy)
        if biased >= 0:
            self.router.biased = biased
        self._queue = EventQueue()
        count, replicas = len(demand), len(cluster.replicas)
        self.ranks = max(r.ranks for r in cluster.replicas)
        self.state = np.zeros((replicas, 8))
        self.times = np.zeros((count, 4))
        self.counts = np.zeros((count, 8), np.int64)
        self.waiting = np.zeros((replicas, QUEUE), np.int64)
        self.slots = np.zeros((replicas, SLOTS), np.int64)
        self.replica = np.full(count, -1)
        self.prefilled_by = np.full(count, -1)
        self.left_s = np.full(count, np.nan)
        self.found = np.zeros(count, np.int64)
        self.failed_s = np.full(count, np.nan)
        self._net = net_tables(cluster)
        self._rank = np.ones((7, replicas, self.ranks))
        self._config = np.zeros((replicas, k.CONFIG_COLUMNS))
        self._parts: list[tuple[Array, Array, Array]] = []
        self._logs: list[Array] = []
        self._arrays = self._buffers()
        self._entry_free = np.zeros(cluster.hosts)
        self._pipe_free = np.zeros((2, replicas))
        self.transfers: list[Transfer] = []
        self.pauses: list[tuple[int, float, float]] = []
        self._refresh()
        for change in changes:
            self._queue.push(change.at_s, CHANGE, change)
        ticks = int(duration_s / TICK_S) + 1 if cluster.pool("prefill") else 0
        for number in range(ticks):
            self._queue.push(number * TICK_S, TICK, None)
        for q, at_s in enumerate(demand.at_s):
            self._queue.push(float(at_s), ARRIVAL, q)
        own = [_drawn(self.streams.noise_key, n, demand.number) for n in range(3)]
        self._request_noise = np.exp(load()["noise"]["request_ratio"] * (own[0] - 0.5) * 3.46)
        self._aborts, self._cached = own[1], own[2] * 2
        self._host = load()["host"]
        self.lost_in: list[tuple[float, int, int]] = []

    def _buffers(self) -> k.Arrays:
        """Return what the kernel works on: the state, and what it writes until `_flush` takes it."""
        rows = 1 << 14
        self._steps = np.zeros((rows, k.STEP_COLUMNS))
        self._own = np.zeros((rows, self.ranks), np.float32)
        self._share = np.zeros((rows, self.ranks), np.float32)
        self._log = np.zeros((rows, 3))
        self._fill = np.zeros(2, np.int64)
        return k.Arrays(
            self._config, self._rank, self.state, self.times, self.counts, self.waiting, self.slots,
            self._net, self._steps, self._own, self._share, self._log, self._fill,
        )  # fmt: skip

    def run(self) -> Run:
        """Run to the end and return what happened."""
        while len(self._queue):
            at_s, event = self._queue.pop()
            if at_s > self.duration_s:
                break
            self._advance(at_s)
            if isinstance(event, Change):
                self.settings.set(at_s, event.knob, list(event.places), event.value)
                self._refresh()
                if event.knob in ("restarting", "cold") and event.value > 0:
                    for r in event.places:
                        self._kill(r, at_s)
                self._begin_pauses(at_s, event)
            elif isinstance(event, tuple):
                self._pause(at_s, *event)
            elif event is not None:
                self._arrive(at_s, event)
        self._advance(self.duration_s)
        self._flush()
        steps, own, share = (np.concatenate([p[n] for p in self._parts]) for n in range(3))
        order = np.argsort(steps[:, k.T_START], kind="stable")
        log = np.concatenate(self._logs)
        return Run(
            self.cluster, self.settings, self.demand, self.duration_s, self.streams, steps[order], own[order],
            share[order], log[np.argsort(log[:, 0], kind="stable")], self.times, self.counts, self.replica,
            self.left_s, self.found, self.failed_s, self.prefilled_by, self.transfers, self.pauses,
            self.lost_in,
        )  # fmt: skip

    def _refresh(self) -> None:
        """Compute what the kernel needs from the knobs."""
        self.router.refresh()
        self._scalars = {name: float(v[0]) for name, v in self.settings.now.items() if len(v) == 1}
        self._config[:] = config_of(self.cluster, self.settings)
        pauses = self._rank[k.R_FROM : k.R_TO + 1].copy()
        self._rank[:] = rank_settings(self.cluster, self.settings, self.ranks)
        self._rank[k.R_FROM : k.R_TO + 1] = np.where(pauses == 1.0, -1.0, pauses)
        until = self.settings.now["stopped_until_s"]
        stands = until > 0
        self._rank[k.R_FROM][stands] = 0.0
        self._rank[k.R_TO][stands] = until[stands, None]

    def _kill(self, r: int, at_s: float) -> None:
        """Fail everything that a replica holds: its process is gone."""
        held = [
            *self.slots[r, : int(self.state[r, k.S_RUNNING])],
            *self.waiting[r, : int(self.state[r, k.S_WAITING])],
        ]
        self.failed_s[held] = at_s
        self.state[r, [k.S_RUNNING, k.S_WAITING, k.S_USED]] = 0.0

    def _begin_pauses(self, at_s: float, change: Change) -> None:
        if change.knob in ("rank_pause_s", "host_pause_s") and change.value > 0:
            for place in change.places:
                self._queue.push(at_s, PAUSE, (change.knob, place))

    def _pause(self, at_s: float, knob: str, place: int) -> None:
        """Stop a process, or those of a host, once, and set the time of the next stop."""
        length = float(self.settings.now[knob][place])
        if length <= 0:
            return
        period = float(self.settings.now[knob.replace("_s", "_period_s")][place])
        gpus = [place] if KNOBS[knob][0] == GPU else [place * GPUS + j for j in range(GPUS)]
        r = self.cluster.replica_of(gpus[0] // GPUS)
        length *= float(0.8 + 0.4 * self.streams.noise.random())
        for gpu in gpus:
            rank = self.cluster.gpus_of(r).index(gpu)
            self._rank[k.R_FROM, r, rank], self._rank[k.R_TO, r, rank] = at_s, at_s + length
            self.pauses.append((gpu, at_s, at_s + length))
        self._queue.push(at_s + period * float(0.9 + 0.2 * self.streams.noise.random()), PAUSE, (knob, place))

    def _advance(self, until: float) -> None:
        """Run all engines up to a time: those that prefill first, then caches move, then the others."""
        prefilling, count = self.cluster.pool("prefill"), len(self.cluster.replicas)
        if not prefilling:
            self._run_kernel(0, count, until)
            return
        last = prefilling[-1] + 1  # the pool stands first in a cluster file
        self._run_kernel(0, last, until)
        self._move_caches()
        self._run_kernel(last, count, until)

    def _run_kernel(self, first: int, last: int, until: float) -> None:
        while not k.advance(first, last, until, self._arrays, self.streams.noise_key):
            self._flush()

    def _flush(self) -> None:
        steps, logs = self._fill
        self._parts.append((self._steps[:steps].copy(), self._own[:steps].copy(), self._share[:steps].copy()))
        self._logs.append(self._log[:logs].copy())
        self._fill[:] = 0
        self._seen_log = 0

    _seen_log = 0

    def _arrive(self, at_s: float, q: int) -> None:
        """Send a request to a replica; it can be scheduled once its bytes are in and its text is tokens."""
        now, client = self._scalars, int(self.demand.client[q])
        added = client < 0  # by a fault, with lengths of its own
        prompt = max(1, int(self.demand.prompt[q] * (1.0 if added else now["prompt_ratio"])))
        output = max(1, int(self.demand.output[q] * (1.0 if added else now["output_ratio"])))
        r = self.router.choose(at_s, client, output, self.state)
        if self.state[r, k.S_WAITING] > QUEUE - SLOTS - 2:
            self.state[r, k.S_REFUSED] += 1
            return
        cached = 0 if added else int(prompt * now["cached_share"] * self._cached[q])
        hung_up, early = now["hang_up_share"], self._aborts[q]
        if early < max(hung_up, ABORTED_SHARE) and not added:
            kept = max(1, int(output * 0.3))
            self.left_s[q] = -kept  # in tokens; output.py turns it into a time
            if hung_up == 0:
                output = kept  # the engine is told and stops
        self.found[q] = cached
        self.counts[q] = (prompt, output, 0, max(1, prompt - cached), r, 0, 0, cached)
        self.times[q, k.Q_READY] = at_s + self._entry_s(at_s, q, r, prompt)
        self.replica[q] = r
        if self.cluster.replicas[r].role == "prefill":
            self.counts[q, k.N_OUTPUT] = 1
            self.prefilled_by[q] = r
        self._enqueue(r, q)

    def _entry_s(self, at_s: float, q: int, r: int, prompt: int) -> float:
        """Return the s from a request's arrival at the gateway to when its engine may schedule it."""
        now, host = self.settings.now, self.cluster.replicas[r].hosts[0]
        busy = min(0.95, float(now["cpu_busy_ratio"][host]))
        work = (self._host["frontend_us"] + self._host["tokenise_us"] * prompt) * 1e-6
        work *= float(now["frontend_ratio"][host]) / (1 - busy) * float(self._request_noise[q])
        start = max(at_s + 0.0005, float(self._entry_free[host]))
        self._entry_free[host] = start + work  # one thread parses and tokenises
        prepare = float(now["prepare_s"][r]) + float(now["prepare_token_s"][r]) * prompt
        stalls, lossy = 0.0, float(now["ingress_loss_ratio"][host])
        if lossy:
            pieces = 1 + prompt * 4 // 1400
            lost = int(self.streams.noise.binomial(pieces, min(0.9, lossy)))
            # The last segment is found missing by a timer only, one before it by what follows.
            timer = self.streams.noise.random() < lossy
            stalls = 0.03 * lost + (load()["network"]["rto_s"] if timer else 0.0)
            self.lost_in.append((at_s, host, lost + timer))
        if self._scalars["slow_upload_s"] > 0 and r == self.router.biased:
            stalls += self._scalars["slow_upload_s"] * (0.5 + float(self._aborts[q]))
        return float(start + work + prepare + stalls - at_s)

    def _enqueue(self, r: int, q: int) -> None:
        at = int(self.state[r, k.S_WAITING])
        self.waiting[r, at] = q
        self.state[r, k.S_WAITING] = at + 1

    def _move_caches(self) -> None:
        """Start the transfer of every cache that prefill has finished since the last call."""
        rows = self._log[self._seen_log : self._fill[1]]
        self._seen_log = int(self._fill[1])
        finished = rows[rows[:, 2] == k.LOG_FINISHED]
        for at_s, q, _ in finished[np.argsort(finished[:, 0], kind="stable")]:
            number = int(q)
            if self.prefilled_by[number] < 0 or self.replica[number] != self.prefilled_by[number]:
                continue
            output = max(1, int(self.demand.output[number] * self._scalars["output_ratio"]))
            if output > 1:
                self._move(float(at_s), number, output)

    def _move(self, at_s: float, q: int, output: int) -> None:
        now, params = self.settings.now, load()["network"]
        source, target = int(self.prefilled_by[q]), self.router.decode_replica(self.state)
        model = self.cluster.replicas[target].model
        nbytes = float(self.counts[q, k.N_PROMPT] * model.kv_token_bytes)
        pieces, tcp = int(now["kv_pieces"][target]), now["kv_tcp"][target] > 0
        rate = params["tcp_fallback_bps"] / 8 if tcp else params["nic_bps"] / 8 * params["kv_share_ratio"]
        gpus = self.cluster.gpus_of(target)
        rate *= float(now["kv_rate_ratio"][target]) * float(now["nic_rate_ratio"][gpus].min())
        load_ratio = max(float(now["nic_load_ratio"][gpus].max()), float(self._uplink_load(source, target)))
        rate *= max(0.05, 1 - load_ratio)
        setup = params["kv_setup_tcp_s"] if tcp else params["kv_setup_s"]
        setup += float(now["kv_delay_s"][target]) + max(0, pieces - 80) * 4e-6 * model.layers / 80
        start = max(at_s, float(self._pipe_free[0, source]), float(self._pipe_free[1, target]))
        failed = bool(now["kv_large_fails"][target] > 0 and nbytes > 16e6)
        took = setup + nbytes / rate * float(self._request_noise[q])
        end = start + (5.0 if failed else took)
        self._pipe_free[0, source] = self._pipe_free[1, target] = start + min(took, 5.0)
        self.transfers.append(
            Transfer(q, source, target, at_s, start, end, nbytes, pieces, bool(tcp), failed)
        )
        # After a transfer that failed the decoding engine computes the cache itself.
        left = int(self.counts[q, k.N_PROMPT]) if failed else 0
        self.counts[q, k.N_OUTPUT : k.N_CONTEXT + 1] = (
            output, 1, left, target, 0, 0, int(self.counts[q, k.N_PROMPT]) - left,
        )  # fmt: skip
        self.times[q, k.Q_READY], self.times[q, k.Q_END], self.times[q, k.Q_ADMITTED] = end, 0.0, 0.0
        self.replica[q] = target
        self._enqueue(target, q)

    def _uplink_load(self, source: int, target: int) -> float:
        a, b = self.cluster.replicas[source].hosts[0], self.cluster.replicas[target].hosts[0]
        if self.cluster.leaf(a) == self.cluster.leaf(b):
            return 0.0
        links = {
            self.cluster.uplink_of(g) for g in (*self.cluster.gpus_of(source), *self.cluster.gpus_of(target))
        }
        return max(float(self.settings.now["link_load_ratio"][n]) for n in links)
