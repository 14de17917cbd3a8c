"""The table schemas of samples. Addresses and flows are ids of the run's Directory."""

from __future__ import annotations

from enum import IntEnum

from skewscope.core.tables import Column, Schema


def _schema(name: str, /, **columns: tuple[str, str, str]) -> Schema:
    return Schema(name, {n: Column(*c) for n, c in columns.items()})


PACKETS = _schema(
    "packets",
    ts_ns=("int64", "ns", "capture time at the tap"),
    tap=("uint16", "1", "index of the tap (capture file or interface) that saw the packet"),
    frame=("uint64", "1", "frame number in that file, counted from 1 as Wireshark does"),
    flow=("uint32", "1", "flow id: connection without regard to direction; 0 = not TCP or UDP over IP"),
    way=("uint8", "1", "0 = from the flow's first endpoint to its second, 1 = back"),
    src=("uint32", "1", "address id of the sender"),
    dst=("uint32", "1", "address id of the receiver"),
    sport=("uint16", "1", "source port"),
    dport=("uint16", "1", "destination port"),
    proto=("uint8", "1", "IP protocol number (6 TCP, 17 UDP)"),
    wire_bytes=("uint32", "bytes", "length of the frame on the wire"),
    payload_bytes=("uint32", "bytes", "TCP or UDP payload by the IP length"),
    captured_bytes=("uint32", "bytes", "payload bytes that the snap length kept"),
    payload_at=("int64", "bytes", "offset of the payload in the parser's buffer; -1 once that is gone"),
    seq=("uint32", "1", "TCP sequence number"),
    ack=("uint32", "1", "TCP acknowledgement number"),
    flags=("uint8", "1", "TCP flags (FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128)"),
    window=("uint32", "bytes", "TCP window field, unscaled"),
    sack_lo=("uint32", "1", "left edge of the first SACK block, 0 where there is none"),
    sack_hi=("uint32", "1", "right edge of the first SACK block, 0 where there is none"),
    tsval=("uint32", "1", "TCP timestamp value, 0 where there is none"),
    tsecr=("uint32", "1", "TCP timestamp echo, 0 where there is none"),
    mss=("uint16", "bytes", "TCP maximum segment size option, 0 where there is none"),
    wscale=("uint8", "1", "TCP window scale option plus one, 0 where there is none"),
    direction=("uint8", "1", "as the capturing host says: 0 unknown, 1 inbound, 2 outbound"),
    encap=("uint8", "1", "outer headers passed: bits of wire.packets.ENCAPS"),
    ip_id=("uint32", "1", "IPv4 identification (IPv6: 0)"),
    ecn=("uint8", "1", "ECN bits of the IP header (3 = congestion experienced)"),
    dscp=("uint8", "1", "DSCP of the IP header"),
    fault=("uint8", "1", "0 = parsed, else the reason code of wire.packets.FAULTS"),
)

ROCE = _schema(
    "roce",
    ts_ns=("int64", "ns", "capture time at the tap"),
    tap=("uint16", "1", "tap index"),
    frame=("uint64", "1", "frame number, as in the packets table"),
    flow=("uint32", "1", "flow id of the UDP endpoints; 0 for RoCEv1 and native InfiniBand"),
    way=("uint8", "1", "direction within the flow"),
    src=("uint32", "1", "address id of the sender (an IP address, a GID or a LID)"),
    dst=("uint32", "1", "address id of the receiver"),
    wire_bytes=("uint32", "bytes", "length of the frame on the wire"),
    opcode=("uint8", "1", "BTH opcode (0x81 = CNP)"),
    bits=("uint8", "1", "1 solicited event, 2 migrated, 4 FECN, 8 BECN, 16 acknowledge request"),
    pkey=("uint16", "1", "partition key"),
    qp=("uint32", "1", "destination queue pair"),
    psn=("uint32", "1", "packet sequence number"),
    syndrome=("uint8", "1", "AETH syndrome; 0 where there is no AETH"),
    msn=("uint32", "1", "AETH message sequence number; 0 where there is no AETH"),
    immediate=("uint32", "1", "immediate data; 0 where there is none"),
    dma_bytes=("uint32", "bytes", "RETH length; 0 where there is no RETH"),
    address=("uint64", "1", "RETH virtual address; 0 where there is no RETH"),
    src_qp=("uint32", "1", "DETH source queue pair; 0 where there is no DETH"),
    payload_bytes=("uint32", "bytes", "payload without padding and ICRC"),
    ecn=("uint8", "1", "ECN bits of the IP header (3 = congestion experienced)"),
    dscp=("uint8", "1", "DSCP of the IP header"),
    has=("uint8", "1", "headers present: 1 RETH, 2 AETH, 4 immediate, 8 DETH, 16 GRH"),
    icrc=("uint8", "1", "invariant CRC: 0 not checked or cut off, 1 right, 2 wrong"),
    fault=("uint8", "1", "0 = parsed, else the reason code of wire.roce.FAULTS"),
)

MESSAGES = _schema(
    "messages",
    ts_ns=("int64", "ns", "time of the segment that carried the message's first byte"),
    end_ns=("int64", "ns", "time of the segment that carried its last byte; 0 while unknown"),
    tap=("uint16", "1", "tap index"),
    frame=("uint64", "1", "frame number of the first segment"),
    flow=("uint32", "1", "flow id"),
    way=("uint8", "1", "direction within the flow"),
    src=("uint32", "1", "address id of the sender"),
    dst=("uint32", "1", "address id of the receiver"),
    framing=("uint8", "1", "1 Gloo, 2 NCCL socket, 3 NCCL over RoCE, 4 ZeroMQ, 5 other RDMA transfer"),
    kind=("uint8", "1", "as Gloo opcodes: 0 or 1 data, 2 send ready, 3 receive ready (clear to send)"),
    collective=("uint8", "1", "Gloo prefix: 2 all-gather, 4 all-reduce, 6 broadcast; other values as sent"),
    tag=("uint32", "1", "sequence number of the collective in its group"),
    nbytes=("uint64", "bytes", "payload length of the message, preamble not counted"),
)

HTTP = _schema(
    "http",
    ts_ns=("int64", "ns", "time of the segment that completed the element"),
    tap=("uint16", "1", "tap index"),
    frame=("uint64", "1", "frame number of that segment"),
    flow=("uint32", "1", "flow id"),
    way=("uint8", "1", "direction within the flow"),
    src=("uint32", "1", "address id of the sender"),
    dst=("uint32", "1", "address id of the receiver"),
    stream=("uint32", "1", "HTTP/2 stream id; 0 for HTTP/1"),
    kind=("uint8", "1", "1 request head, 2 response head, 3 chunk or body piece, 4 end, 5 resynchronised"),
    status=(
        "uint16",
        "1",
        "kind 2: status code; HTTP/2 kind 4: HTTP status of a gRPC status or reset, 0 = none",
    ),
    method=("uint8", "1", "request: 1 GET, 2 POST, 3 other; else 0"),
    target=("uint32", "1", "request: id of the target path in the Directory, 0 where cut off; else 0"),
    streaming=("uint8", "1", "response head: 1 = text/event-stream or gRPC, 2 = not, 0 = unknown (cut off)"),
    nbytes=("uint32", "bytes", "length of the piece (kind 3), content length (kinds 1 and 2, 0 unknown)"),
    events=("uint16", "1", "events or gRPC messages that ended in the piece (kind 3); 0 where cut off"),
)

RECORDS = _schema(
    "records",
    ts_ns=("int64", "ns", "time of the segment that carried the record's last byte"),
    tap=("uint16", "1", "tap index"),
    frame=("uint64", "1", "frame number of that segment"),
    flow=("uint32", "1", "flow id"),
    way=("uint8", "1", "direction within the flow"),
    src=("uint32", "1", "address id of the sender"),
    dst=("uint32", "1", "address id of the receiver"),
    kind=("uint8", "1", "TLS content type: 20 change cipher, 21 alert, 22 handshake, 23 application data"),
    nbytes=("uint32", "bytes", "record length"),
)

HOLES = _schema(
    "holes",
    ts_ns=("int64", "ns", "time at which the hole was declared"),
    tap=("uint16", "1", "tap index"),
    flow=("uint32", "1", "flow id"),
    way=("uint8", "1", "direction within the flow"),
    src=("uint32", "1", "address id of the sender"),
    dst=("uint32", "1", "address id of the receiver"),
    seq=("uint32", "1", "first missing sequence number"),
    nbytes=("uint32", "bytes", "missing bytes"),
)

_READ = {
    "ts_ns": ("int64", "ns", "time of the reading by the clock of what was read"),
    "source": ("uint16", "1", "index of the file or endpoint that it was read from (Directory.sources)"),
    "line": ("uint32", "1", "line, record or frame number in it, counted from 1"),
    "entity": ("uint32", "1", "id of what it is about (Directory.entities)"),
}
"""Columns that all samples other than those of packets begin with: when, where read, about what."""


class Kind(IntEnum):
    """What a value of `counters` or `metrics` is."""

    COUNTER32 = 1  # wraps at 2^32, whatever width is printed
    COUNTER64 = 2
    GAUGE = 3
    PERCENT = 4  # a gauge that already is a share of some past interval: its rate means nothing
    LAST_CODE = 5  # the code of the last event or state: a second equal one is invisible
    BUCKET = 6
    SUM = 7
    COUNT = 8
    QUANTILE = 9


class Side(IntEnum):
    """Whose doing a counter of `counters` counts."""

    ANY = 0
    REQUESTER = 1
    RESPONDER = 2
    PORT = 3


COUNTERS = _schema(
    "counters",
    **_READ,
    name=("uint32", "1", "id of the canonical name (Directory.names)"),
    value=("float64", "as named", "value as read, in the canonical unit; NaN = present but not known"),
    kind=("uint8", "1", "Kind: 1 counter of 32 bits, 2 of 64 bits, 3 gauge, 4 percent, 5 last code"),
    side=("uint8", "1", "Side: 0 not said, 1 requester, 2 responder, 3 port"),
    ceiling=("float64", "as named", "value at which the counter stops and stays; 0 = none, it wraps"),
)

METRICS = _schema(
    "metrics",
    **_READ,
    name=("uint32", "1", "id of the canonical name (Directory.names)"),
    labels=("uint32", "1", "id of the labels that tell series of one entity apart (Directory.labels)"),
    bound=("float64", "as named", "upper bound of a histogram bucket, quantile of a summary; NaN elsewhere"),
    value=("float64", "as named", "value as read, in the canonical unit"),
    kind=(
        "uint8",
        "1",
        "Kind: 2 counter, 3 gauge, 4 percent, 6 histogram bucket, 7 sum, 8 count, 9 quantile",
    ),
)

EVENTS = _schema(
    "events",
    **_READ,
    kind=("uint32", "1", "id of the canonical event name, as gpu.xid (Directory.names)"),
    code=("int64", "1", "its number: an Xid, a status, a sequence number; 0 where it has none"),
    end_ns=("int64", "ns", "when it ended; 0 where it has no duration"),
    peer=("uint32", "1", "id of the other entity that it names; 0 where there is none"),
    fields=("uint32", "1", "id of everything else that it says, a JSON object (Directory.texts)"),
)

FLOW_RECORDS = _schema(
    "flow_records",
    **_READ,
    end_ns=("int64", "ns", "time of the last packet counted; ts_ns is that of the first"),
    src=("uint32", "1", "address id of the sender"),
    dst=("uint32", "1", "address id of the receiver"),
    sport=("uint16", "1", "source port"),
    dport=("uint16", "1", "destination port"),
    proto=("uint8", "1", "IP protocol number"),
    flags=("uint8", "1", "all TCP flags seen, as in the packets table"),
    dscp=("uint8", "1", "DSCP of the IP header"),
    packets=("float64", "packets", "packets, scaled up by the sampling rate"),
    nbytes=("float64", "bytes", "bytes, scaled up by the sampling rate"),
    sampling=("uint32", "1", "one of this many packets was counted; 1 = all"),
)

REQUESTS = _schema(
    "requests",
    **_READ,
    end_ns=("int64", "ns", "time of the last token or of the failure; 0 = not known"),
    first_ns=("int64", "ns", "time of the first token; 0 = not known"),
    queued_s=("float64", "s", "time before it was scheduled; NaN = not known"),
    prompt_tokens=("uint32", "tokens", "prompt length, 0 where not known"),
    output_tokens=("uint32", "tokens", "tokens answered"),
    cached_tokens=("uint32", "tokens", "prompt tokens found in a cache"),
    status=("int16", "1", "HTTP status; 0 = not known, -1 = failed without one, -2 = client went away"),
    key=("uint32", "1", "id of the request id (Directory.texts)"),
    peer=("uint32", "1", "entity id of the engine or client named by it; 0 = none"),
)

CAPTURED: tuple[Schema, ...] = (PACKETS, ROCE, MESSAGES, HTTP, RECORDS, HOLES)
"""The tables that a capture yields, in the order in which they are made."""

READ: tuple[Schema, ...] = (COUNTERS, METRICS, EVENTS, FLOW_RECORDS, REQUESTS)
"""The tables that all other sources yield."""

SAMPLES: tuple[Schema, ...] = CAPTURED + READ
"""All tables of samples."""
