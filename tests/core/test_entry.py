"""Runbook entries: what is valid, and what the message of an invalid one says."""

import copy

import pytest

from skewscope.core.entry import Comparison, EntryError, parse_entry

FOLDER = "c53_slow_disk"
VALID = {
    "number": 53,
    "slug": "slow_disk",
    "title": "Slow disk",
    "status": "experimental",
    "severity": "minor",
    "plane": "host",
    "scope": "host",
    "meaning": "m",
    "impact": "i",
    "diagnosis": "d",
    "mitigation": "m",
    "needs": {"rx_bytes": "why"},
    "thresholds": {"limit": {"value": 1, "unit": "s", "why": "measured"}},
    "evidence": {"rx_bytes": "bytes"},
    "timing": {"fire": 2, "of": 3, "keep_s": 1.5},
    "causes": [
        {"class": "hardware", "weight": 2, "if_evidence": "rx_bytes < 5"},
        {"class": "unknown", "weight": 1},
    ],
    "culprit": {"kind": "host"},
    "hides": [{"condition": "c06"}, {"condition": "c05", "where": "host"}],
    "actions": [{"id": "drain", "text": "Drain it", "risk": "low", "reversible": True}],
    "separates": {"c20": "no late rounds"},
}


def changed(**more):
    data = copy.deepcopy(VALID)
    for path, value in more.items():
        *above, last = path.split("__")
        at = data
        for name in above:
            at = at[int(name) if name.isdigit() else name]
        if value is None:
            del at[last]
        else:
            at[last] = value
    return data


def test_a_valid_entry():
    entry = parse_entry(FOLDER, VALID)
    assert (entry.id, entry.params.limit, entry.timing.of) == ("c53", 1.0, 3)
    assert entry.causes[0].when == Comparison("rx_bytes", "<", 5.0)
    assert entry.causes[1].when is None
    assert [(h.condition, h.where) for h in entry.hides] == [("c06", "group"), ("c05", "host")]
    assert (entry.culprit_kind, entry.culprit_key) == ("host", "self")
    assert entry.actions[0].verify == ""


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"title": None}, "'title'"),
        ({"meaning": "  "}, "empty text: meaning"),
        ({"status": "new"}, "status = 'new' is not one of experimental, beta, stable"),
        ({"severity": "bad"}, "severity = 'bad'"),
        ({"plane": "sky"}, "plane = 'sky'"),
        ({"culprit__kind": "ghost"}, "culprit.kind = 'ghost'"),
        ({"causes__0__class": "magic"}, "causes.class = 'magic'"),
        ({"causes__0__if_evidence": "rx_bytes + 1"}, "not a comparison"),
        ({"thresholds__limit__why": ""}, "threshold limit needs a unit and a reason"),
        ({"thresholds__limit__unit": None}, "threshold limit needs a unit and a reason"),
        ({"timing__every": 3}, "every"),
        ({"number": 54}, "number and slug do not equal"),
        ({"slug": "fast_disk"}, "number and slug do not equal"),
        ({"actions__0__risk": None}, "'risk'"),
    ],
)
def test_what_is_wrong_is_named_with_its_folder(change, text):
    with pytest.raises(EntryError) as caught:
        parse_entry(FOLDER, changed(**change))
    assert str(caught.value).startswith(f"{FOLDER}/entry.toml: ")
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [
        ("x < 1", 0.5, True),
        ("x < 1", 1.0, False),
        ("x <= 1", 1.0, True),
        ("x > -2.5", -2.0, True),
        (" x>=1e-3 ", 0.001, True),
        ("x > 0", float("nan"), False),
        ("x < 0", float("nan"), False),
    ],
)
def test_comparisons(text, value, holds):
    assert Comparison.parse(text).holds({"x": value}) is holds
    assert not Comparison.parse(text).holds({})


@pytest.mark.parametrize("text", ["", "x", "x = 1", "x < y", "x < 1 or 1", "__import__('os')", "x < 1 < 2"])
def test_comparisons_are_parsed_and_never_run(text):
    with pytest.raises(EntryError):
        Comparison.parse(text)
