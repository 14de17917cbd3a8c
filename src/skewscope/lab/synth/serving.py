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
        self, workload: Workload, schedule: Schedule, process: Process, seed: int, place: float
    ) -> None:
        self._own_ns = seconds(workload.own_s)
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
        members: Sequence[Member | RingMember],
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
        self._batcher = Batcher(workload.slots, lambda: active(static, self._loop.now) is not None)
        self._luck = Noise(seed, f"front {name}")
        usual = max(1, min(workload.clients, workload.slots * workload.replicas) // workload.replicas)
        self._token_bytes = max(4, workload.message_bytes // usual)
        draw = rng(seed, f"replica {name}")
        self._tag = int(draw.integers(16, 4096))
        order = draw.permutation(len(members)) / max(1, len(members) - 1) - 0.5
        self._ranks = [
            Rank(workload, schedule, m.process, seed, ORDER_SPREAD * float(order[i]))
            for i, m in enumerate(members)
        ]
        self._step_ns = seconds(workload.own_s) * 2 * workload.layers

    def start(self) -> None:
        """Start all ranks."""
        for rank, member in enumerate(self.members):
            member.process.start(self._lead() if rank == 0 else self._follow(rank))

    def submit(self, request: Request) -> None:
        """Hand a request to the engine (through the front end, which a fault slows)."""
        fault = active(self._slow, self._loop.now)
        if fault is not None:
            self._loop.at(self._loop.now + seconds(fault.strength), self._enqueue, request)
        else:
            self._enqueue(request)

    def _enqueue(self, request: Request) -> None:
        self._batcher.waiting.append(request)
        self.front.poke()

    def _lead(self) -> Iterator[int | None]:
        tag = self._tag
        while True:
            job = self._batcher.next()
            if job is None:
                yield None
                continue
            step, served = job
            self._steps[tag] = step
            self._steps.pop(tag - MAX_STALE_STEPS * (1 + 2 * self._workload.layers), None)
            yield from self._collectives(0, tag, step)
            tag += 1 + 2 * self._workload.layers
            yield self._after_ns()
            self._emit(served)

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
        member = self.members[rank]
        yield from member.broadcast(tag, 24 + 8 * self._workload.slots + (4 * step.tokens if step else 0))
        step = self._steps[tag]
        for k in range(2 * self._workload.layers):
            yield self._ranks[rank].own_ns(step.tokens, step.prefill)
            yield from member.all_reduce(tag + 1 + k, self._token_bytes * step.tokens)

    def _emit(self, served: list[Request]) -> None:
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
        self._batcher.finish(served)
