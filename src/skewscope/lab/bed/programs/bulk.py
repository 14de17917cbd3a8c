"""Bulk flows over TCP or UDP: `role` send or receive.

A sender makes a transfer of `size_bytes` every `every_s` in pieces of `piece_bytes`, or sends a steady
`rate_bps`. Transfers are acknowledged by one byte and logged with their times. With `reconnect` each has a
connection of its own, on which the sender is silent for `before_s` first. A receiver stops reading while its
control socket said {"stop": true}.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time
from pathlib import Path
from typing import Any

from skewscope.lab.bed.control import heard, listen, ready

PATIENCE_S = 10.0
DONE = b"."
READ_BYTES = 1 << 18


class Sender:
    """One sender; runs until it is killed."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.s = settings
        self.udp = bool(settings.get("udp"))
        self.piece = bytes(settings.get("piece_bytes", 65536))
        self.log = (Path(settings["folder"]) / f"{settings['name']}.jsonl").open("w", encoding="utf-8")

    def connect(self) -> socket.socket:
        """Open a connection; the receiver may come a little later."""
        end = time.monotonic() + PATIENCE_S
        while True:
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if self.udp else socket.SOCK_STREAM)
            if not self.udp:
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                s.connect((self.s["host"], self.s["port"]))
                return s
            except ConnectionRefusedError:
                s.close()
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def steady(self, s: socket.socket) -> None:
        """Send pieces at a rate; a late one is not made up for by more than 0.1 s of pieces."""
        every, due = len(self.piece) * 8 / self.s["rate_bps"], time.monotonic()
        while True:
            try:
                s.sendall(self.piece)
            except ConnectionRefusedError:
                if not self.udp:  # UDP: an ICMP answer to an earlier datagram
                    raise
            due = max(due + every, time.monotonic() - 0.1)
            time.sleep(max(0.0, due - time.monotonic()))

    def transfers(self, s: socket.socket) -> None:
        """Make a transfer each period, and wait for its acknowledgement."""
        size, due = self.s["size_bytes"], time.monotonic()
        while True:
            begun = time.time_ns()
            if self.s.get("before_s"):
                time.sleep(self.s["before_s"])
            for start in range(0, size, len(self.piece)):
                s.sendall(self.piece[: size - start])
            s.recv(1)
            row = {"start_ns": begun, "end_ns": time.time_ns(), "transfer_bytes": size}
            print(json.dumps(row), file=self.log, flush=True)
            due = max(due + self.s.get("every_s", 0.0), time.monotonic() - 0.1)
            time.sleep(max(0.0, due - time.monotonic()))
            if self.s.get("reconnect"):
                s.close()
                s = self.connect()

    def run(self) -> None:
        """Send in the way that the settings say."""
        s = self.connect()
        ready(self.s)
        if self.s.get("rate_bps"):
            self.steady(s)
        elif self.s.get("size_bytes"):
            self.transfers(s)
        while True:
            s.sendall(self.piece)


def receive(settings: dict[str, Any]) -> None:
    """Accept connections (or datagrams) and read them until killed; acknowledge every `size_bytes`."""
    udp, size = settings.get("udp", False), settings.get("size_bytes", 0)
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if udp else socket.SOCK_STREAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if settings.get("receive_buffer"):
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings["receive_buffer"])
    server.bind(("0.0.0.0", settings["port"]))
    if not udp:
        server.listen(64)
    control = listen(Path(settings["folder"]) / f"{settings['name']}.ctl")
    ready(settings)
    got: dict[socket.socket, int] = {}
    stopped = False
    while True:
        for s in select.select([control] if stopped else [control, server, *got], [], [])[0]:
            if s is control:
                stopped = bool(heard(control).get("stop"))
            elif s is server and not udp:
                got[server.accept()[0]] = 0
            else:
                _read(s, got, size, udp)


def _read(s: socket.socket, got: dict[socket.socket, int], size: int, udp: bool) -> None:
    try:
        data = s.recv(READ_BYTES)
        if udp:
            return
        got[s] += len(data)
        while size and got[s] >= size:
            got[s] -= size
            s.sendall(DONE)
    except ConnectionError:
        data = b""
    if not data:
        del got[s]
        s.close()


def main() -> None:
    """Run the role that the settings name."""
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if settings["role"] == "send":
        Sender(settings).run()
    else:
        receive(settings)


if __name__ == "__main__":
    main()
