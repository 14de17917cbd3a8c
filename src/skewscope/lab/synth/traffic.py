"""North-south traffic: closed-loop clients, the gateway, and the front end of a replica."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from skewscope.core.scenario import Workload
from skewscope.lab.synth import http
from skewscope.lab.synth.network import Network
from skewscope.lab.synth.noise import Noise, rng
from skewscope.lab.synth.process import Process, seconds
from skewscope.lab.synth.schedule import Active, Schedule, active
from skewscope.lab.synth.serving import Replica, Request
from skewscope.lab.synth.tcp import BUFFER_BYTES, Endpoint, connect

RETRY_S = 0.2
"""A client waits this long after a refused or failed request."""


class Asked:
    """A request as it travels from client to engine."""

    def __init__(self, data: bytes, prompt_tokens: int, answer_tokens: int) -> None:
        self.data, self.prompt_tokens, self.answer_tokens = data, prompt_tokens, answer_tokens


class Server(Protocol):
    """Whoever can be dialled."""

    process: Process
    port: int

    def accept(self, endpoint: Endpoint) -> None:
        """Serve a new connection."""


class Dialler:
    """Opens connections with ports and initial sequence numbers of its own."""

    def __init__(self, network: Network, seed: int) -> None:
        self._network = network
        self._noise = Noise(seed, "dial")
        self.opened: dict[str, list[Endpoint]] = {}
        """Endpoints per process name, for when it ends."""

    def dial(
        self,
        client: Process,
        server: Process,
        port: int,
        *,
        buffers: tuple[int, int] = (BUFFER_BYTES, BUFFER_BYTES),
        established: bool = False,
    ) -> tuple[Endpoint, Endpoint]:
        """Return both ends of a new connection."""
        isns = self._noise.below(1 << 32), self._noise.below(1 << 32)
        ports = client.host.port(), port
        pair = connect(self._network, client, server, ports, isns, buffers=buffers, established=established)
        for endpoint in pair:
            self.opened.setdefault(endpoint.process.name, []).append(endpoint)
        return pair

    def call(self, client: Process, server: Server, buffer: int = BUFFER_BYTES) -> Endpoint:
        """Open a connection to a server; returns the caller's end."""
        mine, theirs = self.dial(client, server.process, server.port, buffers=(buffer, BUFFER_BYTES))
        server.accept(theirs)
        return mine


class FrontEnd:
    """The HTTP server of a replica, in the process of its rank 0."""

    def __init__(self, replica: Replica, port: int, seed: int) -> None:
        self.process, self.port, self._replica = replica.front, port, replica
        self._number = 0
        self._noise = Noise(seed, f"tokens {port} {replica.front.host.name}")

    def accept(self, endpoint: Endpoint) -> None:
        """Serve one request on a new connection."""
        endpoint.on_message = lambda asked: self._serve(endpoint, asked)

    def _serve(self, endpoint: Endpoint, asked: object) -> None:
        assert isinstance(asked, Asked)
        self._number += 1
        number, process = self._number, self.process
        process.write(endpoint, http.RESPONSE_HEAD, http.RESPONSE_HEAD)

        def emit(_: int, last: bool) -> None:
            created = process.loop.now // 1_000_000_000
            data = http.token(number, created, self._noise.below(512), last)
            process.write(endpoint, data, data)
            if last:
                process.write(endpoint, http.DONE, http.DONE)
                process.close(endpoint)

        self._replica.submit(Request(asked.prompt_tokens, asked.answer_tokens, emit))


class Gateway:
    """Spreads requests over replicas: one connection each per request, smooth weighted round robin."""

    def __init__(
        self, process: Process, dialler: Dialler, backends: Sequence[FrontEnd], port: int, schedule: Schedule
    ) -> None:
        self.process, self.port = process, port
        self._dialler, self._backends = dialler, backends
        self._uneven = schedule.of("uneven_routing")
        self._blind = schedule.of("token_blind_routing")
        self._blocks = schedule.of("gateway_buffer")
        self._ceiling = schedule.of("gateway_ceiling")
        self._upstream = 0
        self._queue: deque[tuple[Endpoint, Asked]] = deque()
        for entry in self._ceiling:
            process.loop.at(entry.end_ns + 1, self._admit)
        self._credit = [0.0] * len(backends)
        self._weights = [1.0] * len(backends)

    def accept(self, endpoint: Endpoint) -> None:
        """Serve one request on a new connection."""
        endpoint.on_message = lambda asked: self._forward(endpoint, asked)

    def _choose(self, asked: Asked) -> FrontEnd:
        """Pick a backend; a router that is blind to lengths meets a mix in which every other is long."""
        blind = active(self._blind, self.process.loop.now)
        fault = active(self._uneven, self.process.loop.now)
        weights = [1.0] * len(self._backends)
        if fault is not None:
            weights[0] = fault.strength
        if weights != self._weights:  # new weights do not pay the debts of the old ones
            self._weights, self._credit = weights, [0.0] * len(weights)
        self._credit = [c + w for c, w in zip(self._credit, weights, strict=True)]
        best = max(range(len(weights)), key=self._credit.__getitem__)
        self._credit[best] -= sum(weights)
        if blind is not None and best == 0:
            asked.answer_tokens = round(asked.answer_tokens * blind.strength)
        return self._backends[best]

    def _forward(self, client: Endpoint, asked: object) -> None:
        assert isinstance(asked, Asked)
        self._queue.append((client, asked))
        self._admit()

    def _admit(self) -> None:
        """Pass on what waits, as far as a ceiling allows."""
        while self._queue:
            fault = active(self._ceiling, self.process.loop.now)
            if fault is not None and self._upstream >= fault.strength:
                return
            self._upstream += 1
            self._ask(*self._queue.popleft())

    def _ask(self, client: Endpoint, asked: Asked) -> None:
        process = self.process
        backend = self._dialler.call(process, self._choose(asked))
        answered: list[bool] = []
        held = bytearray()

        def relay(data: object) -> None:
            assert isinstance(data, bytes)
            answered.append(True)
            held.extend(data)
            fault = active(self._blocks, process.loop.now)
            if fault is None or len(held) >= fault.strength:
                flush()

        def flush() -> None:
            if held:
                process.write(client, bytes(held), bytes(held))
                held.clear()

        def ended() -> None:
            flush()
            if not answered:
                process.write(client, http.BAD_GATEWAY, http.BAD_GATEWAY)
            process.close(client)
            process.close(backend)
            self._upstream -= 1
            self._admit()

        backend.on_open = lambda: process.write(backend, asked.data, asked)
        backend.on_message, backend.on_close = relay, ended
        backend.open()


class Client:
    """One closed-loop client: ask, read the stream, think, ask again."""

    def __init__(
        self, process: Process, dialler: Dialler, server: Server, workload: Workload, seed: int, name: str
    ) -> None:
        self._process, self._dialler, self._server, self._workload = process, dialler, server, workload
        self._rng = rng(seed, f"client {name}")
        self.buffer = BUFFER_BYTES
        self.until_ns = 1 << 62
        self.prompt_tokens, self.answer_tokens = workload.prompt_tokens, workload.answer_tokens
        self.stalls: tuple[Active, ...] = ()
        self._first = True

    def start(self, at_ns: int) -> None:
        """Ask for the first time at `at_ns`."""
        self._process.loop.at(at_ns, self._ask)

    def _length(self, tokens: int) -> int:
        spread = self._workload.length_spread
        return max(1, round(tokens * math.exp(spread * float(self._rng.standard_normal()))))

    def _ask(self) -> None:
        loop = self._process.loop
        if loop.now >= self.until_ns:
            return
        answer = self._length(self.answer_tokens)
        if self._first:  # clients in step with each other would be an artefact
            answer = max(1, int(answer * self._rng.uniform(0.2, 1.0)))
            self._first = False
        prompt = self._rng.integers(0, 512, self._length(self.prompt_tokens))
        asked = Asked(http.request(prompt, answer), len(prompt), answer)
        endpoint = self._dialler.call(self._process, self._server, self.buffer)
        failed = [True]

        def got(data: object) -> None:
            failed[0] = data == http.BAD_GATEWAY
            self._maybe_stall(endpoint)

        def ended() -> None:
            self._process.close(endpoint)
            think = RETRY_S if failed[0] else self._workload.think_s * float(self._rng.uniform(0.5, 1.5))
            loop.at(loop.now + seconds(think) + 150_000, self._ask)

        endpoint.on_open = lambda: self._process.write(endpoint, asked.data, asked)
        endpoint.on_message, endpoint.on_close = got, ended
        endpoint.open()

    def _maybe_stall(self, endpoint: Endpoint) -> None:
        fault = active(self.stalls, self._process.loop.now)
        if fault is not None and not endpoint.receiver.fin:
            endpoint.receiver.block(self._process.loop.now + seconds(fault.strength))
