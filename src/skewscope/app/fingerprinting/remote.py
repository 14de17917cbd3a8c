"""Collects from an endpoint over HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from skewscope.app.fingerprinting.recorder import Recorder, read_probes
from skewscope.fingerprint import probes
from skewscope.fingerprint.collection import Answer
from skewscope.fingerprint.probes import Estimate, Probe
from skewscope.fingerprint.replies import Asked, ReplyError, answers, request_body
from skewscope.sources.endpoint import Endpoint, EndpointError, Rate


@dataclass(frozen=True)
class Plan:
    """One collection over HTTP: whom, what, how often, how fast."""

    url: str
    asked: Asked
    probes: list[Probe]
    repeats: int
    batch: int
    concurrency: int
    rate_per_s: float
    seed: int | None
    estimate: Estimate


def plan(options: dict[str, Any]) -> Plan:
    """Return the plan for the options of the command; ValueError where they contradict each other."""
    if not options["model"]:
        raise ValueError("--url needs --model")
    if options["api"] == "chat" and (options["token_ids"] or options["echo"] or (options["batch"] or 1) > 1):
        raise ValueError("--token-ids, --echo and --batch need --api completion")
    count, length, answered = options["probes"], options["length"], options["answer_tokens"]
    seed: int | None = options["seed"]
    if options.get("probe_file"):
        made, seed = read_probes(Path(options["probe_file"])), None
        wrong = [p.id for p in made if not (p.tokens if options["token_ids"] else p.text)]
        if wrong:
            raise ValueError(f"probe {wrong[0]} has no {'tokens' if options['token_ids'] else 'text'}")
        if (options["batch"] or 1) > 1 and any(p.bias for p in made):
            raise ValueError("biased probes are asked one at a time: --batch 1")
    elif options["token_ids"]:
        made = probes.token_probes(options["seed"], count, length, options["vocabulary"], answered)
    else:
        made = probes.text_probes(options["seed"], count, length, answered)
    expected = probes.estimate(
        made,
        options["repeats"],
        options["rate"],
        prompt_price=options["prompt_price"],
        answer_price=options["answer_price"],
    )
    names = ("api", "model", "top", "stream", "echo", "token_ids")
    return Plan(
        options["url"],
        Asked(**{name: options[name] for name in names}),
        made,
        options["repeats"],
        options["batch"] or 1,
        options["concurrency"],
        options["rate"],
        seed,
        expected,
    )


def collect(plan: Plan, out: Path, key: str, say: Callable[[str], None]) -> tuple[int, int]:
    """Ask what is still missing; return the numbers of new answers and of requests without an answer."""
    endpoint = Endpoint(plan.url, key, rate=Rate(plan.rate_per_s))
    provenance = {
        "platform": {"url": plan.url, "model": plan.asked.model},
        "source": {"kind": "endpoint"},
        "probes": probes.described(plan.probes, plan.seed),
        "settings": asdict(plan.asked) | {"batch": plan.batch, "concurrency": plan.concurrency},
        "created_ns": time.time_ns(),
    }

    def ask(group: list[Probe], repeat: int) -> list[Answer]:
        raw = endpoint.post(plan.asked.path, request_body(group, plan.asked))
        return answers(raw, group, plan.asked, repeat)

    added = failed = 0
    with Recorder(out, provenance) as recorder, ThreadPoolExecutor(plan.concurrency) as pool:
        starts = range(0, len(plan.probes), plan.batch)
        wanted = [(plan.probes[i : i + plan.batch], r) for r in range(plan.repeats) for i in starts]
        missing = [(g, r) for g, r in wanted if any((p.id, r) not in recorder.done for p in g)]
        jobs = [pool.submit(ask, group, repeat) for group, repeat in missing]
        try:
            for job in as_completed(jobs):
                try:
                    added += recorder.add(job.result())
                except (EndpointError, ReplyError) as error:
                    failed += 1
                    if failed == 1:
                        say(str(error))
        finally:  # an interrupt must not wait for what was not asked yet
            pool.shutdown(cancel_futures=True)
    return added, failed
