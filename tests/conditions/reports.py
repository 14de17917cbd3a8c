"""Scenarios through the whole product, two at a time."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from skewscope.core.report import Report
from skewscope.core.scenario import Scenario
from skewscope.lab.synth import Truth, write

MAX_WORKERS = 4


def run(scenario: Scenario) -> tuple[Report, Truth]:
    """Synthesise a scenario and diagnose it."""
    from skewscope.app import pipeline

    with tempfile.TemporaryDirectory() as folder:
        truth = write(scenario, Path(folder))
        return pipeline.run(sorted(Path(folder).glob("*.pcap"))), truth


class Reports:
    """Reports by scenario, made ahead of their tests; alike scenarios are run once."""

    def __init__(self, scenarios: Iterable[Scenario]) -> None:
        workers = min(MAX_WORKERS, len(os.sched_getaffinity(0)))
        self._pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
        self._found: dict[Scenario, Future[tuple[Report, Truth]]] = {}
        for scenario in scenarios:
            self._submit(scenario)

    def _submit(self, scenario: Scenario) -> Future[tuple[Report, Truth]]:
        key = replace(scenario, name="", role="")  # what happens, not what it is called
        if key not in self._found:
            self._found[key] = self._pool.submit(run, key)
        return self._found[key]

    def of(self, scenario: Scenario) -> tuple[Report, Truth]:
        """Return (report, truth), waiting for it where needed."""
        return self._submit(scenario).result()

    def close(self) -> None:
        """End the workers, dropping what nobody waits for."""
        self._pool.shutdown(wait=True, cancel_futures=True)
