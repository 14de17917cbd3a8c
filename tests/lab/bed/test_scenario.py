"""Scenarios: the shipped ones draw, draws stay in their ranges, mistakes are named."""

import copy
import math
from collections import Counter

import pytest

from skewscope.conditions.loader import load_all as load_conditions
from skewscope.core.entry import CULPRITS
from skewscope.lab.bed import catalogue, injector, scenario

CAUSES = (
    *("client", "gateway", "router", "scheduler", "workload", "host_cpu", "runtime", "gpu", "pcie"),
    *("nic", "link", "fabric", "peer", "config", "hardware", "security", "unknown"),
)


@pytest.fixture
def table():
    return copy.deepcopy(scenario.load("c20"))


@pytest.mark.parametrize("name", scenario.names())
def test_every_shipped_scenario_draws_and_fits_its_injectors(name):
    kinds = injector.load_all()
    table = scenario.load(name)
    assert set(table["cause_right"]) <= set(CAUSES)
    assert set(scenario.VARIANTS) - {"healthy"} <= set(table)
    for variant in scenario.VARIANTS:
        for seed in range(8):
            drawn = scenario.draw(f"{name}.{variant}", seed)
            for one in drawn.injections:
                assert set(one.settings) <= injector.settings_of(kinds[one.injector])
                assert one.strength > 0
            if drawn.expected.condition:
                assert drawn.expected.culprit_kind in CULPRITS
                assert drawn.topology.node(drawn.expected.culprit_node).addresses
            assert drawn.injections or variant == "healthy"
            assert drawn.visible or drawn.visible_count or variant != "faulty"


@pytest.mark.parametrize("name", scenario.names())
def test_a_shipped_scenario_is_named_like_its_condition(name):
    table = scenario.load(name)
    number, _, slug = name.partition("_")
    assert table["condition"] == number
    known = load_conditions()
    if number in known:
        assert slug.startswith(known[number].entry.slug)


def test_the_same_seed_draws_the_same_and_another_seed_something_else():
    assert scenario.draw("c20", 3) == scenario.draw("c20", 3)
    drawn = [scenario.draw("c20", s) for s in range(12)]
    assert len({d.topology.nodes[0].address for d in drawn}) == 12
    assert len({d.injections[0].strength for d in drawn}) == 12
    assert len({d.expected.culprit_node for d in drawn}) > 1


def test_healthy_and_faulty_of_a_seed_have_the_same_bed():
    healthy, faulty = scenario.draw("c20.healthy", 5), scenario.draw("c20.faulty", 5)
    assert healthy.topology == faulty.topology
    assert healthy.workload == faulty.workload
    assert not healthy.injections
    assert not healthy.expected.condition


def test_strengths_are_drawn_log_uniform(table):
    table["faulty"] = {
        **table["faulty"],
        "one_of": False,
        "inject": [{"injector": "loss", "node": "$rank", "strength": {"log": [1, 100]}}],
    }
    logs = [math.log10(scenario.draw_table(table, "faulty", s).injections[0].strength) for s in range(400)]
    thirds = Counter(int(x * 1.5) for x in logs)
    assert all(95 <= thirds[k] <= 175 for k in range(3))


def test_names_are_replaced_in_text_and_lists(table):
    table["faulty"]["one_of"] = False
    table["faulty"]["inject"] = [{"injector": "cpu_hog", "processes": "$each_rank", "cpu": 0}]
    drawn = scenario.draw_table(table, "faulty", 1)
    assert drawn.injections[0].settings["processes"] == [
        f"rank-{n.name}" for n in drawn.topology.of_role("rank")
    ]


def test_a_variant_overrides_single_settings_of_the_workload(table):
    table["near_miss"]["workload"] = {"slots": 3}
    drawn = scenario.draw_table(table, "near_miss", 1)
    assert drawn.workload.slots == 3
    assert 8 <= drawn.workload.compute_ms <= 25


def test_the_noise_level_can_be_set():
    assert scenario.draw("c20", 1, noise="high").workload.noise == "high"
    assert scenario.draw("c20", 1).workload.noise == "mid"


def test_a_topology_and_a_trace_can_take_the_place_of_the_scenario_s_own(tmp_path):
    text = '[[node]]\nnames = ["a", "b"]\nrole = "rank"\n[[node]]\nnames = ["c"]\nrole = "client"\n'
    drawn = scenario.draw("c20", 1, shape=text)
    assert [n.name for n in drawn.topology.nodes] == ["a", "b", "c"]
    traced = scenario.with_trace(drawn, tmp_path / "trace.csv", 2.5)
    main = traced.workload.clients["main"]
    assert (main["rate"], main["trace"]) == (2.5, str(tmp_path / "trace.csv"))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"topology": "nonsense"}, "no topology"),
        ({"workload": {"colour": 1}}, "unknown keys"),
        ({"workload": {"compute_ms": {"log": [3, 1]}}}, "low <= high"),
        ({"faulty": {"inject": [{"strength": 1}], "at": "$rank", "culprit": "rank"}}, "injector"),
        ({"faulty": {"inject": [{"injector": "mtu", "node": "$king"}]}}, "unknown name"),
    ],
)
def test_a_wrong_scenario_is_refused_by_name(table, change, word):
    with pytest.raises(scenario.ScenarioError, match=word):
        scenario.draw_table({**table, **change}, "faulty", 1)


@pytest.mark.parametrize("name", ["c99", "", "c20.nonsense", "c2"])
def test_an_unknown_scenario_is_refused(name):
    with pytest.raises(scenario.ScenarioError):
        scenario.draw(name, 1)


def test_a_quick_suite_shortens_but_never_under_two_seconds():
    drawn = scenario.draw("c20", 1)
    short = scenario.scaled(drawn, 0.01)
    assert (short.lead_s, short.fault_s, short.after_s) == (2.0, 2.0, 1.0)


def test_a_calm_engine_computes_longer_and_is_otherwise_the_same():
    drawn = scenario.draw("c20", 1)
    calm = scenario.scaled(drawn, 1.0, calm=1.5)
    assert calm.workload.compute_ms == 1.5 * drawn.workload.compute_ms
    assert (calm.lead_s, calm.fault_s, calm.injections) == (drawn.lead_s, drawn.fault_s, drawn.injections)


def test_a_stretched_case_has_its_change_in_the_middle():
    long = scenario.stretched(scenario.draw("c20.near_miss", 1), 100.0)
    assert (long.lead_s, long.fault_s, long.after_s) == pytest.approx((30.0, 40.0, 30.0))


def test_the_catalogue_counts_what_is_there_and_what_is_missing():
    there = {r.name.partition("_")[0] for r in catalogue.rows()}
    assert there | set(catalogue.missing()) >= set(catalogue.WANTED)
    assert not there & set(catalogue.missing())
