"""The JSON report: the contract `skewscope.report/1`, described by `report.schema.json`.

Plots (lanes, streams, series) are left out: they are bulky and can be had through the Python API.
Unknown numbers are null; NaN and infinity never appear.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import resources
from typing import Any

from skewscope import __version__
from skewscope.core.report import SCHEMA, Evidence, Finding, Impact, Incident, Report

_CONTAINERS = (str, bytes)


def plain(value: Any) -> Any:
    """Return the same value as JSON types: arrays become lists, NaN and infinity null."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if hasattr(value, "tolist"):  # NumPy scalars and arrays, without importing NumPy
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int):
        return value
    if isinstance(value, (Sequence, set, frozenset)) and not isinstance(value, _CONTAINERS):
        return [plain(v) for v in value]
    return str(value)


def _packets(one: Evidence) -> list[dict[str, Any]]:
    """Return the packets that carry a number; where none does, the first and the last of each span."""
    ends = dict.fromkeys((span.file, frame) for span in one.spans for frame in (span.first, span.last))
    return [{"file": file, "frame": frame} for file, frame in one.packets or ends]


def _evidence(one: Evidence) -> dict[str, Any]:
    return {
        "name": one.name,
        "value": one.value,
        "unit": one.unit,
        "baseline": one.baseline,
        "packets": _packets(one),
        "spans": [asdict(span) for span in one.spans],
    }


def _impact(impact: Impact) -> dict[str, Any]:
    return {
        "streams": impact.streams,
        "requests": impact.requests,
        "tokens_per_s_lost": impact.tokens_per_s_lost,
        "ttft_s": impact.ttft_s,
        "chunk_gap_s": impact.chunk_gap_s,
        "step_s": impact.step_s,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    out = asdict(finding)
    out["evidence"] = [_evidence(e) for e in finding.evidence]
    return out


def _incident(incident: Incident) -> dict[str, Any]:
    return {
        "id": incident.id,
        "condition": incident.condition,
        "title": incident.title,
        "summary": incident.summary,
        "score": incident.score,
        "onset_ns": incident.onset_ns,
        "detected_ns": incident.detected_ns,
        "end_ns": incident.end_ns,
        "culprits": [asdict(c) for c in incident.culprits],
        "causes": [{"class": c.cause, "probability": c.probability} for c in incident.causes],
        "also": incident.also,
        "victims": [asdict(v) for v in incident.victims],
        "impact": _impact(incident.impact),
        "evidence": [_evidence(e) for e in incident.evidence],
        "actions": [asdict(a) for a in incident.actions],
        "ruled_out": [asdict(r) for r in incident.ruled_out],
        "cannot_tell": incident.cannot_tell,
        "timeline": [asdict(m) for m in incident.timeline],
        "findings": [_finding(f) for f in incident.findings],
    }


def to_dict(report: Report) -> dict[str, Any]:
    """Return the report as the contract's dictionary, made of JSON types only."""
    out: dict[str, Any] = {
        "schema": SCHEMA,
        "producer": {"name": "skewscope", "version": __version__},
        "inputs": [asdict(i) for i in report.inputs],
        "span_ns": report.span_ns,
        "interrupted": report.interrupted,
        "incidents": [_incident(i) for i in report.incidents],
        "no_data": [asdict(n) for n in report.no_data],
        "hosts": [asdict(h) for h in report.hosts],
        "groups": [asdict(g) for g in report.groups],
        "edges": [asdict(e) for e in report.edges],
        "notes": report.notes,
    }
    result: dict[str, Any] = plain(out)
    return result


def dumps(report: Report) -> str:
    """Return the report as JSON text."""
    return json.dumps(to_dict(report), indent=2, allow_nan=False, ensure_ascii=False)


def schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the report."""
    text = resources.files("skewscope.app.render").joinpath("report.schema.json").read_text("utf-8")
    result: dict[str, Any] = json.loads(text)
    return result
