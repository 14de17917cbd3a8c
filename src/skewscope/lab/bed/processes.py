"""The bed's processes: started in a node's namespace with a death signal, under real-time scheduling."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skewscope.lab.bed.control import tell
from skewscope.lab.bed.groups import family
from skewscope.lab.bed.needs import search_path
from skewscope.lab.bed.system import namespace

PRIORITY = 5
"""SCHED_RR priority of workload processes; taps have one less, the relay and the runner more."""
PATIENCE_S = 60.0
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


class ProcessError(RuntimeError):
    """A process of the bed ended or was not ready in time; the message holds its last lines."""


@dataclass
class Child:
    """One process: what it is called, on which node it runs, and its handle."""

    name: str
    node: str
    handle: subprocess.Popen[bytes]
    real_time: bool
    priority: int = PRIORITY
    """Its SCHED_RR priority, when it has one."""

    @property
    def pid(self) -> int:
        """Process id; `ip netns exec`, `chrt` and the program share it, as each replaces the other."""
        return self.handle.pid


class Processes:
    """The children of a bed, by name. All logs and control sockets are in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._children: dict[str, Child] = {}

    def __getitem__(self, name: str) -> Child:
        return self._children[name]

    def names(self) -> list[str]:
        """Return the names of all children that were not stopped."""
        return list(self._children)

    def children(self) -> list[Child]:
        """Return all children that were not stopped."""
        return list(self._children.values())

    def real_time(self) -> list[int]:
        """Return the process ids of the children under real-time scheduling, with their own children."""
        return [p for c in self._children.values() if c.real_time for p in family(c.pid)]

    def slowed(self, pid: int) -> None:
        """Note that a process was put under the normal scheduler: its waits are the fault, not a nuisance."""
        for child in self._children.values():
            if child.pid == pid:
                child.real_time = False

    def start(
        self,
        name: str,
        node: str,
        words: list[object],
        priority: int = PRIORITY,
        cpu: int | None = None,
        stdin: int = subprocess.DEVNULL,
        environment: Mapping[str, str] | None = None,
    ) -> Child:
        """Start a program on a node; priority 0 means the normal scheduler."""
        scheduler = ["chrt", "-r", str(priority)] if priority else ["chrt", "-o", "0"]
        pinned = [] if cpu is None else ["taskset", "-c", str(cpu)]
        command = ["ip", "netns", "exec", namespace(node), *scheduler, *pinned, *map(str, words)]
        env = {
            **os.environ,
            "PATH": search_path(),
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "GLOO_SOCKET_IFNAME": "eth0",
            "OMP_NUM_THREADS": "1",
            **(environment or {}),
        }
        with (self.folder / f"{name}.out").open("wb") as out:
            handle = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=self.folder,
                preexec_fn=_die_with_parent,
            )
        self._children[name] = Child(name, node, handle, bool(priority), priority or PRIORITY)
        return self._children[name]

    def program(self, name: str, node: str, module: str, settings: dict[str, Any], **how: Any) -> Child:
        """Start one of `lab.bed.programs` with its settings in a JSON file."""
        for left in (f"{name}.ready", f"{name}.ctl"):  # of an earlier process of that name
            (self.folder / left).unlink(missing_ok=True)
        file = self.folder / f"{name}.json"
        file.write_text(json.dumps({**settings, "name": name, "folder": str(self.folder)}))
        words = [sys.executable, "-m", f"skewscope.lab.bed.programs.{module}", file]
        return self.start(name, node, words, **how)

    def wait_ready(self, *names: str, patience_s: float = PATIENCE_S) -> None:
        """Wait until each program has made its `.ready` file; raises ProcessError."""
        end = time.monotonic() + patience_s
        for name in names:
            while not (self.folder / f"{name}.ready").exists():
                if self._children[name].handle.poll() is not None or time.monotonic() > end:
                    raise ProcessError(f"{name} did not get ready: {self.last_lines(name)}")
                time.sleep(0.02)

    def last_lines(self, name: str, count: int = 3) -> str:
        """Return the last lines that a child wrote."""
        text = (self.folder / f"{name}.out").read_text(encoding="utf-8", errors="replace")
        return " | ".join(text.strip().splitlines()[-count:])

    def tell(self, name: str, **message: Any) -> None:
        """Send settings to a program's control socket."""
        tell(self.folder / f"{name}.ctl", message)

    def set_rank(self, name: str, **settings: Any) -> None:
        """Change settings of a rank: it is deep in a collective, so by file and signal."""
        (self.folder / f"{name}.set").write_text(json.dumps(settings))
        self._children[name].handle.send_signal(signal.SIGUSR1)

    def stop(self, name: str, number: int = signal.SIGKILL, patience_s: float = 3.0) -> None:
        """Stop one child and reap it."""
        child = self._children.pop(name, None)
        if child is None:
            return
        with suppress(ProcessLookupError):
            child.handle.send_signal(signal.SIGCONT)
            child.handle.send_signal(number)
        try:
            child.handle.wait(patience_s)
        except subprocess.TimeoutExpired:
            child.handle.kill()
            child.handle.wait()

    def stop_all(self) -> None:
        """Stop all children."""
        for name in list(self._children):
            self.stop(name)

    def died(self) -> list[str]:
        """Return the names of children that ended on their own."""
        return [n for n, c in self._children.items() if c.handle.poll() is not None]


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def until(condition: Callable[[], bool], patience_s: float, step_s: float = 0.02) -> bool:
    """Wait until a condition holds; return whether it did in time."""
    end = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(step_s)
    return True
