"""Control messages to the bed's programs: JSON datagrams over Unix sockets in the bed's folder.

Imported by every program on the bed, so it stays free of anything slow to import.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

LIMIT_BYTES = 65536


def tell(path: Path, message: dict[str, Any]) -> None:
    """Send one message; raises OSError where nobody listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.sendto(json.dumps(message).encode(), str(path))


def listen(path: Path) -> socket.socket:
    """Return a non-blocking socket for messages."""
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.bind(str(path))
    s.setblocking(False)
    return s


def heard(s: socket.socket) -> dict[str, Any]:
    """Return the next message."""
    message = json.loads(s.recv(LIMIT_BYTES))
    return message if isinstance(message, dict) else {}


def ready(settings: dict[str, Any]) -> None:
    """Tell the runner that this program is ready."""
    (Path(settings["folder"]) / f"{settings['name']}.ready").touch()
