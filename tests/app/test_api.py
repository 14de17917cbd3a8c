"""The public Python API."""

import sys
from pathlib import Path

import numpy as np
import pytest

import skewscope
from skewscope.app import api
from skewscope.core.directory import Directory
from skewscope.core.schemas import COUNTERS, PACKETS
from skewscope.core.tables import Table
from tests.app import example_report


def test_diagnose_takes_one_path_or_many(fake_pipeline, capture):
    seen: list[list[Path]] = []

    def run(paths, progress=None, stop=None, first=None, check_icrc=False, explain=False):
        seen.append(list(paths))
        return example_report.straggler()

    fake_pipeline(run)
    for paths in (capture, str(capture), [capture], capture.parent):
        report = skewscope.diagnose(paths)
        assert isinstance(report, skewscope.Report)
        assert report.incidents[0].culprits[0].id == "10.77.0.12"
    assert seen == [[capture]] * 4


def test_a_path_that_names_nothing(fake_pipeline, tmp_path):
    fake_pipeline(lambda paths, **_: example_report.straggler())
    with pytest.raises(api.InputError, match=r"missing\.pcap: no such file"):
        api.diagnose([tmp_path / "missing.pcap"])
    with pytest.raises(api.InputError, match="no paths"):
        api.diagnose([])


@pytest.fixture
def packets(fake_pipeline, capture):
    fake_pipeline(lambda paths, **_: example_report.straggler())
    table = Table(PACKETS, {"ts_ns": np.array([5, 6])})
    sys.modules["skewscope.app.pipeline"].read_all = lambda paths: ({"packets": table}, Directory())  # type: ignore[attr-defined]
    return capture


def test_tables_as_arrow_pandas_polars(packets):
    assert api.tables(packets, "packets").column("ts_ns").to_pylist() == [5, 6]
    for format in ("pandas", "polars"):
        pytest.importorskip(format)
        assert list(api.tables(packets, "packets", format)["ts_ns"]) == [5, 6]


def test_unknown_table_and_format(packets):
    with pytest.raises(KeyError, match="there are packets"):
        api.tables(packets, "nothing")
    with pytest.raises(ValueError, match="arrow, pandas or polars"):
        api.tables(packets, "packets", "csv")  # type: ignore[arg-type]


def test_ids_of_readings_are_texts():
    directory = Directory(sources=["f"])
    row = {
        "ts_ns": [5],
        "entity": [directory.entities.id("h/gpu0")],
        "name": [directory.names.id("gpu.power_w")],
    }
    table = Table(COUNTERS, {k: np.array(v) for k, v in row.items()})
    assert api._with_texts("counters", table.to_arrow(), directory).select(
        ["source", "entity", "name"]
    ).to_pylist() == [{"source": "f", "entity": "h/gpu0", "name": "gpu.power_w"}]
