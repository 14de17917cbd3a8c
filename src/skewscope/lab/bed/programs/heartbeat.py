"""A node's heartbeat: one small datagram to the management node every `every_s`, after a little work."""

from __future__ import annotations

import json
import socket
import sys
import time
from pathlib import Path

from skewscope.lab.bed.control import ready

SPINS = 20_000
"""Work per beat: reading counters and packing them takes about a millisecond of a core."""


def main() -> None:
    """Beat until killed."""
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    log = (Path(settings["folder"]) / f"{settings['name']}.jsonl").open("w", encoding="utf-8")
    ready(settings)
    due, number = time.monotonic(), 0
    while True:
        for _ in range(SPINS):
            pass
        beat = {"ts_ns": time.time_ns(), "beat": number}
        s.sendto(
            json.dumps({"node": settings["node"], **beat}).encode(), (settings["host"], settings["port"])
        )
        print(json.dumps(beat), file=log, flush=True)
        number += 1
        due = max(due + settings["every_s"], time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    main()
