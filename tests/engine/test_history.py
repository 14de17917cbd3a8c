"""What a run remembers is bounded, and says the same whatever its length."""

import numpy as np

from skewscope.core.directory import Directory, Tap
from skewscope.core.features import FeatureRows, Slice
from skewscope.core.report import HostRole
from skewscope.engine import history as module
from skewscope.engine.history import History, _unambiguous
from skewscope.features.graph import GraphRows
from skewscope.features.groups import GroupRows
from skewscope.features.round_kernel import R_COLUMNS
from skewscope.features.rounds import RoundRows, Rounds
from skewscope.features.transport import PairRows

TICK = 100_000_000
A, B, GATE, CLIENT = 1, 2, 3, 4


def directory():
    names = ["-", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]
    return Directory(addresses=names, taps=[Tap(0, "/x/n0.pcap.gz"), Tap(1, "n1.pcap"), Tap(2, "lg.pcap")])


def graph():
    flags = np.zeros(5, dtype=np.bool_)
    serves, asks = flags.copy(), flags.copy()
    serves[[A, GATE]] = True
    asks[[GATE, CLIENT]] = True
    return GraphRows(
        "host", [], {}, own_tap=np.array([-1, 0, 1, 2, 2]), member=np.array([-1, A, A, -1, -1]),
        groups={A: [A, B]}, serves=serves, asks=asks,
    )  # fmt: skip


def rounds(first, count=1, group=A):
    """Return `count` rounds of two members."""
    made = np.zeros((2 * count, 3 + R_COLUMNS), dtype=np.int64)
    made[:, 0] = group
    made[:, 2] = [A, B] * count
    made[:, 3] = np.repeat(np.arange(first, first + count), 2)  # the key
    return Rounds.of(made)


def pairs(*ends):
    count = len(ends)
    columns = {
        "bytes": np.full(count, 1000.0),
        "packets": np.full(count, 10.0),
        "collective_bytes": np.array([900.0 if set(e) == {A, B} else 0.0 for e in ends]),
        "http_bytes": np.array([0.0 if set(e) == {A, B} else 800.0 for e in ends]),
    }
    return PairRows(
        "pair", [f"{a}->{b}" for a, b in ends], columns, pair_of={e: i for i, e in enumerate(ends)}
    )


def feed(history, number, made=None, names=None, **more):
    rows = {
        "host": graph(),
        "pair": pairs((A, B), (B, A), (GATE, A), (CLIENT, GATE)),
        "round": RoundRows("round", [], {}, rounds=made or rounds(0, 0)),
        "group": GroupRows("group", [], {}, round_s={A: 0.04}),
        **more,
    }
    history(Slice(number * TICK, (number + 1) * TICK, {}, names or directory()), rows)


def endpoint(**columns):
    return FeatureRows("endpoint", ["10.0.0.1:8000"], {n: np.array([v]) for n, v in columns.items()})


def test_roles_names_edges_and_groups():
    history = History()
    for number in range(3):
        feed(history, number, rounds(number, 2), endpoint=endpoint(chunks=4.0))
    context = history.context({})
    assert {h.address: h.roles for h in history.hosts()} == {
        "10.0.0.1": ["group member", "engine"],
        "10.0.0.2": ["group member"],
        "10.0.0.3": ["gateway"],
        "10.0.0.4": ["client"],
    }
    assert context.names == {"10.0.0.1": "n0", "10.0.0.2": "n1"}, (
        "two hosts share the tap lg: it names neither"
    )
    assert context.clients == {"10.0.0.4"}
    assert context.groups == {"10.0.0.1": ["10.0.0.1", "10.0.0.2"]}
    assert context.endpoint_groups == {"10.0.0.1:8000": "10.0.0.1"}
    kinds = {(e.a, e.b): (e.kind, e.bytes_total, e.packets_total) for e in history.edges()}
    assert kinds["10.0.0.1", "10.0.0.2"] == ("collective", 6000, 60)
    assert kinds["10.0.0.1", "10.0.0.3"] == ("http", 3000, 30)
    (group,) = history.groups()
    assert (group.id, group.rounds, group.step_s) == ("10.0.0.1", 6, 0.04)
    assert (history.first_ns, history.last_ns) == (0, 3 * TICK)


def test_nothing_fed_gives_nothing():
    history = History()
    assert (history.hosts(), history.edges(), history.groups(), history.series({})) == ([], [], [], [])


def test_unknown_values_are_left_out_of_a_series():
    history = History()
    for number, value in enumerate([1.0, np.nan, 3.0]):
        feed(history, number, endpoint=endpoint(ttft_s=value))
    (series,) = [s for s in history.series({("endpoint", "ttft_s"): "s"}) if s.name == "ttft_s"]
    assert (series.ts_ns, series.values, series.unit) == ([TICK, 3 * TICK], [1.0, 3.0], "s")


def test_the_number_of_series_and_edges_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "MAX_SERIES", 3)
    monkeypatch.setattr(module, "MAX_EDGES", 2)
    history = History()
    keys = [f"10.0.0.1:{p}" for p in range(10)]
    feed(history, 0, endpoint=FeatureRows("endpoint", keys, {"chunks": np.ones(10)}))
    assert len(history.series({})) == 3
    assert len(history.edges()) == 2


def test_the_first_and_the_latest_rounds_are_kept(monkeypatch):
    monkeypatch.setattr(module, "MAX_ROUNDS", 4)
    history = History()
    for number in range(200):
        feed(history, number, rounds(10 * number, 10))
    kept = history.rounds_near(A)
    first_keys = [int(r.key[0]) for r in kept]
    assert first_keys[:7] == [0, 10, 20, 30, 40, 50, 60]
    assert first_keys[-4:] == [1960, 1970, 1980, 1990]
    assert len(kept) == 11
    assert history.rounds_near(99) == []


def test_many_groups_keep_fewer_rounds_each(monkeypatch):
    monkeypatch.setattr(module, "MIN_ROUNDS", 2)
    monkeypatch.setattr(module, "ALL_ROUNDS", 12)
    history = History()
    for number in range(60):
        feed(history, number, rounds(100 * number, 100, group=1 + number % 3))
    # The first window of each, and the latest of it: 12 among three groups.
    assert [len(history.rounds_near(g)) for g in (1, 2, 3)] == [5, 5, 5]
    assert int(history.rounds_near(3)[-1].key[0]) == 5900


def test_rounds_are_not_told_twice():
    history = History()
    feed(history, 0, rounds(0, 5))
    assert len(history.rounds_near(A)) == 1


def test_a_tap_between_hosts_names_nobody():
    hosts = [HostRole(f"10.0.0.{i}", name, []) for i, name in enumerate(["sw", "n1", "sw"])]
    assert [h.name for h in _unambiguous(hosts)] == ["", "n1", ""]
