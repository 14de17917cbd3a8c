"""`skewscope new-condition`: what it writes is accepted by the loader."""

import ast
import tomllib

import pytest
from click.testing import CliRunner

from skewscope.app.cli import main
from skewscope.app.commands.new_condition import PLANES
from skewscope.core.entry import PLANES as KNOWN_PLANES
from skewscope.core.entry import parse_entry


def _run(*arguments):
    return CliRunner().invoke(main, ["new-condition", *map(str, arguments)])


@pytest.mark.parametrize("scope", ["member", "endpoint", "host", "link"])
def test_the_folder_is_complete_and_valid(tmp_path, scope):
    result = _run(98, "slow_disk", "--into", tmp_path, "--scope", scope, "--title", "A disk is slow")
    assert result.exit_code == 0, result.output
    folder = tmp_path / "c98_slow_disk"
    assert {p.name for p in folder.iterdir()} == {
        "__init__.py",
        "detector.py",
        "entry.toml",
        "scenario.py",
        "expect.toml",
        "test_c98.py",
    }
    entry = parse_entry(folder.name, tomllib.loads((folder / "entry.toml").read_text()))
    assert entry.title == "A disk is slow"
    assert entry.scope == scope
    assert set(tomllib.loads((folder / "expect.toml").read_text())) == {"max_delay_s", "may_also_fire"}
    for name in ("detector.py", "scenario.py", "test_c98.py"):
        source = (folder / name).read_text()
        compile(source, name, "exec")
        assert max(map(len, source.splitlines())) <= 110
    docstring = ast.get_docstring(ast.parse((folder / "detector.py").read_text())) or ""
    for heading in ("Symptom", "Signal", "Why these", "Looks like", "Blind to", "Cost", "References"):
        assert f"\n{heading}" in docstring


def test_refusals(tmp_path):
    assert _run(98, "Slow-Disk", "--into", tmp_path).exit_code == 2
    assert _run(98, "slow_disk", "--into", tmp_path, "--scope", "nothing").exit_code == 2
    assert _run(98, "slow_disk", "--into", tmp_path, "--title", 'a "quote"').exit_code == 2
    assert _run(98, "slow_disk", "--into", tmp_path).exit_code == 0
    again = _run(98, "slow_disk", "--into", tmp_path)
    assert again.exit_code == 2
    assert "exists" in again.stderr


def test_the_planes_are_those_of_the_entries():
    assert PLANES == KNOWN_PLANES
