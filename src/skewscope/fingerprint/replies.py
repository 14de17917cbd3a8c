"""Requests to OpenAI-compatible endpoints and what their replies say of log-probabilities.

Forms understood: the completions form (`tokens`, `token_logprobs`, `top_logprobs` keyed by text), the chat
form (`content`, a list with `top_logprobs`), prompt log-probabilities by `echo` or, from vLLM, as
`prompt_logprobs`, each whole or as server-sent events. Positions of a prompt are negative: -1 is its last.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skewscope.fingerprint.collection import Answer
from skewscope.fingerprint.probes import Probe

CHAT_MOST_TOP = 20
_TOKEN_ID = re.compile(r"token_id:(\d{1,9})")


class ReplyError(ValueError):
    """A reply that holds no usable log-probabilities; the text says why."""


@dataclass(frozen=True)
class Asked:
    """How an endpoint is asked; all of it is part of the fingerprint."""

    api: str = "completion"
    model: str = ""
    top: int = 20
    stream: bool = False
    echo: bool = False
    token_ids: bool = False

    @property
    def path(self) -> str:
        """The path of the interface below the base URL."""
        return "/v1/chat/completions" if self.api == "chat" else "/v1/completions"


def request_body(probes: Sequence[Probe], asked: Asked) -> dict[str, Any]:
    """Return the JSON body that asks these probes at temperature 0; chat takes one probe at a time."""
    first = probes[0]
    body: dict[str, Any] = {
        "model": asked.model,
        "max_tokens": first.answer_tokens,
        "temperature": 0,
        "stream": asked.stream,
    }
    if first.bias:
        body["logit_bias"] = {str(k): v for k, v in first.bias.items()}
    if asked.api == "chat":
        body["messages"] = [{"role": "user", "content": first.text}]
        body |= {"logprobs": True, "top_logprobs": min(asked.top, CHAT_MOST_TOP)}
        return body
    prompts = [list(p.tokens) if asked.token_ids else p.text for p in probes]
    body |= {"prompt": prompts if len(prompts) > 1 else prompts[0], "logprobs": asked.top}
    if asked.echo:
        body |= {"echo": True, "prompt_logprobs": asked.top}
    if asked.token_ids:
        # Without it, vLLM keys its answer by text, and tokens with equal text fall together.
        body["return_tokens_as_token_ids"] = True
    return body


def events(raw: bytes) -> list[Any]:
    """Return the JSON values of a server-sent stream, without its end mark; ReplyError if none."""
    found = []
    for line in raw.decode("utf-8", "replace").splitlines():
        data = line.removeprefix("data:").strip() if line.startswith("data:") else ""
        if data and data != "[DONE]":
            found.append(_loads(data))
    if not found:
        raise ReplyError("the stream holds no event")
    return found


def _loads(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ReplyError("the reply is not JSON") from error


def answers(raw: bytes, probes: Sequence[Probe], asked: Asked, repeat: int) -> list[Answer]:
    """Return the answered positions of every probe of one request, from the reply's bytes."""
    parts = events(raw) if asked.stream else [_loads(raw)]
    positions: dict[int, list[_Position]] = {}
    prompts: dict[int, list[_Position]] = {}
    for part in parts:
        choices = part.get("choices") if isinstance(part, dict) else None
        for choice in choices if isinstance(choices, list) else []:
            if not isinstance(choice, dict):
                continue
            index = choice.get("index", 0)
            if isinstance(index, int) and 0 <= index < len(probes):
                positions.setdefault(index, []).extend(_positions(choice.get("logprobs")))
                prompts.setdefault(index, []).extend(_prompt_positions(choice.get("prompt_logprobs")))
    found = []
    for index, probe in enumerate(probes):
        answered, prompt = positions.get(index, []), prompts.get(index, [])
        if asked.echo and not prompt and len(answered) > probe.answer_tokens:
            answered, prompt = answered[-probe.answer_tokens :], answered[: -probe.answer_tokens]
        numbered = [*zip(range(-len(prompt), 0), prompt, strict=True), *enumerate(answered)]
        found += [
            Answer(probe.id, at, repeat, tuple(p.top), tuple(p.top.values()), chosen=p.chosen)
            for at, p in numbered
            if p.top
        ]
    if not found:
        raise ReplyError(_reason(parts[0]))
    return found


def _reason(part: Any) -> str:
    error = part.get("error") or part.get("message") if isinstance(part, dict) else None
    if isinstance(error, dict):
        error = error.get("message")
    return f"the endpoint says: {str(error)[:200]}" if error else "the reply holds no log-probabilities"


@dataclass(frozen=True)
class _Position:
    chosen: int | str | None
    top: dict[int | str, float]


def token(name: Any) -> int | str | None:
    """Return a token as an id where the endpoint gives ids, else as text."""
    if isinstance(name, str):
        match = _TOKEN_ID.fullmatch(name)
        return int(match[1]) if match else name
    return name if isinstance(name, int) and not isinstance(name, bool) else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _positions(logprobs: Any) -> list[_Position]:
    if not isinstance(logprobs, dict):
        return []
    if isinstance(logprobs.get("content"), list):
        return [_chat_position(item) for item in logprobs["content"] if isinstance(item, dict)]
    tokens, own, top = (_list(logprobs.get(k)) for k in ("tokens", "token_logprobs", "top_logprobs"))
    found = []
    for i, name in enumerate(tokens):
        table = top[i] if i < len(top) and isinstance(top[i], dict) else {}
        values = {token(k): _number(v) for k, v in table.items()}
        if i < len(own):
            values.setdefault(token(name), _number(own[i]))
        found.append(_Position(token(name), _clean(values)))
    return found


def _chat_position(item: dict[str, Any]) -> _Position:
    def name(row: dict[str, Any]) -> int | str | None:
        return token(row.get("id", row.get("token")))

    values = {
        name(row): _number(row.get("logprob"))
        for row in _list(item.get("top_logprobs"))
        if isinstance(row, dict)
    }
    values.setdefault(name(item), _number(item.get("logprob")))
    return _Position(name(item), _clean(values))


def _prompt_positions(rows: Any) -> list[_Position]:
    found = []
    for row in _list(rows):
        if isinstance(row, dict):  # the first position has none: null
            values: dict[int | str | None, float | None] = {
                _key(k): _number(v.get("logprob")) for k, v in row.items() if isinstance(v, dict)
            }
            found.append(_Position(None, _clean(values)))
    return found


def _key(name: str) -> int | str:
    return int(name) if name.isascii() and name.isdigit() and len(name) < 10 else name


def _clean(values: dict[int | str | None, float | None]) -> dict[int | str, float]:
    return {k: v for k, v in values.items() if k is not None and v is not None}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
