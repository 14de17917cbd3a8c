"""One rank of a tensor- and pipeline-parallel engine: PyTorch and Gloo over TCP, random weights.

A step is one broadcast from rank 0 (what to do), two ring all-reduces a layer within each stage over
(tokens x hidden) float32, and a send to the next stage. Accelerator time is a wait before each all-reduce.
Rank 0 takes requests from the front end over a Unix socket (JSON lines) and decides every step.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from skewscope.lab.bed.batching import IDLE, RESET, STOP, Scheduler, Step
from skewscope.lab.bed.control import ready
from skewscope.lab.bed.noise import Noise

WEIGHT_SCALE = 0.05


class Rank:
    """What every rank does in a step. Changeable settings arrive in a file, announced by SIGUSR1."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.fixed = settings
        self.now: dict[str, Any] = {"slow": 1.0, "extra_ms": 0.0, "burn_ratio": 0.0, "collect_every_s": 0.0}
        self.noise = Noise(settings["noise"], settings["seed"], settings["rank"])
        self.width = settings["tp"]
        self.stage, self.place = divmod(settings["rank"], self.width)
        self.stages = len(settings["layers"])
        self.team = self._teams()[self.stage]
        torch.manual_seed(1)
        hidden, inner = settings["hidden"], max(8, settings["hidden"] * 2 // self.width)
        self.weights = [
            (torch.randn(hidden, inner) * WEIGHT_SCALE, torch.randn(inner, hidden) * WEIGHT_SCALE)
            for _ in range(2 * settings["layers"][self.stage])
        ]
        self.log = (Path(settings["folder"]) / f"{settings['name']}.jsonl").open("w", encoding="utf-8")
        self.step = 0
        self.garbage: list[object] = []
        self.collected_s = time.monotonic()
        signal.signal(signal.SIGUSR1, self._on_settings)

    def _teams(self) -> list[Any]:
        """Create the group of every stage (all ranks must take part in each creation)."""
        return [dist.new_group(list(range(s * self.width, (s + 1) * self.width))) for s in range(self.stages)]

    def _on_settings(self, *_: object) -> None:
        file = Path(self.fixed["folder"]) / f"{self.fixed['name']}.set"
        self.now.update(json.loads(file.read_text(encoding="utf-8")))
        if self.now["collect_every_s"] and not self.garbage:
            # Cyclic objects that stay alive: a full collection has to visit them all.
            self.garbage = [[] for _ in range(int(self.now["collect_objects"]))]

    def compute(self, prefill_tokens: int) -> None:
        """Spend the time that an accelerator would take for half a layer."""
        ms = self.fixed["compute_ms"] * self.noise.factor() + prefill_tokens * self.fixed["prompt_token_ms"]
        ms = ms * self.now["slow"] + self.now["extra_ms"]
        busy_until = time.perf_counter() + ms * self.now["burn_ratio"] / 1e3
        if self.now["burn_ratio"] < 1.0:
            time.sleep(ms * (1.0 - self.now["burn_ratio"]) / 1e3)
        while time.perf_counter() < busy_until and self.now["burn_ratio"]:
            pass

    def take_part(self, head: torch.Tensor) -> int:
        """Run one step; return what it was."""
        begun = time.time_ns()
        dist.broadcast(head, 0)
        kind, prefill_tokens, decode_count = (int(v) for v in head[:3])
        if kind == STOP:
            return kind
        if kind == RESET:
            self.noise.restart()
            return kind
        self.noise.next_step()
        x, marks = torch.ones(prefill_tokens + decode_count, self.fixed["hidden"]), []
        if self.stage:
            dist.recv(x, (self.stage - 1) * self.width + self.place)
        for up, down in self.weights:
            self.compute(prefill_tokens)
            y = torch.relu(x @ up) @ down
            entered = time.time_ns()
            if self.width > 1:
                dist.all_reduce(y, group=self.team)
            marks.append((entered - begun) // 1000)
            if self.fixed["expert_rows"]:
                y = self._through_experts(y, int(head[3]) / 1000, int(head[4]))
            x = torch.nn.functional.normalize(x + y, dim=1)
        self._hand_on(x)
        row = {
            "step": self.step, "kind": kind, "prefill": prefill_tokens, "decode": decode_count,
            "start_ns": begun, "end_ns": time.time_ns(), "enter_us": marks,
        }  # fmt: skip
        print(json.dumps(row), file=self.log, flush=True)
        self.step += 1
        self.collect_garbage()
        return kind

    def _through_experts(self, x: torch.Tensor, hot_ratio: float, hot: int) -> torch.Tensor:
        """Send rows to the experts of all ranks, let them work, and get the rows back: two all-to-alls.

        `hot_ratio` of the rows go to the rank `hot`, the others are spread evenly.
        """
        rows = x.shape[0] * self.fixed["expert_rows"]
        share = [rows * (1.0 - hot_ratio) / self.width] * self.width
        share[hot] += rows * hot_ratio
        edges = [round(sum(share[:k])) for k in range(self.width + 1)]
        sent = [b - a for a, b in pairwise(edges)]
        got = [sent[self.place]] * self.width
        out = torch.empty(sum(got), x.shape[1])
        mine = x.repeat(self.fixed["expert_rows"], 1)
        dist.all_to_all_single(out, mine, got, sent, group=self.team)
        if rows:
            time.sleep(self.fixed["expert_ms"] * self.noise.factor() * sum(got) / rows / 1e3)
        dist.all_to_all_single(mine, out, sent, got, group=self.team)
        return mine[: x.shape[0]]

    def _hand_on(self, x: torch.Tensor) -> None:
        """Send the activations to the next stage; the last one sends the tokens to rank 0."""
        if self.stages == 1:
            return
        if self.stage + 1 < self.stages:
            dist.send(x, (self.stage + 1) * self.width + self.place)
        elif self.place == 0:
            dist.send(x[:, 0].contiguous(), 0)
        if self.fixed["rank"] == 0:
            dist.recv(torch.empty(x.shape[0]), (self.stages - 1) * self.width)

    def collect_garbage(self) -> None:
        """Make a full collection where one is due."""
        every = self.now["collect_every_s"]
        if every and time.monotonic() - self.collected_s >= every:
            gc.collect()
            self.collected_s = time.monotonic()


class Leader:
    """Rank 0: takes requests from the front end, decides each step, returns the tokens."""

    def __init__(self, rank: Rank) -> None:
        self.rank, fixed = rank, rank.fixed
        self.plan = Scheduler(fixed["slots"], fixed["chunk"], fixed["static"], fixed["pool_tokens"])
        self.head = torch.zeros(fixed["work_list"], dtype=torch.int32)
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(Path(fixed["folder"]) / f"{fixed['name']}.sock"))
        server.listen(1)
        ready(fixed)
        self.front, _ = server.accept()
        self.rest = b""

    def run(self) -> None:
        """Serve until the front end goes."""
        while self._take_requests():
            self.plan.static = bool(self.rank.now.get("static", self.plan.static))
            self.plan.chunk = int(self.rank.now.get("chunk", self.plan.chunk))
            self.plan.pool_tokens = int(self.rank.now.get("pool_tokens", self.plan.pool_tokens))
            step = self.plan.next()
            if step.kind != IDLE:
                self._tell(step)
                self._answer(self.plan.finish(step))
        self._tell(Step(STOP))

    def _tell(self, step: Step) -> None:
        self.head[0], self.head[1], self.head[2] = step.kind, step.prefill_tokens, step.decode_count
        self.head[3] = round(1000 * self.rank.now.get("hot_ratio", 0.0))
        self.head[4] = int(self.rank.now.get("hot_place", 0))
        self.rank.take_part(self.head)

    def _take_requests(self) -> bool:
        """Read what the front end sent; wait for it where there is no work. False at its end."""
        busy = self.plan.running or self.plan.waiting
        if not select.select([self.front], [], [], 0.0 if busy else 0.2)[0]:
            return True
        data = self.front.recv(1 << 20)
        *lines, self.rest = (self.rest + data).split(b"\n")
        for message in map(json.loads, lines):
            if "cancel" in message:
                self.plan.cancel(message["cancel"])
            elif "reset" in message:
                self._tell(Step(RESET))
            else:
                self.plan.submit(
                    message["id"], message["prompt"], message["answer"], message.get("prefilled", False)
                )
        return bool(data)

    def _answer(self, tokens: list[tuple[str, int, bool]]) -> None:
        plan = self.plan
        state = {
            "tokens": tokens,
            "running": len(plan.running),
            "waiting": len(plan.waiting),
            "usage": round(plan.usage_ratio(), 4),
            "preemptions": plan.preemptions,
        }
        self.front.sendall(json.dumps(state).encode() + b"\n")


def join(settings: dict[str, Any]) -> Rank:
    """Join the group of all ranks; return this one."""
    torch.set_num_threads(1)
    world = settings["tp"] * len(settings["layers"])
    store = f"tcp://{settings['leader']}:{settings['store_port']}"
    dist.init_process_group("gloo", init_method=store, rank=settings["rank"], world_size=world)
    rank = Rank(settings)
    warm = torch.ones(4, settings["hidden"])
    for _ in range(3):
        dist.all_reduce(warm)
    gc.collect()
    gc.disable()  # pauses are an injection here, not an accident
    return rank


def main() -> None:
    """Work until the leader says stop."""
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    rank = join(settings)
    if settings["rank"] == 0:
        Leader(rank).run()
    else:
        ready(settings)
        head = torch.zeros(settings["work_list"], dtype=torch.int32)
        while rank.take_part(head) != STOP:
            pass
    os._exit(0)  # Gloo's threads would wait for peers that are gone


if __name__ == "__main__":
    main()
