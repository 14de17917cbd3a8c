"""The log of vLLM and SGLang: what they print of themselves every few seconds.

Sources: vLLM `v1/metrics/loggers.py` and the older `engine/metrics.py`; SGLang `scheduler_metrics_mixin.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from skewscope.core.schemas import METRICS
from skewscope.core.tables import Table
from skewscope.sources.canonical import canonical
from skewscope.sources.counters import leading_number
from skewscope.sources.format import Format, Origin, RowList, lines
from skewscope.sources.stamps import MONTHS, NONE, stamp

_BEGIN = re.compile(r"(?:\x1b\[[\d;]*m|\([^)]{1,60}\) )*(?:(?:INFO|WARNING|ERROR|DEBUG) )?(?=[\[\d])")
_SHORT = re.compile(r"(\d\d)-(\d\d) (\d\d:\d\d:\d\d)(?:[.,](\d{3}))? ")
"""vLLM writes month and day only."""
_VLLM = {
    re.compile(r"Avg prompt throughput: ([\d.]{1,16})"): ("vllm:avg_prompt_throughput_toks_per_s", 1.0),
    re.compile(r"Avg generation throughput: ([\d.]{1,16})"): (
        "vllm:avg_generation_throughput_toks_per_s",
        1.0,
    ),
    re.compile(r"Running: (\d{1,9}) reqs"): ("vllm:num_requests_running", 1.0),
    re.compile(r"(?:Waiting|Pending): (\d{1,9}) reqs"): ("vllm:num_requests_waiting", 1.0),
    re.compile(r"GPU KV cache usage: ([\d.]{1,16})%"): ("vllm:gpu_cache_usage_perc", 0.01),
}
_SGLANG = {
    re.compile(r"#running-req: (\d{1,9})"): ("sglang:num_running_reqs", 1.0),
    re.compile(r"#queue-req: (\d{1,9})"): ("sglang:num_queue_reqs", 1.0),
    re.compile(r"token usage: ([\d.]{1,16})"): ("sglang:token_usage", 1.0),
    re.compile(r"gen throughput \(token/s\): ([\d.]{1,16})"): ("sglang:gen_throughput", 1.0),
}
_ENGINE = re.compile(r"\bEngine (\d{1,4})\b|\b(?:DP|TP)(\d{1,4})\b")


NAN = float("nan")


def _time(text: str, at_ns: int) -> tuple[int, bool]:
    """Return the time of a line and whether it has one."""
    begin = _BEGIN.match(text)
    rest = text[begin.end() :] if begin else text
    short = _SHORT.match(rest)
    if short:
        month, day, clock, milli = short.groups()
        rest = f"{MONTHS[(int(month) - 1) % 12]} {day} {clock}.{milli or '0'} "
    found = stamp(rest, at_ns)
    return (found.ns, True) if found.sort != NONE else (at_ns, False)


_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def read(stream: BinaryIO, origin: Origin) -> Iterator[dict[str, Table]]:
    """Yield the gauges of each status line."""
    table = RowList(METRICS)
    directory, last_ns, untimed = origin.directory, origin.at_ns, 0
    entity = directory.entities.id(origin.about())
    for number, text in lines(stream, origin):
        vllm = "throughput: " in text
        if not vllm and "#running-req: " not in text:
            continue
        ns, timed = _time(text, origin.at_ns)
        untimed += not timed
        last_ns = ns if timed else last_ns
        engine = _ENGINE.search(text)
        labels = f'engine="{engine[1] or engine[2]}"' if engine else ""
        for pattern, (raw, scale) in (_VLLM if vllm else _SGLANG).items():
            found = pattern.search(text)
            name = canonical("vllm" if vllm else "sglang", raw) if found else None
            if found and name:
                table.add(
                    ts_ns=last_ns, source=origin.source, line=number, entity=entity,
                    name=directory.names.id(name.name), labels=directory.labels.id(labels), bound=NAN,
                    value=name.value(leading_number(found[1]) * scale), kind=int(name.kind),
                )  # fmt: skip
        if len(table) > 1 << 13:
            yield table.take()
    if untimed:
        origin.notes.append(
            f"{untimed} lines have no time: each got that of the line before, else of the file"
        )
    yield table.take()


_SHAPE = re.compile(rb"Avg prompt throughput: [\d.]+ tokens/s|#running-req: \d+")

FORMAT = Format(
    "engine log", "status lines of vLLM and SGLang", lambda head, name: bool(_SHAPE.search(head)) * 2, read
)
