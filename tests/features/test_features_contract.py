"""What every feature family must do: any cut of the input, one series; bounded memory; gaps show."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from skewscope.core.directory import Directory
from skewscope.core.features import FeatureRows
from skewscope.core.scenario import Fault, Scenario, Workload
from skewscope.engine.slices import slices
from skewscope.features.loader import load_all
from skewscope.lab.synth import capture
from skewscope.sources import captures as source

SCOPES = [f.SPEC.scope for f in load_all()]
RUN = Scenario(
    "mixed",
    "faulty",
    duration_s=2.0,
    seed=8,
    workload=Workload(own_s=0.01, answer_tokens=12),
    faults=(Fault("loss", 0.6, 1.2, 1, 0.04), Fault("overload", 1.2, 1.8, -1, 3.0)),
)
GAP = Scenario("gap", "healthy", duration_s=3.0, seed=9, workload=Workload(own_s=0.01))
GAP_S = (1.2, 1.8)
MEASURED = ("own_s", "inside_s", "wait_s", "rtt_s", "transit_s", "interval_s", "ttft_s")

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return lay(tmp_path_factory.mktemp("run"), capture(RUN)[0])


def lay(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (folder / f"{name}.pcap").write_bytes(data)
    return folder


def windows(folder: Path, features=None):
    """Yield (start_ns, rows of every scope) for a folder of captures."""
    directory = Directory()
    taps = source.open_captures(sorted(folder.glob("*.pcap")), directory, pytest.fail)
    features = load_all() if features is None else features
    for slice_ in slices([t.batches() for t in taps], directory):
        rows: dict[str, FeatureRows] = {}
        with np.errstate(invalid="ignore", divide="ignore"):
            for feature in features:
                rows[feature.SPEC.scope] = feature.update(slice_, rows)
        yield slice_.start_ns, rows
    for tap in taps:
        tap.close()


def table(folder: Path):
    """Return {scope: {(start, key): {column: value}}}."""
    found = {scope: {} for scope in SCOPES}
    for start, rows in windows(folder):
        for scope, made in rows.items():
            for i, key in enumerate(made.keys):
                found[scope][start, key] = {n: float(v[i]) for n, v in made.columns.items()}
    return found


@pytest.fixture(scope="module")
def whole(run):
    return table(run)


@pytest.fixture(scope="module", params=[1 << 13, 1 << 16])
def cut(run, request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "BLOCK_BYTES", request.param)
        return table(run)


@pytest.mark.parametrize("scope", SCOPES)
def test_any_cut_of_the_input_gives_the_same_series(scope, whole, cut):
    assert whole[scope].keys() == cut[scope].keys()
    for at, expected in whole[scope].items():
        for name, value in expected.items():
            np.testing.assert_allclose(cut[scope][at][name], value, rtol=1e-9, err_msg=f"{at} {name}")


@pytest.mark.parametrize("scope", SCOPES)
def test_rows_have_the_declared_columns(scope, whole):
    (spec,) = [f.SPEC for f in load_all() if f.SPEC.scope == scope]
    assert all(c.unit and c.doc for c in spec.columns.values())
    for columns in whole[scope].values():
        assert set(columns) == set(spec.columns)
        assert not any(np.isinf(list(columns.values())))


@pytest.mark.parametrize("scope", SCOPES)
def test_counts_are_never_negative(scope, whole):
    (spec,) = [f.SPEC for f in load_all() if f.SPEC.scope == scope]
    counted = [
        n for n, c in spec.columns.items() if c.unit == "bytes" or n.endswith(("_packets", "segments"))
    ]
    for columns in whole[scope].values():
        assert all(columns[n] >= 0 or np.isnan(columns[n]) for n in counted)


def weight(thing, seen=None) -> int:
    """Return the bytes held below an object: arrays, containers and attributes."""
    seen = set() if seen is None else seen
    if id(thing) in seen:
        return 0
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    size = sys.getsizeof(thing, 64)
    if isinstance(thing, dict):
        return size + sum(weight(k, seen) + weight(v, seen) for k, v in thing.items())
    if isinstance(thing, (list, tuple, set, frozenset)) or type(thing).__name__ == "deque":
        return size + sum(weight(v, seen) for v in thing)
    held = getattr(thing, "__dict__", None) or {
        n: getattr(thing, n) for n in getattr(type(thing), "__slots__", ()) if hasattr(thing, n)
    }
    return size + sum(weight(v, seen) for v in held.values() if not callable(v) or hasattr(v, "__dict__"))


@pytest.mark.slow
def test_memory_is_bounded(tmp_path):
    """The same traffic for twice as long holds no more than new connections cost."""
    steady = Scenario(
        "long", "healthy", duration_s=8.0, seed=12, workload=Workload(own_s=0.02, answer_tokens=20)
    )
    folder = lay(tmp_path, capture(steady)[0])
    features = load_all()
    held: list[dict[str, int]] = []
    for number, _ in enumerate(windows(folder, features)):
        if number in (39, 77):
            held.append({f.SPEC.scope: weight(vars(f)) for f in features})
    early, late = held
    for scope, size in early.items():
        assert late[scope] <= 1.6 * size + 32_768, f"{scope}: {size} bytes after 4 s, {late[scope]} after 8 s"


def without(data: bytes, first_ns: int, last_ns: int) -> bytes:
    """Return a capture without the records of a span: the collector was away."""
    out, at = [data[:24]], 24
    while at < len(data):
        second, nano, kept, _ = struct.unpack_from("<IIII", data, at)
        if not first_ns <= second * 1_000_000_000 + nano < last_ns:
            out.append(data[at : at + 16 + kept])
        at += 16 + kept
    return b"".join(out)


@pytest.fixture(scope="module")
def gap(tmp_path_factory):
    files, truth = capture(GAP)
    first = truth["first_sample_ns"]
    span = [first + int(s * 1e9) for s in GAP_S]
    files = {name: without(data, *span) for name, data in files.items()}
    return span, truth, table(lay(tmp_path_factory.mktemp("gap"), files))


@pytest.mark.parametrize("scope", SCOPES)
def test_a_gap_in_the_capture_is_marked(scope, gap):
    """Inside a gap nothing is measured: times and sizes are unknown or the row is absent, never zero."""
    (first, last), _, found = gap
    (spec,) = [f.SPEC for f in load_all() if f.SPEC.scope == scope]
    measured = [n for n in MEASURED if n in spec.columns]
    inside = [
        c for (start, _), c in found[scope].items() if first + 100_000_000 <= start < last - 200_000_000
    ]
    for columns in inside:
        assert all(np.isnan(columns[n]) for n in measured)


def test_features_go_on_after_a_gap(gap):
    (_, last), _truth, found = gap
    own = [c["own_s"] for (start, _), c in found["member"].items() if start > last + 300_000_000]
    assert len(own) > 20
    assert np.isfinite(own).mean() > 0.8
    assert 0.008 < np.nanmedian(own) < 0.013
