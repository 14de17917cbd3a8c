"""Members against their peers and against what is usual for them, on synthetic captures."""

from __future__ import annotations

from functools import cache

import numpy as np

from skewscope.core.directory import Directory
from skewscope.core.scenario import Fault, Scenario, Workload
from skewscope.engine.slices import slices
from skewscope.features.loader import load_all
from skewscope.lab import synth
from skewscope.sources.captures import open_captures

BASE = Workload(own_s=0.02, own_spread=0.02)
START_S, END_S = 1.2, 2.2


@cache
def judged(folder, kind: str, **_):
    """Return (truth, [(seconds, member rows)]) of a run with one fault on member 1."""
    strength = {"straggler": 1.5, "pause": 0.2, "none": 1.0}[kind]
    faults = () if kind == "none" else (Fault(kind, START_S, END_S, 1, strength, period_s=5.0),)
    truth = synth.write(
        Scenario(kind, "healthy", duration_s=2.6, seed=77, workload=BASE, faults=faults), folder
    )
    directory = Directory()
    captures = open_captures(sorted(folder.glob("*.pcap")), directory, lambda line: None)
    families, seen = load_all(), []
    for one in slices([c.batches() for c in captures], directory):
        rows = {}
        with np.errstate(all="ignore"):
            for family in families:
                rows[family.SPEC.scope] = family.update(one, rows)
        seen.append(((one.start_ns - truth["first_sample_ns"]) / 1e9, rows["member"]))
    for capture in captures:
        capture.close()
    return truth, seen


def known(seen, name, keys, start=0.0, end=9.0):
    """Return the known values of a column at some members within a time."""
    found = []
    for at, rows in seen:
        if start <= at < end:
            found += [rows.columns[name][i] for i, k in enumerate(rows.keys) if k in keys]
    column = np.array(found, dtype=np.float64)
    return column[np.isfinite(column)]


def parties(truth):
    """Return (the member under the fault, its peers)."""
    nodes = [a for name, a in truth["hosts"].items() if name.startswith("n")]
    return [truth["hosts"]["n1"]], [a for a in nodes if a != truth["hosts"]["n1"]]


def test_equal_members_have_hardly_any_excess(tmp_path):
    truth, seen = judged(tmp_path, "none")
    late, peers = parties(truth)
    assert len(known(seen, "excess_ratio", late + peers)) > 40
    assert np.abs(known(seen, "excess_ratio", late + peers, start=1.0)).max() < 0.12


def test_the_late_member_stands_out_and_its_peers_do_not(tmp_path):
    truth, seen = judged(tmp_path, "straggler")
    late, peers = parties(truth)
    during = {"start": START_S + 0.2, "end": END_S - 0.1}
    assert np.median(known(seen, "excess_ratio", late, **during)) > 0.3
    assert np.median(known(seen, "busy_s", late, **during)) > 1.3 * np.median(
        known(seen, "peers_busy_s", late, **during)
    )
    assert np.median(known(seen, "excess_ratio", peers, **during)) < 0.1
    assert known(seen, "late_rounds", peers, **during).sum() == 0


def test_what_is_usual_is_not_learned_from_the_fault(tmp_path):
    truth, seen = judged(tmp_path, "straggler")
    late, _ = parties(truth)
    ending = known(seen, "excess_ratio", late, END_S - 0.3, END_S)
    after = known(seen, "excess_ratio", late, END_S + 0.2)
    assert np.median(ending) > 0.3
    assert np.abs(np.median(after)) < 0.1


def test_one_long_pause_is_dated_from_where_it_began(tmp_path):
    truth, seen = judged(tmp_path, "pause")
    late, peers = parties(truth)
    at, rows = max(seen, key=lambda s: np.nan_to_num(known([s], "pause_ratio", late)).max(initial=0.0))
    row = list(rows.keys).index(late[0])
    assert rows.columns["excess_max_s"][row] > 0.15
    assert rows.columns["pause_tail_ratio"][row] > 4
    began = (rows.onset_ns["excess_max_s"][row] - truth["first_sample_ns"]) / 1e9
    assert START_S - 0.03 <= began <= START_S + 0.03
    assert at >= began
    assert known(seen, "pause_ratio", peers).max() < 2.0
