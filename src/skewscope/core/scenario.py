"""Declarative scenarios: what a condition's lab cases are made of. `lab` runs them."""

from __future__ import annotations

from dataclasses import dataclass, field

FAULTS = (
    "straggler",  # a rank's own time is `strength` x the usual in `share` of rounds
    "pause",  # a rank stops for `strength` s every `period_s` (0 = once)
    "crash",  # a rank's process ends: FINs, then silence
    "host_busy",  # everything on one host is late by up to `strength` x of a round, every round
    "loss",  # `strength` = probability that a frame is dropped; where: up, down or both
    "delay",  # `strength` s more each way on a host's link
    "jitter",  # 0..2 x `strength` s more each way, order kept
    "reorder",  # `share` of frames overtake a delay of `strength` s
    "rate_limit",  # a host's downlink serves `strength` bit/s
    "cross_traffic",  # foreign packets of `strength` bit/s fill a downlink (where="deep": TCP, deep queue)
    "link_down",  # a host's link passes nothing
    "mtu",  # frames above `strength` bytes vanish at a host's port
    "slow_reader",  # `share` of clients close their window for `strength` s at a time
    "long_prompts",  # one more client with prompts `strength` x the usual, unchunked
    "overload",  # `strength` x the clients
    "uneven_routing",  # the gateway sends `strength` : 1 to the first replica
    "egress_jitter",  # the serving layer holds chunks back by 0..`strength` steps
    "static_batching",  # no request joins before the batch has ended
    "slow_front_end",  # `strength` s more from a request to its first round, and from a round to its tokens
    "reader_stops",  # a rank stops reading a bulk flow: zero windows east-west
    "hot_expert",  # `strength` x the usual share of rows goes to one rank of an all-to-all
    "token_blind_routing",  # equal arrivals, very unequal lengths: backlog drifts
    "starved_heartbeat",  # a host's heartbeats wait for `strength` s every `period_s`
    "fetch",  # `target` hosts (-1 = all) fetch at once from a foreign host, each at `strength` bit/s
    "upload",  # a host sends `strength` bit/s to a foreign host
    "gateway_buffer",  # the gateway passes responses on in blocks of `strength` bytes
    "gateway_ceiling",  # the gateway has no more than `strength` requests at engines, the rest wait in it
)


ROUTER, CLIENT, BYSTANDER = -2, -3, -4
"""Targets of link faults beside the hosts of ranks: the gateway, the clients, a foreign host."""


@dataclass(frozen=True)
class Workload:
    """A synthetic serving cluster; times in s, sizes in bytes, spreads as standard deviation ratios."""

    ranks: int = 4
    replicas: int = 1
    per_host: int = 1
    """Processes on each host, filled rank by rank; what they send each other is in no capture."""
    layers: int = 1
    own_s: float = 0.02
    own_spread: float = 0.02
    message_bytes: int = 4096
    """Of an all-reduce in a decode step with the usual number of sequences; it grows with the tokens."""
    clients: int = 4
    slots: int = 8
    prompt_tokens: int = 16
    answer_tokens: int = 30
    length_spread: float = 0.0
    think_s: float = 0.0
    gateway: bool = True
    framing: str = "gloo"
    """gloo | opaque (same rhythm, unreadable bytes) | nccl (over sockets, connected before the capture)."""
    heartbeat_s: float = 0.0
    """Gap between the heartbeats of each host to a foreign one; 0 = none."""
    pattern: str = "ring"
    """ring (tensor parallel) | chain (a stage each) | all_to_all (experts, two exchanges a layer)"""
    work: tuple[float, ...] = ()
    """Own time of each rank over `own_s` where the split is uneven; empty = all alike."""
    micro_batches: int = 2
    """Batches under way in a chain at a time, each with requests of its own."""
    bulk_bps: float = 0.0
    """Rate of a bulk flow from rank 1 to rank 0 (a KV cache transfer, say); 0 = none."""


@dataclass(frozen=True)
class Fault:
    """One injected fault.

    `target` counts ranks, or hosts where the fault sits on a link or host; -1 where it has none. Stragglers
    and pauses with -1 sit on all ranks.
    """

    kind: str
    start_s: float
    end_s: float
    target: int = -1
    strength: float = 1.0
    share: float = 1.0
    period_s: float = 0.0
    where: str = "both"


@dataclass(frozen=True)
class Scenario:
    """A synthetic case. `role` says what it is to its condition."""

    name: str
    role: str
    """healthy | faulty | near_miss | recovering"""
    duration_s: float = 4.0
    seed: int = 1
    workload: Workload = field(default_factory=Workload)
    faults: tuple[Fault, ...] = ()
    taps: tuple[str, ...] = ()
    """Names of the hosts whose taps are kept (n0, n1, ..., lg, rt); empty = every node and the client."""
