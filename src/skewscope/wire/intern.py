"""Addresses and flows to ids, shared by all parsers of a run.

A parser keeps a private cache of the connections it saw last; what it does not find there is looked up
here, once a batch and under a lock. Memory is bounded by MAX_ADDRESSES and MAX_FLOWS, the work for a
packet by MAX_PROBES.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from skewscope.core.directory import Directory, address_text
from skewscope.core.tables import Array
from skewscope.wire.jit import inlined, njit
from skewscope.wire.layout import Rows, i64
from skewscope.wire.load import be32, be64, bytes_of, u8

MAX_ADDRESSES = 1 << 20
MAX_FLOWS = 1 << 20
MAX_PROBES = 128
"""Slots looked at before a new key is given up. At a load of one half the longest run of taken slots in
a table of a million keys is about 75 (Knuth, volume 3, section 6.4); more is a chosen collision."""

_FIRST_SLOTS = 1 << 12
COUNT, LIMIT, REACH = range(3)
_MAPPED = np.uint64(0xFFFF00000000)  # IPv4 as an IPv4-mapped IPv6 address (RFC 4291, section 2.5.5.2)

CACHE_BITS = 16
"""A cache of 65536 connections, 32 bytes each and 24 more for IPv6, in pairs that share two places."""


class Index(NamedTuple):
    """An open-addressing table from 128-bit keys to ids from 1 on."""

    slots: Array
    """uint64 (power of two,): upper half of the key's hash << 32 | id; 0 = free. Its place is told by
    the first bits of the hash, so that doubling reads and writes in order and moves no keys."""
    keys: Array
    """uint64 (limit + 1, 2): the key of each id; pages that no id needs yet are not in memory."""
    cells: Array
    """int64 (3,): ids given out, limit on them, longest distance of a key from its place."""


HOT = np.dtype([("word", "u8"), ("key", "u8"), ("src", "u4"), ("dst", "u4"), ("flow", "u4"), ("way", "u4")])
SIX = np.dtype([("src_low", "u8"), ("dst_high", "u8"), ("dst_low", "u8")])


class Cache(NamedTuple):
    """The connections that one parser saw last, by their addresses, ports and protocol."""

    hot: Rows
    """HOT (2 ** CACHE_BITS,): both IPv4 addresses or half an IPv6 one, `cache_key`, and the ids."""
    six: Rows
    """SIX (2 ** CACHE_BITS,): the rest of IPv6 addresses."""


def new_cache() -> Cache:
    """Return an empty cache; no key is 0."""
    size = 1 << CACHE_BITS
    raw = np.zeros(size * HOT.itemsize + 64, dtype=np.uint8)
    skip = -raw.ctypes.data % 64  # the two places that a connection may have share a cache line
    return Cache(raw[skip : skip + size * HOT.itemsize].view(HOT), np.zeros(size, dtype=SIX))


@inlined
def mixed(high: np.uint64, low: np.uint64) -> np.uint64:
    """Hash a 128-bit key; every bit of it moves the upper half of the result."""
    h = (high ^ (high >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(29)) ^ low) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(32))) * np.uint64(0x94D049BB133111EB)
    return np.uint64(h ^ (h >> np.uint64(31)))


@inlined
def place_of(word: np.uint64, key: np.uint64) -> int:
    """Return the first of the two places in the cache for a connection."""
    h = (word ^ (key * np.uint64(0x9E3779B97F4A7C15))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(32))) * np.uint64(0x94D049BB133111EB)
    return int(np.int64(h >> np.uint64(64 - CACHE_BITS)))


@inlined
def _shift(slots: Array) -> np.uint64:
    bits = 0
    while (1 << bits) < len(slots):
        bits += 1
    return np.uint64(32 - bits)


@inlined
def intern(index: Index, shift: np.uint64, high: np.uint64, low: np.uint64) -> int:
    """Return the id of a key, adding it where new; 0 where the limit or MAX_PROBES is reached."""
    slots, keys, cells = index
    tag = mixed(high, low) >> np.uint64(32)
    at = np.int64(tag >> shift)
    mask = len(slots) - 1
    for step in range(cells[REACH] + 1):
        entry = slots[at]
        if entry == np.uint64(0):
            if cells[COUNT] >= cells[LIMIT] or step > MAX_PROBES:
                return 0
            cells[COUNT] += 1
            fresh = cells[COUNT]
            slots[at] = (tag << np.uint64(32)) | np.uint64(fresh)
            keys[fresh, 0] = high
            keys[fresh, 1] = low
            return int(fresh)
        if entry >> np.uint64(32) == tag:
            known = np.int64(entry & np.uint64(0xFFFFFFFF))
            if keys[known, 0] == high and keys[known, 1] == low:
                return int(known)
        at = (at + 1) & mask
    return 0


@njit
def rehash(old: Array, new: Array, cells: Array) -> None:
    """Move the entries to a larger table; they stay near their order."""
    shift, mask = _shift(new), len(new) - 1
    for k in range(len(old)):
        entry = old[k]
        if entry == np.uint64(0):
            continue
        at = np.int64((entry >> np.uint64(32)) >> shift)
        step = 0
        while new[at] != np.uint64(0):
            at = (at + 1) & mask
            step += 1
        new[at] = entry
        cells[REACH] = max(cells[REACH], step)


@inlined
def _is_full(index: Index, more: int) -> bool:
    count, limit = index.cells[COUNT], index.cells[LIMIT]
    half = len(index.slots) // 2
    return bool(count + more > half and half < limit)


class Found(NamedTuple):
    """The columns of a batch that naming fills."""

    src: Array
    dst: Array
    flow: Array
    way: Array
    sport: Array
    dport: Array


@inlined
def cache_key(version: int, kind: int, ports: int) -> np.uint64:
    """Return the key word of a connection; kind: 6 TCP, 17 UDP, 0 for packets without a flow."""
    return np.uint64((version << 40) | (kind << 32) | ports)


@njit
def name_rows(
    buf: Array,
    missed: Array,
    done: int,
    count: int,
    found: Found,
    cache: Cache,
    addresses: Index,
    flows: Index,
) -> tuple[int, int]:
    """Name the rows that the cache did not know.

    missed int64 (n, 3): row, offset of its IP header, kind as in `cache_key`; of it [done, count) is done.
    Returns (how far it came, rows without a name): not to `count` where a table must grow first.
    """
    data = bytes_of(buf)
    hot, six = cache
    words, zero = np.zeros(4, dtype=np.uint64), np.uint64(0)
    a_shift, f_shift = _shift(addresses.slots), _shift(flows.slots)
    nameless = 0
    for k in range(done, count):
        if _is_full(addresses, 2) or _is_full(flows, 1):
            return k, nameless
        i, ip, kind = missed[k, 0], missed[k, 1], missed[k, 2]
        version = u8(data, ip) >> 4
        if version == 4:
            words[0] = be64(data, ip + 12)
            words[1], words[2], words[3] = zero, zero, zero
            src = intern(addresses, a_shift, zero, _MAPPED | np.uint64(be32(data, ip + 12)))
            dst = intern(addresses, a_shift, zero, _MAPPED | np.uint64(be32(data, ip + 16)))
        else:
            for w in range(4):
                words[w] = be64(data, ip + 8 + 8 * w)
            src = intern(addresses, a_shift, words[0], words[1])
            dst = intern(addresses, a_shift, words[2], words[3])
        sport, dport, flow, way = i64(found.sport[i]), i64(found.dport[i]), 0, 0
        if kind and src and dst:
            one, two = (src << 16) | sport, (dst << 16) | dport
            if one > two:
                one, two, way = two, one, 1
            flow = intern(flows, f_shift, np.uint64(one | (kind << 56)), np.uint64(two))
        found.src[i], found.dst[i], found.flow[i], found.way[i] = src, dst, flow, way
        if src == 0 or dst == 0 or (kind and flow == 0):
            nameless += 1
            continue
        ports = (sport << 16) | dport if kind else 0
        # The new connection takes its first place; what was there moves to the second one.
        key = cache_key(version, kind, ports)
        place = place_of(words[0], key)
        hot[place ^ 1], six[place ^ 1] = hot[place], six[place]
        entry, more = hot[place], six[place]
        entry["word"], more["src_low"], more["dst_high"], more["dst_low"] = (
            words[0],
            words[1],
            words[2],
            words[3],
        )
        entry["key"], entry["src"], entry["dst"], entry["flow"], entry["way"] = key, src, dst, flow, way
    return count, nameless


@njit
def _ids_of(wanted: Array, done: int, ids: Array, index: Index) -> int:
    shift = _shift(index.slots)
    for k in range(done, len(wanted)):
        if _is_full(index, 1):
            return k
        ids[k] = intern(index, shift, wanted[k, 0], wanted[k, 1])
    return len(wanted)


def _new_index(limit: int) -> Index:
    keys = np.empty((limit + 1, 2), dtype=np.uint64)
    cells = np.array([0, limit, MAX_PROBES], dtype=np.int64)
    return Index(np.zeros(_FIRST_SLOTS, dtype=np.uint64), keys, cells)


def _roomier(index: Index, more: int) -> Index:
    """Return the index, doubled where `more` keys would load it above one half."""
    if not index.cells[COUNT] + more > len(index.slots) // 2 < index.cells[LIMIT]:
        return index
    slots = np.zeros(2 * len(index.slots), dtype=np.uint64)
    rehash(index.slots, slots, index.cells)
    return index._replace(slots=slots)


class Names:
    """The addresses and flows of a run, behind one lock, and their names in its Directory.

    Ids are given in the order of first sight; with parsers in several threads that order is the one in
    which their batches come by.
    """

    def __init__(self, directory: Directory) -> None:
        self.directory = directory
        self.nameless_rows = 0
        """Rows beyond the limits on addresses and flows: counted, parsed, not followed."""
        self._addresses, self._flows = _new_index(MAX_ADDRESSES), _new_index(MAX_FLOWS)
        self._lock = threading.Lock()

    def name(self, buf: Array, missed: Array, count: int, found: Found, cache: Cache) -> None:
        """Give ids to the first `count` rows of `missed`, as `name_rows` describes them."""
        with self._lock, np.errstate(over="ignore"):  # the hashes wrap; only uncompiled code would say so
            known = self._known()
            done = 0
            while done < count:
                self._addresses, self._flows = _roomier(self._addresses, 2), _roomier(self._flows, 1)
                done, nameless = name_rows(
                    buf, missed, done, count, found, cache, self._addresses, self._flows
                )
                self.nameless_rows += nameless
            self._publish(*known)

    def address_ids(self, keys: Array) -> Array:
        """Return the ids uint32 (n,) of address keys uint64 (n, 2), 0 where there is no room for one."""
        ids = np.zeros(len(keys), dtype=np.uint32)
        with self._lock, np.errstate(over="ignore"):
            known = self._known()
            done = 0
            while done < len(keys):
                self._addresses = _roomier(self._addresses, 1)
                done = _ids_of(keys, done, ids, self._addresses)
            self._publish(*known)
        return ids

    def _known(self) -> tuple[int, int]:
        return int(self._addresses.cells[COUNT]), int(self._flows.cells[COUNT])

    def _publish(self, addresses: int, flows: int) -> None:
        """Enter the ids above those known before in the Directory."""
        new_addresses, new_flows = self._known()
        keys = self._addresses.keys[addresses + 1 : new_addresses + 1].tolist()
        self.directory.addresses += [address_text(high, low) for high, low in keys]
        one, two = self._flows.keys[flows + 1 : new_flows + 1].T
        if len(one):
            port, address = np.uint64(0xFFFF), np.uint64(0xFFFFFFFF)
            shift, proto = np.uint64(16), one >> np.uint64(56)
            a, b = one >> shift & address, two >> shift
            self.directory.flows.add(a, one & port, b, two & port, proto)
