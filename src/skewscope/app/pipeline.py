"""The composition of a run: captures, counters, metrics and logs in, a Report out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from skewscope.app.ahead import Ahead
from skewscope.app.beside import Beside, drain
from skewscope.app.roce_tally import CheckingParser, RoceTally
from skewscope.conditions.loader import load_all as load_conditions
from skewscope.core.directory import Directory
from skewscope.core.features import Feature, Slice
from skewscope.core.report import Incident, Input, Report
from skewscope.core.schemas import SAMPLES
from skewscope.core.tables import Table
from skewscope.diagnose.incidents import diagnose
from skewscope.engine.history import History
from skewscope.engine.lanes import lanes
from skewscope.engine.run import Engine, Plan
from skewscope.engine.slices import slices
from skewscope.features.loader import load_all as load_features
from skewscope.sources.captures import Capture, CaptureError
from skewscope.sources.clocks import Clocks
from skewscope.sources.unpack import STANDARD_INPUT
from skewscope.wire.packets import FAULTS, PacketParser

Progress = Callable[[int, int], None]
FirstSign = Callable[[Incident, float], None]
"""Told once: the first incident as it looks when it is found, and the share of the input read so far."""

CAPTURE_SUFFIXES = frozenset({".pcap", ".pcapng", ".cap"})

READINGS_TICK_NS = 1_000_000_000
"""Width of a slice where there are no packets: scrapes come every 1 to 60 s, and between them is nothing."""

DEPTH = 16
"""Slices that reading may be ahead: more than a batch's work, and a bounded amount of memory."""


class _Session:
    """Open inputs of one run, with progress and a way to stop."""

    def __init__(
        self,
        paths: Sequence[Path],
        progress: Progress | None = None,
        check_icrc: bool = False,
        explain: bool = False,
    ) -> None:
        self.directory = Directory()
        self.bad: dict[str, str] = {}
        self.paths = list(paths)
        self.captures: list[Capture] = []
        self.beside = Beside(self.directory, explain)
        self.roce = RoceTally(check_icrc)
        self.clocks = Clocks()
        self._parser = (CheckingParser if check_icrc else PacketParser)(self.directory)
        for path in self.paths:
            self._open(path)
        self._others: list[Iterator[dict[str, Table]]] = []
        self._total = sum(c.size for c in self.captures) + self.beside.size()
        self._progress = progress
        self._told = -1

    def _open(self, path: Path) -> None:
        try:
            self.captures.append(Capture(path, self.directory, self._parser))
        except CaptureError as error:
            why = str(error).removeprefix(f"{path}: ")
            # Standard input was read from, and what is called a capture is told of as one.
            if path != STANDARD_INPUT and not CAPTURE_SUFFIXES & set(path.suffixes):
                why = self.beside.open(path)
            elif path == STANDARD_INPUT:
                why += "; what is no capture must be given as a file"
            if why:
                self.bad[str(path)] = why

    def slices(self) -> Iterator[Slice]:
        """Return the slices of all inputs."""
        self._others = self.beside.taps()
        if not self.captures:
            return slices(self._others, self.directory, tick_ns=READINGS_TICK_NS, max_idle=1)
        return slices([self._watched(c) for c in self.captures], self.directory, beside=self._others)

    def _watched(self, capture: Capture) -> Iterator[dict[str, Table]]:
        for batch in capture.batches():
            self.roce.add(batch["roce"])
            self.clocks.feed(batch["packets"])
            yield batch

    def finish(self, interrupted: bool) -> None:
        """Unless interrupted, read what is left over beside the captures, so that it is told of in full."""
        if not interrupted:
            drain(self._others)
        self.tell()

    def notes(self) -> list[str]:
        """Say what does not fit together."""
        found = list(self.clocks.notes(self.directory))
        if self.captures:
            found += self.beside.notes((min(c.stats.first_ns for c in self.captures), self.last_ns()))
        return found

    def read(self) -> float:
        """Return the share of the input that was read."""
        return self._done() / max(self._total, 1)

    def _done(self) -> int:
        return sum(c.position() for c in self.captures) + self.beside.position()

    def last_ns(self) -> int:
        """Return the time of the last packet read, without captures that of the last reading; 0 = none."""
        return max((c.stats.last_ns for c in self.captures), default=0) or self.beside.last_ns()

    def tell(self) -> None:
        """Report progress, where there is any."""
        if self._progress is None:
            return
        done = self._done()
        if done != self._told:
            self._told = done
            self._progress(done, self._total)

    def close(self) -> None:
        """Close the files."""
        for capture in self.captures:
            capture.close()
        self.beside.close()

    def inputs(self, history: History | None = None) -> list[Input]:
        """Describe every path that was given, readable or not."""
        by_path = {str(c.path): c for c in self.captures}
        hosts = history.hosts() if history else []
        # A file with several interfaces may have been taken at several hosts: then it has no host.
        taken_at = Counter(h.tap for h in hosts)
        host = {h.tap: h.address for h in hosts if h.name and taken_at[h.tap] == 1}
        taps: dict[str, list[int]] = {}
        for tap in self.directory.taps:
            taps.setdefault(tap.path, []).append(tap.index)
        beside = self.beside.inputs()
        out = []
        for path in map(str, self.paths):
            if path in self.bad:
                out.append(Input(path, "unreadable", notes=[self.bad[path]]))
                continue
            if path not in by_path:
                if path in beside:  # else it is one more scrape of a series
                    out.append(beside[path])
                continue
            c = by_path[path]
            out.append(
                Input(
                    path=path,
                    kind=c.kind,
                    packets=c.stats.packets,
                    bytes=c.stats.bytes,
                    first_ns=c.stats.first_ns,
                    last_ns=c.stats.last_ns,
                    link_type=c.tap.link_type,
                    snap_length=c.tap.snap_length,
                    host=host.get(path, ""),
                    notes=_notes(c),
                    roce=self.roce.counts(taps.get(path, [])),
                    protocols=c.stats.protocols,
                )
            )
        return out


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _notes(capture: Capture) -> list[str]:
    s = capture.stats
    notes = list(s.notes)
    if s.packets == 0:
        notes.append("no packets")
    odd = {FAULTS.get(code, str(code)): n for code, n in s.faults.items() if code}
    notes += [f"{n} frames not followed: {why}" for why, n in odd.items()]
    if s.backwards > 0.01 * max(s.packets, 1):
        notes.append(f"time steps back {_times(s.backwards)}")
    return notes


def _units(features: Sequence[Feature]) -> dict[tuple[str, str], str]:
    return {(f.SPEC.scope, n): c.unit for f in features for n, c in f.SPEC.columns.items()}


def run(
    paths: Sequence[Path],
    *,
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
    first: FirstSign | None = None,
    check_icrc: bool = False,
    explain: bool = False,
) -> Report:
    """Diagnose captures and what stands beside them; `explain`: tell the last values read too.

    `check_icrc`: count right and wrong invariant CRCs of RoCE packets too.

    Unreadable files become inputs of kind "unreadable" with the reason as their note. When `stop()`
    becomes true, reading ends and the report covers what was judged by then. Reading, parsing and
    reassembly run in one thread, which takes the taps in the order that event time asks for, and
    features and detectors in the caller's: the report does not depend on how they take turns.
    """
    session = _Session(paths, progress, check_icrc, explain)
    features = load_features()
    conditions = load_conditions()
    entries = {i: c.entry for i, c in conditions.items()}
    units = _units(features)
    history = History()
    engine = Engine(Plan(features, [(c.entry, c.fresh()) for c in conditions.values()]), [history])
    interrupted = False
    try:
        with Ahead(session.slices(), DEPTH) as ahead:
            for slice_ in ahead:
                fired = engine.feed(slice_)
                session.tell()
                if fired and first is not None:
                    found = diagnose(engine.findings, entries, history.context(units))
                    if found:
                        first(found[0], session.read())
                        first = None
                interrupted = stop is not None and stop()
                if interrupted:
                    break
        session.finish(interrupted)
    finally:
        session.close()
    context = history.context(units)
    incidents = diagnose(engine.findings, entries, context)
    member = {m: g for g, ms in _group_ids(session.directory, context.groups).items() for m in ms}
    return Report(
        inputs=session.inputs(history),
        span_ns=(history.first_ns, min(history.last_ns, session.last_ns() or history.last_ns)),
        incidents=incidents,
        no_data=engine.no_data(),
        hosts=history.hosts(),
        edges=session.roce.edges(history.edges(), session.directory),
        groups=history.groups(),
        lanes=lanes(history, session.directory, incidents, member),
        streams=_streams(features, session.directory),
        series=list(context.series),
        interrupted=interrupted,
        notes=session.notes(),
    )


def _group_ids(directory: Directory, groups: object) -> dict[int, list[str]]:
    index = {a: i for i, a in enumerate(directory.addresses)}
    assert isinstance(groups, dict)
    return {index[g]: list(members) for g, members in groups.items()}


def _streams(features: Sequence[Feature], directory: Directory) -> list:  # type: ignore[type-arg]
    for feature in features:
        rows = getattr(feature, "rows_for_report", None)
        if rows is not None:
            return list(rows(directory, directory.taps))
    return []


def tables(paths: Sequence[Path]) -> dict[str, Table]:
    """Return the whole sample tables of some inputs, rows in event-time order, by schema name."""
    return read_all(paths)[0]


def read_all(paths: Sequence[Path]) -> tuple[dict[str, Table], Directory]:
    """Return the same, and the names behind the ids in them.

    Raises CaptureError where a file cannot be read. Everything is held in memory: meant for inputs
    that fit.
    """
    session = _Session(paths)
    parts: dict[str, list[Table]] = {s.name: [] for s in SAMPLES}
    try:
        if session.bad:
            raise CaptureError("; ".join(f"{path}: {why}" for path, why in session.bad.items()))
        for slice_ in session.slices():
            for name, table in slice_.tables.items():
                parts[name].append(table)
    finally:
        session.close()
    return {s.name: Table.concat(s, parts[s.name]) for s in SAMPLES}, session.directory
