import os
import struct
from pathlib import Path

import numpy as np
import pytest

from skewscope.core.directory import Directory
from skewscope.core.schemas import PACKETS
from skewscope.sources.captures import Capture
from skewscope.sources.flow_export import FlowExports, Payload, candidates, is_export
from skewscope.sources.format import Origin
from skewscope.wire.packets import PacketParser
from tests.sources.formats.reading import rows_of, samples
from tests.wire.test_netflow import FIELDS, RECORD, SECONDS, ipfix, template, v9
from tests.wire.test_sflow import datagram, flow, interface, piece, word

AT_NS = SECONDS * 10**9
TCP = (
    bytes(12)
    + b"\x08\x00"
    + bytes.fromhex("450000280000000040060000")
    + bytes([10, 0, 0, 1, 10, 0, 0, 2])
    + struct.pack(">HHIIBBHHH", 4000, 80, 0, 0, 0x50, 2, 0, 0, 0)
)


def feed(*payloads, exporter="10.0.0.9"):
    directory = Directory()
    exports = FlowExports(directory, PacketParser(directory))
    tables = exports.feed(
        [Payload(AT_NS, k, exporter, p) for k, p in enumerate(payloads, 1)], Origin(directory, 0)
    )
    return rows_of(directory, tables), exports


def test_sampled_packets_stand_for_as_many_as_the_rate():
    rows, exports = feed(datagram(flow(piece(1, word(1, 1000, 4, len(TCP)) + TCP), rate=100)))
    (row,) = rows
    assert (row["src"], row["dst"], row["sport"], row["dport"], row["proto"]) == (
        "10.0.0.1",
        "10.0.0.2",
        4000,
        80,
        6,
    )
    assert (row["packets"], row["nbytes"], row["sampling"], row["entity"]) == (
        100,
        100_000,
        100,
        "10.0.0.9/if3",
    )
    assert exports.notes()[0] == "1 sFlow datagrams were read"


def test_counters_of_a_switch_port_have_canonical_names():
    rows, _ = feed(
        datagram(interface({"ifIndex": 7, "ifInOctets": 9, "ifOutDiscards": 2, "ifInErrors": 2**32 - 1}))
    )
    at = {(r["entity"], r["name"]): r["value"] for r in rows}
    assert at["10.0.0.9/if7", "switch.rx_bytes"] == 9
    assert at["10.0.0.9/if7", "switch.tx_discards"] == 2
    assert np.isnan(at["10.0.0.9/if7", "switch.rx_errors"])


def test_flow_records_are_scaled_up():
    options = struct.pack(">HHH", 257, 4, 4) + struct.pack(">HHHH", 1, 4, 34, 4)
    rows, _ = feed(
        v9((0, template(256, FIELDS)), (1, options), (257, struct.pack(">II", 0, 10)), (256, RECORD))
    )
    (row,) = rows
    assert (row["packets"], row["nbytes"], row["sampling"]) == (30, 15_000, 10)
    assert (row["ts_ns"], row["end_ns"]) == (AT_NS - 4 * 10**9, AT_NS - 10**9)
    assert row["entity"] == "10.0.0.9"


def test_impossible_times_become_that_of_arrival():
    fields = [(8, 4), (150, 4), (151, 4)]
    rows, exports = feed(ipfix((2, template(300, fields)), (300, bytes(4) + struct.pack(">II", 5, 6))))
    assert (rows[0]["ts_ns"], rows[0]["end_ns"]) == (AT_NS, AT_NS)
    assert any("impossible times" in note for note in exports.notes())


def test_data_without_a_template_are_told():
    rows, exports = feed(v9((256, RECORD)))
    assert rows == []
    assert "flow export: 1 data sets without their template" in exports.notes()


def test_only_whole_datagrams_of_the_three_protocols_are_taken():
    assert is_export(v9((256, RECORD)))
    assert is_export(datagram())
    assert not is_export(b"\x00\x09" + bytes(30))
    assert not is_export(b"GET / HTTP/1.1\r\n\r\n")


def read(path):
    directory = Directory()
    capture = Capture(Path(path), directory, PacketParser(directory))
    rows = []
    for tables in capture.batches():
        rows += rows_of(directory, {k: t for k, t in tables.items() if k in {"flow_records", "counters"}})
    capture.close()
    return rows, capture.stats.notes, directory


@samples
def test_recorded_captures_of_exports():
    folder = Path(os.environ["SKEWSCOPE_SAMPLES"]) / "pcap-flow"
    rows, notes, directory = read(folder / "sflow.pcap")
    counters = {(r["line"], r["name"]): r["value"] for r in rows if r["table"] == "counters"}
    assert counters[1, "switch.rx_bytes"] == 25_963_724
    assert counters[1, "switch.tx_unicast_packets"] == 41_143
    (record,) = [r for r in rows if r["table"] == "flow_records"]
    assert (record["src"], record["dst"], record["sampling"]) == ("172.21.32.254", "172.21.32.241", 2048)
    assert notes == ["9 sFlow datagrams were read", "they gave 1 flow records and 128 counter readings"]
    assert directory.sources == [str(folder / "sflow.pcap")]
    assert read(folder / "netflowv9.pcap")[1] == [
        "10 NetFlow v9 datagrams were read",
        "flow export: 23 data sets without their template",
    ]
    assert read(folder / "netflow-fritz.pcap")[1] == [
        "1 IPFIX datagrams were read",
        "3 templates of NetFlow or IPFIX are known",
    ]


@samples
@pytest.mark.parametrize("name", ["pcap-http/http.pcapng", "pcap-roce/softroce_cm_write_read_2025-12.pcap"])
def test_other_captures_hold_none(name):
    path = Path(os.environ["SKEWSCOPE_SAMPLES"]) / name
    if not path.exists():
        pytest.skip(f"{name} is not among the samples")
    rows, _, directory = read(path)
    assert rows == []
    assert directory.sources == []


def test_candidates_are_told_by_their_first_bytes():

    payloads = [v9((256, RECORD)), datagram(), b"\x00\x00\x00\x06" + bytes(30), b"\x01\x09" + bytes(30)]
    table = PACKETS.empty(len(payloads))
    at = np.cumsum([0, *map(len, payloads)])
    table["proto"][:], table["dport"][:], table["payload_at"][:] = 17, 2055, at[:-1]
    table["payload_bytes"][:] = table["captured_bytes"][:] = [len(p) for p in payloads]
    buf = np.frombuffer(b"".join(payloads), np.uint8)
    assert candidates(table, buf).tolist() == [0, 1]
    table["dport"][:] = 4791
    assert candidates(table, buf).tolist() == []
