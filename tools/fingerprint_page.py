"""The page that tools/fingerprint_results.py writes: figures in, Markdown out."""

from collections.abc import Iterable, Sequence
from typing import Any

from tools.score_testbed import cpu_name

HEAD = """# Fingerprinting

<!-- Written by `python -m tools.fingerprint_results`, see below. Edits are lost. -->

- Date: {date}. skewscope {version}. Figures as data: [fingerprint.json](fingerprint.json).
- Machine: {cpu}, shared with other work. PyTorch {torch}, {capability}.
- Recorded by `python -m tools.fingerprint_platforms FOLDER --gguf FILE`, twice; measured by
  `python -m tools.fingerprint_results FOLDER AGAIN --page docs/results/fingerprint.md`.
- Model: SmolLM2-135M-Instruct, Q4_1 weights expanded to fp32, the same everywhere. 64 prompts of 8 random
  token ids, {positions} positions a platform.

**Real CPU** means PyTorch and NumPy as installed, with the kernels that flags and environment select.
**Emulated** means the arithmetic of a GPU's matrix unit on this CPU: no GPU took part. No engine over HTTP
other than the test server has been measured so far.
"""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(r)} |" for r in rows)])


def percent(share: float) -> str:
    """Return a share as a percentage, or a dash where nothing was measured."""
    return "-" if share != share else f"{100 * share:.1f} %"


def interval(pair: Sequence[float]) -> str:
    """Return a 95 % interval."""
    return f"{percent(pair[0])} to {percent(pair[1])}"


def _arithmetic(data: dict[str, Any]) -> str:
    seen = data["vectors"]
    agreement = "The recorded vectors were not at hand."
    if seen:
        agreement = (
            f"{seen['equal']} of {seen['outputs']} outputs recorded on real GPUs are equal bit by bit, in "
            f"{seen['sets']} sets (unit, input format, output format); sets with a difference: "
            f"{', '.join(seen['sets_not_equal']) or 'none'}. Rules from publications alone, without recorded "
            f"outputs: {', '.join(data['published_rules_only'])}."
        )
    rows = [[name, f"{value:.0f}"] for name, value in data["speed_mmac_s"].items()]
    return (
        f"## Matrix units on a CPU (emulated)\n\n{agreement}\n\n"
        + table(["unit", "MMAC/s, one thread"], rows)
        + "\n\nThread time of the whole call: checks, exponents and kernel, 384 x 384 x 384."
    )


def _classes(data: dict[str, Any]) -> str:
    shared = [", ".join(f"`{m}`" for m in members) for members in data["members"] if len(members) > 1]
    rows = [
        [r["answers"], str(r["classes"]), ", ".join(map(str, r["by_probes"])) or "-"]
        for r in data["separation"]
    ]
    return (
        f"## Classes (real CPU)\n\n{data['platforms']} recordings form {len(data['members'])} classes of "
        "bit-equal answers. Recordings that share a class (`@2` is a second run):\n\n"
        + "\n".join(f"- {line}" for line in shared)
        + "\n\nHow many classes a coarser answer still tells apart, and how many the first, first two, ... "
        "probes do, in the order found:\n\n"
        + table(["what is compared", "classes", "told apart by 1, 2, ... probes of 4 positions"], rows)
        + "\n\nDistances between classes: mean difference of the eight best log-probabilities, nat.\n\n"
        + table(["families", "pairs", "median", "largest", "other best token"], data["distances"])
    )


def _grid(data: dict[str, Any]) -> str:
    seen = data["storage"]
    return (
        "## Storage of logits, from log-probabilities alone (real CPU)\n\n"
        f"{seen['right']} of {seen['of']} platforms right ({interval(seen['interval'])}); "
        f"wrong: {', '.join(seen['wrong']) or 'none'}. Weights that are quantised behind fp32 logits leave "
        "no grid: that is what the comparisons below are for."
    )


def _unpaired(data: dict[str, Any]) -> str:
    names = ("logit_bits", "logprob_bits", "grid", "grid_and_residual")
    rows = [
        [r["pair"], *(f"{percent(r[n])} / {percent(r[n + '_vote16'])}" for n in names)]
        for r in data["unpaired"]
    ]
    head = [
        "pair",
        "bits of logits (published)",
        "bits of log-probs (published)",
        "grid",
        "grid and residual",
    ]
    positions = data["unpaired"][0]["positions"] if data["unpaired"] else 0
    return (
        "## Unpaired traffic: prompts of test and training disjoint (real CPU)\n\n"
        f"Right answers per position / by vote of 16 positions; chance is 50 %. {positions} test "
        "positions a pair: about 6 points of 95 % interval either way. "
        "Residual: against an fp64 run of the same prompts.\n\n" + table(head, rows)
    )


def _open_set(data: dict[str, Any]) -> str:
    left, again = data["open_set"]["left_out"], data["open_set"]["again"]
    text = (
        f"- Left out of the enrolment and then checked: {left['refused']} of {left['of']} classes refused "
        f"({interval(left['interval'])}), after at most {data['open_set']['left_out_probes']} probes.\n"
    )
    if again["of"]:
        bound = again["false_alarm_bound"]
        shown = "shown" if bound <= 1e-4 else "not shown: the exposure is too small"
        text += (
            f"- Enrolled and recorded again: {again['right']} of {again['of']} checks of 8 probes name the "
            f"right class, half of them after {again['probes_median']:.0f} probes or fewer; wrongly refused: "
            f"{again['wrongly_refused']}, so at most {percent(bound)} at 95 %. "
            f"The goal of 1 in 10,000 is {shown}.\n"
            f"- Undecided after 8 probes: {again['of'] - again['right'] - again['wrongly_refused']}; a class "
            "whose nearest neighbour shares many positions needs more.\n"
        )
    return "## Open set (real CPU)\n\n" + text.rstrip()


def _corruption(data: dict[str, Any]) -> str:
    head = ["precision", "positions changed", "distance, nat", "other best token", "positions for 99 %"]
    return (
        "## One flipped weight bit of 135 million (real CPU)\n\nHighest fraction bit but one of one weight "
        "of layer 10, found by exact comparison; positions for 99 % from the share that changed.\n\n"
        + table(head, data["flips"])
    )


def _borders(data: dict[str, Any]) -> str:
    head = [
        "pair",
        "prompts",
        "border probes",
        "answers that differ",
        "first as predicted",
        "second as predicted",
    ]
    head.append("unbiased positions that differ")
    return (
        "## Tokens only: border probes by logit_bias (real CPU)\n\n"
        "Found automatically from the log-probabilities of both; asked of both again.\n\n"
        + table(head, data["borders"])
    )


def _emulated(data: dict[str, Any]) -> str:
    seen = data["emulated"]
    head = ["format", "classes", "positions that differ, any two", "median distances", "other best token"]
    return (
        "## GPUs inside the real model (emulated)\n\n"
        f"{seen['platforms']} unit and format pairs form {seen['classes']} classes. 16 prompts, first "
        "4,096 ids; the matrix units compute all linear layers; attention in fp32.\n\n"
        + table(head, seen["rows"])
    )


def page(data: dict[str, Any]) -> str:
    """Return the whole page."""
    build = data["build"]
    head = HEAD.format(
        date=data["date"],
        version=data["version"],
        cpu=cpu_name(),
        torch=build.get("torch", "-"),
        capability=build.get("cpu_capability", "-"),
        positions=data["positions"],
    )
    parts = [_arithmetic, _classes, _grid, _unpaired, _open_set, _corruption, _borders, _emulated]
    return "\n\n".join([head.rstrip(), *(part(data) for part in parts)]) + "\n"
