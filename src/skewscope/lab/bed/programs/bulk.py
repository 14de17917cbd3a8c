"""Bulk flows over TCP or UDP: `role` send or receive.

A sender sends `size_bytes` every `every_s` seconds in pieces of `piece_bytes`, or a steady `rate_bps`.
A receiver stops reading while its control socket said {"stop": true}.
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


def send(settings: dict[str, Any]) -> None:
    """Connect and send until killed."""
    udp = settings.get("udp", False)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if udp else socket.SOCK_STREAM)
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            s.connect((settings["host"], settings["port"]))
            break
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
    ready(settings)
    if settings.get("before_s"):
        time.sleep(settings["before_s"])
    piece = bytes(settings.get("piece_bytes", 65536))
    rate = settings.get("rate_bps", 0.0)
    size = settings.get("size_bytes", len(piece))
    every = len(piece) * 8 / rate if rate else settings.get("every_s", 0.0)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, settings.get("send_buffer", 1 << 20))
    due = time.monotonic()
    while True:
        for start in range(0, len(piece) if rate else size, len(piece)):
            part = piece if rate else piece[: size - start]
            try:
                s.send(part) if udp else s.sendall(part)
            except ConnectionRefusedError:
                continue  # an ICMP answer to UDP
        due = max(due + every, time.monotonic() - 0.1)
        time.sleep(max(0.0, due - time.monotonic()))


def receive(settings: dict[str, Any]) -> None:
    """Accept connections (or datagrams) and read them until killed."""
    udp = settings.get("udp", False)
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if udp else socket.SOCK_STREAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.get("receive_buffer", 262144))
    server.bind(("0.0.0.0", settings["port"]))
    if not udp:
        server.listen(64)
    control = listen(Path(settings["folder"]) / f"{settings['name']}.ctl")
    ready(settings)
    peers, stopped = [server], False
    while True:
        for s in select.select([control] if stopped else [control, *peers], [], [])[0]:
            if s is control:
                stopped = bool(heard(control).get("stop"))
            elif s is server and not udp:
                peers.append(server.accept()[0])
            elif not s.recv(1 << 18) and not udp:
                peers.remove(s)
                s.close()


def main() -> None:
    """Run the role that the settings name."""
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    send(settings) if settings["role"] == "send" else receive(settings)


if __name__ == "__main__":
    main()
