"""PyTorch flight recorder dumps: one file a rank, a pickle of plain data or JSON; versions 2.4 to 2.10.

Source: PyTorch `torch/csrc/distributed/c10d/FlightRecorder.hpp` and the flight recorder tutorial.
With timing off, the default, every entry is "scheduled" and nothing has started; what tells is which ranks
of one process group lag in `last enqueued` and `last completed`. `pg_id`, the key of the status, is local
to a rank: groups are told by name, description and ranks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from skewscope.core.tables import Table
from skewscope.sources import plain_pickle
from skewscope.sources.events import Events, whole
from skewscope.sources.format import Format, Origin
from skewscope.sources.formats.nccl_json import said
from skewscope.sources.formats.nccl_log import rank_name, version_code
from skewscope.sources.json_stream import JsonStream
from skewscope.sources.plain_pickle import MOST_BYTES, NotPlainError

MOST_TENSORS, MOST_DIMENSIONS = 8, 8
MOST_ENTRIES = 1 << 16
Object = dict[str, Any]
Group = tuple[str, str]
"""Name and description of a process group."""


def rank_of(name: str) -> int:
    """Return the rank that a dump's name ends with ("_dump_12", "nccl_trace_rank_3.json"), -1 without one."""
    found = re.search(r"(\d{1,7})$", name.partition(".")[0])
    return int(found[1]) if found else -1


def _object(value: Any) -> Object:
    return value if isinstance(value, dict) else {}


def _group(value: Any) -> Group:
    """Return the group of an entry: a pair of name and description."""
    pair = value if isinstance(value, tuple | list) else ()
    texts = [str(v) for v in pair[:2] if isinstance(v, str | int)]
    return (texts[0][:64], texts[1][:80]) if len(texts) == 2 else ("", "")


def _sizes(value: Any) -> list[list[int]]:
    """Return the shapes of the first tensors."""
    tensors = value[:MOST_TENSORS] if isinstance(value, list | tuple) else ()
    shapes = [t[:MOST_DIMENSIONS] for t in tensors if isinstance(t, list | tuple)]
    return [[whole(n) for n in shape if isinstance(n, int)] for shape in shapes]


def _types(value: Any) -> list[str]:
    tensors = value[:MOST_TENSORS] if isinstance(value, list | tuple) else ()
    return [t[:20] for t in tensors if isinstance(t, str)]


def group_entity(group: Group) -> str:
    """Return the entity of a process group: its name is the same on all its ranks."""
    return f"group:{group[0]} {group[1]}".rstrip() if group[0] else ""


def _numbered(value: dict[Any, Any]) -> list[str]:
    """Return the names that are numbers, in their order."""
    return sorted((n for n in value if isinstance(n, str) and n.isdecimal()), key=lambda n: int(n[:18]))


def groups_by_id(dump: Object, entries: list[Object]) -> tuple[dict[str, Group], set[str]]:
    """Return the group of each `pg_id` of the status, and the ids of which that is inferred.

    Entries say it of the groups that they belong to. Ids and names both count the groups in the order in
    which they were made, so where there are as many of one as of the other they are paired in that order,
    unless an entry contradicts.
    """
    known = {str(whole(e.get("pg_id"), -1)): _group(e.get("process_group")) for e in entries}
    config, status = _object(dump.get("pg_config")), _object(dump.get("pg_status"))
    ids, made = _numbered(status), _numbered(config)
    if len(ids) != len(made) or len(made) != len(config):
        return known, set()
    paired = {
        i: (n[:64], str(said(_object(config[n]), "desc") or "")[:80]) for i, n in zip(ids, made, strict=True)
    }
    if any(known[i][0] != paired[i][0] for i in known.keys() & paired.keys()):
        return known, set()
    return {**paired, **known}, set(paired) - set(known)


class _Dump:
    def __init__(self, dump: Object, origin: Origin) -> None:
        self.events, self.origin = Events(origin), origin
        self._dump = dump
        listed = dump.get("entries")
        self._entries = [e for e in listed if isinstance(e, dict)] if isinstance(listed, list | tuple) else []
        self._rank = rank_of(origin.name)
        self._where = rank_name(self._rank) if self._rank >= 0 else origin.about()

    def read(self) -> Iterator[dict[str, Table]]:
        newest = max((whole(e.get("time_created_ns")) for e in self._entries), default=0)
        at_ns = newest or self.origin.at_ns
        if not newest:
            self.origin.notes.append("no entries: what the groups reached got the time of the file")
        version = str(said(self._dump, "nccl_version") or "")
        if version:
            self.events.add(at_ns, 1, self._where, "nccl.version", version_code(version), version=version)
        self._groups(at_ns)
        for number, entry in enumerate(self._entries, 1):
            self._entry(number, entry)
            if self.events.full:
                yield self.events.take()
        if self._entries and not any(e.get("time_discovered_started_ns") for e in self._entries):
            self.origin.notes.append("recorded without timing: that a collective is scheduled says nothing")
        yield self.events.take()

    def _groups(self, at_ns: int) -> None:
        names, inferred = groups_by_id(self._dump, self._entries)
        config = _object(self._dump.get("pg_config"))
        for key, status in list(_object(self._dump.get("pg_status")).items())[: 1 << 14]:
            if not isinstance(status, dict) or not isinstance(key, str):
                continue
            group = names.get(key, ("", ""))
            ranks = said(_object(config.get(group[0])), "ranks")
            self.events.add(
                at_ns, 1, self._where, "torch.group", whole(status.get("last_enqueued_collective"), -1),
                peer=group_entity(group), completed=whole(status.get("last_completed_collective"), -1),
                started=whole(status.get("last_started_collective"), -1), pg_id=key, ranks=ranks,
                inferred=True if key in inferred else None,
            )  # fmt: skip

    def _entry(self, number: int, entry: Object) -> None:
        p2p = entry.get("is_p2p") is True
        group = _group(entry.get("process_group"))
        created = whole(entry.get("time_created_ns")) or self.origin.at_ns
        started = whole(entry.get("time_discovered_started_ns"))
        self.events.add(
            created, number, self._where, "torch.collective",
            whole(entry.get("p2p_seq_id" if p2p else "collective_seq_id", entry.get("seq_id")), -1),
            end_ns=whole(entry.get("time_discovered_completed_ns")), peer=group_entity(group),
            operation=said(entry, "profiling_name"), state=said(entry, "state"), p2p=True if p2p else None,
            op_id=said(entry, "op_id"), record_id=said(entry, "record_id"), started_ns=started or None,
            sizes=_sizes(entry.get("input_sizes")), output_sizes=_sizes(entry.get("output_sizes")),
            types=_types(entry.get("input_dtypes")), timeout_ms=said(entry, "timeout_ms"),
            retired=said(entry, "retired"), thread=said(entry, "thread_name"),
        )  # fmt: skip


def _from_json(stream: BinaryIO, origin: Origin) -> Object:
    """Read a dump in JSON entry by entry; the stack of each is let go at once."""
    document = JsonStream(stream)
    dump: Object = {"entries": []}
    for name, value in document.members({"entries"}):
        if name != "entries":
            dump[name] = value
        elif isinstance(value, dict) and len(dump["entries"]) < MOST_ENTRIES:
            dump["entries"].append({k: v for k, v in value.items() if k != "frames"})
    origin.notes += document.notes()
    return dump


def read(stream: BinaryIO, origin: Origin) -> Iterator[dict[str, Table]]:
    """Yield the state of each process group and each recorded collective."""
    begin = stream.peek(64)[:64].lstrip() if hasattr(stream, "peek") else b""
    try:
        plain = begin[:1] == b"{"
        dump = _from_json(stream, origin) if plain else plain_pickle.load(stream.read(MOST_BYTES + 1))
    except NotPlainError as error:
        origin.notes.append(f"not read: {error}")
        return
    if not isinstance(dump, dict):
        origin.notes.append("not read: it holds no dictionary")
        return
    yield from _Dump(dump, origin).read()


_MEMBERS = (b"pg_config", b"pg_status", b"entries", b"nccl_version", b"record_id")


def sure(head: bytes, name: str) -> int:
    """Tell a dump by the members that it has near its beginning."""
    pickled = head[:1] == b"\x80" and len(head) > 1 and head[1] <= 5
    if not pickled and head.lstrip()[:1] != b"{":
        return 0
    found = sum(member in head for member in _MEMBERS)
    told = pickled or b'"pg_status"' in head or b'"record_id"' in head
    if found >= 2 and told and b'"schemaVersion"' not in head:
        return 3
    return 1 if pickled and (found or "dump" in name or "nccl_trace" in name) else 0


FORMAT = Format("flight recorder", "PyTorch flight recorder dump of one rank", sure, read)
