"""A replica: continuous batching at rank 0, and the step that all ranks run together.

A step is one broadcast of the step's tokens and two all-reduces per layer, each behind a rank's own
time. Prefill takes one waiting request whole (unchunked) and alternates with decode steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from skewscope.core.scenario import Workload
from skewscope.lab.synth.gloo import Member
from skewscope.lab.synth.nccl import RingMember
from skewscope.lab.synth.nccl_mesh import MeshMember
from skewscope.lab.synth.noise import Noise, rng
from skewscope.lab.synth.process import Process, seconds
from skewscope.lab.synth.schedule import Schedule, active

PREFILL_TOKENS_PER_OWN = 256
"""Tokens of a prefill that double a rank's own time; message sizes grow in proportion."""
OUTLIER_SHARE = 0.004
"""Share of rounds in which something unrelated costs a rank up to a tenth more."""
ORDER_SPREAD = 0.015
"""A fixed order of entry is normal: ranks differ by this share of the own time."""
MAX_STALE_STEPS = 64
TOLD_BYTES = 160
"""What the last stage of a chain tells the first one."""


@dataclass
class Request:
    """A request in the engine; `emit(index, last)` is called for each token at its time."""

    prompt_tokens: int
    answer_tokens: int
    emit: Callable[[int, bool], None]
    done: int = 0
    held_ns: int = 0


@dataclass(frozen=True)
class Step:
    """What rank 0 tells the others: the tokens of the step."""

    tokens: int
    prefill: bool


class Batcher:
    """Waiting and running requests of one replica."""

    def __init__(self, slots: int, is_static: Callable[[], bool]) -> None:
        self._slots = slots
        self._is_static = is_static
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self._filling = False
        self._was_prefill = False

    def next(self) -> tuple[Step, list[Request]] | None:
        """Return the next step and the requests that get a token from it, or None when idle."""
        static = self._is_static()
        admits = not static or not self.running or self._filling
        admits = admits and (static or not self._was_prefill or not self.running)
        if self.waiting and admits and len(self.running) < self._slots:
            request = self.waiting.popleft()
            self.running.append(request)
            self._was_prefill, self._filling = True, static
            return Step(request.prompt_tokens, True), [request]
        self._was_prefill = self._filling = False
        if not self.running:
            return None
        return Step(len(self.running), False), list(self.running)

    def finish(self, served: list[Request]) -> None:
        """Drop the requests whose last token was made."""
        for request in served:
            request.done += 1
            if request.done >= request.answer_tokens:
                self.running.remove(request)


class Rank:
    """One rank's own time."""

    def __init__(
        self, workload: Workload, schedule: Schedule, process: Process, seed: int, place: float, index: int
    ) -> None:
        work = workload.work[index] if workload.work else 1.0
        self._own_ns = int(seconds(workload.own_s) * work)
        self._spread = workload.own_spread
        self._place = place
        self._process = process
        name = process.name
        self._noise = Noise(seed, f"own {name}", normal=True)
        self._luck = Noise(seed, f"outlier {name}")
        self._fault_luck = Noise(seed, f"straggle {name}")
        self._stragglers = schedule.of_rank("straggler", process.number)

    def own_ns(self, tokens: int, prefill: bool) -> int:
        """Return the time that this rank computes before the next all-reduce."""
        own = self._own_ns * (1 + (tokens / PREFILL_TOKENS_PER_OWN if prefill else 0.0))
        own *= max(0.2, 1 + self._place + self._spread * self._noise.next())
        if self._luck.next() < OUTLIER_SHARE:
            own += 0.1 * self._own_ns * self._luck.next()
        for fault in filter(None, [active(self._stragglers, self._process.loop.now)]):
            if self._fault_luck.next() < fault.share:
                own *= fault.strength
        return int(own) + self._process.late_ns(4)


class Replica:
    """A tensor-parallel group that serves requests at its rank 0."""

    def __init__(
        self,
        workload: Workload,
        schedule: Schedule,
        members: Sequence[Member | RingMember | MeshMember],
        seed: int,
        name: str,
    ) -> None:
        self.members = members
        self.front = members[0].process
        self._workload = workload
        self._loop = self.front.loop
        self._steps: dict[int, Step] = {}
        first = self.front.number
        self._slow = schedule.of("slow_front_end", first) + schedule.of("slow_front_end", -1)
        self._held = schedule.of("egress_jitter", first) + schedule.of("egress_jitter", -1)
        static = schedule.of("static_batching", first) + schedule.of("static_batching", -1)
        under_way = workload.micro_batches if workload.pattern == "chain" else 1
        self._batchers = [
            Batcher(-(-workload.slots // under_way), lambda: active(static, self._loop.now) is not None)
            for _ in range(under_way)
        ]
        self._luck = Noise(seed, f"front {name}")
        usual = max(1, min(workload.clients, workload.slots * workload.replicas) // workload.replicas)
        self._token_bytes = max(4, workload.message_bytes // usual)
        draw = rng(seed, f"replica {name}")
        self._tag = int(draw.integers(16, 4096))
        order = draw.permutation(len(members)) / max(1, len(members) - 1) - 0.5
        self._ranks = [
            Rank(workload, schedule, m.process, seed, ORDER_SPREAD * float(order[i]), i)
            for i, m in enumerate(members)
        ]
        self._step_ns = seconds(workload.own_s) * 2 * workload.layers
        self._hot = schedule.of("hot_expert")

    def start(self) -> None:
        """Start all ranks."""
        for rank, member in enumerate(self.members):
            if self._workload.pattern == "chain":
                member.process.start(self._stage(rank) if rank else self._pipe())
            else:
                member.process.start(self._follow(rank) if rank else self._lead())

    def submit(self, request: Request) -> None:
        """Hand a request to the engine (through the front end, which a fault slows)."""
        fault = active(self._slow, self._loop.now)
        if fault is not None:
            self._loop.at(self._loop.now + seconds(fault.strength), self._enqueue, request)
        else:
            self._enqueue(request)

    def _enqueue(self, request: Request) -> None:
        min(self._batchers, key=lambda b: len(b.waiting) + len(b.running)).waiting.append(request)
        self.front.poke()

    def _lead(self) -> Iterator[int | None]:
        tag = self._tag
        while True:
            job = self._batchers[0].next()
            if job is None:
                yield None
                continue
            step, served = job
            self._steps[tag] = step
            self._steps.pop(tag - MAX_STALE_STEPS * (1 + 2 * self._workload.layers), None)
            yield from self._collectives(0, tag, step)
            tag += 1 + 2 * self._workload.layers
            yield self._after_ns()
            self._emit(served, self._batchers[0])

    def _follow(self, rank: int) -> Iterator[int | None]:
        tag = self._tag
        while True:
            yield from self._collectives(rank, tag, None)
            yield int(1.15 * self._after_ns())  # rank 0 is the first to announce the next step
            tag += 1 + 2 * self._workload.layers

    def _after_ns(self) -> int:
        """Time from the last all-reduce of a step to its tokens, on every rank."""
        return int(min(0.02 * self._step_ns, 1_000_000) * (0.8 + 0.4 * self._luck.next()))

    def _collectives(self, rank: int, tag: int, step: Step | None) -> Iterator[int | None]:
        member, w = self.members[rank], self._workload
        yield from member.broadcast(tag, 24 + 8 * w.slots + (4 * step.tokens if step else 0))
        step = self._steps[tag]
        for k in range(2 * w.layers):
            if w.pattern == "all_to_all":
                assert not isinstance(member, RingMember)
                yield from self._exchange(member, tag + 1 + k, step, back=k % 2 == 1)
            else:
                assert not isinstance(member, MeshMember)
                yield self._ranks[rank].own_ns(step.tokens, step.prefill)
                yield from member.all_reduce(tag + 1 + k, self._token_bytes * step.tokens)

    def _exchange(
        self, member: Member | MeshMember, tag: int, step: Step, *, back: bool
    ) -> Iterator[int | None]:
        """Send rows to the experts of all ranks, or the results back; own time goes with the rows there."""
        n = len(self.members)
        shares = [1 / n] * n
        for fault in filter(None, [active(self._hot, self._loop.now)]):
            hot = fault.strength / n
            shares = [(1 - hot) / (n - 1)] * n
            shares[fault.target] = hot
        own = self._ranks[member.rank].own_ns(step.tokens, step.prefill)
        yield int(own * n * shares[member.rank]) if back else own
        whole = self._token_bytes * step.tokens
        sizes = [max(8, int(whole * s)) for s in shares]
        yield from member.all_to_all(tag, [sizes[member.rank]] * n if back else sizes)

    def _pipe(self) -> Iterator[int | None]:
        """Lead a chain: as many batches under way as it has, each with requests of its own."""
        member, last = self.members[0], len(self.members) - 1
        assert not isinstance(member, RingMember)
        number, under_way = self._tag, deque[tuple[Batcher, list[Request]]]()
        idle = deque(self._batchers)
        while True:
            job = None
            for _ in range(len(idle)):
                job = idle[0].next()
                if job is not None:
                    break
                idle.rotate(-1)
            if job is not None:
                step, served = job
                self._steps[number] = step
                self._steps.pop(number - MAX_STALE_STEPS, None)
                number += 1
                yield self._ranks[0].own_ns(step.tokens, step.prefill)
                yield from member.send(1, max(8, self._token_bytes * step.tokens))
                under_way.append((idle.popleft(), served))
            if under_way and (job is None or not idle):
                yield from member.receive(last, TOLD_BYTES)
                batcher, served = under_way.popleft()
                self._emit(served, batcher)
                idle.append(batcher)
            elif job is None:
                yield None

    def _stage(self, rank: int) -> Iterator[int | None]:
        """Pass micro-batches on; the last stage tells the first one their tokens."""
        member, number, count = self.members[rank], self._tag, len(self.members)
        assert not isinstance(member, RingMember)
        while True:
            yield from member.receive(rank - 1, self._token_bytes)
            step = self._steps[number]
            number += 1
            yield self._ranks[rank].own_ns(step.tokens, step.prefill)
            nbytes = max(8, self._token_bytes * step.tokens)
            yield from member.send((rank + 1) % count, TOLD_BYTES if rank == count - 1 else nbytes)

    def _emit(self, served: list[Request], batcher: Batcher) -> None:
        now = self._loop.now
        slow, fault = active(self._slow, now), active(self._held, now)
        late = 0 if slow is None else seconds(slow.strength * (0.9 + 0.2 * self._luck.next()))
        for request in served:
            hold = 0 if fault is None else int(fault.strength * self._step_ns * self._luck.next())
            request.held_ns = max(request.held_ns, now + late + hold)
            last = request.done + 1 >= request.answer_tokens
            if request.held_ns > now:
                self._loop.at(request.held_ns, request.emit, request.done, last)
            else:
                request.emit(request.done, last)
        batcher.finish(served)
