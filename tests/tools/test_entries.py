import pytest

from tools import entries, gen_docs

ENTRY = """
number = 20
slug = "tp_straggler"
title = "One rank is slow"
status = "experimental"
severity = "major"
plane = "east_west"
scope = "member"
meaning = "m"
impact = "i"
diagnosis = "d"
mitigation = "t"
[needs]
own_excess_s = "its own time beyond its peers'"
[thresholds.excess]
value = 4.0
unit = "1"
why = "a | b"
[[causes]]
class = "host_cpu"
weight = 0.4
[culprit]
kind = "rank"
[[actions]]
id = "route_away"
text = "Take the replica out."
risk = "low"
reversible = true
[[hides]]
condition = "c06"
"""
DOC = '"""One line.\n\n' + "\n\n".join(f"{h}\n    Text of {h}." for h in entries.HEADINGS) + '\n"""\n'


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "src" / "skewscope" / "conditions" / "c20_tp_straggler"
    made.mkdir(parents=True)
    (made / "entry.toml").write_text(ENTRY)
    (made / "detector.py").write_text(DOC)
    return made


@pytest.mark.parametrize("style", ["{}\n    ", "{}: ", "{}\n-------\n"])
def test_sections_are_found_in_each_style(style):
    text = "One line.\n\n" + "\n\n".join(style.format(h) + f"text of {h}" for h in entries.HEADINGS)
    assert entries.split_sections(text) == {h: f"text of {h}" for h in entries.HEADINGS}


def test_a_whole_entry_has_no_problems(folder, tmp_path):
    (entry,) = entries.load_entries(tmp_path)
    assert entry.id == "c20"
    assert entries.problems_of(entry) == []


def test_what_is_missing_is_named(folder, tmp_path):
    (folder / "entry.toml").write_text(ENTRY.replace('impact = "i"', "").replace('unit = "1"', ""))
    (folder / "detector.py").write_text(DOC.replace("Blind to", "Blind"))
    problems = "\n".join(entries.problems_of(entries.load_entry(folder)))
    assert "impact" in problems
    assert "unit" in problems
    assert "'Blind to'" in problems


def test_the_page_shows_entry_and_docstring(folder):
    page = gen_docs.condition_page(entries.load_entry(folder))
    for text in (
        "# c20 tp_straggler",
        "Text of Blind to.",
        "host_cpu",
        "Take the replica out.",
        "a \\| b",
        "c06",
    ):
        assert text in page
