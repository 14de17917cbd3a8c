"""Run a system program and get its text; the only place where the bed shells out for one-off commands."""

from __future__ import annotations

import os
import subprocess

from skewscope.lab.bed.needs import search_path

PREFIX = "skw-"
"""Every namespace and cgroup of the bed has a name that starts so."""
SWITCH = "sw"
LIMIT_S = 20.0


class CommandError(RuntimeError):
    """A system program ended with an error; the message holds its complaint."""


def run(*words: object, check: bool = True, text: str | None = None, limit_s: float = LIMIT_S) -> str:
    """Run a program without a shell; return its standard output.

    Raises CommandError where it ends with an error (unless `check` is false) or takes too long.
    """
    command = [str(w) for w in words]
    env = {**os.environ, "PATH": search_path(), "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, input=text, timeout=limit_s, env=env, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandError(f"{' '.join(command)}: {error}") from None
    if check and done.returncode:
        raise CommandError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def namespace(node: str) -> str:
    """Return the name of a node's network namespace."""
    return PREFIX + node


def inside(node: str, *words: object, check: bool = True, text: str | None = None) -> str:
    """Run a program in a node's network namespace."""
    return run("ip", "netns", "exec", namespace(node), *words, check=check, text=text)


def port(node: str) -> str:
    """Return the name of the switch port of a node."""
    return f"p-{node}"
