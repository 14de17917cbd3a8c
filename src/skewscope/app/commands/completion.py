"""`skewscope completion`: shell completion scripts."""

from __future__ import annotations

import click


@click.command(
    short_help="Print a shell completion script.",
    epilog="""\b
Examples:
  eval "$(skewscope completion bash)"
  eval "$(skewscope completion zsh)"
  skewscope completion fish > ~/.config/fish/completions/skewscope.fish""",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), default="bash")
def command(shell: str) -> None:
    """Print the completion script for bash (the default), zsh or fish."""
    from click.shell_completion import get_completion_class

    from skewscope.app.cli import main

    script = get_completion_class(shell)
    if script is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(script(main, {}, "skewscope", "_SKEWSCOPE_COMPLETE").source())
