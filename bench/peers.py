"""Other ways to read a capture's headers: `python bench/peers.py METHOD FILE PACKETS`.

Prints the packets read and the seconds that took. It runs in any Python and imports nothing of skewscope:
the libraries may live in an environment of their own (SKEWSCOPE_BENCH_PEERS, see bench/methods.py).
Each method reads time, length, addresses, ports, sequence numbers, flags, window and payload length of
TCP over IPv4.
"""

import importlib
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BATCH = 16_384


def dpkt(path: Path, packets: int) -> int:
    """dpkt: one object per header."""
    module: Any = importlib.import_module("dpkt")
    rows = []
    with path.open("rb") as file:
        for ts, frame in module.pcap.Reader(file):
            ip = module.ethernet.Ethernet(frame).data
            tcp = getattr(ip, "data", None)
            if isinstance(tcp, module.tcp.TCP):
                size = ip.len - 4 * ip.hl - 4 * tcp.off
                ports = (tcp.sport, tcp.dport)
                rows.append(
                    (ts, len(frame), ip.src, ip.dst, *ports, tcp.seq, tcp.ack, tcp.flags, tcp.win, size)
                )
            if len(rows) >= packets:
                break
    return len(rows)


def scapy(path: Path, packets: int) -> int:
    """scapy's PcapReader."""
    module: Any = importlib.import_module("scapy.all")
    rows = []
    for packet in module.PcapReader(str(path)):
        if module.TCP in packet:
            ip, tcp = packet[module.IP], packet[module.TCP]
            size = ip.len - 4 * ip.ihl - 4 * tcp.dataofs
            ports = (tcp.sport, tcp.dport)
            flags = int(tcp.flags)
            rows.append(
                (
                    packet.time,
                    packet.wirelen,
                    ip.src,
                    ip.dst,
                    *ports,
                    tcp.seq,
                    tcp.ack,
                    flags,
                    tcp.window,
                    size,
                )
            )
        if len(rows) >= packets:
            break
    return len(rows)


def pcapy(path: Path, packets: int) -> int:
    """pcapy-ng's next_batch, columns by NumPy: untagged IPv4 without options only, nothing is checked."""
    reader: Any = importlib.import_module("pcapy").open_offline(str(path))
    np: Any = importlib.import_module("numpy")
    names = ["total", "src", "dst", "sport", "dport", "seq", "ack", "head", "flags", "window"]
    formats = [">u2", ">u4", ">u4", ">u2", ">u2", ">u4", ">u4", "u1", "u1", ">u2"]
    offsets = [16, 26, 30, 34, 36, 38, 42, 46, 47, 48]
    layout = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": 54})
    columns, count = [], 0
    while count < packets:
        data, meta = reader.next_batch(BATCH)
        if not meta:
            break
        count += len(meta) // 16
        seconds, micros, at, kept = np.frombuffer(meta, np.uint32).reshape(-1, 4).T
        whole = kept >= 54
        windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(data, np.uint8), 54)
        heads = windows[at[whole]].view(layout)[:, 0]
        ts = seconds[whole].astype(np.int64) * 1_000_000 + micros[whole]
        payload = heads["total"].astype(np.int32) - 20 - (heads["head"] >> 4) * 4
        native = [heads[name].astype(layout[name].newbyteorder("=")) for name in names[1:]]
        columns.append((ts, kept[whole], payload, *native))
    return count


def python(path: Path, packets: int) -> int:
    """The standard library's struct alone: little-endian classic pcap, untagged IPv4 without options."""
    data = path.read_bytes()
    record, ip, tcp = struct.Struct("<IIII"), struct.Struct(">H8xII"), struct.Struct(">HHIIBBH")
    rows, pos = [], 24
    while pos + 16 <= len(data) and len(rows) < packets:
        seconds, fraction, kept, wire = record.unpack_from(data, pos)
        pos += 16
        if kept >= 54 and data[pos + 12 : pos + 14] == b"\x08\x00":
            total, src, dst = ip.unpack_from(data, pos + 16)
            sport, dport, seq, ack, head, flags, window = tcp.unpack_from(data, pos + 34)
            size = total - 20 - (head >> 4) * 4
            rows.append((seconds, fraction, wire, src, dst, sport, dport, seq, ack, flags, window, size))
        pos += kept
    return len(rows)


def tshark(path: Path, packets: int) -> int:
    """tshark -T fields, its start included."""
    names = ("frame.time_epoch", "frame.len", "ip.src", "ip.dst", "tcp.srcport", "tcp.dstport", "tcp.seq_raw")
    names += ("tcp.ack_raw", "tcp.flags", "tcp.window_size_value", "tcp.len")
    fields = [word for name in names for word in ("-e", name)]
    command = ["tshark", "-n", "-r", str(path), "-c", str(packets), "-T", "fields", *fields]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.count(b"\n")


METHODS: dict[str, Callable[[Path, int], int]] = {f.__name__: f for f in (dpkt, scapy, pcapy, python, tshark)}
NEEDS = {"dpkt": "dpkt", "scapy": "scapy.all", "pcapy": "pcapy"}


def main() -> None:
    """Run one method; a library is imported before the clock starts."""
    name, path, packets = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    if name in NEEDS:
        importlib.import_module(NEEDS[name])
    start = time.perf_counter()
    print(METHODS[name](path, packets), time.perf_counter() - start)


if __name__ == "__main__":
    main()
