"""Real gateways in front of the engine: nginx, HAProxy, or a router of `routers`, as a scenario asks for."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from skewscope.lab.bed import routers
from skewscope.lab.bed.needs import OPTIONAL, PACKAGES, BedUnavailableError, search_path
from skewscope.lab.bed.processes import ProcessError, until
from skewscope.lab.bed.system import inside

if TYPE_CHECKING:
    from skewscope.lab.bed.bed import Bed
    from skewscope.lab.bed.topology import Node

READY_S = 5.0

NGINX = """\
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.err warn;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  upstream engine {{ {servers} keepalive {keep_alive}; }}
  server {{
    listen {port};
    keepalive_timeout {idle_s}s;
    location / {{
      proxy_pass http://engine;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering {buffering};
      proxy_buffer_size {buffer_bytes}; proxy_buffers 8 {buffer_bytes}; proxy_busy_buffers_size {busy_bytes};
      proxy_read_timeout {read_s}s;
    }}
  }}
}}
"""
HAPROXY = """\
global
  maxconn {max_connections}
defaults
  mode http
  option http-no-delay
  timeout connect 5s
  timeout client {idle_s}s
  timeout http-keep-alive {idle_s}s
  timeout queue 60s
  timeout server {read_s}s
frontend clients
  bind *:{port}
  maxconn {max_connections}
  default_backend engine
frontend metrics
  bind *:{metrics_port}
  http-request use-service prometheus-exporter if {{ path /metrics }}
backend engine
  http-reuse {reuse}
{servers}
"""
DEFAULTS: dict[str, Any] = {
    "kind": "nginx", "buffering": "off", "buffer_bytes": 4096, "idle_s": 60, "read_s": 60, "keep_alive": 16,
    "max_connections": 1000, "server_connections": 0, "reuse": "safe",
}  # fmt: skip

METRICS_PORTS = {"haproxy": 8405, **dict.fromkeys(PACKAGES, routers.METRICS_PORT)}
"""Where a gateway shows metrics; nginx has none in this format."""


def metrics_port(settings: Mapping[str, Any]) -> int:
    """Return the port of the gateway's metrics page; 0 where it has none."""
    return METRICS_PORTS.get({**DEFAULTS, **settings}["kind"], 0)


def configuration(settings: Mapping[str, Any], backends: list[list[Any]], port: int, folder: str) -> str:
    """Return the text of the gateway's configuration file."""
    s = {**DEFAULTS, **settings, "port": port, "folder": folder}
    s["metrics_port"] = METRICS_PORTS["haproxy"]
    s["busy_bytes"] = 2 * s["buffer_bytes"]
    if s["kind"] == "nginx":
        s["servers"] = " ".join(f"server {host}:{p};" for host, p in backends)
        return NGINX.format(**s)
    limit = f" maxconn {s['server_connections']}" if s["server_connections"] else ""
    s["servers"] = "\n".join(f"  server s{k} {h}:{p}{limit}" for k, (h, p) in enumerate(backends))
    return HAPROXY.format(**s)


def start(bed: Bed, node: Node, backends: list[list[Any]]) -> None:
    """Start the gateway; raises BedUnavailableError where the program is missing."""
    kind = {**DEFAULTS, **bed.workload.gateway}["kind"]
    if kind in PACKAGES:
        routers.start(bed, node, kind, backends)
        return
    program = shutil.which(kind, path=search_path())
    if program is None:
        raise BedUnavailableError(f"the bed needs the program {kind} (Debian package {OPTIONAL[kind]})")
    apply(bed, node, {})
    file = bed.folder / f"{kind}.conf"
    words = [program, "-c", file, "-p", bed.folder] if kind == "nginx" else [program, "-W", "-f", file]
    bed.processes.start(node.name, node.name, list(words))
    mark = f":{bed.topology.router_port:04X} "
    if not until(lambda: mark in inside(node.name, "cat", "/proc/net/tcp"), READY_S, 0.1):
        raise ProcessError(f"{kind} did not get ready: {bed.processes.last_lines(node.name)}")


def apply(bed: Bed, node: Node, changes: Mapping[str, Any]) -> None:
    """Write the configuration with changes; a running gateway takes it by a reload."""
    settings = {**DEFAULTS, **bed.workload.gateway, **changes}
    backends = [[r[0].address, bed.topology.http_port] for r in bed.topology.replicas()]
    text = configuration(settings, backends, bed.topology.router_port, str(bed.folder))
    (bed.folder / f"{settings['kind']}.conf").write_text(text, encoding="utf-8")
    if node.name in bed.processes.names():
        number = signal.SIGHUP if settings["kind"] == "nginx" else signal.SIGUSR2
        bed.processes[node.name].handle.send_signal(number)
        time.sleep(0.2)
