"""Prometheus remote write, versions 1 and 2: one request body, compressed with snappy as it is sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa

from skewscope.core.tables import Table
from skewscope.sources import protobufs
from skewscope.sources.format import Format, Origin
from skewscope.sources.series import SeriesReader

MAX_BYTES = 1 << 26
"""Largest body, unpacked: senders cut at 2,000 to 10,000 samples, about 1 MB."""

NAME_WITHIN = 512
"""Bytes in which the first series' name label stands; labels are sorted, and it is about the first."""

PLAIN = (b"\n", b'"\0')
"""How an unpacked request begins: a series (version 1), or the empty first symbol (version 2). A snappy block
that began so would be 10 bytes long, too short for a series, or would begin with an empty literal."""

_NAME = b"__name__"
_LIMIT_MS = 1 << 43


def unsnappy(data: bytes) -> bytes:
    """Return a snappy block unpacked; raises ValueError where it is none, or larger than MAX_BYTES.

    Format: the length as a varint, then literals and copies (google/snappy format_description).
    """
    header = next((n for n, byte in enumerate(data[:5], 1) if byte < 0x80), 0)
    if not header:
        raise ValueError("not snappy")
    size = sum((byte & 0x7F) << 7 * n for n, byte in enumerate(data[:header]))
    if not 0 < size <= MAX_BYTES or size > 64 * len(data):  # a copy of 64 bytes takes at least two
        raise ValueError("not snappy" if size <= MAX_BYTES else f"more than {MAX_BYTES >> 20} MiB")
    if data[header : header + 1] and data[header] & 3:
        raise ValueError("not snappy")  # nothing to copy from at the beginning
    try:
        return bytes(pa.Codec("snappy").decompress(data, decompressed_size=size))
    except (OSError, pa.ArrowException, ValueError) as error:
        raise ValueError("damaged snappy block") from error


def _labels(request: Any) -> Iterator[tuple[dict[str, str], Any]]:
    for series in request.timeseries:
        yield {label.name: label.value for label in series.labels}, series.samples
    symbols = list(request.symbols)
    for series in request.timeseries2:
        refs = list(series.labels_refs)
        if len(refs) % 2 == 0 and all(ref < len(symbols) for ref in refs):
            texts = [symbols[ref] for ref in refs]
            yield dict(zip(texts[::2], texts[1::2], strict=True)), series.samples


def read(stream: BinaryIO, origin: Origin) -> Iterator[dict[str, Table]]:
    """Yield the samples of one body in the order of their time; times are those of the sender."""
    data = stream.read(MAX_BYTES + 1)
    try:
        is_plain = data.startswith(PLAIN) and _NAME in data[:NAME_WITHIN]
        plain = data if is_plain else unsnappy(data)
        request = protobufs.parse("WriteRequest", plain)
    except ImportError:
        origin.notes.append(protobufs.NEEDED)
        return
    except ValueError as error:
        origin.notes.append(f"cannot be read: {error}")
        return
    reader = SeriesReader(origin)
    wild = 0
    for number, (labels, samples) in enumerate(_labels(request), 1):
        target = reader.target(labels.get("__name__", ""), labels)
        for sample in samples if target is not None else ():
            if target is not None and 0 < sample.timestamp < _LIMIT_MS:
                reader.add(target, sample.timestamp * 1_000_000, sample.value, number)
            else:
                wild += 1
    if wild:
        origin.notes.append(f"{wild} samples have no possible time")
    yield reader.take()


def sure(head: bytes, name: str) -> int:
    """Told by the label of the name near the beginning, in binary: snappy leaves the first text as it is."""
    if _NAME not in head[:NAME_WITHIN] or not {0x0A, 0x22} & set(head[:16]):  # fields 1 and 4
        return 0
    return 2 * any(byte < 32 and byte not in b"\r\n\t" for byte in head[: head.index(_NAME)])


FORMAT = Format("prometheus remote write", "samples as Prometheus pushes them", sure, read)
