"""What endpoints say of log-probabilities, well formed and not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewscope.fingerprint.probes import Probe
from skewscope.fingerprint.replies import Asked, ReplyError, answers, request_body

PROBE = Probe("p", tokens=(1, 2, 3), answer_tokens=1, bias={7: 0.5})
WORDS = (
    "choices logprobs content tokens token_logprobs top_logprobs logprob token index "
    "prompt_logprobs error id x"
)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS.split()), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(JSON, st.booleans(), st.booleans())
def test_no_reply_breaks_the_parser(reply: Any, stream: bool, echo: bool) -> None:
    raw = json.dumps(reply).encode()
    asked = Asked(stream=stream, echo=echo)
    try:
        found = answers(b"data: " + raw if stream else raw, [PROBE], asked, 0)
    except ReplyError:
        return
    assert all(a.tokens and len(a.tokens) == len(a.logprobs) for a in found)


@given(st.binary(max_size=60), st.booleans())
def test_bytes_that_are_no_reply_are_refused(raw: bytes, stream: bool) -> None:
    with pytest.raises(ReplyError):
        answers(raw, [PROBE], Asked(stream=stream), 0)


def test_vllm_prompt_logprobs_get_negative_positions() -> None:
    row = {"11": {"logprob": -0.5, "rank": 1}, "12": {"logprob": -1.5, "rank": 2}}
    top = {"token_id:4": -0.25, "token_id:5": float("-inf")}
    own = {"tokens": ["token_id:4"], "token_logprobs": [-0.25], "top_logprobs": [top]}
    reply = {"choices": [{"index": 0, "logprobs": own, "prompt_logprobs": [None, row, row]}]}
    found = answers(json.dumps(reply).encode(), [PROBE], Asked(echo=True), 2)
    assert [(a.position, tuple(a.tokens)) for a in found] == [(-2, (11, 12)), (-1, (11, 12)), (0, (4,))]
    assert found[2].chosen == 4
    assert {a.repeat for a in found} == {2}


def test_ids_are_preferred_to_texts_in_the_chat_form() -> None:
    item = {"token": "a", "id": 9, "logprob": -1, "top_logprobs": [{"token": "b", "id": 8, "logprob": -0.5}]}
    reply = {"choices": [{"logprobs": {"content": [item]}}]}
    (found,) = answers(json.dumps(reply).encode(), [PROBE], Asked(api="chat"), 0)
    assert dict(zip(found.tokens, found.logprobs, strict=True)) == {8: -0.5, 9: -1.0}


def test_the_request_carries_what_was_asked() -> None:
    body = request_body([PROBE], Asked(model="m", top=30, token_ids=True))
    assert body["prompt"] == [1, 2, 3]
    assert body["logit_bias"] == {"7": 0.5}
    assert body["temperature"] == 0
    text = Probe("t", text="a b")
    assert request_body([text, text], Asked())["prompt"] == ["a b", "a b"]
    assert "return_tokens_as_token_ids" not in request_body([text], Asked())


def test_what_the_endpoint_says_is_passed_on() -> None:
    with pytest.raises(ReplyError, match="no such model"):
        answers(b'{"error": {"message": "no such model"}}', [PROBE], Asked(), 0)
