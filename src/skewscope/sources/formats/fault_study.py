"""Counters before and after injected RDMA faults, as published studies write them (CSV).

Three layouts: hw_counters with a comment line per trial, ethtool with the trial in a column, and the steps
of counters over time. The files have no wall clock: trials are put TRIAL_NS apart from the file's time on,
within a trial the times are the study's.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from skewscope.core.tables import Table
from skewscope.sources.counters import Counters, leading_number
from skewscope.sources.events import Events, whole
from skewscope.sources.format import Format, Origin, lines

TRIAL_NS = 60 * 10**9
MOST_TRIALS = 1 << 20

_TRIAL = re.compile(
    r"# ([A-Z_]{3,60}),trial=(\d{1,7}),status=(\d{1,5}),vendor_err=(0x[0-9a-fA-F]{1,8}),latency_us=(\d{1,12})"
)
_COLUMNS = {
    "side,counter,before,after,delta": "sysfs_infiniband",
    "scenario,trial,side,counter,before,after,delta": "ethtool",
    "trial,counter_name,offset_us,old_val,new_val,delta": "steps",
}


class _Study:
    def __init__(self, origin: Origin) -> None:
        self.origin, self.events = origin, Events(origin)
        self.counters = Counters(origin, "sysfs_infiniband")
        self._columns: list[str] = []
        self._layout = ""
        self._trial, self._lasted_ns = 0, 0
        self.bad = 0

    def line(self, number: int, text: str) -> None:
        head = text.lstrip("# ").strip()
        if head in _COLUMNS:
            self._columns, self._layout = head.split(","), _COLUMNS[head]
            return
        found = _TRIAL.match(text)
        if found:
            scenario, trial, status, vendor, latency = found.groups()
            self._trial, self._lasted_ns = min(int(trial), MOST_TRIALS), int(latency) * 1000
            start = self._start()
            self.events.add(
                start, number, "client", "rdma.fault", int(status), end_ns=start + self._lasted_ns,
                scenario=scenario, vendor_err=int(vendor, 16), trial=self._trial,
            )  # fmt: skip
        elif text.strip() and not text.startswith("#"):
            self._row(number, text)

    def _start(self) -> int:
        return self.origin.at_ns + self._trial * TRIAL_NS

    def _row(self, number: int, text: str) -> None:
        try:
            values = next(csv.reader([text]))
        except csv.Error:
            values = []
        if not self._columns or len(values) != len(self._columns):
            self.bad += 1
            return
        row: dict[str, Any] = dict(zip(self._columns, values, strict=True))
        if row.get("trial", "0").isdigit():
            self._trial = min(int(row["trial"][:8]), MOST_TRIALS) if "trial" in row else self._trial
        name = row.get("counter") or row.get("counter_name") or ""
        product = "ethtool" if self._layout == "ethtool" else "sysfs_infiniband"
        where = str(row.get("side", "client"))[:64]
        at = self._start()
        if self._layout == "steps":
            offset = leading_number(row["offset_us"])
            at += int(offset * 1000) if 0 <= offset < 1e12 else 0
            before, after = row["old_val"], row["new_val"]
            if name == "CQE_RECEIVED":  # status and vendor's code stand in the columns of the values
                self.events.add(
                    at, number, where, "rdma.fault", whole(before), vendor_err=str(after), trial=self._trial
                )
                return
            readings = [(at - 1000, before), (at, after)]
        else:
            readings = [(at, row["before"]), (at + max(self._lasted_ns, 1), row["after"])]
        for ns, value in readings:
            self.counters.add(ns, number, where, name, leading_number(value), product)

    def finish(self) -> None:
        if self.bad:
            self.origin.notes.append(f"{self.bad} lines do not fit the columns")
        self.origin.notes.append("a labelled study without a wall clock: trials stand a minute apart")


def read(stream: BinaryIO, origin: Origin) -> Iterator[dict[str, Table]]:
    """Yield two readings of each counter and trial, and each fault as an event."""
    study = _Study(origin)
    for number, text in lines(stream, origin):
        study.line(number, text)
        if study.counters.full:
            yield {**study.counters.take(), **study.events.take()}
    study.finish()
    yield {**study.counters.take(), **study.events.take()}


def sure(head: bytes, name: str) -> int:
    """Tell the layouts by their line of column names."""
    begin = head[:400].decode("utf-8", "replace").splitlines()[:4]
    return 3 * any(line.lstrip("# ").strip() in _COLUMNS for line in begin)


FORMAT = Format("RDMA fault study", "counters before and after injected faults", sure, read)
