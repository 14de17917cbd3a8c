"""A longer, jittery or reordering path to one node, by a relay in user space beside its port."""

from __future__ import annotations

import subprocess
from importlib import resources
from typing import TYPE_CHECKING

from skewscope.lab.bed.injector import Injector, InjectorError, Undo
from skewscope.lab.bed.processes import PRIORITY, ProcessError, until
from skewscope.lab.bed.system import SWITCH, inside, port, run

if TYPE_CHECKING:
    from skewscope.lab.bed.bed import Bed

MATCH_ALL = ("protocol", "all", "prio", "1", "u32", "match", "u32", "0", "0")


class PathChange(Injector):
    """Frames of `node` take `strength` seconds longer, give or take `jitter_ratio` of it.

    `reorder_ratio` of them do not wait and overtake the others. `way` is up, down or both.
    """

    NAME = "path_change"
    STRENGTH = "delay_s"
    NEEDS = ("gcc",)

    def __init__(
        self, bed: Bed, node: str, way: str = "both", jitter_ratio: float = 0.0, reorder_ratio: float = 0.0
    ) -> None:
        super().__init__(bed)
        if way not in ("up", "down", "both"):
            raise InjectorError(f"path_change: way is up, down or both, not {way!r}")
        self._node, self._way, self._undo = node, way, Undo()
        self._jitter, self._reorder = jitter_ratio, reorder_ratio
        self._up, self._down, self._name = f"u-{node}", f"b-{node}", f"relay-{node}"

    def prepare(self) -> None:
        """Build the relay and put it beside the port, idle: no frame goes through it yet."""
        program, source = self.bed.folder / "relay", self.bed.folder / "relay.c"
        source.write_text((resources.files("skewscope.lab.bed") / "relay.c").read_text(encoding="utf-8"))
        run("gcc", "-O2", "-o", program, source)
        words = [program, self._up, self._down, port(self._node), self._way, self.bed.seed]
        self.bed.processes.start(
            self._name, SWITCH, list(words), priority=PRIORITY + 5, stdin=subprocess.PIPE
        )
        out = self.bed.folder / f"{self._name}.out"
        if not until(lambda: out.read_text().startswith("ready"), 5.0):
            raise ProcessError(f"relay: {self.bed.processes.last_lines(self._name)}")
        inside(SWITCH, "ip", "link", "set", self._up, "mtu", 9000, "up")
        inside(SWITCH, "ip", "link", "set", self._down, "mtu", 9000)
        inside(SWITCH, "ip", "link", "set", self._down, "master", "br0", "up")
        inside(SWITCH, "tc", "qdisc", "add", "dev", port(self._node), "handle", "ffff:", "ingress")

    def start(self, strength: float) -> None:
        """Send the node's frames through the relay."""
        self.how = (
            f"path of {self._node} ({self._way}) {strength * 1e3:.2f} ms longer, jitter ratio "
            f"{self._jitter:g}, {self._reorder:.0%} of frames overtake"
        )
        self.change(strength)
        device = ("dev", port(self._node), "parent", "ffff:")
        redirect = ("action", "mirred", "egress", "redirect", "dev", self._up)
        inside(SWITCH, "tc", "filter", "add", *device, *MATCH_ALL, *redirect)
        self._undo.later(inside, SWITCH, "tc", "filter", "del", *device, "prio", "1")

    def change(self, strength: float) -> None:
        """Tell the relay."""
        us = strength * 1e6
        pipe = self.bed.processes[self._name].handle.stdin
        if pipe is not None:
            pipe.write(f"{us:.1f} {us * self._jitter:.1f} {self._reorder:.4f} 0\n".encode())
            pipe.flush()

    def stop(self) -> None:
        """Send frames past the relay again."""
        self._undo.now()
