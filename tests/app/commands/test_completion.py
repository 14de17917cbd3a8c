"""`skewscope completion`."""

import pytest
from click.testing import CliRunner

from skewscope.app.cli import main


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script(shell):
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert "_SKEWSCOPE_COMPLETE" in result.stdout


def test_another_shell():
    assert CliRunner().invoke(main, ["completion", "dosh"]).exit_code == 2
