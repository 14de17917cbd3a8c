"""Frames to the `packets` table, one Numba pass a batch: link layers, tunnels, IP, TCP and UDP.

Sources: RFC 9293 (TCP; options: RFC 7323, RFC 2018), RFC 768 (UDP); for the rest see `link`, `ip` and
`tunnels`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skewscope.core.directory import Directory
from skewscope.core.schemas import PACKETS
from skewscope.core.tables import Array, Table
from skewscope.wire import roce
from skewscope.wire.headers import (
    CONTRADICT,
    CUT,
    ENCAPS,
    FAULTS,
    FIRST_FRAGMENT,
    NOT_IP,
    PROTO_GRH,
    PROTO_LRH,
    STATE,
    begin,
)
from skewscope.wire.intern import Cache, Found, Names, cache_key, new_cache, place_of
from skewscope.wire.jit import inlined, njit
from skewscope.wire.layout import Row, Rows, i64
from skewscope.wire.link import LINK_ETHERNET
from skewscope.wire.load import Bytes, be16, be32, be64, bytes_of, frozen, prefetch, u8
from skewscope.wire.tunnels import walk

__all__ = ["ENCAPS", "FAULTS", "LINK_ETHERNET", "PROTO_GRH", "PROTO_LRH", "PacketParser", "Parsed"]

TCP, UDP = 6, 17
_NOP_NOP_TIMES = 0x0101080A
"""First word of the options of nearly all segments: NOP, NOP, timestamps of ten bytes (RFC 7323, A)."""


class Columns(NamedTuple):
    """The columns of a `packets` table that the kernel writes, each of shape (n,) and its final dtype."""

    flow: Array
    way: Array
    src: Array
    dst: Array
    sport: Array
    dport: Array
    proto: Array
    wire_bytes: Array
    payload_bytes: Array
    captured_bytes: Array
    payload_at: Array
    seq: Array
    ack: Array
    flags: Array
    window: Array
    tsval: Array
    tsecr: Array
    ip_id: Array
    ecn: Array
    dscp: Array
    sack_lo: Array
    sack_hi: Array
    mss: Array
    wscale: Array
    direction: Array
    encap: Array
    fault: Array


_AHEAD = 8
"""Packets ahead of the one being parsed whose bytes are asked for: with 27 columns being written, the
processor's own prefetching loses sight of the frames."""

PATIENCE = 64
"""Rows without a name for which the parsing of a batch is first interrupted, then for twice as many: the rest
of a connection that is new in the batch is found in the cache, and a scan does not interrupt it often."""

_VERSION_AT = np.uint64(40)

_DTYPES = {name: np.dtype(PACKETS.columns[name].dtype) for name in Columns._fields}
_ZEROED = frozenset({"sack_lo", "sack_hi", "mss", "wscale", "direction", "encap", "fault"})
"""Columns that are written only where they are not 0, which is seldom."""


@inlined
def _options(buf: Bytes, at: int, end: int, s: Row) -> None:
    """Read the TCP options in [at, end)."""
    s["tsval"], s["tsecr"], s["sack_lo"], s["sack_hi"], s["mss"], s["wscale"] = 0, 0, 0, 0, 0, 0
    while at < end:
        kind = u8(buf, at)
        if kind == 0:
            return
        if kind == 1:
            at += 1
            continue
        if at + 1 >= end:
            return
        length = u8(buf, at + 1)
        if length < 2 or at + length > end:
            return
        if kind == 8 and length == 10:
            s["tsval"] = be32(buf, at + 2)
            s["tsecr"] = be32(buf, at + 6)
        elif kind == 5 and length >= 10:
            s["sack_lo"] = be32(buf, at + 2)
            s["sack_hi"] = be32(buf, at + 6)
        elif kind == 2 and length == 4:
            s["mss"] = be16(buf, at + 2)
        elif kind == 3 and length == 3:
            s["wscale"] = min(u8(buf, at + 2), 14) + 1
        at += length


@inlined
def _read_options(data: Bytes, at: int, stop: int, end: int, s: Row) -> tuple[int, int, bool]:
    """Return both timestamps of the TCP options in [at, stop), and whether s has others."""
    if at + 12 == stop <= end and be32(data, at) == _NOP_NOP_TIMES:
        return be32(data, at + 4), be32(data, at + 8), False
    _options(data, at, min(stop, end), s)
    return s["tsval"], s["tsecr"], True


@inlined
def _transport(
    data: Bytes, proto: int, at: int, end: int, stop: int, fault: int
) -> tuple[int, int, int, int, int, int, int]:
    """Read TCP or UDP at `at`; `end` bounds the captured bytes, `stop` the IP payload.

    Returns (fault, kind as in `cache_key`, ports, seq, ack, the word of length, flags and window, offset
    of the payload or -1).
    """
    if at < 0 or (proto != TCP and proto != UDP) or (fault != 0 and fault != FIRST_FRAGMENT):
        outside_ip = fault == NOT_IP and proto in (PROTO_LRH, PROTO_GRH)
        return fault, 0, 0, 0, 0, 0, at if outside_ip else -1
    if at + 4 > end:
        return CUT, 0, 0, 0, 0, 0, -1
    ports = be32(data, at)
    if proto == UDP:
        if at + 8 > end:
            return CUT, UDP, ports, 0, 0, 0, -1
        if at + 8 > stop:
            return CONTRADICT, UDP, ports, 0, 0, 0, -1
        return fault, UDP, ports, 0, 0, 0, at + 8
    if at + 20 > end:
        return CUT, TCP, ports, 0, 0, 0, -1
    seq, ack, rest = be32(data, at + 4), be32(data, at + 8), be32(data, at + 12)
    head = (rest >> 28) * 4
    if head < 20 or at + head > stop:
        return CONTRADICT, TCP, ports, seq, ack, rest, -1
    return fault, TCP, ports, seq, ack, rest, at + head


@inlined
def _is(entry: Row, more: Row, word: np.uint64, key: np.uint64, data: Bytes, ip: int) -> bool:
    """Tell whether a place in the cache holds the connection whose IP header is at `ip`."""
    if entry["word"] != word or entry["key"] != key:
        return False
    return bool(
        key >> _VERSION_AT == np.uint64(4)
        or (
            more["src_low"] == be64(data, ip + 16)
            and more["dst_high"] == be64(data, ip + 24)
            and more["dst_low"] == be64(data, ip + 32)
        )
    )


class Records(NamedTuple):
    """Records of a batch: offsets, captured and wire lengths int64 (n,), link types uint16 (n,) or (0,)."""

    at: Array
    captured: Array
    wire: Array
    links: Array


@inlined
def _found(
    data: Bytes, pos: int, end: int, wire: int, link: int, s: Row
) -> tuple[bool, int, int, int, int, int, int, int, int]:
    """Find the innermost headers of the frame at `pos`.

    Returns (whether s was not used, fault, proto, ip, transport, tos, ident, end, stop), as in STATE.
    """
    # Ethernet, IPv4 without options, TCP, no fragment: the traffic that has to be fast.
    if link == LINK_ETHERNET and pos >= 0 and pos + 54 <= end:
        first, second = be32(data, pos + 12), be32(data, pos + 16)
        total = second >> 16
        if first >> 8 == 0x080045 and total >= 40 and be32(data, pos + 20) & 0x3FFF00FF == TCP:
            stop = pos + min(14 + total, wire)
            return True, 0, TCP, pos + 14, pos + 34, first & 0xFF, second & 0xFFFF, end, stop
    begin(s, pos, end, wire)
    if 0 <= pos <= end:
        walk(data, link, s)
    else:
        s["fault"] = CUT
    stop = min(s["stop"], s["limit"])
    return False, s["fault"], s["proto"], s["ip"], s["transport"], s["tos"], s["ident"], s["end"], stop


@njit
def parse_frames(
    buf: Array, records: Records, link: int, c: Columns, cache: Cache, missed: Array, state: Rows,
    patience: int,
) -> tuple[int, int]:  # fmt: skip
    """Parse a batch to its end, or until `patience` rows are yet to be named.

    Returns (rows parsed, the number of rows in `missed`: see `name_rows`). Without link types for each record
    all have the type `link`. state: one STATE record. Nothing outside buf is read, whatever the offsets say.
    """
    data, s = bytes_of(buf), state[0]
    at, captured, wire, links = records
    hot, six = cache
    # Taken out of the tuple within the loop, each would be counted anew for every packet.
    (
        flow_, way_, src_, dst_, sport_, dport_, proto_, wire_bytes_, payload_bytes_, captured_bytes_,
        payload_at_, seq_, ack_, flags_, window_, tsval_, tsecr_, ip_id_, ecn_, dscp_, sack_lo_, sack_hi_,
        mss_, wscale_, direction_, encap_, fault_,
    ) = c  # fmt: skip
    count = 0
    for i in range(len(at)):
        if count == patience:
            return i, count
        prefetch(data, at[min(i + _AHEAD, len(at) - 1)])
        if len(links):
            link = i64(links[i])
        plain, fault, proto, ip, transport, tos, ident, end, stop = _found(
            data, at[i], min(at[i] + captured[i], len(buf)), wire[i], link, s
        )
        if not plain:
            encap_[i], direction_[i], wire_bytes_[i] = s["encap"], s["direction"], s["wire"]
        fault, kind, ports, seq, ack, rest, payload_at = _transport(data, proto, transport, end, stop, fault)
        if fault:
            fault_[i] = fault
        proto_[i], ecn_[i], dscp_[i], ip_id_[i] = proto, tos & 3, tos >> 2, ident
        sport_[i], dport_[i] = ports >> 16, ports & 0xFFFF
        seq_[i], ack_[i], flags_[i], window_[i] = seq, ack, (rest >> 16) & 0xFF, rest & 0xFFFF
        payload_at_[i] = payload_at
        payload_bytes_[i] = max(0, stop - payload_at) if payload_at >= 0 else 0
        captured_bytes_[i] = max(0, min(end, stop) - payload_at) if payload_at >= 0 else 0
        tsval, tsecr, more = 0, 0, False
        if kind == TCP and payload_at > transport + 20:
            tsval, tsecr, more = _read_options(data, transport + 20, payload_at, end, s)
        tsval_[i], tsecr_[i] = tsval, tsecr
        if more:
            sack_lo_[i], sack_hi_[i], mss_[i], wscale_[i] = s["sack_lo"], s["sack_hi"], s["mss"], s["wscale"]
        if ip < 0:
            src_[i], dst_[i], flow_[i], way_[i] = 0, 0, 0, 0
            continue
        version = u8(data, ip) >> 4
        key = cache_key(version, kind, ports)
        word = be64(data, ip + 12) if version == 4 else be64(data, ip + 8)
        place = place_of(word, key)
        if not _is(hot[place], six[place], word, key, data, ip):
            place ^= 1
        entry = hot[place]
        src_[i], dst_[i], flow_[i], way_[i] = entry["src"], entry["dst"], entry["flow"], entry["way"]
        if not _is(entry, six[place], word, key, data, ip):  # `name_rows` writes the right ids
            missed[count, 0], missed[count, 1], missed[count, 2] = i, ip, kind
            count += 1
    return len(at), count


def _keep_freed_memory() -> None:
    """Let the C library keep the memory of freed columns for the next batch.

    At first glibc returns all that is freed in pieces of 128 KiB or more to the kernel, and a page fault
    for each 4 KiB of new columns costs as much as the parsing. Freeing one large piece raises both of its
    thresholds for good (mallopt(3), M_MMAP_THRESHOLD). Nothing is written there, so no memory is taken.
    """
    np.empty((32 << 20) - 8192, dtype=np.uint8)


class Parsed(NamedTuple):
    """The tables of one batch."""

    packets: Table
    roce: Table


class PacketParser:
    """Frames to `packets` tables; ids are shared by all taps of a run through one Directory.

    A parser belongs to one thread at a time; `twin` makes one for another thread.
    """

    def __init__(self, directory: Directory, names: Names | None = None) -> None:
        self.directory = directory
        self.names = names or Names(directory)
        self._cache = new_cache()
        self._missed = np.empty((0, 3), dtype=np.int64)
        self._state = np.zeros(1, dtype=STATE)
        _keep_freed_memory()

    def twin(self) -> PacketParser:
        """Return a parser for another thread that gives the same ids."""
        return type(self)(self.directory, self.names)

    @property
    def nameless_rows(self) -> int:
        """Rows beyond the limits on addresses and flows: counted, parsed, not followed."""
        return self.names.nameless_rows

    def parse(
        self,
        buf: Array,
        ts: Array,
        at: Array,
        captured: Array,
        wire: Array,
        tap: int,
        frame: int,
        links: Array | int = LINK_ETHERNET,
    ) -> Parsed:
        """Parse one batch; arrays of shape (n,): record times (ns), offsets and lengths (bytes).

        `frame` is the frame number of the first record; `links` is the link type (LINKTYPE_*) of all
        records, or uint16 (n,). Returns a `packets` table of n rows whose `payload_at` points into
        `buf`, and the `roce` rows of those frames that carry InfiniBand transport headers.
        """
        n = len(ts)
        if n > len(self._missed):
            self._missed = np.empty((n, 3), dtype=np.int64)
        link = links if isinstance(links, int) else 0
        each = np.zeros(0, np.uint16) if isinstance(links, int) else np.ascontiguousarray(links, np.uint16)
        made = {"wire_bytes": wire.astype(np.uint32)}
        for name, dtype in _DTYPES.items():
            if name not in made:
                made[name] = (np.zeros if name in _ZEROED else np.empty)(n, dtype)
        data = frozen(buf)
        numbers = [np.ascontiguousarray(a, np.int64) for a in (at, captured, wire)]
        done, patience = 0, PATIENCE
        while done < n:
            c = Columns(*(made[name][done:] for name in Columns._fields))
            records = Records(numbers[0][done:], numbers[1][done:], numbers[2][done:], each[done:])
            with np.errstate(over="ignore"):  # the hashes wrap; only uncompiled code would say so
                parsed, count = parse_frames(
                    data, records, link, c, self._cache, self._missed, self._state, patience
                )
            if count:
                found = Found(c.src, c.dst, c.flow, c.way, c.sport, c.dport)
                self.names.name(data, self._missed, count, found, self._cache)
            done, patience = done + parsed, 2 * patience
        made |= {
            "ts_ns": ts,
            "tap": np.full(n, tap, dtype=np.uint16),
            "frame": np.arange(frame, frame + n, dtype=np.uint64),
        }
        packets = Table(PACKETS, made)
        return Parsed(packets, roce.parse(data, packets, self.names.address_ids))
