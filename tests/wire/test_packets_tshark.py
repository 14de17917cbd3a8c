"""The parser against tshark, on recorded captures and on hand-made tunnels: the innermost packet's fields."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from skewscope.core.directory import Directory
from skewscope.wire import build
from skewscope.wire.packets import PacketParser
from skewscope.wire.pcap import HEADER_BYTES, parse_header, walk_records
from tests.wire.test_tunnels import TUNNELS

pytestmark = pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed")

SAMPLES = os.environ.get("SKEWSCOPE_SAMPLES", "")
FIELDS = (
    "frame.len", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "tcp.srcport", "tcp.dstport", "udp.srcport",
    "udp.dstport", "tcp.seq_raw", "tcp.ack_raw", "tcp.window_size_value", "tcp.len",
    "tcp.options.timestamp.tsval",
)  # fmt: skip
PORTABLE = [name for name in TUNNELS if "old Linux port" not in name]
"""tshark reads VXLAN on its assigned port only."""


def by_tshark(path: Path) -> list[dict[str, str]]:
    """Return the last occurrence of each field of each frame."""
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", "occurrence=l", "-E", "separator=|"]
    command += ["-o", "tcp.desegment_tcp_streams:FALSE", "-o", "ip.defragment:FALSE"]
    for name in FIELDS:
        command += ["-e", name]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [dict(zip(FIELDS, line.split("|"), strict=True)) for line in said.splitlines()]


def by_parser(path: Path):
    raw = np.fromfile(path, np.uint8)
    header = parse_header(raw[:HEADER_BYTES].tobytes())
    ts = np.empty(10_000, np.int64)
    at, captured, wire = (np.empty(10_000, np.int64) for _ in range(3))
    buf = raw[HEADER_BYTES:]
    n, used, _ = walk_records(buf, 0, header.big_endian, header.unit_ns, 16, ts, at, captured, wire)
    assert used == len(buf)
    directory = Directory()
    columns = (ts[:n], at[:n], captured[:n], wire[:n])
    return PacketParser(directory).parse(buf, *columns, 0, 1, header.link_type).packets, directory


def compare(path: Path) -> int:
    """Compare all frames; returns how many of them have TCP or UDP ports."""
    table, names = by_parser(path)
    told = by_tshark(path)
    assert len(told) == len(table)
    seen = 0
    for i, t in enumerate(told):
        got = {n: int(table[n][i]) for n in table.columns}
        assert got["wire_bytes"] == int(t["frame.len"])
        if got["proto"] >= 253 or got["fault"]:
            continue
        src, dst = names.addresses[got["src"]], names.addresses[got["dst"]]
        assert (src, dst) in ((t["ip.src"], t["ip.dst"]), (t["ipv6.src"], t["ipv6.dst"])), i
        kind = {6: "tcp", 17: "udp"}.get(got["proto"], "")
        if kind:
            assert got["sport"] == int(t[f"{kind}.srcport"])
            assert got["dport"] == int(t[f"{kind}.dstport"])
            seen += 1
        if kind == "tcp":
            assert (got["seq"], got["ack"]) == (int(t["tcp.seq_raw"]), int(t["tcp.ack_raw"]))
            assert (got["window"], got["payload_bytes"]) == (
                int(t["tcp.window_size_value"]),
                int(t["tcp.len"]),
            )
            assert got["tsval"] == int(t["tcp.options.timestamp.tsval"] or 0)
    return seen


def test_tshark_reads_the_same_in_tunnels(tmp_path):
    frames = [TUNNELS[name][0] for name in PORTABLE]
    path = tmp_path / "tunnels.pcap"
    path.write_bytes(build.capture([(10**18 + k, f, len(f)) for k, f in enumerate(frames)], 65535))
    assert compare(path) == len(frames)


@pytest.mark.samples
@pytest.mark.skipif(not SAMPLES, reason="SKEWSCOPE_SAMPLES names no folder with recorded captures")
def test_tshark_reads_the_same_in_recorded_captures(tmp_path):
    compared = 0
    for path in sorted(p for k in ("http", "ib", "roce") for p in Path(SAMPLES).glob(f"pcap-{k}/*.pcap*")):
        plain = tmp_path / f"{path.name}.pcap"
        command = ["editcap", "-F", "nsecpcap", str(path), str(plain)]
        if subprocess.run(command, check=False, capture_output=True).returncode:
            continue  # several link types in one file, which only pcapng can hold
        compared += compare(plain)
    assert compared > 500
