"""Processor control groups of the bed (names start with skw-), for both versions of the interface."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from skewscope.lab.bed.system import PREFIX

ROOT = Path("/sys/fs/cgroup")
PERIOD_US = 100_000


def base(root: Path = ROOT) -> Path:
    """Return the folder that holds processor groups: version 1's `cpu` controller, or version 2's root."""
    return root if (root / "cgroup.controllers").exists() else root / "cpu"


def _is_v2(folder: Path) -> bool:
    return (folder / "cgroup.controllers").exists()


class CpuGroup:
    """One group; processes in it run under the normal scheduler and may have a quota."""

    def __init__(self, name: str) -> None:
        self.path = base() / (PREFIX + name)
        self.path.mkdir(exist_ok=True)
        self._v2 = _is_v2(self.path)
        if self._v2 and not (self.path / "cpu.max").exists():
            raise OSError(f"{self.path}: the cpu controller is not enabled for groups")
        # A large weight, so that other work on the machine does not take the group's time.
        name_of_weight, weight = ("cpu.weight", 10_000) if self._v2 else ("cpu.shares", 100_000)
        (self.path / name_of_weight).write_text(str(weight))

    def quota(self, ratio: float | None) -> None:
        """Let the group have `ratio` of one core; None lifts the limit."""
        us = -1 if ratio is None else max(1000, round(ratio * PERIOD_US))
        if self._v2:
            (self.path / "cpu.max").write_text(f"{'max' if us < 0 else us} {PERIOD_US}")
        else:
            (self.path / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (self.path / "cpu.cfs_quota_us").write_text(str(us))

    def take(self, pid: int) -> None:
        """Move a process, its threads and its own children into the group, under the normal scheduler."""
        for one in family(pid):
            each_thread(one, os.SCHED_OTHER, 0)
            (self.path / "cgroup.procs").write_text(str(one))

    def give_back(self, pid: int, priority: int) -> None:
        """Move a process back to the root group, under real-time scheduling."""
        with suppress(OSError):  # the process may have ended
            for one in family(pid):
                (base() / "cgroup.procs").write_text(str(one))
                each_thread(one, os.SCHED_RR, priority)

    def close(self) -> None:
        """End what still runs in the group and remove it."""
        remove(self.path)


def each_thread(pid: int, policy: int, priority: int) -> None:
    """Set the scheduling policy of all threads of a process."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # a thread may end meanwhile
            os.sched_setscheduler(int(task.name), policy, os.sched_param(priority))


def family(pid: int) -> list[int]:
    """Return a process and all that descend from it. Source: /proc/<pid>/task/<tid>/children."""
    out = [pid]
    for one in out:
        with suppress(OSError):  # it may end meanwhile
            for task in Path(f"/proc/{one}/task").iterdir():
                out += map(int, (task / "children").read_text(encoding="ascii").split())
    return out


def pin(pid: int, cpus: set[int] | None) -> None:
    """Let all threads of a process run on these cores only; None means all cores."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # a thread may end meanwhile
            os.sched_setaffinity(int(task.name), cpus or set(range(os.cpu_count() or 1)))


def leftovers() -> list[Path]:
    """Return the bed's groups that exist."""
    folder = base()
    return sorted(folder.glob(f"{PREFIX}*")) if folder.is_dir() else []


def remove(path: Path, patience_s: float = 2.0) -> None:
    """Kill what runs in a group and remove it."""
    end = time.monotonic() + patience_s
    while path.exists():
        try:
            for pid in (path / "cgroup.procs").read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            path.rmdir()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
