"""Ethernet, VLAN, IPv4, IPv6, TCP and UDP headers to the `packets` table, one Numba pass a batch.

Sources: IEEE 802.3 and 802.1Q, RFC 791, RFC 8200, RFC 9293 (options: RFC 7323, RFC 2018).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skewscope.core.directory import Directory, Flow, address_text
from skewscope.core.schemas import PACKETS
from skewscope.core.tables import Array, Table
from skewscope.wire import roce
from skewscope.wire.jit import inner, njit

FAULTS = {
    0: "parsed",
    1: "frame cut before its headers end",
    2: "lengths contradict",
    3: "not IP",
    4: "fragment",
}
"""Reason codes of the `fault` column. Such rows are kept and counted by size and time."""

ENCAPS = {1: "VLAN", 2: "QinQ", 4: "VXLAN", 8: "GENEVE", 16: "GRE", 32: "ERSPAN", 64: "IP in IP", 128: "MPLS"}
"""Bits of the `encap` column; each may have been passed more than once."""

LINK_ETHERNET = 1
_EMPTY = np.uint64(0)


@inner
def _be16(buf: Array, at: int) -> int:
    return int((np.int64(buf[at]) << 8) | np.int64(buf[at + 1]))


@inner
def _be32(buf: Array, at: int) -> int:
    return (_be16(buf, at) << 16) | _be16(buf, at + 2)


@inner
def _be64(buf: Array, at: int) -> np.uint64:
    return (np.uint64(_be32(buf, at)) << np.uint64(32)) | np.uint64(_be32(buf, at + 4))


@inner
def _intern(hi: np.uint64, lo: np.uint64, keys: Array, ids: Array, used: Array) -> int:
    """Return the id of a 128-bit key in an open-addressing table, adding it where new.

    keys uint64 (capacity, 2), ids uint32 (capacity,) with 0 = free slot, used int64 (2,): ids given
    out and the limit on them. Returns 0 when the table is full: such rows have no name.
    """
    mask = len(ids) - 1
    h = (hi * np.uint64(0x9E3779B97F4A7C15)) ^ (lo * np.uint64(0xC2B2AE3D27D4EB4F))
    h ^= h >> np.uint64(29)
    slot = int(np.int64(h & np.uint64(mask)))
    while ids[slot] != 0:
        if keys[slot, 0] == hi and keys[slot, 1] == lo:
            return int(np.int64(ids[slot]))
        slot = (slot + 1) & mask
    if used[0] >= used[1]:
        return 0
    used[0] += 1
    ids[slot] = used[0]
    keys[slot, 0] = hi
    keys[slot, 1] = lo
    return int(used[0])


@inner
def _options(buf: Array, at: int, end: int, out: Array, i: int) -> None:
    """Read the TCP options in [at, end) into row i of out: tsval, tsecr, sack lo, sack hi, mss, wscale+1."""
    while at < end:
        kind = buf[at]
        if kind == 0:
            return
        if kind == 1:
            at += 1
            continue
        if at + 1 >= end:
            return
        length = int(np.int64(buf[at + 1]))
        if length < 2 or at + length > end:
            return
        if kind == 8 and length == 10:
            out[i, 0] = _be32(buf, at + 2)
            out[i, 1] = _be32(buf, at + 6)
        elif kind == 5 and length >= 10:
            out[i, 2] = _be32(buf, at + 2)
            out[i, 3] = _be32(buf, at + 6)
        elif kind == 2 and length == 4:
            out[i, 4] = _be16(buf, at + 2)
        elif kind == 3 and length == 3:
            out[i, 5] = min(int(np.int64(buf[at + 2])), 14) + 1
        at += length


# Columns of the work array of `parse_batch`, one row a packet.
W_FAULT, W_SRC, W_DST, W_SPORT, W_DPORT, W_PROTO, W_PAYLOAD, W_CAPTURED, W_AT = range(9)
W_SEQ, W_ACK, W_FLAGS, W_WINDOW, W_IPID, W_TOS, W_FLOW, W_WAY, W_COLUMNS = range(9, 18)


@inner
def _ip_header(buf: Array, at: int, end: int, w: Array, i: int, addr: Array) -> tuple[int, int]:
    """Parse the IP header at `at`; returns (offset of the transport header, end of the IP payload).

    A returned offset of 0 means that w[i, W_FAULT] says why there is none. addr uint64 (4,): source
    and destination as two 64-bit halves each.
    """
    if end - at < 20:
        w[i, W_FAULT] = 1
        return 0, 0
    version = buf[at] >> 4
    if version == 4:
        head = int(np.int64(buf[at] & 15)) * 4
        total = _be16(buf, at + 2)
        if total == 0:  # segmentation offload on the capturing host: the frame's length counts
            total = 0x7FFFFFFF
        if head < 20 or total < head:
            w[i, W_FAULT] = 2
            return 0, 0
        w[i, W_TOS] = buf[at + 1]
        w[i, W_IPID] = _be16(buf, at + 4)
        w[i, W_PROTO] = buf[at + 9]
        addr[0] = 0
        addr[1] = np.uint64(0xFFFF00000000) | np.uint64(_be32(buf, at + 12))
        addr[2] = 0
        addr[3] = np.uint64(0xFFFF00000000) | np.uint64(_be32(buf, at + 16))
        if _be16(buf, at + 6) & 0x3FFF:
            w[i, W_FAULT] = 4
            return 0, at + total
        return at + head, at + total
    if version != 6:
        w[i, W_FAULT] = 3
        return 0, 0
    if end - at < 40:
        w[i, W_FAULT] = 1
        return 0, 0
    for k in range(4):
        addr[k] = _be64(buf, at + 8 + 8 * k)
    w[i, W_TOS] = (_be16(buf, at) >> 4) & 0xFF
    size = _be16(buf, at + 4)
    stop = at + 40 + (size if size else 0x7FFFFFFF)  # 0: offload, as above, or a jumbogram
    nxt = buf[at + 6]
    at += 40
    for _ in range(8):  # a chain longer than eight extension headers is hostile
        if nxt != 0 and nxt != 43 and nxt != 60:
            break
        if at + 8 > end:
            w[i, W_FAULT] = 1
            return 0, stop
        nxt = buf[at]
        at += 8 + int(np.int64(buf[at + 1])) * 8
    w[i, W_PROTO] = nxt
    if nxt == 44:
        w[i, W_FAULT] = 4
        return 0, stop
    return at, stop


@inner
def _transport(buf: Array, at: int, end: int, stop: int, w: Array, i: int, opt: Array) -> None:
    """Parse TCP or UDP at `at`; `end` bounds the captured bytes, `stop` the IP payload."""
    proto = w[i, W_PROTO]
    if proto != 6 and proto != 17:
        return
    need = 20 if proto == 6 else 8
    if at + need > end:
        w[i, W_FAULT] = 1
        if at + 4 <= end:
            w[i, W_SPORT] = _be16(buf, at)
            w[i, W_DPORT] = _be16(buf, at + 2)
        return
    w[i, W_SPORT] = _be16(buf, at)
    w[i, W_DPORT] = _be16(buf, at + 2)
    head = 8
    if proto == 6:
        head = int(np.int64(buf[at + 12] >> 4)) * 4
        w[i, W_SEQ] = _be32(buf, at + 4)
        w[i, W_ACK] = _be32(buf, at + 8)
        w[i, W_FLAGS] = buf[at + 13]
        w[i, W_WINDOW] = _be16(buf, at + 14)
        if head < 20 or at + head > stop:
            w[i, W_FAULT] = 2
            return
        _options(buf, at + 20, min(at + head, end), opt, i)
    elif at + head > stop:
        w[i, W_FAULT] = 2
        return
    w[i, W_PAYLOAD] = max(0, stop - at - head)
    w[i, W_AT] = at + head
    w[i, W_CAPTURED] = max(0, min(end, stop) - at - head)


@njit
def parse_batch(
    buf: Array,
    at: Array,
    captured: Array,
    wire: Array,
    w: Array,
    opt: Array,
    akeys: Array,
    aids: Array,
    aused: Array,
    fkeys: Array,
    fids: Array,
    fused: Array,
) -> None:
    """Parse Ethernet frames to the work arrays w int64 (n, W_COLUMNS) and opt int64 (n, 6)."""
    addr = np.zeros(4, dtype=np.uint64)
    for i in range(len(at)):
        w[i, W_AT] = -1
        pos = at[i]
        end = pos + captured[i]
        if captured[i] < 14:
            w[i, W_FAULT] = 1
            continue
        kind = _be16(buf, pos + 12)
        pos += 14
        for _ in range(2):  # 802.1Q and 802.1ad tags
            if (kind == 0x8100 or kind == 0x88A8) and pos + 4 <= end:
                kind = _be16(buf, pos + 2)
                pos += 4
        if kind != 0x0800 and kind != 0x86DD:
            tagged = kind == 0x8100 or kind == 0x88A8
            w[i, W_FAULT] = 1 if tagged and pos + 4 > end else 3
            continue
        frame_end = at[i] + wire[i]
        pos, stop = _ip_header(buf, pos, end, w, i, addr)
        if w[i, W_FAULT] == 0 or w[i, W_FAULT] == 4:
            w[i, W_SRC] = _intern(addr[0], addr[1], akeys, aids, aused)
            w[i, W_DST] = _intern(addr[2], addr[3], akeys, aids, aused)
        if pos == 0:
            continue
        _transport(buf, pos, end, min(stop, frame_end), w, i, opt)
        named = w[i, W_SRC] > 0 and w[i, W_DST] > 0
        if named and (w[i, W_PROTO] == 6 or w[i, W_PROTO] == 17):
            one = (np.uint64(w[i, W_SRC]) << np.uint64(16)) | np.uint64(w[i, W_SPORT])
            two = (np.uint64(w[i, W_DST]) << np.uint64(16)) | np.uint64(w[i, W_DPORT])
            proto = np.uint64(w[i, W_PROTO]) << np.uint64(56)
            if one <= two:
                w[i, W_FLOW] = _intern(one | proto, two, fkeys, fids, fused)
            else:
                w[i, W_FLOW] = _intern(two | proto, one, fkeys, fids, fused)
                w[i, W_WAY] = 1


class _Interner:
    """An open-addressing table that grows by doubling, capped in size."""

    def __init__(self, limit: int) -> None:
        self.keys = np.zeros((1 << 12, 2), dtype=np.uint64)
        self.ids = np.zeros(1 << 12, dtype=np.uint32)
        self.used = np.array([0, limit], dtype=np.int64)

    def reserve(self, extra: int) -> None:
        """Make room for `extra` new keys at a load factor of at most one half."""
        need = 2 * (min(int(self.used[0]) + extra, int(self.used[1])) + 1)
        size = len(self.ids)
        if need <= size:
            return
        while size < need:
            size *= 2
        keys, ids = self.keys, self.ids
        self.keys = np.zeros((size, 2), dtype=np.uint64)
        self.ids = np.zeros(size, dtype=np.uint32)
        with np.errstate(over="ignore"):
            _rehash(keys, ids, self.keys, self.ids)

    def ids_of(self, keys: Array) -> Array:
        """Return the ids uint32 (n,) of keys uint64 (n, 2), which must have been reserved for."""
        ids = np.empty(len(keys), dtype=np.uint32)
        _intern_all(keys, ids, self.keys, self.ids, self.used)
        return ids

    def key_of(self, first: int) -> Array:
        """Return the keys with ids above `first`, in id order, uint64 (new, 2)."""
        new = np.flatnonzero(self.ids > first)
        order = np.argsort(self.ids[new])
        return self.keys[new[order]]


@njit
def _intern_all(wanted: Array, found: Array, keys: Array, ids: Array, used: Array) -> None:
    for k in range(len(wanted)):
        found[k] = _intern(wanted[k, 0], wanted[k, 1], keys, ids, used)


@njit
def _rehash(keys: Array, ids: Array, new_keys: Array, new_ids: Array) -> None:
    used = np.zeros(2, dtype=np.int64)
    for k in range(len(ids)):
        if ids[k] != 0:
            used[1] = ids[k]
            used[0] = used[1] - 1  # so that the key gets its old id
            _intern(keys[k, 0], keys[k, 1], new_keys, new_ids, used)


MAX_ADDRESSES = 1 << 20
MAX_FLOWS = 1 << 21


class Parsed(NamedTuple):
    """The tables of one batch."""

    packets: Table
    roce: Table


class PacketParser:
    """Frames to `packets` tables; ids are shared by all taps of a run through one Directory."""

    def __init__(self, directory: Directory) -> None:
        self.directory = directory
        self._addresses = _Interner(MAX_ADDRESSES)
        self._flows = _Interner(MAX_FLOWS)
        self.nameless_rows = 0
        """Rows beyond the limits on addresses and flows: counted, parsed, not followed."""

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
        w = np.zeros((n, W_COLUMNS), dtype=np.int64)
        opt = np.zeros((n, 6), dtype=np.int64)
        a, f = self._addresses, self._flows
        a.reserve(2 * n)
        f.reserve(n)
        known_a, known_f = int(a.used[0]), int(f.used[0])
        with np.errstate(over="ignore"):  # the hashes wrap; only uncompiled code would say so
            parse_batch(buf, at, captured, wire, w, opt, a.keys, a.ids, a.used, f.keys, f.ids, f.used)
            packets = self._table(w, opt, ts, wire, tap, frame)
            transport = roce.parse(buf, packets, a.ids_of)
        if a.used[0] > known_a:
            self.directory.addresses += [address_text(int(h), int(lo)) for h, lo in a.key_of(known_a)]
        if f.used[0] > known_f:
            self.directory.flows += [_flow(int(x), int(y)) for x, y in f.key_of(known_f)]
        self.nameless_rows += int(np.count_nonzero((w[:, W_FLOW] == 0) & (w[:, W_SPORT] > 0)))
        return Parsed(packets, transport)

    @staticmethod
    def _table(w: Array, opt: Array, ts: Array, wire: Array, tap: int, frame: int) -> Table:
        n = len(ts)
        return Table(
            PACKETS,
            {
                "ts_ns": ts,
                "tap": np.full(n, tap, dtype=np.uint16),
                "frame": np.arange(frame, frame + n, dtype=np.uint64),
                "flow": w[:, W_FLOW],
                "way": w[:, W_WAY],
                "src": w[:, W_SRC],
                "dst": w[:, W_DST],
                "sport": w[:, W_SPORT],
                "dport": w[:, W_DPORT],
                "proto": w[:, W_PROTO],
                "wire_bytes": wire,
                "payload_bytes": w[:, W_PAYLOAD],
                "captured_bytes": w[:, W_CAPTURED],
                "payload_at": w[:, W_AT],
                "seq": w[:, W_SEQ],
                "ack": w[:, W_ACK],
                "flags": w[:, W_FLAGS],
                "window": w[:, W_WINDOW],
                "sack_lo": opt[:, 2],
                "sack_hi": opt[:, 3],
                "tsval": opt[:, 0],
                "tsecr": opt[:, 1],
                "mss": opt[:, 4],
                "wscale": opt[:, 5],
                "ip_id": w[:, W_IPID],
                "ecn": w[:, W_TOS] & 3,
                "dscp": w[:, W_TOS] >> 2,
                "fault": w[:, W_FAULT],
            },
        )


def _flow(one: int, two: int) -> Flow:
    proto = one >> 56
    one &= (1 << 56) - 1
    return Flow(one >> 16, one & 0xFFFF, two >> 16, two & 0xFFFF, proto)
