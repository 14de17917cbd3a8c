"""Text that is fetched again and again: a /sys tree, the output of a command, the status of NCCL RAS."""

from __future__ import annotations

import contextlib
import io
import select
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from skewscope.core.directory import Directory
from skewscope.core.tables import Heard, Table
from skewscope.sources.format import Format, Origin
from skewscope.sources.tree import dump

LEAST_PERIOD_S = 0.02
"""The mlx5 driver answers from its cache for 10 to 12 ms: polling faster gives repeats."""
MOST_BYTES = 1 << 26
RAS_PORT = 28028

Fetch = Callable[[], bytes]


class FetchError(Exception):
    """What could not be fetched, in one line."""


class Poll:
    """One text, fetched every `period_s` and read with one format.

    A fetch that fails is counted and tried again at the next turn; `problem` says what the last one was.
    """

    def __init__(
        self,
        name: str,
        fetch: Fetch,
        format: Format,
        directory: Directory,
        *,
        host: str = "",
        period_s: float = 1.0,
    ) -> None:
        """`name`: how the source is called in the run, a path or an address."""
        self.name, self.format = name, format
        self._fetch, self._host = fetch, host
        self._directory = directory
        self._period_s = max(period_s, LEAST_PERIOD_S)
        directory.sources.append(name)
        self._source = len(directory.sources) - 1
        self.fetched = self.failed = 0
        self.problem = ""
        self.notes: list[str] = []
        """What the last reading could not read."""

    def once(self) -> dict[str, Table]:
        """Fetch and read; the readings have the time at which fetching began."""
        at_ns = time.time_ns()
        try:
            data = self._fetch()
        except (FetchError, OSError) as error:
            self.failed += 1
            self.problem = str(error)
            return {}
        self.fetched += 1
        origin = Origin(self._directory, self._source, self.name, host=self._host, at_ns=at_ns)
        tables = read_all(self.format, data, origin)
        self.notes = origin.notes
        return tables

    def batches(self, stop: Callable[[], bool]) -> Iterator[dict[str, Table]]:
        """Yield the tables of each turn until `stop()`; each knows how far in time it is."""
        due = time.monotonic()
        while not stop():
            now_ns = time.time_ns()
            yield Heard(self.once(), now_ns)
            due = max(due + self._period_s, time.monotonic())
            while not stop() and (left := due - time.monotonic()) > 0:
                time.sleep(min(left, 0.05))


def read_all(format: Format, data: bytes, origin: Origin) -> dict[str, Table]:
    """Read a whole text; of tables that come in parts the parts are joined."""
    parts: dict[str, list[Table]] = {}
    stream = cast(BinaryIO, io.BufferedReader(io.BytesIO(data)))
    for tables in format.read(stream, origin):
        for name, table in tables.items():
            parts.setdefault(name, []).append(table)
    return {name: Table.concat(tables[0].schema, tables) for name, tables in parts.items()}


def tree(folder: Path = Path("/sys")) -> Fetch:
    """Return what fetches a /sys tree."""
    return lambda: b"".join(dump(folder))


def command(argv: Sequence[str], timeout_s: float = 5.0) -> Fetch:
    """Return what runs a program, as `ethtool -S eth0` or `lspci -vvv`, without a shell."""

    def fetch() -> bytes:
        try:
            done = subprocess.run(list(argv), capture_output=True, timeout=timeout_s, check=False)
        except subprocess.TimeoutExpired:
            raise FetchError(f"{argv[0]}: no answer within {timeout_s:g} s") from None
        if done.returncode:
            why = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise FetchError(f"{argv[0]}: {why[-1] if why else f'ended with {done.returncode}'}")
        head = (
            f"# {' '.join(argv)}\n".encode() if argv[0].endswith("ethtool") and "--json" not in argv else b""
        )
        return head + done.stdout[:MOST_BYTES]

    return fetch


def ras(host: str = "127.0.0.1", port: int = RAS_PORT, timeout_s: float = 10.0) -> Fetch:
    """Return what asks NCCL's RAS for its status, in JSON where it can (2.28.7 and later), else in text.

    Source: NCCL user guide, "RAS": commands are lines of text; the answer ends with the connection.
    """

    def ask(commands: bytes) -> bytes:
        deadline = time.monotonic() + timeout_s
        out = bytearray()
        with socket.create_connection((host, port), timeout_s) as s:
            s.sendall(commands)
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_WR)
            while len(out) < MOST_BYTES and time.monotonic() < deadline:
                if not select.select([s], [], [], 0.1)[0]:
                    continue
                data = s.recv(1 << 16)
                if not data:
                    break
                out += data
        return bytes(out)

    def fetch() -> bytes:
        answer = ask(b"SET FORMAT json\nVERBOSE STATUS\n")
        begin = answer.find(b"{")
        if begin >= 0 and b'"communicators' in answer:
            return answer[begin:]
        return ask(b"VERBOSE STATUS\n")

    return fetch
