"""`skewscope explain` and `skewscope conditions`."""

import io
import tomllib

import pytest
from click.testing import CliRunner

from skewscope.app import catalog
from skewscope.app.cli import main
from skewscope.app.render import runbook
from skewscope.app.render.terminal import console
from skewscope.core.entry import parse_entry

ENTRY = """
number = 20
slug = "tp_straggler"
title = "One rank is slow in every round"
status = "beta"
severity = "major"
plane = "east_west"
scope = "member"
meaning = "A rank is late."
impact = "All wait."
diagnosis = '''
1. Look at its own time.
2. Look at its host.'''
mitigation = "Take it out."
false_positives = ["a longer prompt on one rank"]
references = ["field reports"]
[needs]
own_time_s = "it grows"
[thresholds.excess]
value = 1.2
unit = "1"
why = "healthy runs stay below 1.1"
[evidence]
own_time_s = "s"
[[causes]]
class = "host_cpu"
weight = 3.0
if_evidence = "own_time_s > 0.01"
[[causes]]
class = "gpu"
weight = 1.0
[culprit]
kind = "rank"
[[hides]]
condition = "c06"
where = "group"
[[actions]]
id = "lower_weight"
text = "Lower the weight of the replica"
risk = "low"
reversible = true
verify = "own time is back"
[separates]
c23 = "transit grew there, own time here"
"""


@pytest.fixture
def entry(monkeypatch):
    made = parse_entry("c20_tp_straggler", tomllib.loads(ENTRY))
    for module in (catalog, runbook):
        monkeypatch.setattr(module, "load_entries", lambda: {"c20": made})
    return made


@pytest.mark.parametrize("name", ["c20", "20", "tp_straggler", "tp-straggler", "c20_tp_straggler", "C20"])
def test_found_by_any_name(entry, name):
    assert catalog.find(name) is entry


def test_explains_everything_that_decides(entry):
    text = " ".join(CliRunner().invoke(main, ["explain", "c20"]).stdout.split())
    for part in (
        "c20 tp_straggler: One rank is slow in every round",
        "A rank is late.",
        "1. Look at its own time. 2. Look at its host.",
        "excess = 1.2: healthy runs stay below 1.1",
        "host_cpu: prior 75 %, if own_time_s > 0.01",
        "gpu: prior 25 %",
        "c06: in the same group",
        "Lower the weight of the replica (low risk, reversible): own time is back",
        "c23: transit grew there, own time here",
        "a longer prompt on one rank",
    ):
        assert part in text, part


def test_lists(entry):
    for arguments in (["explain"], ["explain", "--list"], ["conditions"]):
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0
        assert "tp_straggler" in result.stdout


def test_unknown_name(entry):
    result = CliRunner().invoke(main, ["explain", "c99"])
    assert result.exit_code == 2
    assert "explain --list" in result.stderr


def test_no_conditions(monkeypatch):
    monkeypatch.setattr(runbook, "load_entries", dict)
    out = io.StringIO()
    runbook.print_conditions(console(out))
    assert "No conditions" in out.getvalue()


def test_full_name(entry):
    assert catalog.full_name("c20") == "c20 tp_straggler"
    assert catalog.full_name("unknown") == "unknown"
