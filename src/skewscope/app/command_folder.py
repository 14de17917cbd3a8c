"""A group of commands that are the modules of a package, each imported when it is needed."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import click


class CommandFolder(click.Group):
    """A group whose commands are the modules of `package`: each holds one `command`."""

    package = "skewscope.app.commands"

    def _modules(self) -> dict[str, str]:
        path = import_module(self.package).__path__
        names = [m.name for m in iter_modules(path) if not m.name.startswith("_")]
        return {name.replace("_", "-"): f"{self.package}.{name}" for name in names}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted(self._modules())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        module = self._modules().get(cmd_name)
        if module is None:
            return None
        command: click.Command = import_module(module).command
        return command
