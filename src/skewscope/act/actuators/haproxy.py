"""HAProxy by its runtime socket (`stats socket ... level admin`).

Source: HAProxy 2.6 management guide, section 9.3 (set server, show servers state). A successful `set`
answers with an empty line; everything else is an error message. Weights change only for dynamic
algorithms (roundrobin, leastconn), and are lost when HAProxy restarts; reconciling notices that.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Mapping, Sequence

from skewscope.act.actuator import ActuatorError, Request, Target
from skewscope.act.settings import SettingsError, Table
from skewscope.core.action import Settled

NAME = re.compile(r"[\w.:-]+")
ANSWER_BYTES = 8 << 20
FORCED_MAINT, FORCED_DRAIN = 0x01, 0x08
"""Bits of srv_admin_state that a person or a command has set."""
RUNNING = 2
"""srv_op_state of a server that takes requests."""


class HAProxy:
    """One backend. Endpoint names are its server names."""

    VERBS: Mapping[str, bool] = {"lower_weight": True, "drain_endpoint": True}

    def __init__(self, table: Table) -> None:
        self.socket = table.text("socket")
        if not re.fullmatch(r"/.+|.+:\d{1,5}", self.socket):
            raise SettingsError(f"{table.path}.socket: {self.socket!r} is neither a path nor host:port")
        self.backend = table.text("backend")
        self.timeout_s = table.number("timeout_s", 0.1, 60, 3.0)

    def _server(self, name: str) -> str:
        for part in (self.backend, name):
            if not NAME.fullmatch(part):  # a `;` or a line end would start another command
                raise ActuatorError(f"{part!r} is not a name that HAProxy uses")
        return f"{self.backend}/{name}"

    def _connected(self) -> socket.socket:
        if not self.socket.startswith("/"):
            host, _, port = self.socket.rpartition(":")
            return socket.create_connection((host.strip("[]"), int(port)), self.timeout_s)
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        s.settimeout(self.timeout_s)
        try:
            s.connect(self.socket)
        except OSError:
            s.close()
            raise
        return s

    def _ask(self, command: str) -> str:
        """Send one command and return the answer."""
        deadline_s = time.monotonic() + self.timeout_s
        answer = b""
        try:
            with self._connected() as s:
                s.sendall(command.encode() + b"\n")
                while piece := s.recv(65536):
                    answer += piece
                    if len(answer) > ANSWER_BYTES or time.monotonic() > deadline_s:
                        raise ActuatorError(f"{self.socket}: the answer does not end")
        except OSError as error:
            raise ActuatorError(f"{self.socket}: {error.strerror or error}") from None
        return answer.decode("utf-8", "replace")

    def _servers(self) -> dict[str, dict[str, str]]:
        """Return the rows of `show servers state` by server name."""
        self._server("x")
        lines = self._ask(f"show servers state {self.backend}").splitlines()
        head = next((line[1:].split() for line in lines if line.startswith("#")), None)
        if head is None:
            raise ActuatorError(f"{self.socket}: {' '.join(lines).strip()[:160] or 'no answer'}")
        rows = [dict(zip(head, line.split(), strict=False)) for line in lines if len(line.split()) > 5]
        return {row["srv_name"]: row for row in rows if "srv_name" in row and row["srv_name"] != "srv_name"}

    def read(self, verb: str, target: Target) -> Settled:
        """Return the weight, or whether the server is ready, in drain or in maint."""
        row = self._servers().get(target.name)
        if row is None:
            raise ActuatorError(f"{self._server(target.name)}: no such server")
        if verb == "lower_weight":
            return {"weight": int(row["srv_uweight"])}
        bits = int(row["srv_admin_state"])
        return {"state": "maint" if bits & FORCED_MAINT else "drain" if bits & FORCED_DRAIN else "ready"}

    def wanted(self, verb: str, target: Target, before: Settled, weight_ratio: float) -> Settled:
        """Return the lower weight, at least 1 (0 would be a drain), or the drain state."""
        if verb == "lower_weight":
            return {"weight": min(max(round(before["weight"] * weight_ratio), 1), before["weight"])}
        return {"state": before["state"] if before["state"] == "maint" else "drain"}

    def requests(self, verb: str, target: Target, state: Settled) -> Sequence[Request]:
        """Return the one command."""
        what = f"weight {int(state['weight'])}" if verb == "lower_weight" else f"state {state['state']}"
        return [Request(f"set server {self._server(target.name)} {what}", self.socket)]

    def put(self, verb: str, target: Target, state: Settled) -> None:
        """Send the command; any text in the answer is an error."""
        for request in self.requests(verb, target, state):
            answer = self._ask(request.what).strip()
            if answer:
                raise ActuatorError(f"{request.what}: {answer[:160]}")

    def unhealthy(self, names: Sequence[str]) -> set[str]:
        """Return the servers that HAProxy sends nothing to: down, drained, in maintenance, weight 0."""
        rows = self._servers()
        return {
            n
            for n in names
            if n in rows
            and (
                int(rows[n]["srv_op_state"]) != RUNNING
                or int(rows[n]["srv_admin_state"]) != 0
                or int(rows[n]["srv_uweight"]) == 0
            )
        }


ACTUATOR = HAProxy
