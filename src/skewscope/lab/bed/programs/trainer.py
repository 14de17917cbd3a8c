"""One rank of a data-parallel training loop: compute and all-reduce gradients bucket by bucket, for ever.

An iteration is a forward pass (compute only), a backward pass (compute, then one all-reduce per bucket), and
a small all-reduce of the loss, which also carries whether the noise is to begin anew. A straggler here looks
the same from outside as in serving, but there are no requests.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

from skewscope.lab.bed.batching import DECODE
from skewscope.lab.bed.control import ready
from skewscope.lab.bed.programs.rank import Rank, join


def iterate(rank: Rank, number: int, buckets: list[torch.Tensor]) -> None:
    """Run one iteration and log it like a decode step."""
    begun, marks = time.time_ns(), []
    rank.noise.next_step()
    rank.compute(0)
    for bucket in buckets:
        rank.compute(0)
        marks.append((time.time_ns() - begun) // 1000)
        dist.all_reduce(bucket)
        bucket.zero_()
    loss = torch.tensor([1.0, float(rank.now.get("reset", 0))])
    dist.all_reduce(loss, op=dist.ReduceOp.MAX)
    if loss[1] > rank.now.get("seen", 0):
        rank.now["seen"] = float(loss[1])
        rank.noise.restart()
    row = {
        "step": number, "kind": DECODE, "prefill": 0, "decode": 1,
        "start_ns": begun, "end_ns": time.time_ns(), "enter_us": marks,
    }  # fmt: skip
    print(json.dumps(row), file=rank.log, flush=True)
    rank.collect_garbage()


def main() -> None:
    """Train until killed."""
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    rank = join(settings)
    buckets = [torch.ones(settings["hidden"] * 16) for _ in range(2 * settings["layers"][0])]
    ready(settings)
    number = 0
    while True:
        try:
            iterate(rank, number, buckets)
        except RuntimeError:  # a peer has gone
            os._exit(1)
        number += 1


if __name__ == "__main__":
    main()
