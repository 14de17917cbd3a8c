"""The one HTTP client of the actuators: one request, a deadline, a bounded answer, no redirects."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from skewscope.act.actuator import ActuatorError
from skewscope.act.settings import SettingsError, Table

ANSWER_BYTES = 8 << 20
"""A list of all workers or pods is far smaller; more is not read."""


@dataclass(frozen=True)
class Server:
    """Where to send, and where the token is: in a file or an environment variable, never in act.toml."""

    url: str
    timeout_s: float
    token_file: str
    token_env: str
    ca_file: str

    @staticmethod
    def of(table: Table) -> Server:
        """Read url, timeout_s, token_file, token_env and ca_file from an actuator's settings."""
        url = table.text("url").rstrip("/")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError(f"{table.path}.url: {url!r} is not http://host or https://host")
        if parts.username or parts.password:
            raise SettingsError(f"{table.path}.url: must hold no password; use token_file or token_env")
        return Server(
            url,
            table.number("timeout_s", 0.1, 60, 3.0),
            table.text("token_file", ""),
            table.text("token_env", ""),
            table.text("ca_file", ""),
        )

    def _token(self) -> str:
        """Return the token as it is now: files are rotated."""
        try:
            given = Path(self.token_file).read_text("utf-8") if self.token_file else ""
        except OSError as error:
            raise ActuatorError(f"{self.token_file}: {error.strerror}") from None
        given = given or (os.environ.get(self.token_env, "") if self.token_env else "")
        if (self.token_file or self.token_env) and not given.strip():
            raise ActuatorError(f"no token in {self.token_file or self.token_env}")
        return given.strip()

    def _connection(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        if parts.scheme == "http":
            return http.client.HTTPConnection(host, parts.port, timeout=self.timeout_s)
        try:
            context = ssl.create_default_context(cafile=self.ca_file or None)
        except OSError as error:
            raise ActuatorError(f"{self.ca_file}: {error}") from None
        return http.client.HTTPSConnection(host, parts.port, timeout=self.timeout_s, context=context)

    def call(
        self, method: str, path: str, body: str = "", headers: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        """Send one request and return status and text; raises ActuatorError where no answer comes."""
        sent = {"Content-Type": "application/json", "Accept": "application/json", **(headers or {})}
        token = self._token()
        if token:
            sent["Authorization"] = f"Bearer {token}"
        prefix = urlsplit(self.url).path
        connection = self._connection()
        try:
            connection.request(method, prefix + path, body.encode() or None, sent)
            answer = connection.getresponse()
            return answer.status, _body(answer, time.monotonic() + self.timeout_s)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ActuatorError(f"{method} {self.url}{path}: {_reason(error)}") from None
        finally:
            connection.close()

    def send(self, method: str, path: str, body: str = "", headers: Mapping[str, str] | None = None) -> str:
        """Send one request; raises ActuatorError unless it was accepted (2xx)."""
        status, text = self.call(method, path, body, headers)
        if not 200 <= status < 300:
            raise ActuatorError(f"{method} {self.url}{path}: {status} {' '.join(text.split())[:160]}")
        return text

    def json(self, path: str) -> Any:
        """GET a JSON document."""
        text = self.send("GET", path)
        try:
            return json.loads(text)
        except ValueError:
            raise ActuatorError(f"GET {self.url}{path}: the answer is not JSON") from None


def _body(answer: http.client.HTTPResponse, deadline_s: float) -> str:
    pieces, size = [], 0
    while piece := answer.read1(65536):
        pieces.append(piece)
        size += len(piece)
        if size > ANSWER_BYTES:
            raise ValueError("the answer is too long")
        if time.monotonic() > deadline_s:
            raise TimeoutError("the answer takes too long")
    return b"".join(pieces).decode("utf-8", "replace")


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:160] or type(error).__name__
