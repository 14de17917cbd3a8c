"""What is written beside a recorded vLLM run: samples each second (CSV), and what was run (JSON)."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from skewscope.core.schemas import METRICS
from skewscope.core.tables import Table
from skewscope.sources.canonical import canonical
from skewscope.sources.counters import leading_number
from skewscope.sources.events import Events, whole
from skewscope.sources.format import Format, Origin, RowList, lines
from skewscope.sources.formats.nccl_json import part, said
from skewscope.sources.stamps import NONE, stamp

MOST_ROWS = 1 << 20
MOST_BYTES = 1 << 24
COLUMNS = {
    "prompt_throughput": "vllm:avg_prompt_throughput_toks_per_s",
    "gen_throughput": "vllm:avg_generation_throughput_toks_per_s",
    "running": "vllm:num_requests_running",
    "waiting": "vllm:num_requests_waiting",
    "kv_cache_pct": "vllm:gpu_cache_usage_perc",
}
"""Columns, and the metric of vLLM that each is."""
PERCENT = frozenset({"kv_cache_pct"})
"""Columns in percent, where the metric is a share."""


def _rows(stream: BinaryIO, origin: Origin) -> tuple[list[tuple[int, list[float]]], list[str]]:
    """Return (line, values) of each row, and the names of the columns."""
    columns: list[str] = []
    rows: list[tuple[int, list[float]]] = []
    bad = 0
    for number, text in lines(stream, origin):
        try:
            cells = next(csv.reader([text]), [])
        except csv.Error:
            cells = []
        if not columns:
            columns = cells
            continue
        values = [leading_number(c) for c in cells]
        if len(values) == len(columns) and abs(values[0]) < 1e9 and len(rows) < MOST_ROWS:
            rows.append((number, values))
        else:
            bad += bool(text.strip())
    if bad:
        origin.notes.append(f"{bad} lines do not fit the columns")
    return rows, columns


def read_series(stream: BinaryIO, origin: Origin) -> Iterator[dict[str, Table]]:
    """Yield the samples; they count from the run's start, so the last is put at the time of the file."""
    rows, columns = _rows(stream, origin)
    start_ns = origin.at_ns - round(rows[-1][1][0] * 1e9) if rows else 0
    table = RowList(METRICS)
    entity = origin.directory.entities.id(origin.about())
    named = {c: canonical("vllm", raw) for c, raw in COLUMNS.items() if c in columns}
    for number, values in rows:
        for column, value in zip(columns, values, strict=True):
            name = named.get(column)
            if name is None:
                continue
            table.add(
                ts_ns=start_ns + round(values[0] * 1e9), source=origin.source, line=number, entity=entity,
                name=origin.directory.names.id(name.name), labels=0, bound=float("nan"),
                value=name.value(value / 100 if column in PERCENT else value), kind=int(name.kind),
            )  # fmt: skip
        if len(table) > 1 << 13:
            yield table.take()
    if rows:
        origin.notes.append(
            "times count from the start of the run: the last row was put at the time of the file"
        )
    yield table.take()


def read_run(stream: BinaryIO, origin: Origin) -> Iterator[dict[str, Table]]:
    """Yield one event that describes the run."""
    try:
        value: Any = json.loads(stream.read(MOST_BYTES))
    except (ValueError, RecursionError):
        origin.notes.append("not JSON")
        return
    if not isinstance(value, dict):
        return
    events = Events(origin)
    begin, end = (stamp(str(value.get(k, "")), origin.at_ns) for k in ("started_at", "finished_at"))
    settings = part(value, "engine_kwargs")
    plain = {str(k)[:40]: said(settings, k) for k in list(settings)[:32]}
    events.add(
        origin.at_ns if begin.sort == NONE else begin.ns, 1, origin.about(), "engine.run",
        whole(value.get("num_requests")), end_ns=0 if end.sort == NONE else end.ns,
        engine="vllm", version=said(value, "vllm_version"), model=said(value, "model"), settings=plain,
        gpu=said(part(value, "hardware"), "device_name"),
        kv_tokens=said(part(value, "kv_cache"), "num_kv_tokens"),
    )  # fmt: skip
    yield events.take()


def read(stream: BinaryIO, origin: Origin) -> Iterator[dict[str, Table]]:
    """Yield what either file says."""
    begin = stream.peek(64)[:64].lstrip() if hasattr(stream, "peek") else b""
    yield from read_run(stream, origin) if begin[:1] == b"{" else read_series(stream, origin)


_SERIES = re.compile(rb"^t,(?=[^\n]*\brunning\b)(?=[^\n]*\bwaiting\b)[\w,]+\r?\n")


def sure(head: bytes, name: str) -> int:
    """Tell the series by its column names, the description by its members."""
    if _SERIES.match(head):
        return 3
    return 3 * (head.lstrip()[:1] == b"{" and b'"vllm_version"' in head and b'"engine_kwargs"' in head)


FORMAT = Format("engine run", "samples and description of a recorded vLLM run", sure, read)
