"""`skewscope fingerprint collect`: ask probes and record the answers with their provenance."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skewscope.app.commands._run import say

if TYPE_CHECKING:
    from skewscope.fingerprint.probes import Estimate

FAILED, USAGE = 1, 2
LOCAL_BATCH = 8
KEY_VARIABLE = "SKEWSCOPE_API_KEY"


@click.command(
    short_help="Ask probes of an endpoint or a local model and record the answers.",
    epilog="""\b
Examples:
  skewscope fingerprint collect --url http://engine:8000 --model m -o a.jsonl
  skewscope fingerprint collect --url http://host --model m -o a --estimate
  skewscope fingerprint collect --local torch --dtype bf16 -o tiny.jsonl
  skewscope fingerprint collect --local emulated --unit H100 --dtype fp16 -o a

\b
The key of an endpoint is read from the variable SKEWSCOPE_API_KEY.
Exit status: 0 done; 1 some probes got no answer; 2 wrong usage.""",
)
@click.option("--url", default="", help="Base URL of an OpenAI-compatible endpoint.")
@click.option("--model", default="", help="Model name that the endpoint expects.")
@click.option(
    "--api",
    default="completion",
    show_default=True,
    type=click.Choice(["completion", "chat"]),
    help="Which of the endpoint's interfaces to ask.",
)
@click.option("--stream", is_flag=True, help="Ask for a streamed answer.")
@click.option("--echo", is_flag=True, help="Ask for the log-probabilities of the prompt as well.")
@click.option(
    "--top", default=20, show_default=True, type=click.IntRange(1, 1000), help="Tokens per position."
)
@click.option(
    "--token-ids/--text", default=False, help="Send prompts as token ids (vLLM, SGLang) or as text."
)
@click.option("--vocabulary", default=32000, show_default=True, help="Token ids are drawn below this number.")
@click.option(
    "--answer-tokens", default=1, show_default=True, type=click.IntRange(1, 64), help="Tokens to answer."
)
@click.option(
    "--rate", default=2.0, show_default=True, type=click.FloatRange(0.001), help="Requests per second."
)
@click.option(
    "--concurrency", default=1, show_default=True, type=click.IntRange(1, 256), help="Requests at once."
)
@click.option("--prompt-price", type=float, help="Price per million prompt tokens, for the estimate.")
@click.option("--answer-price", type=float, help="Price per million answered tokens, for the estimate.")
@click.option("--estimate", "only_estimate", is_flag=True, help="Print what it would take, and stop.")
@click.option("--yes", is_flag=True, help="Start without asking.")
@click.option(
    "--local",
    default="",
    type=click.Choice(["", "numpy", "torch", "emulated"]),
    help="Run a model here instead.",
)
@click.option(
    "--gguf",
    type=click.Path(exists=True, dir_okay=False),
    help="Weights for --local; else tiny, random ones.",
)
@click.option(
    "--dtype",
    default="fp32",
    show_default=True,
    type=click.Choice(["fp32", "bf16", "fp16", "fp64"]),
    help="Precision of a local model.",
)
@click.option(
    "--unit", default="H100", show_default=True, help="GPU whose matrix unit --local emulated uses."
)
@click.option(
    "--attention", default="sdpa", type=click.Choice(["sdpa", "eager"]), help="Attention of --local torch."
)
@click.option(
    "--quantise", default="", type=click.Choice(["", "int8", "int4", "e4m3"]), help="Grid of local weights."
)
@click.option(
    "--batch", type=click.IntRange(1), help="Prompts run together: 1 for endpoints, 8 for local models."
)
@click.option(
    "--threads", default=1, show_default=True, type=click.IntRange(1), help="Threads of --local torch."
)
@click.option("--head-ids", default=0, help="Keep only the first so many output ids of a local model.")
@click.option("--flip", default="", help="Flip one weight bit of --local torch: LAYER:MATRIX:INDEX:BIT.")
@click.option("--probes", default=64, show_default=True, type=click.IntRange(1), help="Number of probes.")
@click.option(
    "--length", default=8, show_default=True, type=click.IntRange(1), help="Tokens or words per prompt."
)
@click.option(
    "--positions", default=4, show_default=True, help="Last positions recorded per prompt, locally."
)
@click.option(
    "--repeats", default=1, show_default=True, type=click.IntRange(1), help="Times each probe is asked."
)
@click.option(
    "--probe-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Ask the probes of this file, as `fingerprint borders` writes it, in place of seeded ones.",
)
@click.option("--seed", default=1, show_default=True, help="Seed of the probe set.")
@click.option(
    "-o",
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write or continue.",
)
def command(out: Path, **options: Any) -> None:
    """Ask every probe, at a bounded rate, and append the answers to a file of JSON lines.

    A run that was interrupted is continued by the same command. What it will take is printed first.
    """
    from skewscope.fingerprint.collection import CollectionError

    if bool(options["url"]) == bool(options["local"]):
        raise click.UsageError("name either --url or --local")
    try:
        status = _local(out, options) if options["local"] else _remote(out, options)
    except (CollectionError, ValueError, ImportError, OSError) as error:
        say(str(error))
        raise SystemExit(USAGE) from None
    raise SystemExit(status)


def _local(out: Path, options: dict[str, Any]) -> int:
    from skewscope.app.fingerprinting.local import Local, collect

    local = Local(
        engine=options["local"],
        dtype=options["dtype"],
        unit=options["unit"] if options["local"] == "emulated" else "",
        attention=options["attention"],
        quantise=options["quantise"],
        batch=options["batch"] or LOCAL_BATCH,
        threads=options["threads"],
        gguf=options["gguf"] or "",
        head_ids=options["head_ids"],
        flip=options["flip"],
    )
    added = collect(
        local,
        out,
        seed=options["seed"],
        count=options["probes"],
        length=options["length"],
        positions=options["positions"],
        repeats=options["repeats"],
        probe_file=options["probe_file"],
    )
    say(f"{added} answers added to {out}")
    return 0


def _remote(out: Path, options: dict[str, Any]) -> int:
    import os

    from skewscope.app.fingerprinting import remote

    plan = remote.plan(options)
    say(describe(plan.estimate))
    if options["only_estimate"]:
        return 0
    if not options["yes"] and sys.stdin.isatty():
        click.confirm("start?", abort=True, err=True)
    added, failed = remote.collect(plan, out, os.environ.get(KEY_VARIABLE, ""), say)
    say(f"{added} answers added to {out}, {failed} requests without an answer")
    return FAILED if failed else 0


def describe(found: Estimate) -> str:
    """Return the estimate as one line."""
    cost = "" if found.cost is None else f", {found.cost:.4f} at the given prices"
    return (
        f"{found.requests} requests, about {found.prompt_tokens} prompt and {found.answer_tokens} answered "
        f"tokens, at least {found.seconds:.0f} s at this rate{cost}"
    )
