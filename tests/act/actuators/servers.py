"""Processes and in-process servers that the tests of actuators act upon."""

import contextlib
import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from skewscope.act.actuator import Target
from skewscope.act.settings import Table

PACKAGES = "SKEWSCOPE_ROUTERS"
"""Names a folder with sglang-router, vllm-router, grpcio and xds-protos (pip install --target)."""


def table(**data: Any) -> Table:
    return Table("actuator[0]", data)


def at(name: str, node: str = "", peers: Sequence[str] = ()) -> Target:
    return Target(name, f"id of {name}", node, tuple(peers), "a1", "c20 gpu", 10**18, 10**18 + 10**11)


def program(name: str) -> str:
    """Return the path of a program, or skip."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def packages(module: str) -> dict[str, str]:
    """Return an environment in which a Python package can be imported, or skip."""
    folder = os.environ.get(PACKAGES, "")
    if not folder or not (Path(folder) / module).exists():
        pytest.skip(f"{PACKAGES} names no folder with {module}")
    return {**os.environ, "PYTHONPATH": folder}


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@contextlib.contextmanager
def running(
    command: Sequence[str], ready: Callable[[], bool], **options: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process while the block runs; fail with what it said where it does not become ready.

    Its output goes to a file: a pipe that nobody reads fills up and stops it.
    """
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, **options)
        try:
            give_up_s = time.monotonic() + 60
            while not ready():
                if process.poll() is not None or time.monotonic() > give_up_s:
                    said.seek(0)
                    pytest.fail(f"{command[0]}: {said.read().decode()[-2000:]}")
                time.sleep(0.05)
            yield process
        finally:
            process.terminate()
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def listens(port: int) -> bool:
    with socket.socket() as s:
        s.settimeout(0.2)
        return s.connect_ex(("127.0.0.1", port)) == 0


@dataclass
class Server:
    """An HTTP server in this process; `reply` gets (method, path, body) and returns (status, JSON)."""

    url: str = ""
    port: int = 0
    seen: list[tuple[str, str, str]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@contextlib.contextmanager
def serve(reply: Callable[[str, str, str], tuple[int, Any]], delay_s: float = 0.0) -> Iterator[Server]:
    state = Server()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            state.seen.append((self.command, self.path, body))
            state.headers.append(dict(self.headers))
            if delay_s:
                time.sleep(delay_s)
            status, out = reply(self.command, self.path, body)
            data = out if isinstance(out, bytes) else json.dumps(out).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(data)

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.answer)

    class Quiet(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            pass

    httpd = Quiet(("127.0.0.1", 0), Handler)
    state.port = httpd.server_address[1]
    state.url = f"http://127.0.0.1:{state.port}"
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()


@contextlib.contextmanager
def workers(count: int, delay_s: Callable[[int], float] = lambda i: 0.0) -> Iterator[list[Server]]:
    """Yield stand-ins for engines: they answer what routers ask, and name themselves."""

    def answering(i: int) -> Callable[[str, str, str], tuple[int, Any]]:
        def answer(method: str, path: str, body: str) -> tuple[int, Any]:
            if method == "POST":
                time.sleep(delay_s(i))
            return 200, {"data": [{"id": "m"}], "object": "list", "model_path": "m", "worker": i}

        return answer

    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(serve(answering(i))) for i in range(count)]


@contextlib.contextmanager
def haproxy(folder: Path, ports: Sequence[int]) -> Iterator[tuple[int, str]]:
    """Run HAProxy in front of ports of this machine; yield its port and its runtime socket."""
    port, sock = free_port(), str(folder / "s")
    servers = "".join(f"  server r{i} 127.0.0.1:{p} weight 100\n" for i, p in enumerate(ports))
    (folder / "haproxy.cfg").write_text(
        f"global\n  stats socket {sock} level admin\n  hard-stop-after 1s\n"
        "defaults\n  mode http\n  timeout connect 1s\n  timeout client 5s\n  timeout server 5s\n"
        f"frontend f\n  bind 127.0.0.1:{port}\n  default_backend llm\n"
        f"backend llm\n  balance roundrobin\n{servers}"
    )
    command = [program("haproxy"), "-db", "-f", str(folder / "haproxy.cfg")]
    with running(command, lambda: listens(port) and Path(sock).exists()):
        yield port, sock


@contextlib.contextmanager
def nginx(folder: Path, ports: Sequence[int]) -> Iterator[tuple[int, Path, list[str]]]:
    """Run an unprivileged nginx with a prefix of its own; yield its port, upstream file and command."""
    port, upstream = free_port(), folder / "upstream.conf"
    servers = "".join(f"    server 127.0.0.1:{p} weight=100;\n" for p in ports)
    upstream.write_text(f"upstream llm {{\n{servers}}}\n")
    temporary = "".join(
        f"  {kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\nworker_processes 1;\n"
        "events { worker_connections 64; }\n"
        f"http {{\n  access_log off;\n{temporary}  include {upstream};\n"
        f"  server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://llm; }} }}\n}}\n"
    )
    command = [
        program("nginx"),
        "-p",
        str(folder),
        "-c",
        str(folder / "nginx.conf"),
        "-e",
        str(folder / "error.log"),
    ]
    with running(command, lambda: listens(port)):
        yield port, upstream, command


def python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]


def ask(port: int) -> int:
    """POST through a proxy and return the number of the worker that answered."""
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request(
            "POST", "/v1/completions", b'{"model": "m", "prompt": "x"}', {"Content-Type": "application/json"}
        )
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status == 200, text
        return int(json.loads(text)["worker"])
    finally:
        connection.close()
