"""Scraping: GET an endpoint's metrics every few seconds. The replay twin is a folder of such bodies."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from threading import Event, Thread
from urllib.parse import SplitResult, urlsplit

from skewscope.sources.formats.prometheus_text import FORMAT
from skewscope.sources.inbox import Inbox, bare_endpoint
from skewscope.sources.unpack import reason

EVERY_S, TIMEOUT_S = 5.0, 3.0
MAX_BYTES = 1 << 24
"""Largest answer: a vLLM server has 200 KB, a full node_exporter 1 MB."""
BACK_OFF, MAX_BACK_OFF_S = 2.0, 60.0
ACCEPT = "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.7,*/*;q=0.1"


class ScrapeError(Exception):
    """One scrape failed; the message is one line."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """An exporter answers itself; following elsewhere would let it choose what is asked."""

    def redirect_request(self, *args: object) -> None:
        return


def _split(url: str) -> SplitResult:
    try:
        found = urlsplit(url)
    except ValueError as error:
        raise ScrapeError(f"not an address: {error}") from None
    if found.scheme not in ("http", "https"):
        raise ScrapeError("only http and https can be scraped")
    return found


def fetch(url: str, timeout_s: float = TIMEOUT_S) -> bytes:
    """Return the body of one GET; raises ScrapeError with the reason, also where it is too large or slow."""
    _split(url)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())
    begin = time.monotonic()
    try:
        request = urllib.request.Request(url, headers={"Accept": ACCEPT, "User-Agent": "skewscope"})
        with opener.open(request, timeout=timeout_s) as answer:
            body = bytearray()
            while True:
                piece = answer.read1(1 << 16)
                if not piece:
                    return bytes(body)
                body += piece
                if len(body) > MAX_BYTES:
                    raise ScrapeError(f"more than {MAX_BYTES >> 20} MiB")
                if time.monotonic() - begin > timeout_s:  # the socket's timeout is for each piece
                    raise ScrapeError(f"takes longer than {timeout_s:g} s")
    except urllib.error.HTTPError as error:
        error.close()
        raise ScrapeError(f"HTTP status {error.code}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise ScrapeError(reason(getattr(error, "reason", None) or error)) from None


class Scraper:
    """Scrapes one endpoint into an inbox from a thread of its own until closed.

    Raises ScrapeError where the URL cannot be one of an endpoint.

    After a failure it waits twice as long each time, up to MAX_BACK_OFF_S, and goes back to its pace with
    the first answer.
    """

    def __init__(
        self, url: str, inbox: Inbox, every_s: float = EVERY_S, timeout_s: float = TIMEOUT_S
    ) -> None:
        self.url = url if "://" in url else f"http://{url}"
        split = _split(self.url)
        if not split.path or split.path == "/":
            self.url = self.url.rstrip("/") + "/metrics"
        self.endpoint = split.netloc.rpartition("@")[2]
        self._inbox, self._every_s, self._timeout_s = inbox, every_s, timeout_s
        self._over = Event()
        self._thread = Thread(target=self._run, name="skewscope-scrape", daemon=True)
        self.answers = self.failures = 0

    def start(self) -> None:
        """Begin scraping."""
        self._thread.start()

    def once(self) -> float:
        """Scrape once; returns how long to wait for the next time."""
        try:
            body = fetch(self.url, self._timeout_s)
        except ScrapeError as error:
            self.failures += 1
            self._inbox.note(f"{self.endpoint}: {error}")
            return min(self._every_s * BACK_OFF**self.failures, max(MAX_BACK_OFF_S, self._every_s))
        self.failures = 0
        self.answers += 1
        name = f"metrics/{bare_endpoint(self.endpoint)}/{{time}}.prom"
        if not self._inbox.put(FORMAT, body, self.endpoint, name):
            self._inbox.note(f"{self.endpoint}: no room for an answer")
        return self._every_s

    def _run(self) -> None:
        wait_s = 0.0
        while not self._over.wait(wait_s):
            begin = time.monotonic()
            pause_s = self.once()
            wait_s = max(0.0, pause_s - (time.monotonic() - begin))

    def close(self) -> None:
        """Stop scraping; returns when the thread has ended."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(self._timeout_s + 1)
