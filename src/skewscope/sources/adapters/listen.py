"""A UDP socket that exporters of sFlow, NetFlow and IPFIX send to; on the loopback address by default."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Iterator

from skewscope.core.directory import Directory
from skewscope.core.tables import Heard, Table
from skewscope.sources.flow_export import FlowExports, Payload
from skewscope.sources.format import Origin
from skewscope.wire.packets import PacketParser

SFLOW_PORT, NETFLOW_PORT, IPFIX_PORT = 6343, 2055, 4739
BUFFER_BYTES = 1 << 22
"""Asked of the kernel: a tenth of a second of a busy fabric's samples. It may give less."""
BATCH, STEP_S = 512, 0.05


class ListenError(Exception):
    """The address cannot be listened at; the message is one line."""


class ExportListener:
    """One socket; raises ListenError where it cannot be opened. Whoever can reach it can write records."""

    def __init__(
        self, directory: Directory, parser: PacketParser, *, host: str = "127.0.0.1", port: int = SFLOW_PORT
    ) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise ListenError(f"udp {host}:{port}: cannot listen: {error.strerror or error}") from None
        self._socket.setblocking(False)
        self.port = int(self._socket.getsockname()[1])
        self.name = f"udp://{host}:{self.port}"
        directory.sources.append(self.name)
        self._origin = Origin(directory, len(directory.sources) - 1)
        self._exports = FlowExports(directory, parser)
        self.datagrams = 0

    def once(self) -> dict[str, Table]:
        """Read what has arrived, at most BATCH datagrams."""
        payloads: list[Payload] = []
        while len(payloads) < BATCH:
            try:
                data, sender = self._socket.recvfrom(1 << 16)
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                break  # an error of the network; the next turn tries again
            self.datagrams += 1
            payloads.append(Payload(time.time_ns(), self.datagrams, str(sender[0]), data))
        return self._exports.feed(payloads, self._origin) if payloads else {}

    def batches(self, stop: Callable[[], bool]) -> Iterator[dict[str, Table]]:
        """Yield tables until `stop()`; in silence, empty ones with the time."""
        while not stop():
            now_ns = time.time_ns()
            select.select([self._socket], [], [], STEP_S)
            yield Heard(self.once(), now_ns)

    def notes(self) -> list[str]:
        """Return what was read and what could not be."""
        return self._exports.notes()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
