"""Groups of commands found by their modules."""

import click

from skewscope.app.cli import main
from skewscope.app.command_folder import CommandFolder


def test_the_modules_of_a_package_are_its_commands():
    context = click.Context(main)
    assert {"diagnose", "lab", "new-condition"} <= set(main.list_commands(context))
    assert main.get_command(context, "nonsense") is None
    lab = main.get_command(context, "lab")
    assert isinstance(lab, CommandFolder)
    assert {"bed", "import-testbed"} <= set(lab.list_commands(context))
