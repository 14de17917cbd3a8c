"""The loop on loopback: three small servers behind a real proxy, one of them slow, and `skewscope act apply`.

The servers are stand-ins with a drawn service time; proxy, client, command and journal are real processes.
The report is written by hand and names one endpoint: what is tried is the acting, not the diagnosis.
"""

import contextlib
import http.client
import json
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from skewscope.act.journal import look
from tests.act.actuators import servers
from tests.act.actuators.test_sglang_router import router as sglang
from tests.act.actuators.test_vllm_router import router as vllm
from tests.act.worlds import report

USUAL_S, SLOW_S = 0.02, 0.4
CLIENTS = 8
SETTLE_S = 0.6
"""A reload of nginx and a removal by sglang-router take effect a moment after they were accepted."""
BODY = b'{"model": "m", "prompt": "x"}'
FRONTS = ("haproxy", "nginx", "sglang_router", "vllm_router")


@dataclass
class Front:
    """A proxy in front of the servers, and what act.toml needs to know of it."""

    port: int
    settings: str
    names: list[str]
    verb: str


@contextlib.contextmanager
def front(kind: str, folder: Path, behind: list[servers.Server]) -> Iterator[Front]:
    """Run one of FRONTS, or skip."""
    ports, urls = [s.port for s in behind], [s.url for s in behind]
    if kind == "haproxy":
        with servers.haproxy(folder, ports) as (port, sock):
            yield Front(port, f'socket = "{sock}"\nbackend = "llm"\n', ["r0", "r1", "r2"], "lower_weight")
    elif kind == "nginx":
        with servers.nginx(folder, ports) as (port, file, command):
            settings = f'file = "{file}"\nupstream = "llm"\ncommand = {json.dumps(command)}\n'
            yield Front(port, settings, [f"127.0.0.1:{p}" for p in ports], "lower_weight")
    else:
        run = sglang if kind == "sglang_router" else vllm
        with run(urls) as (made, port):
            yield Front(port, f'url = "{made.server.url}"\n', urls, "drain_endpoint")


@dataclass
class Measured:
    """What a client saw of `len(worker)` requests: who answered (-1 = nobody), and after how long."""

    worker: np.ndarray
    seconds: np.ndarray

    def p95_s(self) -> float:
        return float(np.quantile(self.seconds, 0.95))

    def failed(self) -> int:
        return int((self.worker < 0).sum())

    def share(self, worker: int) -> float:
        return float((self.worker == worker).mean())


def measure(port: int, count: int) -> Measured:
    """Send `count` requests from CLIENTS clients, each its next one after the answer to the last."""

    def one(_: int) -> tuple[int, float]:
        began_s = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("POST", "/v1/completions", BODY, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            worker = int(json.loads(text)["worker"]) if answer.status == 200 else -1
        except (OSError, http.client.HTTPException, ValueError):
            worker = -1
        finally:
            connection.close()
        return worker, time.monotonic() - began_s

    with ThreadPoolExecutor(CLIENTS) as pool:
        got = list(pool.map(one, range(count)))
    return Measured(np.array([w for w, _ in got]), np.array([s for _, s in got]))


def act_toml(kind: str, at: Front, behind: list[servers.Server], ttl_s: float) -> str:
    endpoints = "".join(
        f'[[pool.endpoints]]\nid = "127.0.0.1:{s.port}"\nname = "{name}"\n'
        for s, name in zip(behind, at.names, strict=True)
    )
    return (
        'mode = "auto"\nlearn_s = 0\n[limits]\ncool_down_s = 0\n'
        f"[verify]\nsettle_s = {SETTLE_S / 2}\nwithin_s = 30\n"
        f'[rule.c06]\ndo = ["{at.verb}"]\nttl_s = {ttl_s}\n'
        f'[[actuator]]\nname = "edge"\nkind = "{kind}"\n{at.settings}'
        f'[[pool]]\nname = "chat"\nactuators = ["edge"]\n{endpoints}'
    )


def write_report(path: Path, port: int | None, seen_s: float = 20.0) -> None:
    """Write a report that ends now; it names the endpoint of one port by two sources, or nobody."""
    now_ns = time.time_ns()
    data = report(
        condition="c06",
        onset_ns=now_ns - 2_000_000_000,
        culprits=[{"kind": "endpoint", "id": f"127.0.0.1:{port}", "name": "", "probability": 0.95}],
        causes=[{"class": "host_cpu", "probability": 0.9}],
        impact={"ttft_s": [USUAL_S, SLOW_S]},
        findings=[_finding("c06", "lg.pcap"), _finding("c20", "n1.pcap")],
    )
    data["span_ns"] = [now_ns - int(seen_s * 1e9), now_ns]
    data["incidents"] = data["incidents"] if port else []
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(data))
    draft.replace(path)


def _finding(condition: str, file: str) -> dict[str, Any]:
    evidence = [{"spans": [{"file": file}], "packets": []}]
    return {"condition": condition, "key": "x", "evidence": evidence}


def wait_for(journal: Path, event: str, process: subprocess.Popen[bytes], limit_s: float = 40.0) -> float:
    """Wait until an event is on record; return the wall clock of its record in seconds."""
    give_up_s = time.monotonic() + limit_s
    while time.monotonic() < give_up_s:
        lines = journal.read_text().splitlines() if journal.exists() else []
        for line in lines:
            if f'"event":"{event}"' in line and line.endswith("}"):
                return float(json.loads(line)["ts_ns"]) / 1e9
        if process.poll() is not None and event != "ended":
            said = process.stdout.read().decode() if process.stdout else ""
            raise AssertionError(f"no {event}; it said: {said}")
        time.sleep(0.02)
    raise AssertionError(f"no {event} within {limit_s} s")


@dataclass
class Told:
    """What one run showed."""

    healthy: Measured
    before: Measured
    during: Measured | None
    after: Measured
    apply_s: float
    revert_s: float
    events: list[str]
    verdict: str
    how: str


def run(kind: str, folder: Path, seed: int, count: int, ttl_s: float, blame: int = 1, slow: int = 1) -> Told:
    """Make server `slow` slow, blame server `blame`, and let `skewscope act apply` do the rest."""
    rng = np.random.default_rng(seed)
    delays, slow_now = rng.uniform(0.5 * USUAL_S, 1.5 * USUAL_S, 4096), [False]

    def delay_s(i: int) -> float:
        return SLOW_S if slow_now[0] and i == slow else float(delays[rng.integers(4096)])

    journal, config, news = folder / "act.jsonl", folder / "act.toml", folder / "report.json"
    with servers.workers(3, delay_s) as behind, front(kind, folder, behind) as at:
        config.write_text(act_toml(kind, at, behind, ttl_s))
        healthy = measure(at.port, count)
        slow_now[0] = True
        before = measure(at.port, count)
        write_report(news, behind[blame].port)
        began_s = time.time()
        command = servers.python("-W", "ignore", "-m", "skewscope.app.cli", "act", "apply", str(news))
        command += ["--config", str(config), "--every", "0.1"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            applied_s = wait_for(journal, "applied", process)
            time.sleep(max(applied_s + SETTLE_S - time.time(), 0))
            during = measure(at.port, count) if blame == slow else None
            # What a later capture would show: nobody is slow for the users any more, or still the same one.
            write_report(news, None if blame == slow else behind[slow].port, time.time() - applied_s - 0.01)
            ended_s = wait_for(journal, "ended", process)
            process.communicate(timeout=30)
        time.sleep(SETTLE_S)
        after = measure(at.port, count // 3)
    (action,) = look(journal).actions.values()
    events = [json.loads(line)["event"] for line in journal.read_text().splitlines()]
    return Told(
        healthy,
        before,
        during,
        after,
        applied_s - began_s,
        ended_s - applied_s,
        events,
        action.verdict,
        action.ended_how,
    )
