"""Clean-up: what is planned from what is found, and what is never touched."""

import json
from pathlib import Path

import pytest

from skewscope.lab.bed import cleanup


def test_only_names_of_the_bed_are_planned():
    listed = "skw-n0 (id: 3)\nskw-sw\nother\nmy-skw-net\n"
    found = cleanup.plan(listed, [Path("/g/skw-rank"), Path("/g/mine")], None)
    assert found.namespaces == ("skw-n0", "skw-sw")
    assert found.groups == (Path("/g/skw-rank"),)
    assert found.folder is None


@pytest.mark.parametrize("folder", ["/", "/other", "relative/skw-x", "/a/../skw-x/../etc", "/a/x/../skw-a"])
def test_a_state_file_cannot_make_it_remove_a_foreign_folder(folder):
    assert cleanup.plan("", [], json.dumps({"folder": folder})).folder is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"other": 1}', '{"folder": null}'])
def test_a_damaged_state_file_plans_no_folder(text):
    assert not cleanup.plan("", [], text)


def test_the_folder_of_the_state_file_is_planned_and_listed():
    found = cleanup.plan("skw-n0\n", [], json.dumps({"folder": "/made/skw-abc"}))
    assert found.folder == Path("/made/skw-abc")
    assert found.lines() == ["namespace skw-n0", "folder /made/skw-abc"]
    assert found


def test_nothing_left_is_an_empty_plan():
    assert not cleanup.plan("", [], None)
    assert cleanup.plan("", [], None).lines() == []
