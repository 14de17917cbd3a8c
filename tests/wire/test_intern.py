"""Ids of addresses and flows: shared, stable, bounded, whatever the keys are."""

import threading

import numpy as np
import pytest

from skewscope.core.directory import Directory
from skewscope.wire import intern
from skewscope.wire.intern import Names
from skewscope.wire.packets import PacketParser
from tests.wire.frames import A, B, ether, packet4, packet6, parse

MAPPED = 0xFFFF00000000
MIXED = getattr(intern.mixed, "py_func", intern.mixed)


def keys_of(low, high=0):
    low = np.asarray(low, np.uint64)
    return np.stack([np.full(len(low), high, np.uint64), low], axis=1)


def lowest_bit_reversed(values, bits=16):
    return [int(f"{v:0{bits}b}"[::-1], 2) << 32 for v in values]


REGULAR = {
    "addresses in a row": keys_of(MAPPED + np.arange(50_000)),
    "every 256th address": keys_of(MAPPED + np.arange(50_000) * 256),
    "one more bit at a time": keys_of([1 << k for k in range(64)]),
    "high bits only": keys_of(lowest_bit_reversed(range(50_000))),
    "IPv6 networks": np.stack([np.arange(50_000, dtype=np.uint64) << 16, np.ones(50_000, np.uint64)], axis=1),
    "ports in a row": keys_of([(7 << 16) | k for k in range(50_000)], 5 << 16 | 80),
    "equal halves": np.stack([np.arange(50_000, dtype=np.uint64)] * 2, axis=1),
}


@pytest.mark.parametrize("name", REGULAR)
def test_regular_keys_are_spread_like_random_ones(name):
    """The first half of the hash tells the place: at most a few keys of a load of one half meet there."""
    with np.errstate(over="ignore"):
        places = np.array([int(MIXED(h, low)) >> 47 for h, low in REGULAR[name]])
    _, counts = np.unique(places, return_counts=True)
    assert counts.max() <= 8  # of 2 ** 17 places; random keys reach 5 to 7


def test_ids_are_given_in_order_and_kept_through_growth():
    names = Names(Directory())
    keys = keys_of(MAPPED + np.random.default_rng(1).permutation(30_000))
    first = np.concatenate([names.address_ids(keys[k : k + 1000]) for k in range(0, len(keys), 1000)])
    assert first.tolist() == list(range(1, 30_001))
    assert names.address_ids(keys[::-1]).tolist() == first[::-1].tolist()
    assert len(names.directory.addresses) == 30_001
    assert names.address_ids(keys_of([])).tolist() == []


def test_beyond_the_limit_keys_have_no_id_and_old_ones_keep_theirs(monkeypatch):
    monkeypatch.setattr(intern, "MAX_ADDRESSES", 5_000)
    names = Names(Directory())
    keys = keys_of(np.arange(1, 20_001))
    ids = names.address_ids(keys)
    assert ids[:5_000].tolist() == list(range(1, 5_001))
    assert not ids[5_000:].any()
    assert names.address_ids(keys).tolist() == ids.tolist()
    assert len(names.directory.addresses) == 5_001


def test_keys_chosen_to_collide_are_given_up_and_cost_no_one_else():
    """All belong to one place: those that find room near it have ids, the others none; other keys do."""
    names = Names(Directory())
    some = np.random.default_rng(1).integers(1, 1 << 62, 1_000_000, dtype=np.uint64)
    with np.errstate(over="ignore"):
        chosen = some[MIXED(np.zeros(1, np.uint64), some) >> np.uint64(52) == np.uint64(77)]
    room = intern.MAX_PROBES + 1
    ids = names.address_ids(keys_of(chosen))
    assert len(chosen) > room
    assert ids[:room].tolist() == list(range(1, room + 1))
    assert not ids[room:].any()
    assert names.address_ids(keys_of([3])).tolist() == [room + 1]


def test_parsers_of_several_threads_give_the_same_ids():
    """Each sees all connections, in an order of its own; ids and directions agree with the Directory."""
    hosts = [(bytes([10, 0, k, n]), bytes([10, 1, n, k])) for k in range(10) for n in range(100)]
    frames = [ether(packet4(src, dst)) for src, dst in hosts] + [
        ether(packet4(b, a, ports=(8000, 40000))) for a, b in hosts
    ]
    parsers = [PacketParser(Directory())]
    parsers += [parsers[0].twin() for _ in range(3)]
    rows = {}

    def work(number):
        order = np.random.default_rng(number).permutation(len(frames))
        table, _ = parse([frames[k] for k in order], parser=parsers[number], cuts=range(0, 2000, 50))
        back = np.argsort(order)
        rows[number] = {n: table[n][back] for n in ("flow", "way", "src", "dst", "sport", "dport")}

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    directory = parsers[0].directory
    assert len(directory.flows) == len(hosts) + 1
    for number in range(1, 4):
        for name in rows[0]:
            assert rows[number][name].tolist() == rows[0][name].tolist()
    for src, sport, flow, way in zip(*(rows[0][n] for n in ("src", "sport", "flow", "way")), strict=True):
        end = directory.flows[flow]
        assert (src, sport) == ((end.b, end.b_port) if way else (end.a, end.a_port))


def test_connections_of_both_ip_versions_in_one_cache():
    """Every row is named alike, from the cache and not."""
    frames = []
    for k in range(300):
        tail = bytes([k // 250, k % 250])
        frames.append(ether(packet4(A[:2] + tail, B)))
        frames.append(ether(packet6(bytes(14) + tail, b"\x20\1" + bytes(14)), 0x86DD))
    alone = {}
    table, names = parse(frames * 2, cuts=range(0, 1200, 7))
    for k, frame in enumerate(frames * 2):
        text = tuple(names.addresses[table[n][k]] for n in ("src", "dst"))
        assert alone.setdefault(frame, (int(table["flow"][k]), text)) == (int(table["flow"][k]), text)
    assert len({flow for flow, _ in alone.values()}) == 600
