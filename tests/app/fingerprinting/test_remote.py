"""Collection over HTTP from a server in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skewscope.app.fingerprinting import remote
from skewscope.app.fingerprinting.recorder import load
from skewscope.fingerprint.collection import CollectionError
from skewscope.sources import endpoint
from tests.app.fingerprinting.server import VOCABULARY, Served, serving

DEFAULTS: dict[str, Any] = {
    "model": "tiny",
    "api": "completion",
    "stream": False,
    "echo": False,
    "top": 12,
    "token_ids": True,
    "vocabulary": VOCABULARY,
    "answer_tokens": 1,
    "rate": 1000.0,
    "concurrency": 1,
    "prompt_price": None,
    "answer_price": None,
    "probes": 5,
    "length": 6,
    "repeats": 2,
    "seed": 3,
    "batch": None,
}


def collect(server: Served, out: Path, **changed: Any) -> tuple[int, int]:
    plan = remote.plan(DEFAULTS | {"url": server.url} | changed)
    return remote.collect(plan, out, "secret", lambda _: None)


def test_every_form_of_asking_gives_the_same_numbers(tmp_path: Path) -> None:
    forms: dict[str, dict[str, Any]] = {
        "whole": {},
        "stream": {"stream": True},
        "together": {"batch": 3},
        "at once": {"concurrency": 4},
        "echo": {"echo": True},
    }
    with serving() as server:
        for name, changed in forms.items():
            assert collect(server, tmp_path / name, **changed)[1] == 0
    whole = load(tmp_path / "whole")
    assert len(whole) == 10
    assert whole.logprobs.shape == (10, 12)
    for name in ("stream", "together", "at once"):
        other = load(tmp_path / name)
        assert other.keys == whole.keys
        np.testing.assert_array_equal(other.logprobs, whole.logprobs)
        np.testing.assert_array_equal(other.tokens, whole.tokens)
    echo = load(tmp_path / "echo")
    assert {p for _, p in echo.keys} == {-5, -4, -3, -2, -1, 0}
    answered = [i for i, (_, p) in enumerate(echo.keys) if p == 0]
    np.testing.assert_array_equal(echo.logprobs[answered], whole.logprobs)


def test_chat_asks_in_text_and_reads_several_tokens(tmp_path: Path) -> None:
    chat = {"api": "chat", "token_ids": False, "answer_tokens": 3, "top": 50}
    with serving() as server:
        collect(server, tmp_path / "chat", **chat)
        collect(server, tmp_path / "stream", stream=True, **chat)
        path, body = server.bodies[0]
        assert server.keys[0] == "Bearer secret"
    assert path == "/v1/chat/completions"
    assert body["top_logprobs"] == 20
    one, other = load(tmp_path / "chat"), load(tmp_path / "stream")
    assert len(one) == 5 * 3 * 2
    assert (one.tokens < -1).all()
    np.testing.assert_array_equal(one.logprobs, other.logprobs)


def test_an_interrupted_collection_is_continued(tmp_path: Path) -> None:
    out = tmp_path / "a"
    with serving() as server:
        collect(server, out)
        lines = out.read_text().splitlines()
        out.write_text("\n".join(lines[:4]) + "\n" + lines[4][:30])
        before = len(server.bodies)
        assert collect(server, out) == (10 - 3, 0)
        assert len(server.bodies) - before == 10 - 3
        assert len(load(out)) == 10
        assert load(out).damaged == 0
        with pytest.raises(CollectionError, match="settings"):
            collect(server, out, top=5)


def test_a_busy_server_is_asked_again_and_a_broken_one_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(endpoint.time, "sleep", waits.append)
    with serving() as server:
        server.failures = [(429, {"Retry-After": "7"}, b"later"), (503, {}, b"")]
        assert collect(server, tmp_path / "busy") == (10, 0)
        assert 7.0 in waits
        server.failures = [(400, {}, b"{}"), (200, {}, b"not json"), (200, {}, b'{"error":{"message":"no"}}')]
        assert collect(server, tmp_path / "broken") == (7, 3)
        url = server.url
    said: list[str] = []
    plan = remote.plan(DEFAULTS | {"url": url, "probes": 1, "repeats": 1})
    assert remote.collect(plan, tmp_path / "gone", "", said.append) == (0, 1)
    assert "127.0.0.1" in said[0]


def test_an_interrupt_asks_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(remote.Recorder, "add", interrupted)
    with serving() as server:
        with pytest.raises(KeyboardInterrupt):
            collect(server, tmp_path / "a", probes=100, rate=20.0)
        assert len(server.bodies) < 20


def test_the_rate_spaces_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    now, slept = [100.0], []
    monkeypatch.setattr(endpoint.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(endpoint.time, "sleep", slept.append)
    rate = endpoint.Rate(4.0)
    for _ in range(3):
        rate.wait()
    assert slept == [0.0, 0.25, 0.5]


def test_options_that_contradict_are_refused() -> None:
    for changed in ({"model": ""}, {"api": "chat"}, {"api": "chat", "token_ids": False, "batch": 2}):
        with pytest.raises(ValueError, match="--"):
            remote.plan(DEFAULTS | {"url": "http://h"} | changed)
    with pytest.raises(ValueError, match="URL"):
        endpoint.Endpoint("ftp://x")


def test_the_estimate_comes_first() -> None:
    found = remote.plan(DEFAULTS | {"url": "http://h", "rate": 2.0, "prompt_price": 3.0}).estimate
    assert (found.requests, found.prompt_tokens, found.answer_tokens) == (10, 60, 10)
    assert found.seconds == 5
    assert found.cost == pytest.approx(60 * 3 / 1e6)


def test_provenance_says_what_was_asked(tmp_path: Path) -> None:
    with serving() as server:
        collect(server, tmp_path / "a", probes=1, repeats=1)
        header = json.loads((tmp_path / "a").read_text().splitlines()[0])
        assert header["platform"] == {"url": server.url, "model": "tiny"}
    assert header["settings"]["top"] == 12
    assert header["probes"]["count"] == 1
    assert "secret" not in (tmp_path / "a").read_text()
