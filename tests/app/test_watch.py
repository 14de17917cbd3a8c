"""Recording and watching a bed at once: live and offline say the same of the same packets."""

import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from skewscope.app.api import diagnose
from skewscope.app.watch import Watch
from skewscope.lab.bed import needs
from skewscope.lab.bed.bed import Bed
from skewscope.lab.bed.play import Player
from skewscope.lab.bed.scenario import draw, scaled
from skewscope.lab.bed.system import SWITCH, namespace, port
from skewscope.lab.bed.taps import Taps

WARM_UP_S = 20
"""The watcher imports and loads its kernels before it opens its rings."""


@pytest.mark.root
@pytest.mark.slow
def test_live_and_offline_name_the_same_straggler():
    lacking = needs.missing()
    if lacking:
        pytest.skip(f"the bed cannot run here: {'; '.join(lacking)}")
    drawn = scaled(draw("c20", 5, noise="low"), 1.0)
    tapped = [n.name for n in drawn.topology.nodes if n.tapped]
    with Bed(drawn.topology, drawn.workload, drawn.seed) as bed:
        player, taps = Player(bed, drawn), []
        words = [w for n in tapped for w in ("--iface", port(n))]
        inside = ["ip", "netns", "exec", namespace(SWITCH), "chrt", "-o", "0"]
        watcher = subprocess.Popen(
            [*inside, sys.executable, "-m", "skewscope.app.cli", "watch", *words, "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )
        time.sleep(WARM_UP_S)
        player.play(True, lambda: taps.append(Taps(bed.processes, dict.fromkeys(tapped, 0))))
        taps[0].close()
        watcher.send_signal(2)
        text, _ = watcher.communicate(timeout=60)
        bed.end()
        offline = diagnose([tap.file for tap in taps[0].taps])
    live = json.loads(text)
    assert live["incidents"], "nothing was found live"
    first, mine = live["incidents"][0], offline.incidents[0]
    assert first["condition"] == mine.condition
    assert first["culprits"][0]["id"] == mine.culprits[0].id
    assert abs(first["onset_ns"] - mine.onset_ns) < 500_000_000


class Engine(BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'vllm:num_requests_running{model_name="m"} 3\n'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        pass


def test_endpoints_can_be_watched_without_an_interface(tmp_path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    endpoint = f"127.0.0.1:{server.server_address[1]}"
    watch = Watch((), scrape=[endpoint], spool=tmp_path)
    begin = time.monotonic()
    assert list(watch.changes(lambda: watch.inbox.rows > 0 or time.monotonic() - begin > 30)) == []
    watch.close()
    server.shutdown()
    server.server_close()
    thread.join()
    (one,) = watch.report().inputs
    assert (one.path, one.kind) == (endpoint, "live metrics")
    assert one.rows["readings"] >= 1
    (kept,) = diagnose([tmp_path]).inputs
    assert kept.kind == "prometheus text"
    assert kept.names["engine.requests_running"] >= one.rows["readings"]  # one more may have come since
