"""What stands beside captures in a run: counters, metrics, logs and flow records, as taps and as inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from skewscope.core.directory import Directory
from skewscope.core.report import Input, Reading
from skewscope.core.schemas import Kind
from skewscope.core.tables import Table
from skewscope.sources.canonical import names
from skewscope.sources.documents import Document, DocumentError, register

MAX_READINGS = 4096
"""Latest values kept of one input."""

MAX_NAMES = 512
"""Names told of one input."""

_Key = tuple[int, int, int, str]


class Latest:
    """The last value of each series of one input."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._values: dict[_Key, tuple[int, float]] = {}

    def feed(self, tables: Mapping[str, Table]) -> None:
        """Remember the last values of a batch; buckets and quantiles are not told one by one."""
        for schema in ("counters", "metrics"):
            table = tables.get(schema)
            if table is None or not len(table):
                continue
            labels = table["labels"] if schema == "metrics" else np.zeros(len(table), np.uint32)
            columns = (table[c].tolist() for c in ("entity", "name", "kind", "ts_ns", "value"))
            for label, entity, name, kind, ts, value in zip(labels.tolist(), *columns, strict=True):
                if kind in (Kind.BUCKET, Kind.QUANTILE):
                    continue
                part = {Kind.SUM: "sum", Kind.COUNT: "count"}.get(kind, "")
                key = (entity, name, label, part)
                if key in self._values or len(self._values) < MAX_READINGS:
                    self._values[key] = (ts, value)

    def readings(self) -> list[Reading]:
        """Return the readings in the order of entity, name and labels; a histogram is its mean."""
        d = self._directory
        out = []
        for (entity, name, label, part), (ts, value) in self._values.items():
            if part == "sum":
                continue
            shown, count = value, None
            if part == "count":
                total = self._values.get((entity, name, label, "sum"), (0, float("nan")))[1]
                shown, count = (total / value if value else float("nan")), int(value)
            known = names().get(d.names[name])
            out.append(
                Reading(
                    entity=d.entities[entity],
                    name=d.names[name],
                    labels=d.labels[label],
                    value=shown if np.isfinite(shown) else None,
                    unit=known.unit if known is not None else "1",
                    ts_ns=ts,
                    count=count,
                )
            )
        return sorted(out, key=lambda r: (r.entity, r.name, r.labels))


@dataclass
class _Chain:
    """Files that are read one after the other: one file, or the scrapes of one folder in order of time."""

    documents: list[Document]
    latest: Latest | None
    entities: set[int] = field(default_factory=set)
    current: Document | None = None
    done_bytes: int = 0

    def batches(self) -> Iterator[dict[str, Table]]:
        self.documents.sort(key=lambda d: (d.origin.at_ns, d.path))
        # One source for all: a counter goes on from one scrape to the next. Which file it was, its time says.
        source = register(self.documents[0].origin.directory, str(self.path))
        for document in self.documents:
            self.current = document
            document.origin.source = source
            for batch in document.batches():
                for table in batch.values():
                    self.entities.update(np.unique(table["entity"]).tolist())
                if self.latest is not None:
                    self.latest.feed(batch)
                yield batch
            self.current, self.done_bytes = None, self.done_bytes + document.size

    def position(self) -> int:
        """Return how many bytes on disk were consumed."""
        return self.done_bytes + (self.current.position() if self.current is not None else 0)

    @property
    def path(self) -> Path:
        """The file, or the folder of several."""
        return self.documents[0].path if len(self.documents) == 1 else self.documents[0].path.parent

    def span(self) -> tuple[int, int]:
        """Return the times of the first and the last reading, (0, 0) where there is none."""
        spans = [(d.stats.first_ns, d.stats.last_ns) for d in self.documents if d.stats.last_ns]
        return (min(s[0] for s in spans), max(s[1] for s in spans)) if spans else (0, 0)

    def input(self) -> Input:
        stats = [d.stats for d in self.documents]
        rows, known, unmapped = (Counter[str](), Counter[str](), Counter[str]())
        for one in stats:
            rows.update(one.rows)
            known.update(one.names)
            unmapped.update(one.unmapped)
        first, last = self.span()
        notes = Counter(note for s in stats for note in s.notes)
        return Input(
            path=str(self.path),
            kind=self.documents[0].kind,
            bytes=sum(d.size for d in self.documents),
            first_ns=first,
            last_ns=last,
            host=self.documents[0].origin.host,
            notes=[f"{note} ({n} files)" if n > 1 else note for note, n in notes.items()],
            files=len(self.documents),
            rows=dict(sorted(rows.items())),
            names=dict(known.most_common(MAX_NAMES)),
            entities=len(self.entities),
            readings=self.latest.readings() if self.latest is not None else [],
            unmapped=dict(unmapped.most_common(MAX_NAMES)),
        )


class Beside:
    """The documents of a run. `explain`: keep the last values too, for people to look at."""

    def __init__(self, directory: Directory, explain: bool = False) -> None:
        self._directory = directory
        self._explain = explain
        self._chains: dict[object, _Chain] = {}
        self._by_first: dict[str, _Chain] = {}
        self.documents: list[Document] = []

    def open(self, path: Path) -> str:
        """Add a file; returns "" or the reason why it cannot be read, one line."""
        try:
            document = Document(path, self._directory)
        except DocumentError as error:
            return str(error).removeprefix(f"{path}: ")
        self.documents.append(document)
        # Files called by a time alone are one series; each has one moment, and there may be thousands.
        key: object = (path.parent, document.kind) if document.stamped else path
        chain = self._chains.get(key)
        if chain is None:
            latest = Latest(self._directory) if self._explain else None
            chain = self._chains[key] = self._by_first[str(path)] = _Chain([], latest)
        chain.documents.append(document)
        return ""

    def taps(self) -> list[Iterator[dict[str, Table]]]:
        """Return the sample iterators, one for each file or series of scrapes."""
        return [chain.batches() for chain in self._chains.values()]

    def inputs(self) -> dict[str, Input]:
        """Describe what was read, by the path of the first file of each as they were given."""
        return {first: chain.input() for first, chain in self._by_first.items()}

    def notes(self, span_ns: tuple[int, int]) -> list[str]:
        """Say what could not be joined to captures of that span, one line each."""
        out = []
        for chain in self._chains.values():
            first, last = chain.span()
            if last and (last < span_ns[0] or first > span_ns[1]):
                out.append(f"{chain.path.name} shares no time with the captures: it is not joined to them.")
        return out

    def last_ns(self) -> int:
        """Return the time of the last reading, 0 where there is none."""
        return max((d.stats.last_ns for d in self.documents), default=0)

    def size(self) -> int:
        """Return the size of all files on disk."""
        return sum(d.size for d in self.documents)

    def position(self) -> int:
        """Return how many bytes of them were consumed."""
        return sum(chain.position() for chain in self._chains.values())

    def close(self) -> None:
        """Close what is open."""
        for document in self.documents:
            document.close()


def drain(taps: Sequence[Iterator[dict[str, Table]]]) -> None:
    """Read what slices left over, so that every input is told of in full."""
    for tap in taps:
        for _ in tap:
            pass
