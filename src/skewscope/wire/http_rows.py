"""Rows of the `http` table."""

from __future__ import annotations

from skewscope.wire.jit import inner
from skewscope.wire.layout import HTTP_ROWS, Out, Row

REQUEST_HEAD, RESPONSE_HEAD, CHUNK_ROW, END, RESYNCHRONISED = 1, 2, 3, 4, 5


@inner
def emit(f: Row, span: Row, kind: int, nbytes: int, out: Out) -> int:
    """Append a row for the element that the framer row `f` holds; returns its index."""
    n: int = out.cells[HTTP_ROWS]
    out.cells[HTTP_ROWS] = n + 1
    row = out.http[n]
    row["ts_ns"] = span["ts"]
    row["tap"] = span["tap"]
    row["frame"] = span["frame"]
    row["flow"] = span["flow"]
    row["way"] = span["way"]
    row["src"] = span["src"]
    row["dst"] = span["dst"]
    row["stream"] = f["stream"]
    row["kind"] = kind
    row["nbytes"] = min(nbytes, 0xFFFFFFFF)
    told = kind == RESPONSE_HEAD or (kind == END and f["stream"] > 0)
    row["status"] = f["status"] if told else 0
    row["streaming"] = f["streaming"] if kind == RESPONSE_HEAD else 0
    row["method"] = f["method"] if kind == REQUEST_HEAD else 0
    row["target"] = 0
    row["events"] = min(f["events"], 0xFFFF) if kind == CHUNK_ROW and f["cut"] == 0 else 0
    return n
