"""Open-source nginx: one upstream file is rewritten, checked and loaded.

Only the line of the endpoint changes. A configuration that nginx refuses is put back before anything is
loaded. A reload drops no connection, but the balancer forgets its state. Source: nginx documentation,
ngx_http_upstream_module (server, weight, down), "Controlling nginx" (reload). Weights are whole numbers:
give all servers of the upstream weight=100, so that there is something to lower.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from skewscope.act.actuator import ActuatorError, Request, Target
from skewscope.act.actuators import _files
from skewscope.act.settings import Table
from skewscope.core.action import Settled

SERVER = re.compile(r"^(?P<head>\s*server\s+)(?P<name>[^\s;]+)(?P<options>[^;{}]*)(?P<tail>;.*)$")


class Nginx:
    """One upstream. Endpoint names are the addresses after `server`."""

    VERBS: Mapping[str, bool] = {"lower_weight": True, "drain_endpoint": True}

    def __init__(self, table: Table) -> None:
        self.file = Path(table.text("file"))
        self.upstream = table.text("upstream")
        self.command = table.texts("command", ["nginx"])
        self.timeout_s = table.number("timeout_s", 0.1, 60, 10.0)

    def _lines(self, text: str) -> list[tuple[int, re.Match[str]]]:
        """Return (line number, match) of every server of the upstream."""
        found, inside = [], False
        for number, line in enumerate(text.splitlines()):
            bare = line.split("#")[0].strip()
            if re.match(rf"upstream\s+{re.escape(self.upstream)}\s*\{{", bare):
                inside = True
            elif inside and bare.startswith("}"):
                break
            match = SERVER.match(line) if inside else None
            if match is not None:
                found.append((number, match))
        return found

    def _options(self, target: Target) -> list[str]:
        for _, match in self._lines(_files.read(self.file)):
            if match["name"] == target.name:
                return match["options"].split()
        raise ActuatorError(f"{self.file}: upstream {self.upstream} has no line `server {target.name} ...;`")

    def read(self, verb: str, target: Target) -> Settled:
        """Return what the file says of one server."""
        options = self._options(target)
        if verb == "drain_endpoint":
            return {"down": "down" in options}
        return {"weight": _weight(options)}

    def wanted(self, verb: str, target: Target, before: Settled, weight_ratio: float) -> Settled:
        """Return the lower weight, or down."""
        if verb == "drain_endpoint":
            return {"down": True}
        weight = max(round(before["weight"] * weight_ratio), 1)
        if weight == before["weight"]:
            raise ActuatorError(f"weight={weight} cannot be lowered; give every server weight=100")
        return {"weight": weight}

    def _changed(self, text: str, verb: str, target: Target, state: Settled) -> str:
        """Return the file with the line of one server in the wanted state."""
        self._options(target)
        lines = text.splitlines()
        for number, match in self._lines(text):
            if match["name"] != target.name:
                continue
            gone = "down" if verb == "drain_endpoint" else "weight="
            options = [o for o in match["options"].split() if not o.startswith(gone)]
            if verb == "drain_endpoint":
                options += ["down"] if state["down"] else []
            elif state["weight"] != 1:
                options.insert(0, f"weight={int(state['weight'])}")
            lines[number] = " ".join([match["head"] + match["name"], *options]) + match["tail"]
        return "\n".join(lines) + "\n"

    def requests(self, verb: str, target: Target, state: Settled) -> Sequence[Request]:
        """Return the change of the file and the two commands."""
        text = _files.read(self.file)
        change = _files.diff(self.file, text, self._changed(text, verb, target, state))
        run = " ".join(self.command)
        return [Request("rewrite", str(self.file), change), Request("-t", run), Request("-s reload", run)]

    def put(self, verb: str, target: Target, state: Settled) -> None:
        """Rewrite, check, reload; a refused file is put back."""
        before = _files.read(self.file)
        after = self._changed(before, verb, target, state)
        if after != before:
            _files.replace(self.file, after)
            try:
                self._run("-t")
            except ActuatorError:
                _files.replace(self.file, before)
                raise
        self._run("-s", "reload")

    def _run(self, *arguments: str) -> None:
        command = [*self.command, *arguments]
        try:
            done = subprocess.run(command, capture_output=True, timeout=self.timeout_s, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ActuatorError(f"{' '.join(command)}: {error}") from None
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no message"]
            raise ActuatorError(f"{' '.join(command)}: {said[0][:160]}")

    def unhealthy(self, names: Sequence[str]) -> set[str]:
        """Return the servers that are marked down."""
        return {
            m["name"]
            for _, m in self._lines(_files.read(self.file))
            if m["name"] in names and "down" in m["options"].split()
        }


def _weight(options: Sequence[str]) -> int:
    given = [o.removeprefix("weight=") for o in options if o.startswith("weight=")]
    return int(given[0]) if given and given[0].isdigit() else 1


ACTUATOR = Nginx
