"""NCCL's JSON: RAS status (2.28.7 and later), RAS monitor, and the records of the Inspector.

Sources: NCCL user guide, "RAS"; `plugins/profiler/inspector/README.md` (record format v4.0).
One document may hold one object, or many one after the other, as a monitor and the Inspector write them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from skewscope.core.tables import Table
from skewscope.sources.events import Events, entity_of, whole
from skewscope.sources.format import Format, Origin
from skewscope.sources.formats.nccl_log import version_code
from skewscope.sources.json_stream import JsonStream
from skewscope.sources.stamps import NONE, stamp

Object = dict[str, Any]


def part(value: Any, name: str) -> Object:
    """Return a member that is an object, an empty one otherwise."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def each(value: Any, name: str) -> list[Object]:
    """Return the objects of a member that is an array."""
    found = value.get(name) if isinstance(value, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def said(value: Object, name: str) -> str | int | float | None:
    """Return a plain value, None for anything else: fields never hold structures of others."""
    found = value.get(name)
    return found if isinstance(found, str | int | float) else None


def _plain(value: Object) -> Object:
    """Return the plain members of an object, at most 16."""
    return {k[:60]: said(value, k) for k in list(value)[:16]}


def _time(value: Object, at_ns: int) -> int:
    found = stamp(str(value.get("timestamp", "")), at_ns)
    return at_ns if found.sort == NONE else found.ns


def _gpu(rank: Object) -> str:
    device = rank.get("nvml_dev", rank.get("cuda_dev"))
    where = f"gpu{whole(device)}" if isinstance(device, int) else ""
    return entity_of(str(rank.get("host", "")), where)


def _status(value: Object, number: int, events: Events, at_ns: int) -> None:
    """Add the events of a RAS status."""
    ns = _time(value, at_ns)
    version = str(value.get("nccl_version", ""))
    if version:
        events.add(ns, number, "", "nccl.version", version_code(version), version=version)
    for comm in each(value, "communicators"):
        name = str(comm.get("hash", ""))
        for rank in each(comm, "ranks"):
            state = _plain(part(rank, "status"))
            counts = _plain(part(rank, "collective_counts"))
            events.add(
                ns, number, _gpu(rank), "nccl.ras.rank", whole(rank.get("rank")), peer=name,
                pid=said(rank, "pid"), counts=counts, status={k: v for k, v in state.items() if v} or None,
            )  # fmt: skip
        missing = each(comm, "missing_ranks")
        for rank in missing:
            dead = part(rank, "status").get("considered_dead") is True
            kind = "nccl.ras.dead" if dead else "nccl.ras.missing"
            events.add(
                ns, number, _gpu(rank), kind, whole(rank.get("rank"), -1), peer=name, pid=said(rank, "pid")
            )
        count = whole(comm.get("missing_ranks_count"), len(missing))
        if count:
            events.add(ns, number, "", "nccl.ras.incomplete", count, peer=name, size=said(comm, "size"))
    timeouts = whole(part(value, "ras").get("timeouts_count"))
    if timeouts:
        events.add(ns, number, "", "nccl.ras.timeout", timeouts)


def _monitor(value: Object, number: int, events: Events, at_ns: int) -> None:
    peer = part(value, "peer")
    devices = peer.get("nvml_devs", peer.get("cuda_devs"))
    for device in (devices if isinstance(devices, list) else [])[:64] or [None]:
        where = f"gpu{device}" if isinstance(device, int) else ""
        events.add(
            _time(value, at_ns), number, entity_of(str(peer.get("host", "")), where), "nccl.ras.peer",
            event=said(value, "event"), group=said(value, "group"), pid=said(peer, "pid"),
            details=said(value, "details"),
        )  # fmt: skip


def _perf(value: Object, number: int, events: Events, host: str, at_ns: int) -> None:
    """Add a record of the Inspector: it is dumped after the collective, so its times are not too early."""
    header, meta = part(value, "header"), part(value, "metadata")
    kind = "p2p" if "p2p_perf" in value else "coll"
    perf = part(value, f"{kind}_perf")
    ns = whole(meta.get("dump_timestamp_us")) * 1000 or at_ns
    lasted_ns = whole(perf.get(f"{kind}_exec_time_us")) * 1000
    rank = whole(header.get("rank"), -1)
    names = ("msg_size_bytes", "exec_time_us", "algobw_gbs", "busbw_gbs", "timing_source")
    more: Object = {n: said(perf, f"{kind}_{n}") for n in names}
    events.add(
        ns - lasted_ns, number, entity_of(host or str(meta.get("hostname", "")), f"rank:{rank}"), "nccl.perf",
        whole(perf.get(f"{kind}_sn")), end_ns=ns, peer=str(header.get("id", "")),
        operation=said(perf, kind), to=said(perf, f"{kind}_peer"),
        ranks=said(header, "n_ranks"), nodes=said(header, "nnodes"),
        pid=said(meta, "pid"), **more,
    )  # fmt: skip


def read(stream: BinaryIO, origin: Origin) -> Iterator[dict[str, Table]]:
    """Yield the events of every object in the document."""
    events, document, other = Events(origin), JsonStream(stream), 0
    for number, value in enumerate(document.documents(), 1):
        if not isinstance(value, dict):
            other += 1
        elif "coll_perf" in value or "p2p_perf" in value:
            _perf(value, number, events, origin.host, origin.at_ns)
        elif "communicators" in value:
            _status(value, number, events, origin.at_ns)
        elif "event" in value and "peer" in value:
            _monitor(value, number, events, origin.at_ns)
        else:
            other += 1
        if events.full:
            yield events.take()
    if other:
        origin.notes.append(f"{other} JSON values are of another kind")
    origin.notes += document.notes()
    yield events.take()


_PERF = re.compile(rb'"(?:coll|p2p)_perf"\s*:')
_STATUS = re.compile(rb'"communicators(?:_count)?"\s*:')
_EVENT = re.compile(rb'"event"\s*:\s*"PEER_|"group"\s*:\s*"(?:LIFECYCLE|TRACE)"')


def sure(head: bytes, name: str) -> int:
    """Tell the three by the members that only they have."""
    if head.lstrip()[:1] != b"{":
        return 0
    if _PERF.search(head) or _EVENT.search(head):
        return 3
    return 3 if _STATUS.search(head) and b"nccl_version" in head else 0


FORMAT = Format("NCCL JSON", "RAS status, RAS monitor or Inspector records", sure, read)
