"""HTTP/2 and gRPC of recorded captures, against tshark."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from skewscope.core.directory import Directory
from skewscope.core.tables import Table
from skewscope.wire.streams import TABLES, StreamFramer
from tests.wire.by_tshark import fields, segments
from tests.wire.segments import packets, run, same

SAMPLES = os.environ.get("SKEWSCOPE_SAMPLES", "")
pytestmark = [
    pytest.mark.samples,
    pytest.mark.skipif(not SAMPLES, reason="SKEWSCOPE_SAMPLES names no folder with recorded captures"),
    pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed"),
]

# Ports that tshark must be told to read as HTTP/2.
PLAIN = {
    "ndpi_h2c_loopback.pcapng": 29518,
    "packet-h2-14_headers.pcapng": 3000,
    "grpc_person_search_protobuf_with_image.pcapng.gz": 50051,
    "grpc_stream_reassembly_sample.pcapng.gz": 50051,
    "grpc_web.pcapng.gz": 57228,
}


def ours(name: str) -> tuple[Table, dict[int, str]]:
    table, buffer = packets(segments(Path(SAMPLES) / "pcap-http" / name))
    framer = StreamFramer(Directory())
    parts = [framer.feed(table, buffer), framer.finish()]
    return Table.concat(TABLES["http"], [p["http"] for p in parts]), framer.protocols()


def theirs(name: str, *wanted: str) -> list[list[str]]:
    """Return the values that tshark finds, in one list per field."""
    path = Path(SAMPLES) / "pcap-http" / name
    ports = {PLAIN.get(name, 0), 44363 if "stream_reassembly" in name else 0} - {0}
    options = [o for p in sorted(ports) for o in ("-d", f"tcp.port=={p},http2")]
    found = fields(path, list(wanted), "http2 || http", "-E", "occurrence=a", *options)
    columns: list[list[str]] = [[] for _ in wanted]
    for row in found:
        for k, cell in enumerate(row):
            columns[k] += [v for v in cell.split(",") if v]
    return columns


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_frames_heads_and_messages_against_tshark(name: str) -> None:
    http, _ = ours(name)
    kinds, nbytes = http["kind"], http["nbytes"]
    wanted = ("http2.headers.method", "http.request.method", "http2.headers.status", "http.response.code")
    *heads, messages = theirs(name, *wanted, "grpc.message_length")
    assert int((kinds == 1).sum()) == len(heads[0] + heads[1])
    assert sorted(http["status"][kinds == 2].tolist()) == sorted(int(s) for s in heads[2] + heads[3])
    types, lengths = (theirs(name, f)[0] for f in ("http2.type", "http2.length"))
    bodies = [int(n) for t, n in zip(types, lengths, strict=True) if t == "0" and n != "0"]
    assert sorted(nbytes[(kinds == 3) & (http["stream"] > 0)].tolist()) == sorted(bodies)
    if "web" not in name:  # gRPC-Web counts as plain pieces
        assert int(http["events"].sum()) == len(messages)


def test_grpc_is_named() -> None:
    assert set(ours("grpc_person_search_protobuf_with_image.pcapng.gz")[1].values()) == {"grpc"}
    assert set(ours("ndpi_h2c_loopback.pcapng")[1].values()) == {"http2"}


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_any_split_of_a_recording_gives_the_same_tables(name: str) -> None:
    made = segments(Path(SAMPLES) / "pcap-http" / name)
    assert same(run(made)[0], run(made, range(0, len(made), 3))[0])
