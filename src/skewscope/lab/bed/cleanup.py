"""Remove everything the bed made: after a run, after a crash, and after kill -9.

What exists is found by name (namespaces and groups that start with skw-) and by the state file, which holds
the temporary folder. The state file is written before anything else is made.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path

from skewscope.lab.bed import groups
from skewscope.lab.bed.system import PREFIX, CommandError, run

STATE = Path("/run/skewscope-bed")


class BedInUseError(RuntimeError):
    """Another bed runs on this machine."""


@dataclass(frozen=True)
class Plan:
    """What is to be removed."""

    namespaces: tuple[str, ...]
    groups: tuple[Path, ...]
    folder: Path | None

    def __bool__(self) -> bool:
        return bool(self.namespaces or self.groups or self.folder)

    def lines(self) -> list[str]:
        """Return one line per thing."""
        out = [f"namespace {n}" for n in self.namespaces] + [f"group {g}" for g in self.groups]
        return out + ([f"folder {self.folder}"] if self.folder else [])


def plan(netns_list: str, groups_found: list[Path], state: str | None) -> Plan:
    """Plan a clean-up from `ip netns list`, the groups found, and the text of the state file.

    A folder is planned only where its name is one that the bed gives; a damaged state file plans none.
    """
    names = [line.split()[0] for line in netns_list.splitlines() if line.split()]
    folder: Path | None = None
    if state is not None:
        with suppress(ValueError, KeyError, TypeError):
            said = Path(str(json.loads(state)["folder"]))
            if said.is_absolute() and said.name.startswith(PREFIX) and ".." not in said.parts:
                folder = said
    return Plan(
        tuple(n for n in names if n.startswith(PREFIX)),
        tuple(g for g in groups_found if g.name.startswith(PREFIX)),
        folder,
    )


class Claim:
    """The right to run a bed on this machine: a lock, a temporary folder, and the state file.

    Raises BedInUseError where another bed holds the lock.
    """

    def __init__(self, state: Path = STATE) -> None:
        self._state = state
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = _lock(state)
        down(state, locked=True)
        self.folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        (state / "state.json").write_text(json.dumps({"folder": str(self.folder), "pid": os.getpid()}))

    def release(self) -> None:
        """Remove everything and let others run."""
        if not self._lock.closed:
            try:
                down(self._state, locked=True)
            finally:
                self._lock.close()


def _lock(state: Path) -> TextIOWrapper:
    lock = (state / "lock").open("w", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise BedInUseError("a bed runs on this machine already") from None
    return lock


def leftovers(state: Path = STATE) -> Plan:
    """Return what a bed left on this machine."""
    try:
        listed = run("ip", "netns", "list", check=False)
    except CommandError:
        listed = ""
    file = state / "state.json"
    said = file.read_text(encoding="utf-8") if file.is_file() else None
    return plan(listed, groups.leftovers(), said)


def down(state: Path = STATE, locked: bool = False) -> Plan:
    """Remove what a bed left; return what it was. Raises BedInUseError while another bed runs."""
    if not locked and state.exists():
        with _lock(state):
            return down(state, locked=True)
    found = leftovers(state)
    for name in found.namespaces:
        for pid in run("ip", "netns", "pids", name, check=False).split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        run("ip", "netns", "del", name, check=False)
    for group in found.groups:
        groups.remove(group)
    if found.folder:
        shutil.rmtree(found.folder, ignore_errors=True)
    (state / "state.json").unlink(missing_ok=True)
    return found
