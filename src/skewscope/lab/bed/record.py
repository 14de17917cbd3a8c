"""Record a scenario as a case folder: taps, logs, metrics, and the truth with the measured effect."""

from __future__ import annotations

import gzip
import json
import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from skewscope.lab.bed import figures
from skewscope.lab.bed.bed import Bed, rank_of
from skewscope.lab.bed.counters import Sampler, text
from skewscope.lab.bed.injector import load_all
from skewscope.lab.bed.needs import require
from skewscope.lab.bed.pcapng import from_pcap
from skewscope.lab.bed.play import Played, Player
from skewscope.lab.bed.scenario import Drawn, Injection
from skewscope.lab.bed.system import port
from skewscope.lab.bed.taps import Taps
from skewscope.lab.bed.truth import Fault, Truth, write

TRIES = 3
SCHEDULING = "SCHED_RR 5; from its onset a processor fault has its process under the normal scheduler"
EFFECTS = {
    "step_time_ratio": "step_p50_ms",
    "step_p95_ratio": "step_p95_ms",
    "step_max_ratio": "step_max_ms",
    "ttft_ratio": "ttft_p50_ms",
    "ttft_p95_ratio": "ttft_p95_ms",
    "chunk_gap_ratio": "gap_p50_ms",
    "chunk_gap_p95_ratio": "gap_p95_ms",
    "goodput_ratio": "goodput_rps",
    "chunk_rate_ratio": "chunks_per_s",
    "replica_share_ratio": "replica_share",
    "entry_lag_ratio": "entry_lag_ms",
    "batch_ratio": "batch_mean",
    "transfer_ratio": "transfer_p50_ms",
    "heartbeat_gap_ratio": "beat_gap_ms",
}
"""Name of an effect -> the figure whose ratio to the paired run it is."""


class NoEffectError(RuntimeError):
    """The injection had no measurable effect, so this is no case; the message holds the figures."""


class BusyError(RuntimeError):
    """Others took the bed's time in every try."""


@dataclass(frozen=True)
class Case:
    """A case that was written."""

    folder: Path
    truth: Truth
    tries: int


def record(drawn: Drawn, out: Path, snap: int, say: Callable[[str], None], paired: bool = True) -> Case:
    """Record a case in the folder `out`, which must not exist or be empty.

    Without `paired` no run without the injection comes first, so no effect is measured or asked for: for
    controls, where only the findings count. Raises BedUnavailableError, NoEffectError, BusyError (`out` is
    then not made), or what a failing bed raises.
    """
    kinds = load_all()
    programs = {p for i in drawn.injections for p in kinds[i.injector].NEEDS} | set(drawn.needs)
    require(tuple(sorted(programs)))
    objections: list[str] = []
    for number in range(1, TRIES + 1):
        with Bed(drawn.topology, drawn.workload, drawn.seed) as bed:
            taken = _Take(bed, drawn, snap, paired)
            objections = taken.objections()
            if not objections:
                return Case(out, taken.write(out, number), number)
        say(f"run {number} of {drawn.name} is not used: {'; '.join(objections)}")
    raise BusyError(f"others took the bed's time in {TRIES} runs: {'; '.join(objections)}")


class _Take:
    """One paired and one recorded run on one bed."""

    def __init__(self, bed: Bed, drawn: Drawn, snap: int, paired: bool) -> None:
        self.bed, self.drawn = bed, drawn
        player = Player(bed, drawn)
        self.paired: Played | None = None
        if drawn.injections and paired:
            self.paired = player.play(with_faults=False)
            bed.quiesce()
        self.taps: list[Taps] = []
        self.sampler = Sampler(bed.processes, bed.topology, bed.group_folders)
        self.played = player.play(with_faults=True, begin_taps=lambda: self._begin_taps(snap))
        self.sampler.stop()
        self.lost: int = self.taps[0].close()
        bed.quiesce(drain_s=0.0)
        bed.end()
        self.fault: dict[str, float] = self._figures(self.played)
        self.healthy: dict[str, float] = self._figures(self.paired) if self.paired else {}

    def _begin_taps(self, snap: int) -> None:
        """Tap every port that the topology wants; requests are kept whole where no ranks are."""
        snaps = {
            n.name: snap if n.role in ("rank", "prefill") else 0
            for n in self.drawn.topology.nodes
            if n.tapped
        }
        self.taps.append(Taps(self.bed.processes, snaps))
        self.sampler.start()

    def objections(self) -> list[str]:
        """Return why this run cannot be used."""
        found = self.played.use.objections()
        if self.paired:
            found += [f"{o} (paired run)" for o in self.paired.use.objections()]
        if self.lost:
            found.append(f"captures lost {self.lost} frames")
        return found

    def _figures(self, played: Played) -> dict[str, float]:
        folder, span = self.bed.folder, played.during
        logs = {
            n.name: figures.rows(folder / f"{rank_of(n)}.jsonl") for n in self.drawn.topology.of_role("rank")
        }
        replicas = self.drawn.topology.replicas()
        found = figures.steps([logs[r[0].name] for r in replicas], span)
        size = len(replicas[0]) // self.drawn.workload.stages
        teams = [r[k : k + size] for r in replicas for k in range(0, len(r), size)]
        lags = [figures.entries([logs[n.name] for n in team], span) for team in teams if len(team) > 1]
        found["entry_lag_ms"] = max((v for v in lags if not math.isnan(v)), default=math.nan)
        log = [r for c in self.bed.main_clients() for r in figures.rows(folder / f"{c}.jsonl")]
        found |= figures.beats([figures.rows(f) for f in folder.glob("heart-*.jsonl")], span)
        for flow in self.drawn.workload.flows:
            found |= figures.transfers(figures.rows(folder / f"{flow}-from.jsonl"), span)
        kv = [r for f in folder.glob("kv-*.jsonl") for r in figures.rows(f)]
        if kv:
            found |= figures.transfers(kv, span)
        probes = [r for f in folder.glob("probes-*.jsonl") for r in figures.rows(f)]
        found |= figures.health(probes, span)
        scraped = [(int(p.stem), p.read_text(encoding="utf-8")) for p in folder.glob("metrics/*/*.prom")]
        found |= figures.pages(sorted(scraped), span)
        return found | figures.requests(log, span) | figures.counts(span)

    def effect(self) -> dict[str, float]:
        """Return the measured effect against the paired run."""
        ratios = {name: figures.ratio(self.fault, self.healthy, figure) for name, figure in EFFECTS.items()}
        out = {k: v for k, v in ratios.items() if not math.isnan(v)}
        for name in (*figures.COUNTS, "stale_pages", "failed_probes"):
            out[f"{name}_count"] = self.fault[name]
            out[f"{name}_paired_count"] = self.healthy[name]
        return out

    def write(self, out: Path, tries: int) -> Truth:
        """Write the case; raises NoEffectError before anything is written."""
        drawn = self.drawn
        asked = drawn.visible or drawn.visible_count
        if (
            self.paired
            and asked
            and not figures.shown(self.fault, self.healthy, drawn.visible, drawn.visible_count)
        ):
            moved = ", ".join(f"{k} {v:.2f}" for k, v in self.effect().items())
            raise NoEffectError(f"{drawn.name} with seed {drawn.seed}: no measurable effect ({moved})")
        (out / "taps").mkdir(parents=True, exist_ok=True)
        firsts = []
        for tap in self.taps[0].taps:
            data, first_ns = from_pcap(tap.file.read_bytes(), port(tap.node), self.played.end_ns, tap.snap)
            _packed(out / "taps" / f"{tap.node}.pcapng.gz", data)
            if first_ns:
                firsts.append(first_ns)
        self._write_logs(out)
        (out / "counters").mkdir(exist_ok=True)
        for node, samples in self.sampler.samples.items():
            (out / "counters" / f"{node}.txt").write_text(text(samples), encoding="ascii")
        truth = self._truth(min(firsts), tries)
        (out / "truth.toml").write_text(write(truth), encoding="utf-8")
        return truth

    def _write_logs(self, out: Path) -> None:
        """Keep the rows of the recorded run: engine steps, requests, health probes, metrics pages."""
        (out / "logs").mkdir(exist_ok=True)
        played = self.played
        for file in sorted(self.bed.folder.glob("*.jsonl")):
            kept = [
                r
                for r in figures.rows(file)
                if played.start_ns <= r.get("start_ns", r.get("due_ns", r.get("ts_ns", 0))) < played.end_ns
            ]
            if kept:
                lines = "".join(json.dumps(r) + "\n" for r in kept)
                _packed(out / "logs" / f"{file.name}.gz", lines.encode())
        for page in sorted(self.bed.folder.glob("metrics/*/*.prom")):
            if played.start_ns <= int(page.stem) < played.end_ns:
                (out / "metrics" / page.parent.name).mkdir(parents=True, exist_ok=True)
                shutil.copy(page, out / "metrics" / page.parent.name / page.name)

    def _truth(self, first_ns: int, tries: int) -> Truth:
        drawn, use = self.drawn, self.played.use
        step_ms = (self.healthy or self.fault)["step_p50_ms"]
        rounds = 2 * max(drawn.workload.layers)
        bed = {
            "variant": drawn.variant,
            "title_of_injection": self.played.how,
            "noise": drawn.workload.noise,
            "topology": drawn.topology.name,
            "tries": tries,
            "bed_busy_ratio": use.bed_ratio,
            "waited_ratio": use.waited_ratio,
            "stolen_ratio": use.stolen_ratio,
            "scheduling": SCHEDULING,
            "nodes": {n.name: {"role": n.role, "addresses": n.addresses} for n in drawn.topology.nodes},
            "figures": dict(self.fault),
            "figures_paired": dict(self.healthy),
        }
        return Truth(
            name=f"{drawn.name}.{drawn.variant}.s{drawn.seed}",
            source="bed",
            seed=drawn.seed,
            workload=f"{drawn.topology.name}-{drawn.workload.noise}",
            first_sample_ns=first_ns,
            machine_busy_ratio=use.busy_ratio,
            faults=self._faults(first_ns),
            allowed=() if drawn.expected.condition else drawn.expected.secondary,
            round_s=step_ms / 1e3 / rounds if not math.isnan(step_ms) else math.nan,
            bed=bed,
        )

    def _faults(self, first_ns: int) -> tuple[Fault, ...]:
        said = self.drawn.expected
        if not said.condition:
            return ()
        node = self.drawn.topology.node(said.culprit_node)
        first = self.drawn.injections[0]
        neighbours = [n.name for n in self.drawn.topology.nodes if n.tapped and n.name != node.name]
        return (
            Fault(
                condition=said.condition,
                culprit_kind=said.culprit_kind,
                culprit_id=node.address,
                cause_right=said.cause_right,
                onset_s=(self.played.during.start_ns - first_ns) / 1e9,
                end_s=(self.played.during.end_ns - first_ns) / 1e9,
                also_right=said.also_right,
                secondary=said.secondary,
                strength=(_strength_name(first), first.strength),
                effect=self.effect(),
                visible_from=tuple(f"tap:{n}" for n in ([node.name] if node.tapped else []) + neighbours),
            ),
        )


def _packed(file: Path, data: bytes) -> None:
    """Write a file compressed, the same bytes for the same data."""
    with gzip.GzipFile(file, "wb", compresslevel=6, mtime=0) as target:
        target.write(data)


def _strength_name(injection: Injection) -> str:
    """Return what the strength of an injection is: the option that it sets, or what the injector says."""
    for key in ("option", "scaled"):
        if key in injection.settings:
            return str(injection.settings[key])
    return load_all()[injection.injector].STRENGTH
