"""The command line as a whole: help, exit status, no tracebacks."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from skewscope.app.cli import main

COMMANDS = sorted(main.list_commands(click.Context(main)))


def test_lists_what_is_promised():
    promised = {
        "compare",
        "completion",
        "conditions",
        "demo",
        "diagnose",
        "explain",
        "inspect",
        "new-condition",
        "schema",
    }
    assert promised <= set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_an_example(name):
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    assert "Example" in result.output
    assert f"skewscope {name}" in result.output
    assert max(map(len, result.output.splitlines())) <= 80


def test_help_documents_the_exit_status():
    output = " ".join(CliRunner().invoke(main, ["--help"]).output.split())
    for part in (
        "0 done",
        "1 some input was unreadable",
        "2 wrong usage",
        "3 no readable input",
        "130 interrupted",
    ):
        assert part in output


def test_wrong_usage_is_status_2():
    assert CliRunner().invoke(main, ["no-such-command"]).exit_code == 2
    assert CliRunner().invoke(main, ["diagnose", "--no-such-option"]).exit_code == 2


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from click.testing import CliRunner; from skewscope.app.cli import main\n"
        "CliRunner().invoke(main, ['--help'])\n"
        "heavy = {'numpy', 'numba', 'pyarrow', 'rich', 'jinja2'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_interrupt_is_status_130(fake_pipeline, capture):
    def run(paths, progress=None, stop=None, first=None, check_icrc=False, explain=False):
        raise KeyboardInterrupt

    fake_pipeline(run)
    assert CliRunner().invoke(main, ["diagnose", str(capture)]).exit_code == 130
