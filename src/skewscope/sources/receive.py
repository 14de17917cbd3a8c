"""Receiving: Prometheus remote write and OTLP metrics over HTTP. The replay twin is a folder of such bodies.

    POST /api/v1/write   application/x-protobuf, snappy       (Prometheus, DTS, Grafana agents)
    POST /v1/metrics     application/x-protobuf or application/json, gzip or plain   (OpenTelemetry)

Listens on the loopback interface unless told otherwise: who can write here can make findings.
"""

from __future__ import annotations

import zlib
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore, Thread
from typing import Any

from skewscope.sources import protobufs
from skewscope.sources.format import Format
from skewscope.sources.formats import otlp_metrics, remote_write
from skewscope.sources.inbox import Inbox, bare_endpoint

ADDRESS, PORT = "127.0.0.1", 4318
"""The port is OTLP's over HTTP."""
MAX_BODY_BYTES = 1 << 24
MAX_PLAIN_BYTES = 1 << 26
SOCKET_TIMEOUT_S = 10.0
MAX_REQUESTS = 32
"""Requests at a time; more are told to try again."""
PATHS: dict[str, tuple[Format, str]] = {
    "/api/v1/write": (remote_write.FORMAT, "rw"),
    "/v1/metrics": (otlp_metrics.FORMAT, "otlp"),
}


class ReceiveError(Exception):
    """The receiver cannot listen; the message is one line."""


def plain_body(data: bytes, encoding: str) -> bytes:
    """Return a body without its content encoding; raises ValueError where it is damaged or too large."""
    if encoding in ("", "identity", "snappy"):  # snappy is the format's own matter
        return data
    if encoding != "gzip":
        raise ValueError(f"unknown content encoding {encoding[:20]!r}")
    inflater = zlib.decompressobj(wbits=31)
    try:
        plain = inflater.decompress(data, MAX_PLAIN_BYTES + 1)
    except zlib.error as error:
        raise ValueError("damaged gzip") from error
    if len(plain) > MAX_PLAIN_BYTES or not inflater.eof:
        raise ValueError("gzip is cut off or too large")
    return plain


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    inbox: Inbox
    room: BoundedSemaphore

    def handle_error(self, request: Any, client_address: Any) -> None:
        self.inbox.note("a connection broke off")


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = SOCKET_TIMEOUT_S
    server_version, sys_version = "skewscope", ""

    def do_POST(self) -> None:
        if not self.server.room.acquire(blocking=False):
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, "busy, try again")
            return
        try:
            self._answer(*self._take())
        finally:
            self.server.room.release()

    def _take(self) -> tuple[HTTPStatus, str]:
        found = PATHS.get(self.path.partition("?")[0])
        if found is None:
            return HTTPStatus.NOT_FOUND, f"only {' and '.join(PATHS)}"
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit() and len(length) < 12):
            return HTTPStatus.LENGTH_REQUIRED, "no content length"
        if int(length) > MAX_BODY_BYTES:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {MAX_BODY_BYTES >> 20} MiB"
        data = self.rfile.read(int(length))
        if len(data) < int(length):
            return HTTPStatus.BAD_REQUEST, "body cut off"
        try:
            body = plain_body(data, self.headers.get("Content-Encoding", "").strip().lower())
        except ValueError as error:
            return HTTPStatus.BAD_REQUEST, str(error)
        format_, suffix = found
        about = str(self.client_address[0])
        kind = "remote_write" if suffix == "rw" else "otlp"
        file_name = f"{kind}/{bare_endpoint(about)}/{{time}}.{suffix}"
        if not self.server.inbox.put(format_, body, about, file_name, sure=False):
            return HTTPStatus.TOO_MANY_REQUESTS, "no room, try again"
        return HTTPStatus.OK, ""

    def _answer(self, status: HTTPStatus, text: str) -> None:
        # A body that was not read must not be taken for the next request.
        self.close_connection = status != HTTPStatus.OK
        body = text.encode() if text else b""
        if not text and self.headers.get("Content-Type", "").startswith("application/json"):
            body = b"{}"
        self.send_response(status)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.send_header("Content-Type", "application/json" if body == b"{}" else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on the terminal for each request."""


class Receiver:
    """Listens in a thread of its own until closed; raises ReceiveError where that is impossible."""

    def __init__(self, inbox: Inbox, address: str = ADDRESS, port: int = PORT) -> None:
        try:
            protobufs.message("WriteRequest")
        except ImportError:
            raise ReceiveError(protobufs.NEEDED) from None
        try:
            self._server = _Server((address, port), _Handler)
        except (OSError, OverflowError) as error:
            raise ReceiveError(
                f"{address}:{port}: cannot listen: {getattr(error, 'strerror', '') or error}"
            ) from None
        self._server.inbox = inbox
        self._server.room = BoundedSemaphore(MAX_REQUESTS)
        self.port = int(self._server.server_address[1])
        self._thread = Thread(target=self._server.serve_forever, name="skewscope-receive", daemon=True)

    def start(self) -> None:
        """Begin to accept."""
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()
