"""Events: their canonical names, and rows of the `events` table written one by one."""

from __future__ import annotations

import json
from typing import Any

from skewscope.core.schemas import EVENTS
from skewscope.core.tables import Table
from skewscope.sources.format import Origin, RowList

BATCH_EVENTS = 1 << 13
ENTITY_CHARACTERS = 160
FIELD_CHARACTERS = 400
"""Longest text that a field keeps: hostile logs would fill the directory otherwise."""

BUDGET_CHARACTERS = 1 << 26
"""Field texts that one input may add to the directory; what comes later has no fields."""

KINDS: dict[str, str] = {
    "gpu.xid": "GPU error reported by the driver; code: the Xid",
    "nvswitch.sxid": "NVSwitch error reported by the driver; code: the SXid",
    "gpu.identity": "which PCI function is which GPU; peer: the PCI function; code: the index by NVML",
    "peermem.error": "the module that lets a NIC reach GPU memory reports an error",
    "process.segfault": "a process was killed by a memory fault; code: its pid",
    "process.oom_kill": "the kernel killed a process for memory; code: its pid",
    "kernel.hung_task": "a task did not run for long; code: its pid",
    "kernel.soft_lockup": "a processor was busy in the kernel for long; code: the processor",
    "kernel.throttle": "a processor was slowed down for heat; code: the processor",
    "memory.error": "memory reported errors; code: how many",
    "pcie.aer": "advanced error report; code: 0 corrected, 1 not fatal, 2 fatal; peer: who reported it",
    "pcie.sticky": "error bits set some time since they were cleared, no alarm; code: how many",
    "nic.error": "a NIC or its driver reports an error; code: the syndrome where one is told",
    "link.down": "a link went down",
    "link.up": "a link came up; code: its speed in Mbit/s where told",
    "fabric.error": "an NVSwitch error in the log of the fabric manager; code: the SXid",
    "nccl.version": "an NCCL version is used; code: 22705 for 2.27.5",
    "nccl.init": "a communicator was made; code: the rank; peer: the communicator",
    "nccl.destroy": "a communicator was given up; code: the rank; peer: the communicator",
    "nccl.network": "the network that NCCL chose",
    "nccl.channel": "a channel to a peer; code: the channel; peer: the other rank",
    "nccl.ring": "a ring through this rank; code: the ring; peer: the next rank",
    "nccl.tree": "a tree through this rank; code: the tree; peer: the parent",
    "nccl.collective": "a collective was called or chosen; code: its operation count",
    "nccl.warning": "NCCL warns",
    "nccl.error": "an NCCL function returned an error; code: the result",
    "nccl.completion_error": "an RDMA request failed; code: the verbs status; peer: the other end",
    "nccl.timing": "how long making a communicator took; code: the rank",
    "nccl.ras.job": "RAS: size of the job; code: its processes",
    "nccl.ras.group": "RAS: status and errors of a group of communicators; code: the group",
    "nccl.ras.rank": "RAS: a rank and its operation counts; code: the rank",
    "nccl.ras.mismatch": "RAS: the ranks of a communicator differ; code: how many are in the minority",
    "nccl.ras.incomplete": "RAS: data of ranks is missing; code: how many",
    "nccl.ras.missing": "RAS: this process or rank does not answer; code: the rank, -1 where not told",
    "nccl.ras.dead": "RAS: this process is considered dead",
    "nccl.ras.timeout": "RAS: communication timeouts; code: how many",
    "nccl.ras.peer": "RAS: the monitor tells of a peer",
    "nccl.perf": "one collective as measured by the Inspector; code: its sequence number",
    "nccl.step": "one step of the profiler plug-in; code: its sequence number or step",
    "nccl.kernel": "a GPU kernel of NCCL in a PyTorch trace; code: bytes of its input, 0 where not told",
    "torch.collective": "a collective in a flight recorder dump; code: its sequence number",
    "torch.group": "last collectives of a process group in a dump; code: last enqueued",
    "engine.run": "a recorded run of an engine; code: its requests",
    "engine.step": "a step of an engine; code: its number",
    "engine.all_reduce": "an all-reduce as its rank entered and left it; code: the step",
    "rdma.fault": "an injected RDMA fault of a labelled study; code: the verbs status",
}
"""Canonical event names, and what `code` and `peer` mean for each."""


def entity_of(host: str, part: str) -> str:
    """Return the name of a part of a host ("n1/gpu3"), or of the part alone where no host is known."""
    return f"{host}/{part}" if host and part else host or part


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return value[:FIELD_CHARACTERS]
    if isinstance(value, list | tuple):
        text = json.dumps(value, default=str)
        return value if len(text) <= FIELD_CHARACTERS else text[:FIELD_CHARACTERS]
    return value


def whole(value: Any, otherwise: int = 0) -> int:
    """Return a number of an untrusted document as an int64, `otherwise` where it is none."""
    if isinstance(value, float) and not abs(value) < 2.0**63:
        return otherwise
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return otherwise
    return number if -(2**63) <= number < 2**63 else otherwise


class Events:
    """Rows of the `events` table of one input."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._rows = RowList(EVENTS)
        self._left = BUDGET_CHARACTERS

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def full(self) -> bool:
        """Whether it is time to take what there is."""
        return len(self._rows) >= BATCH_EVENTS

    def add(
        self,
        ts_ns: int,
        line: int,
        entity: str,
        kind: str,
        code: int = 0,
        *,
        end_ns: int = 0,
        peer: str = "",
        **fields: Any,
    ) -> None:
        """Add an event; fields that are None or empty are left out. KeyError: a kind that is not in KINDS."""
        assert kind in KINDS, kind
        directory = self._origin.directory
        said = {k: _short(v) for k, v in sorted(fields.items()) if v is not None and v != ""}
        self._rows.add(
            ts_ns=whole(ts_ns),
            source=self._origin.source,
            line=min(line, 2**32 - 1),
            entity=directory.entities.id(entity[:ENTITY_CHARACTERS]),
            kind=directory.names.id(kind),
            code=whole(code),
            end_ns=whole(end_ns),
            peer=directory.entities.id(peer[:ENTITY_CHARACTERS]),
            fields=self._text(said) if said else 0,
        )

    def _text(self, said: dict[str, Any]) -> int:
        text = json.dumps(said, default=str)
        if self._left < len(text):
            if self._left:
                self._origin.notes.append("too much text: later events are without their fields")
            self._left = 0
            return 0
        self._left -= len(text)
        return self._origin.directory.texts.id(text)

    def take(self) -> dict[str, Table]:
        """Return the rows so far and start anew."""
        return self._rows.take()
