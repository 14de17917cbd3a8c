"""Seeds for each target, made from the recordings that ship with the project and from built frames."""

from __future__ import annotations

import bz2
import gzip
import lzma
import pickle
import pkgutil
import struct
from collections.abc import Iterator
from pathlib import Path

from fuzz.targets import LINKS, OPENINGS
from skewscope.sources import formats
from skewscope.wire.pcap import HEADER_BYTES

RECORDINGS = Path(__file__).resolve().parent.parent / "src" / "skewscope" / "app" / "recordings"


def _recorded(limit: int = 60) -> list[bytes]:
    """Return the first frames of a shipped recording."""
    plain = gzip.decompress(sorted(RECORDINGS.glob("*/lg.pcap.gz"))[0].read_bytes())
    found, at = [], HEADER_BYTES
    while at + 16 <= len(plain) and len(found) < limit:
        size = struct.unpack_from("<I", plain, at + 8)[0]
        found.append(plain[at + 16 : at + 16 + size])
        at += 16 + size
    return found


def _prefixed(pieces: list[bytes]) -> bytes:
    return b"".join(struct.pack("<H", min(len(p), 0x7FF)) + p[:0x7FF] for p in pieces)


def capture() -> Iterator[bytes]:
    """Whole small captures, plain and packed."""
    plain = gzip.decompress(sorted(RECORDINGS.glob("*/lg.pcap.gz"))[0].read_bytes())[:3000]
    yield plain
    yield from (gzip.compress(plain), bz2.compress(plain), lzma.compress(plain))
    yield plain[:HEADER_BYTES]


def frames() -> Iterator[bytes]:
    """Recorded frames under each link type."""
    for index in range(len(LINKS)):
        yield bytes([index]) + _prefixed(_recorded(6))
        yield bytes([index]) + _prefixed([f[14:] for f in _recorded(6)])


def roce() -> Iterator[bytes]:
    """Base transport headers of each kind."""
    for opcode in (0x00, 0x04, 0x06, 0x0A, 0x0B, 0x0C, 0x10, 0x11, 0x64, 0x81):
        yield _prefixed(
            [bytes([opcode, 0, 0xFF, 0xFF, 0, 0, 0, 17, 0x80, 0, 0, n]) + bytes(40) for n in range(4)]
        )


def stream() -> Iterator[bytes]:
    """Each opening, followed by recorded payload."""
    payload = [b"\x80" + f[66:] for f in _recorded() if len(f) > 66]
    for index in range(len(OPENINGS)):
        yield bytes([index]) + _prefixed(payload[:8])


def diagnose() -> Iterator[bytes]:
    """Recorded frames 1 ms apart."""
    yield _prefixed([b"\xe8\x03\x00" + f for f in _recorded(40)])


LINES: dict[str, tuple[str, ...]] = {
    "bed_steps": ('{"step": 1, "op": 2, "n": 3, "t0": 1000, "t1": 5000, "ar": [[2000, 2500]]}',),
    "engine_log": (
        "INFO 11-14 22:13:20 [l.py:1] Engine 000: Avg prompt throughput: 3.0 tokens/s, Running: 5 reqs",
        "[2023-11-14 22:13:20 TP0] Decode batch. #running-req: 7, token usage: 0.25, #queue-req: 3",
    ),
    "engine_requests": (
        '{"request_id": "a", "input_toks": 1, "arrival_time": 1e9, "queued_ts": 5.5, "last_token_ts": 9.0}',
        '{"due_ns": 7, "first_ns": 8, "end_ns": 9, "prompt": 16, "ended": "complete", "gaps_us": [1, 2]}',
    ),
    "engine_run": ("t,running,waiting,kv_cache_pct", "1.0,5,2,13.2", "2.0,6,0,50"),
    "ethtool": ("NIC statistics:", "     rx_packets: 10", '[{"ifname": "eth0", "rx_packets": 1}]'),
    "fabric_manager": (
        (
            "[Feb 27 2025 15:10:02] [ERROR] [tid 1] detected NVSwitch fatal error 20034 on fid 0 on NVSwitch "
            "pci bus id 00000000:86:00.0 physical id 3 port 61"
        ),
    ),
    "fault_study": (
        "side,counter,before,after,delta",
        "# RETRY_EXC,trial=1,status=12,vendor_err=0x81,latency_us=3000",
        "client,local_ack_timeout_err,5,11,6",
    ),
    "flight_recorder": (
        (
            '{"version": "2.9", "pg_config": {"0": {"name": "0", "desc": "pg", "ranks": "[0]"}}, "pg_status":'
            ' {"0": {"last_enqueued_collective": 9}}, "entries": [{"pg_id": 0, "process_group": ["0", "pg"],'
            ' "state": "s"}]}'
        ),
    ),
    "kernel_log": (
        "[  100.000000] NVRM: Xid (PCI:0000:91:00): 79, pid=1, name=a, GPU4 has fallen off the bus.",
        "6,3973,227996636,-;nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM",
        "Feb 23 16:24:18 n1 kernel: mlx5_core 0000:1a:00.0 eth2: Link down",
    ),
    "kineto": (
        (
            '{"schemaVersion": 1, "distributedInfo": {"rank": 5}, "traceEvents": [{"ph": "X", "cat":'
            ' "kernel", "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)", "ts": 2.5, "dur": 3, "args":'
            ' {"stream": 7}}]}'
        ),
    ),
    "lspci": (
        "19:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)",
        "\tSubsystem: NVIDIA",
        "\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x8",
        "\t\tCESta:\tRxErr+ BadTLP-",
    ),
    "nccl_json": (
        '{"header": {"id": "0xa", "rank": 2}, "coll_perf": {"coll": "AllReduce", "coll_sn": 1}}',
        '{"nccl_version": "2.29.1", "communicators": [{"hash": "0xa", "missing_ranks": [{"rank": 1}]}]}',
    ),
    "nccl_log": (
        (
            "[2026-05-05 06:16:47] w0:1:1 [3] ib.cc:9 NCCL WARN Got completion from peer x with status=12"
            " vendor err 129"
        ),
        (
            "w0:1:1 [3] NCCL INFO comm 0x1 rank 5 nranks 8 cudaDev 0 nvmlDev 6 busId cb000 commId 0xa - Init"
            " COMPLETE"
        ),
    ),
    "nccl_profiler": (
        '{"name": "AllReduce", "cat": "COLL", "ph": "b", "id": 0, "pid": 7, "ts": 1, "args": {"SeqNum": 4}},',
    ),
    "nccl_ras": (
        "Communicators... (0.00s)",
        "#0-0 (27a079b828ff1a75) MISMATCH",
        "  3 ranks have launched up to operation 6650",
        "  Rank 2 -- GPU 5 managed by process 77 on node n9",
        "  The missing ranks: 3, 5-7",
    ),
    "sysfs": (
        "mlx5_0/ports/1/counters/port_rcv_data: 10",
        "/sys/class/net/eth0/statistics/rx_bytes:9",
        "/sys/bus/pci/devices/0000:9b:00.0/aer_dev_fatal:Undefined 0",
        "TOTAL_ERR_FATAL 2",
        "# time 1700000000.5",
    ),
}
"""Lines of formats of text, by the names of their files."""


def document() -> Iterator[bytes]:
    """Lines of each format with a pickle of plain data behind them, each under the number of its format."""
    found = sorted(m.name for m in pkgutil.iter_modules(formats.__path__) if not m.name.startswith("_"))
    for name, texts in LINES.items():
        yield bytes([found.index(name)]) + "\n".join(texts).encode()
    dump = {"pg_config": {}, "pg_status": {"0": {"last_enqueued_collective": 9}}, "entries": [{"pg_id": 0}]}
    yield bytes([found.index("flight_recorder")]) + pickle.dumps(dump, 2)


def exports() -> Iterator[bytes]:
    """A template with its data of each version, and a datagram of sFlow with a sampled header."""
    fields = ((8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (1, 4), (2, 4))
    template = struct.pack(">HH", 256, len(fields)) + b"".join(struct.pack(">HH", *f) for f in fields)
    sets = struct.pack(">HH", 0, len(template) + 4) + template + struct.pack(">HH", 256, 25) + bytes(21)
    nine = struct.pack(">HHIIII", 9, 2, 5000, 10**9, 1, 7)
    yield _prefixed([nine + sets])
    ten = struct.pack(">HH", 2, len(template) + 4) + template + struct.pack(">HH", 256, 25) + bytes(21)
    yield _prefixed([struct.pack(">HHIII", 10, 16 + len(ten), 10**9, 1, 7) + ten])
    record = struct.pack(">6I", 1, 60, 1, 60, 4, 40) + bytes(12) + b"\x08\x00\x45" + bytes(25)
    sample = struct.pack(">8I", 1, 7, 100, 9, 0, 3, 4, 1) + record
    yield _prefixed([struct.pack(">9I", 5, 1, 0x0A000009, 0, 1, 1000, 1, 1, len(sample)) + sample])


def prometheus_text() -> Iterator[bytes]:
    """One line of each kind."""
    yield (
        b"# HELP a b\n# TYPE vllm:time_to_first_token_seconds histogram\n"
        b'vllm:time_to_first_token_seconds_bucket{le="0.1",model_name="a\\"b"} 3 1700000000123\n'
        b"vllm:time_to_first_token_seconds_sum 1.5e3\nvllm:time_to_first_token_seconds_count 4\n"
        b'DCGM_FI_DEV_GPU_TEMP{gpu="0",Hostname="h"} 25 # {trace_id="x"} 1 2\n'
        b'node_load1 NaN\nnode_procs_running +Inf\nunknown{a="}"} 1\n# EOF\n'
    )


def remote_write() -> Iterator[bytes]:
    """A series with two labels and a sample, of version 1 and of version 2."""
    sample = bytes.fromhex("09000000000000f03f1080b0ed86bd31")
    label = b"\x0a\x08__name__\x12\x0anode_load1"
    series = b"\x0a" + bytes([len(label)]) + label + b"\x12" + bytes([len(sample)]) + sample
    yield b"\x0a" + bytes([len(series)]) + series
    second = b"\x0a\x02\x01\x02\x12" + bytes([len(sample)]) + sample
    texts = b"".join(b"\x22" + bytes([len(t)]) + t for t in (b"", b"__name__", b"node_load1"))
    yield texts + b"\x2a" + bytes([len(second)]) + second


def otlp_metrics() -> Iterator[bytes]:
    """A gauge as protobuf and as JSON."""
    point = b"\x19" + (5).to_bytes(8, "little") + b"\x21" + struct.pack("<d", 2.0)
    gauge = b"\x0a" + bytes([len(point)]) + point
    metric = b"\x0a\x0anode_load1\x2a" + bytes([len(gauge)]) + gauge
    scope = b"\x12" + bytes([len(metric)]) + metric
    resource = b"\x12" + bytes([len(scope)]) + scope
    yield b"\x0a" + bytes([len(resource)]) + resource
    yield (
        b'{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"node_load1","gauge":'
        b'{"dataPoints":[{"timeUnixNano":"5","asDouble":2}]}}]}]}]}'
    )


SEEDS = {
    f.__name__: f
    for f in (
        capture, frames, roce, stream, diagnose, prometheus_text, remote_write, otlp_metrics,
        document, exports,
    )
}  # fmt: skip
