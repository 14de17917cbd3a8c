"""`skewscope fingerprint`: from a collection to a verdict, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skewscope.app.cli import main
from skewscope.fingerprint.llama import emulated
from tests.app.fingerprinting.server import serving


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["fingerprint", *map(str, arguments)])


def local(out: Path, *more: object) -> Path:
    result = run("collect", "--local", "numpy", "--probes", 12, "--repeats", 2, "-o", out, *more)
    assert result.exit_code == 0, result.output
    return out


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("known")
    full = local(folder / "full.jsonl")
    h100 = local(folder / "h100.jsonl", "--local", "emulated", "--unit", "H100", "--dtype", "bf16")
    result = run("enroll", full, h100, "-o", folder / "known.json")
    assert result.exit_code == 0, result.output
    assert "2 classes" in result.output
    return folder / "known.json"


def test_a_platform_is_recognised_by_class_not_by_product(known: Path, tmp_path: Path) -> None:
    h200 = local(tmp_path / "h200.jsonl", "--local", "emulated", "--unit", "H200", "--dtype", "bf16")
    result = run("check", known, h200, "--json", "--claim", "h100")
    assert result.exit_code == 0, result.output
    data = json.loads(result.output)
    assert data["verdict"]["outcome"] == "match"
    assert data["claim"]["outcome"] == "accepted"
    assert data["grid"]["storage"] == "bf16"
    assert run("check", known, h200, "--claim", "full").exit_code == 1


def test_quantised_weights_are_none_of_the_enrolled(known: Path, tmp_path: Path) -> None:
    int8 = local(tmp_path / "int8.jsonl", "--quantise", "int8")
    result = run("check", known, int8)
    assert result.exit_code == 1
    assert "none of the enrolled" in result.output
    assert "logits stored as fp32" in result.output


def test_the_pool_shows_the_replica_that_left(known: Path, tmp_path: Path) -> None:
    good, bad = local(tmp_path / "good.jsonl"), local(tmp_path / "bad.jsonl", "--quantise", "int8")
    result = run("watch", known, "--expect", "full", "--json", good, bad)
    assert result.exit_code == 1
    states = {r["replica"]: r["condition"] for r in json.loads(result.output)["replicas"]}
    assert states == {"good": "", "bad": "c51"}
    assert run("watch", known, "--expect", "full", good).exit_code == 0
    assert "c51" in run("watch", known, "--expect", "full", bad).output


def test_an_endpoint_is_recognised_over_http(tmp_path: Path) -> None:
    def ask(url: str, out: Path, *more: str) -> Result:
        options = [
            "--token-ids",
            "--vocabulary",
            256,
            "--rate",
            1000,
            "--probes",
            10,
            "--repeats",
            2,
            "--yes",
        ]
        return run("collect", "--url", url, "--model", "m", *options, *more, "-o", out)

    for name, unit in (("a100", "A100"), ("mi250", "MI250"), ("again", "Ada")):
        with serving(emulated(unit, "bf16")) as server:
            result = ask(server.url, tmp_path / name)
            assert result.exit_code == 0, result.output
            assert "20 requests" in result.output
            assert ask(server.url, tmp_path / "no", "--estimate").exit_code == 0
    assert not (tmp_path / "no").exists()
    assert run("enroll", tmp_path / "a100", tmp_path / "mi250", "-o", tmp_path / "k").exit_code == 0
    result = run("check", tmp_path / "k", tmp_path / "again", "--json")
    assert json.loads(result.output)["verdict"]["best"] == "a100"


def test_wrong_usage_is_said_without_a_traceback(known: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("hello\n")
    full = known.parent / "full.jsonl"
    for arguments in (
        ("collect", "-o", other),
        ("collect", "--url", "http://h", "-o", other),
        ("collect", "--local", "numpy", "-o", other),
        ("collect", "--local", "numpy", "--gguf", other, "-o", tmp_path / "x"),
        ("enroll", other, "-o", tmp_path / "x"),
        ("check", other, full),
        ("check", known, other),
        ("check", known, full, "--claim", "nobody"),
        ("watch", known, full, "--expect", "nobody"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2, arguments
        assert isinstance(result.exception, SystemExit)


def test_tokens_alone_name_one_of_two_platforms(known: Path, tmp_path: Path) -> None:
    full, h100 = known.parent / "full.jsonl", known.parent / "h100.jsonl"
    probes = tmp_path / "borders.json"
    assert run("borders", full, h100, "-o", probes).exit_code == 0
    asked = json.loads(probes.read_text())["probes"]
    assert len(asked) >= 8
    result = run("collect", "--local", "numpy", "--probe-file", probes, "-o", tmp_path / "answers")
    assert result.exit_code == 0, result.output
    with serving() as server:
        options = ["--token-ids", "--probe-file", probes, "--rate", 1000, "--yes", "-o", tmp_path / "served"]
        assert run("collect", "--url", server.url, "--model", "m", *options).exit_code == 0
        assert all(body["logit_bias"] for _, body in server.bodies)
    for answers in ("answers", "served"):
        result = run("borders", full, h100, "--judge", tmp_path / answers)
        found = json.loads(result.output.splitlines()[-1])
        assert found["as_a"] >= 0.8 * len(asked)
        assert found["platform"] in ("full", "")  # few probes may not reach the required certainty
    assert run("borders", full, full, "-o", tmp_path / "none").exit_code == 1
    for wrong in (
        ["borders", full, h100],
        ["collect", "--local", "numpy", "--probe-file", full, "-o", tmp_path / "x"],
    ):
        assert run(*wrong).exit_code == 2
