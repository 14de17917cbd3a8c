"""Every condition's scenarios through the whole product: what fires, when, whom it names, what stays silent.

`expect.toml` of a condition:

    max_delay_s = 1.0          # from the onset to the last sample that the finding needed
    may_also_fire = ["c01"]    # other conditions that any of its scenarios may show
    culprit = false            # optional: the culprit's address is not told by these captures
"""

from __future__ import annotations

import importlib
import tomllib
from functools import cache
from importlib import resources

import pytest

from skewscope.conditions.loader import load_all
from skewscope.core.scenario import Scenario
from skewscope.lab.synth import Truth
from tests.conditions.reports import Reports

CONDITIONS = load_all()
ROLES = ("healthy", "faulty", "near_miss", "recovering")
EARLY_NS = 250_000_000
"""An onset may be dated this much before the injection: windows are a tenth of a second, steps too."""

pytestmark = [pytest.mark.slow]


def folder_of(id_):
    return f"{id_}_{CONDITIONS[id_].entry.slug}"


@cache
def scenarios_of(id_) -> tuple[Scenario, ...]:
    module = importlib.import_module(f"skewscope.conditions.{folder_of(id_)}.scenario")
    return module.SCENARIOS


@cache
def expectations(id_):
    root = resources.files("skewscope.conditions")
    return tomllib.loads(root.joinpath(folder_of(id_), "expect.toml").read_text(encoding="utf-8"))


def has_scenario(id_):
    root = resources.files("skewscope.conditions")
    return root.joinpath(folder_of(id_), "scenario.py").is_file()


CASES = [(id_, s) for id_ in CONDITIONS if has_scenario(id_) for s in scenarios_of(id_)]
each_case = pytest.mark.parametrize(("id_", "scenario"), CASES, ids=[f"{i}-{s.name}" for i, s in CASES])
each_condition = pytest.mark.parametrize("id_", list(CONDITIONS))


@pytest.fixture(scope="module")
def reports(request):
    """Start on every scenario that the selected tests need; each is run once."""
    pytest.importorskip("skewscope.app.pipeline")
    needed = [
        item.callspec.params["scenario"]
        for item in request.session.items
        if item.module is request.module and "reports" in item.fixturenames
    ]
    made = Reports(needed)
    yield made
    made.close()


def of_condition(report, id_):
    return [i for i in report.incidents if i.condition == id_]


def told(report) -> str:
    return "; ".join(
        f"{i.condition} {i.culprits[0].id if i.culprits else '-'} at {i.onset_ns}..{i.detected_ns}"
        for i in report.incidents
    )


@each_condition
def test_scenarios_and_expectations_are_complete(id_):
    assert has_scenario(id_), "scenario.py is missing"
    roles = {s.role for s in scenarios_of(id_)}
    assert roles == set(ROLES), f"roles are {sorted(roles)}"
    names = [s.name for s in scenarios_of(id_)]
    assert len(set(names)) == len(names)
    wanted = expectations(id_)
    assert set(wanted) <= {"max_delay_s", "may_also_fire", "culprit"}
    assert wanted["max_delay_s"] > 0
    assert sorted(set(wanted["may_also_fire"]) - set(CONDITIONS)) == []
    assert id_ not in wanted["may_also_fire"]
    for scenario in scenarios_of(id_):
        assert bool(scenario.faults) or scenario.role == "healthy"


@each_case
def test_only_the_expected_conditions_fire(id_, scenario, reports):
    report, _ = reports.of(scenario)
    allowed = set(expectations(id_)["may_also_fire"])
    if scenario.role in ("faulty", "recovering"):
        allowed.add(id_)
    assert {i.condition for i in report.incidents} <= allowed, told(report)


@each_case
def test_it_fires_in_time_and_names_the_culprit(id_, scenario, reports):
    if scenario.role not in ("faulty", "recovering"):
        pytest.skip("nothing to find")
    report, truth = reports.of(scenario)
    (first, *_) = truth["fault"]
    fired = of_condition(report, id_)
    assert fired, f"silent; told: {told(report)}"
    earliest = min(fired, key=lambda i: i.detected_ns)
    delay_s = (earliest.detected_ns - first["onset_ns"]) / 1e9
    assert delay_s <= expectations(id_)["max_delay_s"], told(report)
    assert earliest.detected_ns >= first["onset_ns"], "fired before anything was wrong"
    assert earliest.onset_ns >= first["onset_ns"] - EARLY_NS
    if expectations(id_).get("culprit", True):
        assert names(earliest, truth), f"{first['culprit']} is not the first of {earliest.culprits}"


def names(incident, truth: Truth) -> bool:
    wanted = truth["fault"][0]["culprit_ids_right"]
    parts = incident.culprits[0].id.replace("->", " ").split() if incident.culprits else []
    return bool({p.rsplit(":", 1)[0] for p in parts} & set(wanted))


@each_case
def test_it_ends_after_recovery(id_, scenario, reports):
    if scenario.role != "recovering":
        pytest.skip("only a recovering scenario ends")
    report, truth = reports.of(scenario)
    ended = max(f["end_ns"] for f in truth["fault"])
    for incident in of_condition(report, id_):
        assert incident.end_ns is not None, told(report)
        assert incident.end_ns - ended < (CONDITIONS[id_].entry.timing.keep_s + 1.5) * 1e9
