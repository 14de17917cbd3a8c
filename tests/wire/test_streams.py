"""The framer on recorded captures, against slow references that share no code with it."""

from __future__ import annotations

import gzip
import io
import os
import re
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import dpkt
import numpy as np
import pytest

from skewscope.core.directory import Directory
from skewscope.core.tables import Table
from skewscope.wire.packets import PacketParser
from skewscope.wire.pcap import parse_header, walk_records
from skewscope.wire.streams import StreamFramer
from tests.wire.segments import rows, run_table, same

SAMPLES = os.environ.get("SKEWSCOPE_SAMPLES", "")
pytestmark = [
    pytest.mark.samples,
    pytest.mark.skipif(not SAMPLES, reason="SKEWSCOPE_SAMPLES names no folder with recorded captures"),
]


def read(name: str) -> bytes:
    path = Path(SAMPLES) / name
    return gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()


def parse(name: str) -> tuple[Table, np.ndarray, Directory]:
    raw = read(name)
    header = parse_header(raw)
    assert header is not None
    buffer = np.frombuffer(raw, np.uint8)[24:]
    columns = [np.zeros(len(buffer) // 16, np.int64) for _ in range(4)]
    n, _, _ = walk_records(buffer, 0, header.big_endian, header.unit_ns, 16, *columns)
    directory = Directory()
    return PacketParser(directory).parse(buffer, *(c[:n] for c in columns), 0, 1).packets, buffer, directory


def segments(name: str) -> Iterator[tuple[int, tuple[object, ...], int, int, bytes]]:
    """Yield (frame, direction, seq, payload length, captured payload) of each TCP packet, by dpkt."""
    for frame, (_, raw) in enumerate(dpkt.pcap.Reader(io.BytesIO(read(name))), 1):
        ip = dpkt.ethernet.Ethernet(raw).data
        if not isinstance(ip, dpkt.ip.IP) or not isinstance(ip.data, dpkt.tcp.TCP):
            continue
        tcp = ip.data
        size = ip.len - ip.hl * 4 - tcp.off * 4
        at = 14 + ip.hl * 4 + tcp.off * 4
        yield frame, (ip.src, tcp.sport, ip.dst, tcp.dport), tcp.seq, size, raw[at : at + size]


def slow_gloo(name: str) -> list[tuple[int, int, int, int, int]]:
    """Return (frame, opcode, prefix, tag, payload) of each preamble at the start of a new segment."""
    seen: dict[tuple[object, ...], set[int]] = {}
    out = []
    for frame, direction, seq, size, data in segments(name):
        if size == 0 or seq in seen.setdefault(direction, set()):
            continue
        seen[direction].add(seq)
        if len(data) < 24 or size < 48:  # SACK blocks leave less than 48 bytes under the snap length
            continue
        nbytes, opcode, slot = struct.unpack("<3Q", data[:24])
        payload = struct.unpack("<Q", data[32:40])[0] if len(data) >= 48 else nbytes - 48
        if opcode <= 3 and nbytes == 48 + (payload if opcode <= 1 else 0):
            out.append((frame, opcode, slot >> 56, slot >> 24 & 0xFFFFFFFF, nbytes - 48))
    return out


@pytest.mark.parametrize(
    "name",
    ["healthy/n1", "loss_downlink/n1", "reorder/n1", "vllm_healthy/n0", "vllm_sigstop/n1", "rank_crash/n3"],
)
def test_gloo_messages_against_preambles_read_one_by_one(name: str) -> None:
    name = f"testbed/{name}.pcap.gz"
    table, buffer, _ = parse(name)
    tables, _ = run_table(table, buffer)
    got = rows(tables["messages"], "frame", "kind", "collective", "tag", "nbytes")
    assert sorted(got) == sorted(slow_gloo(name))
    assert len(got) > 1000


def slow_http(name: str) -> tuple[int, int, int, int]:
    """Return the counts of requests, response heads, events and ends in whole in-order captures."""
    streams: dict[tuple[object, ...], dict[int, bytes]] = {}
    for _, direction, seq, size, data in segments(name):
        if size:
            streams.setdefault(direction, {}).setdefault(seq, data)
    text = [b"".join(d for _, d in sorted(s.items())) for s in streams.values()]
    return (
        sum(len(re.findall(rb"(?:GET|POST) /\S* HTTP/1\.1\r\n", t)) for t in text),
        sum(len(re.findall(rb"HTTP/1\.1 \d\d\d ", t)) for t in text),
        sum(len(re.findall(rb"^data: .*\n\n", t, re.MULTILINE)) for t in text),
        sum(len(re.findall(rb"\r\n0\r\n\r\n", t)) for t in text),
    )


@pytest.mark.parametrize("name", ["healthy", "overload", "uneven_routing", "vllm_healthy", "slow_reader"])
def test_http_of_whole_captures_against_a_text_search(name: str) -> None:
    name = f"testbed/{name}/lg.pcap.gz"
    table, buffer, _ = parse(name)
    tables, directory = run_table(table, buffer)
    http = tables["http"]
    kinds = http["kind"]
    clients = {int(f) for f, k in rows(http, "flow", "kind") if k == 1}
    ends = sum(k == 4 and s == 0 for k, s in zip(kinds.tolist(), _is_request_side(http), strict=True))
    got = (int((kinds == 1).sum()), int((kinds == 2).sum()), int(http["events"].sum()), ends)
    assert got == slow_http(name)
    assert directory.targets[1:] in ([], ["/v1/completions"])
    assert len(clients) == got[0]  # one connection a request in these captures


def _is_request_side(http: Table) -> list[int]:
    requests = {(f, w) for f, w, k in rows(http, "flow", "way", "kind") if k == 1}
    return [int((f, w) in requests) for f, w in rows(http, "flow", "way")]


@pytest.mark.parametrize("name", ["tls13-rfc8446.pcap", "http2-data-reassembly.pcap"])
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tls_records_against_tshark(name: str) -> None:
    table, buffer, _ = parse(f"pcap-http/{name}")
    tables, _ = run_table(table, buffer)
    command = [
        "tshark",
        "-r",
        str(Path(SAMPLES) / "pcap-http" / name),
        "-o",
        "tls.desegment_ssl_records:TRUE",
    ]
    command += ["-T", "fields", "-e", "tls.record.length", "-Y", "tls"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    want = sorted(int(x) for line in text.split() for x in line.split(","))
    assert sorted(tables["records"]["nbytes"].tolist()) == want


@pytest.mark.parametrize("name", ["healthy/n0", "loss_uplink/n2", "healthy/lg", "mtu_mismatch/n3"])
def test_any_split_of_a_recording_gives_the_same_tables(name: str) -> None:
    table, buffer, _ = parse(f"testbed/{name}.pcap.gz")
    table = table.take(slice(0, 3000))
    whole, _ = run_table(table, buffer)
    assert same(whole, run_table(table, buffer, np.random.default_rng(1).integers(0, 3000, 40))[0])


def test_hostile_changes_of_a_recording_never_raise() -> None:
    table, buffer, directory = parse("testbed/healthy/lg.pcap.gz")
    rng = np.random.default_rng(7)
    for _ in range(20):
        noisy = buffer.copy()
        noisy[rng.integers(0, len(noisy), len(noisy) // 50)] ^= rng.integers(1, 255, dtype=np.uint8)
        framer = StreamFramer(directory)
        framer.feed(table.take(rng.permutation(len(table))), noisy)
        framer.finish()


def test_protocols_are_named() -> None:
    table, buffer, directory = parse("testbed/healthy/n0.pcap.gz")
    framer = StreamFramer(directory)
    framer.feed(table, buffer)
    assert sorted(set(framer.protocols().values())) == ["gloo", "http1"]
