"""Measure the closed loop on loopback: a slow server behind real proxies, with and without `skewscope act`.

    python -m bench.act_loop [--runs N] [-o PAGE]

sglang-router and vllm-router are measured where SKEWSCOPE_ROUTERS names a folder that holds them
(`pip install --target FOLDER sglang-router vllm-router`). How it is done: tests/act/loop.py.
"""

import argparse
import json
import platform
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.act import loop

COUNT = 300
HEADS = (
    "proxy",
    "runs",
    "healthy",
    "slow, no action",
    "with action",
    "with / healthy",
    "slow server's share",
)


def interval(values: Sequence[float]) -> list[float]:
    """Return the median and its 95 % bootstrap interval."""
    rng = np.random.default_rng(0)
    drawn = np.median(rng.choice(np.asarray(values), (2000, len(values))), axis=1)
    return [float(np.median(values)), *(float(q) for q in np.quantile(drawn, (0.025, 0.975)))]


def measure(kind: str, runs: int) -> dict[str, Any] | None:
    """Return the figures of one proxy, or None where it is not installed."""
    good, wrong = [], []
    for seed in range(1, runs + 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                good.append(loop.run(kind, Path(folder), seed, COUNT, ttl_s=6))
            except pytest.skip.Exception as skipped:
                print(f"{kind}: {skipped}")
                return None
        print(
            kind,
            seed,
            [round(m.p95_s(), 3) for m in (good[-1].healthy, good[-1].before, good[-1].during)],
            flush=True,
        )
    for seed in range(max(runs // 3, 1)):
        with tempfile.TemporaryDirectory() as folder:
            wrong.append(loop.run(kind, Path(folder), 100 + seed, 60, ttl_s=300, blame=0))
    during = [t.during for t in good if t.during is not None]
    both = list(zip(during, good, strict=True))
    phases = [m for d, t in both for m in (t.before, d, t.after)]
    return {
        "runs": len(good),
        "requests_per_phase": COUNT,
        "healthy_p95_s": interval([t.healthy.p95_s() for t in good]),
        "no_action_p95_s": interval([t.before.p95_s() for t in good]),
        "action_p95_s": interval([d.p95_s() for d in during]),
        "action_over_healthy": interval(
            [d.p95_s() / t.healthy.p95_s() for d, t in zip(during, good, strict=True)]
        ),
        "slow_share": [float(np.mean([m.share(1) for m in ms])) for ms in ([t.before for t in good], during)],
        "failed": sum(m.failed() for m in phases),
        "requests": sum(len(m.worker) for m in phases),
        "apply_s": interval([t.apply_s for t in good]),
        "reverted_at_ttl": sum(t.how == "reverted" and t.after.share(1) > 0.25 for t in good),
        "wrong_runs": len(wrong),
        "wrong_reverted": sum((t.verdict, t.how) == ("harmed", "reverted") for t in wrong),
        "wrong_revert_s_max": max(t.revert_s for t in wrong),
    }


def _ms(values: Sequence[float]) -> str:
    return f"{values[0] * 1e3:.0f} ({values[1] * 1e3:.0f}-{values[2] * 1e3:.0f})"


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |\n"


def _main_row(kind: str, f: dict[str, Any]) -> str:
    middle, low, high = f["action_over_healthy"]
    return _row(
        kind,
        f["runs"],
        _ms(f["healthy_p95_s"]),
        _ms(f["no_action_p95_s"]),
        _ms(f["action_p95_s"]),
        f"{middle:.2f} ({low:.2f}-{high:.2f})",
        f"{f['slow_share'][0]:.1%} -> {f['slow_share'][1]:.1%}",
    )


def _other_row(kind: str, f: dict[str, Any]) -> str:
    return _row(
        kind,
        f"{f['failed']} of {f['requests']}",
        f"{f['apply_s'][0]:.1f}",
        f"{f['reverted_at_ttl']} of {f['runs']}",
        f"{f['wrong_reverted']} of {f['wrong_runs']}",
        f"{f['wrong_revert_s_max']:.1f}",
    )


OTHER = (
    "proxy",
    "failed requests",
    "report to applied, s",
    "taken back at the time to live",
    "blamed a healthy one: taken back",
    "at most after, s",
)


def _table(heads: Sequence[str], rows: Sequence[str]) -> str:
    return _row(*heads) + _row(*("---" for _ in heads)) + "".join(rows)


def page(found: dict[str, dict[str, Any]]) -> str:
    """Return the page of results."""
    first = _table(HEADS, [_main_row(k, f) for k, f in found.items()])
    second = _table(OTHER, [_other_row(k, f) for k, f in found.items()])
    usual = f"{loop.USUAL_S * 500:.0f}-{loop.USUAL_S * 1500:.0f} ms"
    return f"""# Acting

The closed loop on loopback: three stand-in servers behind a real proxy answer in {usual};
one turns slow
({loop.SLOW_S * 1e3:.0f} ms, status 200). A report that names it is given to `skewscope act apply`.
HAProxy and nginx get a tenth of its weight, the routers drop it. The report is written by hand: this
shows the acting, not the diagnosis, and the servers are no engines. {COUNT} requests a phase from
{loop.CLIENTS} clients, one seed a run.

Repeated by `python -m bench.act_loop -o docs/results/act.md`, which writes `act.json` beside it. Python
{platform.python_version()}, {platform.machine()}, on a machine that other work shared.

95th percentile seen by the clients, ms; median over the runs and its 95 % bootstrap interval. No run is left
out; the wide intervals are other work on the machine, which hits healthy phases as well:

{first}
"No action" is also what each proxy's own health logic made of it, as it is set without further
options: a slow 200 was ejected by none.

{second}
"Report to applied" holds the start of the command (Python's imports). A healthy server that was blamed
is given back as soon as a newer report shows that another is still slow; here that report came
{loop.SETTLE_S} s after the action.

## Not shown

- Recovery on the bed with engines, for several faults, beside outlier ejection (issue 10, "done when").
- p99, and goodput under a latency objective: three stand-ins on one machine say nothing about it.
"""


def main() -> None:
    """Measure, print, and write the page and its figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("-o", "--page", type=Path)
    options = parser.parse_args()
    found = {kind: got for kind in loop.FRONTS if (got := measure(kind, options.runs)) is not None}
    print(page(found))
    if options.page:
        options.page.write_text(page(found), encoding="utf-8")
        options.page.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
