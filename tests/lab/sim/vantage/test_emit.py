"""What is emitted: repeatable, in order, at real rates and with the defects of real sources."""

from collections.abc import Mapping

import numpy as np
import pytest

from skewscope.conditions.loader import load_all as load_conditions
from skewscope.core.features import FeatureRows
from skewscope.core.schemas import Kind
from skewscope.engine.run import Engine, Plan
from skewscope.features.loader import load_all as load_features
from skewscope.lab.sim.case import simulate
from skewscope.lab.sim.scenario import draw
from skewscope.lab.sim.vantage.emit import Emission, emit, sliced

HEALTHY = draw("ok_first_day.across_hosts", 3, duration_s=40.0)


@pytest.fixture(scope="module")
def healthy() -> Emission:
    return simulate(HEALTHY).emission


def column(emission: Emission, name: str, entity: str = "") -> tuple[np.ndarray, np.ndarray]:
    d = emission.directory
    for table in (emission.tables["counters"], emission.tables["metrics"]):
        chosen = table["name"] == d.names.id(name)
        if entity:
            chosen &= table["entity"] == d.entities.id(entity)
        if chosen.any():
            return (table["ts_ns"][chosen] - emission.start_ns) / 1e9, table["value"][chosen]
    raise AssertionError(name)


def test_a_run_is_emitted_twice_alike(healthy: Emission) -> None:
    again = simulate(HEALTHY).emission
    for name, table in healthy.tables.items():
        for column_name in table.schema.columns:
            assert np.array_equal(table[column_name], again.tables[name][column_name], equal_nan=True), (
                column_name
            )


def test_tables_are_in_event_time_and_slices_hold_every_row(healthy: Emission) -> None:
    for name in ("counters", "metrics"):
        assert np.all(np.diff(healthy.tables[name]["ts_ns"]) >= 0)
    counted = dict.fromkeys(healthy.tables, 0)
    for slice_ in sliced(healthy):
        for name in counted:
            table = slice_.tables[name]
            counted[name] += len(table)
            # A request or a flow is told of when it has ended, and dated by its beginning.
            if len(table) and name not in ("requests", "flow_records"):
                assert slice_.start_ns <= table["ts_ns"].min() <= table["ts_ns"].max() < slice_.end_ns
    assert counted["counters"] == len(healthy.tables["counters"])
    assert counted["metrics"] == len(healthy.tables["metrics"])


def test_counters_grow_but_for_wraps_and_are_read_once_a_second(healthy: Emission) -> None:
    port = HEALTHY.cluster.nic(3)
    times, values = column(healthy, "port.xmit_bytes", port)
    assert np.all(np.diff(values) >= 0)
    assert np.median(np.diff(times)) == pytest.approx(1.0, abs=0.1)
    assert np.all(values == np.floor(values))
    table, d = healthy.tables["counters"], healthy.directory
    wide = table["value"][table["kind"] == Kind.COUNTER32]
    assert wide.max() < 2**32
    assert d.names[int(table["name"][0])]


def test_narrow_counters_of_some_ports_are_saturated(healthy: Emission) -> None:
    _, values = column(healthy, "port.link_downed")
    assert 255.0 in values
    assert np.sum(values == 255.0) < len(values) / 2


def test_waiting_ranks_look_busy(healthy: Emission) -> None:
    _, active = column(healthy, "gpu.utilization_ratio")
    assert np.median(active) > 0.9
    _, tensor = column(healthy, "gpu.tensor_active_ratio")
    assert np.median(tensor) < 0.5


def test_histograms_are_cumulative(healthy: Emission) -> None:
    table, d = healthy.tables["metrics"], healthy.directory
    rows = table.take(table["name"] == d.names.id("engine.ttft_s"))
    last = rows["ts_ns"] == rows["ts_ns"][rows["entity"] == rows["entity"][0]].max()
    buckets = rows.take(last & (rows["kind"] == Kind.BUCKET))
    assert np.all(np.diff(buckets["value"][np.argsort(buckets["bound"])]) >= 0)
    assert buckets["value"].max() == rows["value"][last & (rows["kind"] == Kind.COUNT)].max()


def test_only_the_requester_counts_what_the_receiver_lost() -> None:
    drawn = draw("c25", 7, duration_s=40.0, strength=1e-3)
    emission = emit(simulate(drawn).run)
    gpu, peer = drawn.places["$gpu"][0], drawn.places["$peer_gpu"][0]
    grown = {}
    for name, of in (("out_of_sequence", gpu), ("packet_seq_err", peer), ("packet_seq_err", gpu)):
        _, values = column(emission, f"rdma.{name}", drawn.cluster.nic(of))
        grown[name, of] = values[-1] - values[0]
    assert grown["out_of_sequence", gpu] > 10
    assert grown["packet_seq_err", peer] == pytest.approx(grown["out_of_sequence", gpu], rel=0.2)
    assert grown["packet_seq_err", gpu] == 0


def test_clock_steps_move_what_the_host_stamps() -> None:
    drawn = draw("ok_clock_step.leap", 3, duration_s=30.0)
    emission = simulate(drawn).emission
    times, _ = column(emission, "host.load1", drawn.cluster.addresses[drawn.places["$host"][0]])
    assert times.max() - times.min() > 500


def test_the_engine_takes_the_slices() -> None:
    drawn = draw("ok_first_day.serving", 3, duration_s=20.0)
    emission = simulate(drawn, taps=True).emission
    features = load_features()
    conditions = [(c.entry, c.fresh()) for c in load_conditions().values()]
    seen: set[str] = set()

    def observe(_: object, rows: Mapping[str, FeatureRows]) -> None:
        seen.update(rows["endpoint"].keys)

    engine = Engine(Plan(features, conditions), [observe])
    for number, slice_ in enumerate(sliced(emission)):
        engine.feed(slice_)
        if number == 60:
            break
    assert {drawn.cluster.endpoint(r) for r in range(4)} <= seen
