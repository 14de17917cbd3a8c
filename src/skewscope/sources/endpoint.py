"""One HTTP endpoint that is asked politely: bounded rate, bounded reply, retries that back off."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

MOST_REPLY_BYTES = 64_000_000
RETRIED = (408, 429, 500, 502, 503, 504)
TRIES = 5
FIRST_WAIT_S, MOST_WAIT_S = 0.5, 30.0


class EndpointError(OSError):
    """No usable reply after all tries; the text says why."""


@dataclass
class Rate:
    """Lets callers of several threads pass at most `per_s` times a second, evenly spaced."""

    per_s: float
    _next: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def wait(self) -> None:
        """Sleep until this caller's turn."""
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._next)
            self._next = turn + 1 / self.per_s
        time.sleep(max(0.0, turn - now))


class Endpoint:
    """Sends JSON to one base URL; safe for several threads, one connection per request."""

    def __init__(
        self, url: str, key: str = "", *, rate: Rate | None = None, timeout_s: float = 120.0
    ) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not the URL of an HTTP endpoint")
        self._parts, self._key, self._timeout_s = parts, key, timeout_s
        self._rate = rate or Rate(1e9)
        self._base = parts.path.rstrip("/").removesuffix("/v1")

    def post(self, path: str, body: dict[str, Any]) -> bytes:
        """Return the reply's bytes; EndpointError where the last of several tries fails."""
        wait_s, problem = FIRST_WAIT_S, ""
        for attempt in range(TRIES):
            if attempt:
                time.sleep(wait_s)
            self._rate.wait()
            try:
                status, after, raw = self._once(path, body)
            except (OSError, http.client.HTTPException) as error:
                problem, wait_s = str(error) or type(error).__name__, min(wait_s * 2, MOST_WAIT_S)
                continue
            if status == 200:
                return raw
            problem = f"status {status}: {raw[:200].decode('utf-8', 'replace')}"
            if status not in RETRIED:
                break
            wait_s = min(after if after is not None else wait_s * 2, MOST_WAIT_S)
        raise EndpointError(f"{self._parts.hostname}: {problem}")

    def _once(self, path: str, body: dict[str, Any]) -> tuple[int, float | None, bytes]:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            context = ssl.create_default_context()
            link: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=self._timeout_s, context=context
            )
        else:
            link = http.client.HTTPConnection(host, port, timeout=self._timeout_s)
        headers = {"Content-Type": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        try:
            link.request("POST", self._base + path, json.dumps(body), headers)
            reply = link.getresponse()
            raw = reply.read(MOST_REPLY_BYTES + 1)
            if len(raw) > MOST_REPLY_BYTES:
                raise EndpointError("the reply is too large")
            return reply.status, _seconds(reply.getheader("Retry-After")), raw
        finally:
            link.close()


def _seconds(text: str | None) -> float | None:
    """Return a Retry-After of whole seconds; dates are rare in inference servers and not read."""
    return float(text) if text is not None and text.isascii() and text.isdigit() else None
