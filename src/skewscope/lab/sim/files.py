"""A run's samples as the files that agents, exporters and kernels write: what the sources read back."""

from __future__ import annotations

import gzip
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from skewscope.core.schemas import Kind
from skewscope.lab.sim.vantage.emit import Emission
from skewscope.lab.sim.vantage.job import TREES, Column, Job, Series, labels_text, series_of

ROLE = {Kind.BUCKET: "_bucket", Kind.SUM: "_sum", Kind.COUNT: "_count"}
TYPE = {Kind.COUNTER32: "counter", Kind.COUNTER64: "counter", Kind.BUCKET: "histogram"}
SENTINEL = 9223372036854775794
"""What DCGM answers for a field that it could not read."""


def write(emission: Emission, folder: Path) -> list[Path]:
    """Write the files of a case below `folder`; returns them.

    counters/<host>/<product>.txt.gz: a tree as `grep -r .` prints it, each reading after a `# time` line;
    counters/<host>/ethtool.<unix ns>.txt; metrics/<target>/<product>.<unix ns>.prom: a page a scrape;
    logs/<host>/kernel.log.
    """
    written: list[Path] = []
    for job in emission.jobs:
        if job.product in TREES:
            written += _trees(emission, job, folder / "counters")
        else:
            written += _pages(emission, job, folder / "metrics")
    return written + _kernel_logs(emission, folder / "logs")


def _scrapes(emission: Emission, job: Job) -> dict[tuple[str, int], tuple[int, list[int]]]:
    """Return (target, scrape) -> (time in ns, places of its entities), lost scrapes left out."""
    found: dict[tuple[str, int], tuple[int, list[int]]] = {}
    stamped = job.times_s + job.ahead_s
    for place, target in enumerate(job.targets):
        for number in range(len(job.times_s)):
            if job.kept[number, place]:
                at_ns = emission.start_ns + int(stamped[number, place] * 1e9)
                found.setdefault((target, number), (at_ns, []))[1].append(place)
    return found


def _trees(emission: Emission, job: Job, folder: Path) -> list[Path]:
    texts: dict[Path, list[str]] = defaultdict(list)
    series = series_of(job.product)
    for (target, number), (at_ns, places) in sorted(_scrapes(emission, job).items()):
        if job.product == "ethtool":  # it says no time: a file a reading
            lines = texts[folder / target / f"ethtool.{at_ns}.txt"]
        else:
            lines = texts[folder / target / f"{job.product}.txt.gz"]
            lines.append(f"# time {at_ns // 10**9}.{at_ns % 10**9:09}")
        for place in places:
            device = job.entities[place].removeprefix(f"{target}/")
            if job.product == "ethtool":
                lines += [f"# ethtool -S {device}", "NIC statistics:"]
            for c in job.columns:
                lines.append(_tree_line(job.product, device, series[c.name].raw, c.raw[number, place]))
    for path, lines in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        data = ("\n".join(lines) + "\n").encode()
        path.write_bytes(gzip.compress(data, 6, mtime=0) if path.suffix == ".gz" else data)
    return list(texts)


def _tree_line(product: str, device: str, raw: str, value: float) -> str:
    """Return a reading as `grep -r .` shows the file, or as `ethtool -S` shows it."""
    if product == "ethtool":
        return f"     {raw}: {round(value)}"
    if product == "sysfs_pci":
        address = device.removeprefix("pci ")
        if raw.startswith("aer_"):
            file, name = raw.split("/")
            return f"{address}/{file}: {name} {round(value)}"
        if raw.endswith("speed"):
            return f"{address}/{raw}: {value:g} GT/s PCIe"
        return f"{address}/{raw}: {round(value)}"
    name, port = device.split("/")
    if raw == "rate":
        return f"{name}/ports/{port}/rate: {value:g} Gb/sec (4X NDR)"
    if raw == "state":
        return f"{name}/ports/{port}/state: {round(value)}: {'ACTIVE' if value == 4 else 'DOWN'}"
    part = "hw_counters" if raw in HW or raw.startswith(("np_", "rp_", "roce_")) else "counters"
    return f"{name}/ports/{port}/{part}/{raw}: {round(value)}"


HW = frozenset(
    {"out_of_buffer", "out_of_sequence", "packet_seq_err", "rnr_nak_retry_err", "local_ack_timeout_err",
     "rx_write_requests", "req_cqe_error"}
)  # fmt: skip
"""Counters that stand in `hw_counters`."""


def _pages(emission: Emission, job: Job, folder: Path) -> list[Path]:
    written = []
    series = series_of(job.product)
    for (target, number), (at_ns, places) in sorted(_scrapes(emission, job).items()):
        lines: list[str] = []
        told: set[str] = set()
        for c in job.columns:
            said = series[c.name]
            if said.raw not in told:
                told.add(said.raw)
                lines.append(f"# TYPE {said.raw} {TYPE.get(said.said.kind, 'gauge')}")
            for place in places:
                lines.append(_sample(job, c, said, number, place, target))
        # Several exporters of one host have pages of their own, as they have ports of their own.
        path = folder / target / f"{job.product}.{at_ns}.prom"
        if path.exists():
            path = path.with_name(f"{job.product}_net.{at_ns}.prom")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        written.append(path)
    return written


def _sample(job: Job, c: Column, said: Series, number: int, place: int, target: str) -> str:
    labels = dict(c.labels)
    part = job.entities[place].removeprefix(target).lstrip("/")
    if job.product == "dcgm_exporter":
        labels |= {"gpu": part.removeprefix("gpu"), "Hostname": target}
    elif part:
        labels["device"] = part
    if c.kind == Kind.BUCKET:
        labels["le"] = "+Inf" if np.isinf(c.bound) else repr(c.bound)
    value = float(c.raw[number, place])
    text = str(SENTINEL) if np.isnan(value) else repr(value)
    shown = "{" + labels_text(labels) + "}" if labels else ""
    return f"{said.raw}{ROLE.get(c.kind, '')}{shown} {text}"


def _kernel_logs(emission: Emission, folder: Path) -> list[Path]:
    """Write what the kernels of the hosts said, as a journal prints it with full times."""
    texts: dict[Path, list[str]] = defaultdict(list)
    d = emission.directory
    for part in emission.parts:
        table = part.get("events")
        for row in range(len(table) if table is not None else 0):
            assert table is not None
            host, _, what = d.entities[table["entity"][row]].partition("/")
            said = _message(
                d.names[table["kind"][row]], what, int(table["code"][row]), d.entities[table["peer"][row]]
            )
            if said:
                ns = int(table["ts_ns"][row])
                stamp = f"{datetime.fromtimestamp(ns // 10**9, UTC):%Y-%m-%dT%H:%M:%S}.{ns % 10**9:09}Z"
                texts[folder / host / "kernel.log"].append(f"{stamp} {host} kernel: {said}")
    for path, lines in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return list(texts)


def _message(kind: str, what: str, code: int, peer: str) -> str:
    """Return the kernel's words for an event, "" where the kernel does not tell it."""
    address = (peer or what).rpartition("pci ")[2]
    if kind == "gpu.xid":
        return f"NVRM: Xid (PCI:{address.removesuffix('.0')}): {code}, GPU{what.removeprefix('gpu')} error"
    if kind == "pcie.aer":
        return f"pcieport {address}: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Receiver ID)"
    if kind == "peermem.error":
        return "nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context"
    if kind == "link.down":
        return f"mlx5_core 0000:4a:00.0 {what}: Link down"
    if kind == "link.up":
        return f"mlx5_core 0000:4a:00.0 {what}: Link up, {code // 1000}Gbps"
    return ""
