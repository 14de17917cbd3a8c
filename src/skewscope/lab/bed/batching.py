"""The engine's scheduler: which requests a step works on. Pure; rank 0 asks it before each step."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

IDLE, STOP, PREFILL, DECODE, MIXED, RESET = 0, 1, 2, 3, 4, 5
"""What a step does, as rank 0 tells the others. A prefill that is not in chunks has the step to itself."""


@dataclass
class Sequence:
    """One request at the engine; lengths in tokens."""

    id: str
    prompt: int
    answer: int
    left: int
    """Prompt tokens not yet computed (after a preemption also those of the answer so far)."""
    made: int = 0

    @property
    def held(self) -> int:
        """Tokens whose keys and values are in the pool."""
        return self.prompt + self.made - self.left


@dataclass(frozen=True)
class Step:
    """One step: its kind, tokens to prefill, sequences to decode, and who gets a token at its end."""

    kind: int
    prefill_tokens: int = 0
    decode_count: int = 0
    emits: tuple[Sequence, ...] = ()

    @property
    def tokens(self) -> int:
        """Rows of the activations."""
        return self.prefill_tokens + self.decode_count


@dataclass
class Scheduler:
    """Continuous batching; `static`: a batch ends before the next begins; `chunk`: chunked prefill.

    `pool_tokens` is the size of the KV pool: when it is full the newest sequence is preempted
    and computed anew.
    """

    slots: int = 8
    chunk: int = 0
    static: bool = False
    pool_tokens: int = 0
    preemptions: int = 0
    waiting: deque[Sequence] = field(default_factory=deque)
    running: list[Sequence] = field(default_factory=list)

    def submit(self, request: str, prompt: int, answer: int, prefilled: bool = False) -> None:
        """Queue a request; `prefilled`: its keys and values came from elsewhere."""
        self.waiting.append(Sequence(request, prompt, max(1, answer), left=0 if prefilled else prompt))

    def cancel(self, request: str) -> None:
        """Forget a request."""
        self.waiting = deque(s for s in self.waiting if s.id != request)
        self.running = [s for s in self.running if s.id != request]

    def next(self) -> Step:
        """Admit what fits and return the next step; its kind is IDLE where there is no work."""
        self._make_room()
        if not (self.static and self.running):
            while self.waiting and len(self.running) < self.slots and self._fits(self.waiting[0]):
                self.running.append(self.waiting.popleft())
        if not self.running:
            return Step(IDLE)
        unready = [s for s in self.running if s.left]
        ready = [s for s in self.running if not s.left]
        if unready and self.chunk:
            return self._mixed(unready, ready)
        if unready:
            first = unready[0]
            tokens, first.left = first.left, 0
            return Step(PREFILL, tokens, 0, (first,))
        return Step(DECODE, 0, len(ready), tuple(ready))

    def _mixed(self, unready: list[Sequence], ready: list[Sequence]) -> Step:
        room, done = self.chunk, []
        for s in unready:
            taken = min(room, s.left)
            room -= taken
            s.left -= taken
            if taken and not s.left:
                done.append(s)
        return Step(MIXED, self.chunk - room, len(ready), (*ready, *done))

    def _fits(self, s: Sequence) -> bool:
        held = sum(r.prompt + r.made for r in self.running)
        return not self.pool_tokens or not self.running or held + s.prompt + s.made + 1 <= self.pool_tokens

    def _make_room(self) -> None:
        while (
            self.pool_tokens
            and len(self.running) > 1
            and sum(s.prompt + s.made + 1 for s in self.running) > self.pool_tokens
        ):
            newest = self.running.pop()
            newest.left = newest.prompt + newest.made
            self.waiting.appendleft(newest)
            self.preemptions += 1

    def finish(self, step: Step) -> list[tuple[str, int, bool]]:
        """Account for a finished step; return (request, number of its token, whether it is the last)."""
        out = []
        for s in step.emits:
            s.made += 1
            out.append((s.id, s.made, s.made >= s.answer))
        self.running = [s for s in self.running if s.made < s.answer]
        return out

    def usage_ratio(self) -> float:
        """Return how full the KV pool is, 0 where it has no limit."""
        held = sum(s.held for s in self.running)
        return held / self.pool_tokens if self.pool_tokens else 0.0
