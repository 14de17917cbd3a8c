"""What every condition must do. Runs for each one that the loader finds; there is no exemption list."""

from __future__ import annotations

import ast
import builtins
import inspect
import io
import random
import re
import socket
import time
import tracemalloc

import numpy as np
import pytest

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, NO_DATA
from skewscope.core.directory import Directory
from skewscope.core.features import FeatureRows, Slice
from skewscope.engine.judge import BASELINE, Judge
from skewscope.engine.sight import Sight
from skewscope.features.loader import load_all as load_features
from tests.conditions.recording import Bare, Bench, bare, record, same
from tools.entries import HEADINGS, split_sections

CONDITIONS = load_all()
SPECS = {f.SPEC.scope: f.SPEC for f in load_features()}
SCOPES = 10_000
STEP_LIMIT_S = 0.25
"""For 10,000 scopes: a tenth of a second of event time must take far less on a slow machine."""
GROWTH_LIMIT_BYTES = 256 * 1024
DAY_NS = 86_400_000_000_000

pytestmark = [
    pytest.mark.filterwarnings("error"),
    pytest.mark.parametrize("condition", CONDITIONS.values(), ids=list(CONDITIONS)),
]


@pytest.fixture(scope="module")
def runs():
    return record()


@pytest.fixture
def windows(condition, runs):
    """Return the longest run's windows of this condition; empty only where no run has its scope."""
    return max((bare(condition, run[condition.entry.scope]) for run in runs), key=len)


@pytest.fixture
def every_run(condition, runs):
    return [bare(condition, run[condition.entry.scope]) for run in runs]


def needs_windows(windows):
    if not windows:
        pytest.skip("no synthetic run shows the needed features together; the scenarios cover it")


# --- the entry ------------------------------------------------------------------------------------


def test_docstring_has_every_heading_and_text(condition):
    sections = split_sections(condition.doc)
    assert [h for h in HEADINGS if not sections.get(h)] == []
    assert list(sections) == list(HEADINGS)


def test_scope_and_needs_exist_as_features(condition):
    assert condition.entry.scope in SPECS
    assert sorted(set(condition.entry.needs) - set(SPECS[condition.entry.scope].columns)) == []
    assert condition.entry.needs


def test_every_threshold_is_read_by_the_detector(condition):
    tree = ast.parse(inspect.getsource(inspect.getmodule(condition.detector)))
    read = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert sorted(set(condition.entry.params.thresholds) - read) == []


def test_every_need_is_read_by_the_detector(condition):
    tree = ast.parse(inspect.getsource(inspect.getmodule(condition.detector)))
    named = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert sorted(set(condition.entry.needs) - named) == []


def test_hidden_conditions_and_evidence_in_causes_exist(condition):
    entry = condition.entry
    assert sorted({h.condition for h in entry.hides} - set(CONDITIONS)) == []
    assert all(h.condition != entry.id or h.where != "same" for h in entry.hides)
    assert all(re.fullmatch(r"c\d\d", other) for other in entry.separates)
    named = {rule.when.name for rule in entry.causes if rule.when is not None}
    assert sorted(named - set(entry.evidence)) == []
    # Without evidence for any of the others, some cause must remain.
    assert any(rule.when is None for rule in entry.causes)


def test_timing_can_fire_and_actions_can_be_undone(condition):
    timing = condition.entry.timing
    assert 1 <= timing.fire <= timing.of
    assert timing.keep_s > 0
    assert condition.entry.actions
    assert all(a.reversible or a.risk != "none" for a in condition.entry.actions)


# --- the answer -----------------------------------------------------------------------------------


def test_verdicts_have_the_declared_shape(condition, every_run):
    for windows in every_run:
        bench = Bench(condition)
        for window in windows:
            check_shape(condition, window, bench.step(window))


def check_shape(condition, window, verdicts):
    rows = len(window.keys)
    for column in (verdicts.state, verdicts.score, verdicts.onset_ns, *verdicts.evidence.values()):
        assert np.shape(column) == (rows,)
    assert np.isin(verdicts.state, (CLEAR, FINDING, NO_DATA)).all()
    assert np.asarray(verdicts.onset_ns).dtype == np.int64
    assert (np.isfinite(verdicts.score) & (verdicts.score >= 0) & (verdicts.score <= 1)).all()
    named = set(condition.entry.evidence)
    baselines = {f"{name}{BASELINE}" for name in named}
    assert named <= set(verdicts.evidence) <= named | baselines
    found = verdicts.state == FINDING
    assert not any(np.isinf(column).any() for column in verdicts.evidence.values())
    assert (np.asarray(verdicts.onset_ns)[found] <= window.end_ns).all()


def test_saving_and_restoring_in_the_middle_changes_nothing(condition, every_run):
    for windows in every_run:
        through = Bench(condition).answers(windows)
        first = Bench(condition)
        half = len(windows) // 2
        before = first.answers(windows[:half])
        store = io.BytesIO()
        np.savez(store, **first.state)
        store.seek(0)
        second = Bench(condition)
        second.slots = dict(first.slots)
        with np.load(store) as saved:
            second.state = {name: saved[name] for name in first.state}
        same(through, before + second.answers(windows[half:]))


def test_permuting_scopes_permutes_rows(condition, every_run):
    rng = np.random.default_rng(11)
    for windows in every_run:
        mixed = [w.take(rng.permutation(len(w.keys))) for w in windows]
        same(Bench(condition).answers(windows), Bench(condition).answers(mixed))


def test_a_scope_alone_answers_as_in_a_crowd(condition, every_run):
    for windows in every_run:
        crowd = Bench(condition).answers(windows)
        keys = sorted({k for w in windows for k in w.keys})
        for key in keys[:8]:
            alone = [w.take([w.keys.index(key)]) for w in windows if key in w.keys]
            same([{key: answer[key]} for answer in crowd if key in answer], Bench(condition).answers(alone))


def test_a_shift_in_time_changes_only_times(condition, every_run):
    for windows in every_run:
        moved = [w.shifted(DAY_NS) for w in windows]
        same(Bench(condition).answers(windows), Bench(condition).answers(moved, DAY_NS))


def test_the_same_input_gives_the_same_answer(condition, windows):
    needs_windows(windows)
    same(Bench(condition).answers(windows), Bench(condition).answers(windows))


# --- bad input ------------------------------------------------------------------------------------


def test_each_unknown_need_is_no_data_and_harms_nobody_else(condition, windows):
    """The engine keeps such rows from the detector: they never fire and are counted as not judged."""
    needs_windows(windows)
    clean = judge(condition, windows)
    for name in condition.entry.needs:
        blinded = judge(condition, [with_blank(w, name) for w in windows])
        assert blinded.judged == clean.judged
        assert found(blinded) == found(clean)
        nothing = judge(condition, [with_blank(w, name).take([len(w.keys)]) for w in windows])
        assert nothing.judged == 0
        assert name not in nothing.known
        assert found(nothing) == []


def judge(condition, windows):
    judge = Judge(condition.entry, condition.fresh())
    for w in windows:
        rows = FeatureRows(condition.entry.scope, list(w.keys), dict(w.columns), dict(w.onset))
        judge.step(Slice(w.start_ns, w.end_ns, {}, Directory()), rows, Sight())
    return judge


def found(judge):
    return [(f.key, f.onset_ns, f.score) for f in judge.open_findings()]


def with_blank(window, name):
    """Add a copy of the first row in which one feature is unknown."""
    rows = window.take([*range(len(window.keys)), 0])
    columns = {n: v.copy() for n, v in rows.columns.items()}
    columns[name][-1] = np.nan
    return Bare(window.start_ns, window.end_ns, (*window.keys, "blank"), columns, rows.onset)


def test_columns_beyond_the_needs_serve_as_evidence_only(condition, every_run):
    """What is not declared as a need may be unknown at any time: the judgement must not rest on it."""
    for windows in every_run:
        blind = []
        for w in windows:
            columns = {
                n: v if n in condition.entry.needs else np.full(len(v), np.nan) for n, v in w.columns.items()
            }
            blind.append(Bare(w.start_ns, w.end_ns, w.keys, columns, w.onset))
        seen, unseen = Bench(condition).answers(windows), Bench(condition).answers(blind)
        same(judgements(seen), judgements(unseen))


def judgements(answers):
    return [{key: answer[:3] for key, answer in window.items()} for window in answers]


def test_duplicate_and_late_windows_do_not_raise(condition, windows):
    needs_windows(windows)
    bench = Bench(condition)
    for i, window in enumerate(windows):
        for again in (window, window, windows[max(0, i - 5)]):
            check_shape_of_answer(bench.step(again), len(again.keys))


def check_shape_of_answer(verdicts, rows):
    assert len(verdicts.state) == rows
    assert (np.isfinite(verdicts.score) & (verdicts.score >= 0) & (verdicts.score <= 1)).all()


def test_empty_windows_do_not_raise(condition):
    columns = {n: np.zeros(0) for n in SPECS[condition.entry.scope].columns}
    verdicts = Bench(condition).step(Bare(1, 2, (), columns, {}))
    assert len(verdicts.state) == 0


def test_hostile_values_do_not_raise(condition, runs):
    """Zeros, resets, and each feature's own values in combinations that no run shows."""
    pool = {
        name: np.concatenate(
            [np.zeros(4)]
            + [np.asarray(w.rows.columns[name], dtype=float) for r in runs for w in r[condition.entry.scope]]
        )
        for name in SPECS[condition.entry.scope].columns
    }
    rng = np.random.default_rng(5)
    bench = Bench(condition)
    keys = tuple(f"s{i}" for i in range(64))
    for step in range(40):
        columns = {}
        for name, values in pool.items():
            known = values[np.isfinite(values)] if name in condition.entry.needs else values
            most = 1.0 if SPECS[condition.entry.scope].columns[name].unit == "1" else 1000.0
            columns[name] = rng.choice(known, 64) * rng.choice([0.0, 1.0, 1.0, most], 64)
        start = 1_700_000_000_000_000_000 + step * 100_000_000
        check_shape_of_answer(bench.step(Bare(start, start + 100_000_000, keys, columns, {})), 64)


# --- purity and cost ------------------------------------------------------------------------------


def test_step_touches_no_clock_file_socket_or_global_random(condition, windows, monkeypatch):
    needs_windows(windows)
    bench = Bench(condition)
    bench.step(windows[0])

    def forbidden(*_args, **_kwargs):
        raise AssertionError("a detector has no clock, no I/O and no randomness")

    with monkeypatch.context() as patch:
        for module, names in {
            time: (
                "time",
                "time_ns",
                "monotonic",
                "monotonic_ns",
                "perf_counter",
                "perf_counter_ns",
                "sleep",
            ),
            builtins: ("open", "input", "print"),
            socket: ("socket", "create_connection"),
            random: ("random", "seed", "choice", "randint", "uniform"),
            np.random: ("random", "rand", "randn", "randint", "normal", "uniform", "seed", "default_rng"),
        }.items():
            for name in names:
                patch.setattr(module, name, forbidden)
        for window in windows[1:20]:
            bench.step(window)


def test_ten_thousand_scopes_stay_within_bounds(condition, windows):
    needs_windows(windows)
    detector = Bench(condition, SCOPES)
    big = [crowd(w) for w in windows[len(windows) // 2 :][:12]]
    detector.step(big[0])
    times = []
    for window in big:
        start = time.process_time()
        detector.step(window)
        times.append(time.process_time() - start)
    assert min(times) < STEP_LIMIT_S
    assert all(v.nbytes == 8 * SCOPES for v in detector.state.values()), "state is one float64 per scope"
    assert len(detector.state) <= 8

    tracemalloc.start()
    try:
        detector.step(big[-1])
        before = tracemalloc.get_traced_memory()[0]
        for window in big:
            detector.step(window.shifted(60_000_000_000))
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < GROWTH_LIMIT_BYTES, "a detector keeps nothing outside its state arrays"


def crowd(window: Bare) -> Bare:
    rows = np.arange(SCOPES) % len(window.keys)
    many = window.take(rows)
    keys = tuple(f"s{i}" for i in range(SCOPES))
    return Bare(many.start_ns, many.end_ns, keys, many.columns, many.onset)
