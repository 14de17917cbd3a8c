"""Watch interfaces live: the same features, conditions and diagnosis as `diagnose`, slice by slice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from skewscope.app.pipeline import _units
from skewscope.conditions.loader import load_all as load_conditions
from skewscope.core.directory import Directory
from skewscope.core.report import Incident, Input, Report
from skewscope.diagnose.incidents import diagnose
from skewscope.engine.history import History
from skewscope.engine.run import Engine, Plan
from skewscope.engine.slices import slices
from skewscope.features.loader import load_all as load_features
from skewscope.sources.inbox import Inbox
from skewscope.sources.live import LiveError, LiveTap
from skewscope.sources.receive import Receiver
from skewscope.sources.scrape import Scraper
from skewscope.wire.packets import PacketParser

JUDGED_EVERY = 10
"""Slices between two diagnoses (1 s)."""


@dataclass(frozen=True)
class Change:
    """An incident that began, changed its name or culprit, or ended."""

    what: str
    incident: Incident


class Watch:
    """Interfaces under watch, and endpoints beside them.

    Raises LiveError, ScrapeError or ReceiveError, naming what cannot be opened. `scrape`: endpoints whose
    metrics are fetched; `receive`: address and port at which they are pushed, if any; `spool`: where
    bodies are kept as files that `diagnose` reads.
    """

    def __init__(
        self,
        interfaces: Sequence[str],
        scrape: Sequence[str] = (),
        receive: tuple[str, int] | None = None,
        spool: Path | None = None,
    ) -> None:
        self.directory = Directory()
        self.inbox = Inbox(self.directory, spool)
        self._scrapers = [Scraper(url, self.inbox) for url in scrape]
        self._receivers = [Receiver(self.inbox, *receive)] if receive is not None else []
        parser = PacketParser(self.directory)
        self.taps: list[LiveTap] = []
        try:
            for name in interfaces:
                self.taps.append(LiveTap(name, self.directory, parser))
        except LiveError:
            self.close()
            raise
        self._features, self._conditions = load_features(), load_conditions()
        self._history = History()
        plan = Plan(self._features, [(c.entry, c.fresh()) for c in self._conditions.values()])
        self._engine = Engine(plan, [self._history])
        self._shown: dict[tuple[str, str], bool] = {}

    def changes(self, stop: Callable[[], bool]) -> Iterator[Change]:
        """Yield what changes, until `stop()`."""
        taps = [tap.batches(stop) for tap in self.taps]
        live: list[Scraper | Receiver] = [*self._scrapers, *self._receivers]
        for one in live:
            one.start()
        beside = [self.inbox.batches(stop)] if live else []
        for number, slice_ in enumerate(slices(taps, self.directory, beside=beside)):
            self._engine.feed(slice_)
            if number % JUDGED_EVERY == 0 or slice_.last:
                yield from self._compare(self.incidents())

    def _compare(self, incidents: Sequence[Incident]) -> Iterator[Change]:
        for incident in incidents:
            who = incident.culprits[0].id if incident.culprits else ""
            key, over = (incident.condition, who), incident.end_ns is not None
            if key not in self._shown:
                yield Change("began", incident)
            if over and not self._shown.get(key, False):
                yield Change("over", incident)
            self._shown[key] = over

    def incidents(self) -> list[Incident]:
        """Diagnose what was found so far."""
        context = self._history.context(_units(self._features))
        return diagnose(self._engine.findings, {i: c.entry for i, c in self._conditions.items()}, context)

    def report(self) -> Report:
        """Return the report of everything so far."""
        return Report(
            inputs=[
                Input(
                    path=tap.interface,
                    kind="live",
                    packets=tap.stats.packets,
                    bytes=tap.stats.bytes,
                    first_ns=tap.stats.first_ns,
                    last_ns=tap.stats.last_ns,
                    notes=[f"{tap.stats.dropped} packets lost by the ring"] if tap.stats.dropped else [],
                )
                for tap in self.taps
            ]
            + self._fetched(),
            span_ns=(self._history.first_ns, self._history.last_ns),
            incidents=self.incidents(),
            no_data=self._engine.no_data(),
            hosts=self._history.hosts(),
            edges=self._history.edges(),
            groups=self._history.groups(),
        )

    def _fetched(self) -> list[Input]:
        """Describe what was scraped and received."""
        if not self._scrapers and not self._receivers:
            return []
        notes = [f"{note} ({count} times)" for note, count in self.inbox.notes.items()]
        about = ", ".join(s.endpoint for s in self._scrapers) or "received"
        return [Input(about, "live metrics", rows={"readings": self.inbox.rows}, notes=notes)]

    def close(self) -> None:
        """Close all interfaces, and stop scraping and receiving."""
        live: list[Scraper | Receiver] = [*self._scrapers, *self._receivers]
        for one in live:
            one.close()
        for tap in self.taps:
            tap.close()
