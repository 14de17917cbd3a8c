import json

import pytest

from skewscope.act.actuator import ActuatorError
from skewscope.act.actuators.webhook import Webhook
from tests.act.actuators import servers
from tests.act.actuators.servers import at, table


def test_it_fires_and_resolves_and_repeats_can_be_told() -> None:
    with servers.serve(lambda *_: (200, {})) as s:
        made = Webhook(table(url=s.url, path="/hook"))
        after = made.wanted("notify", at("r1"), made.read("notify", at("r1")), 0.0)
        for state in (after, after, {}):
            made.put("notify", at("r1"), state)
        got = [json.loads(body) for _, _, body in s.seen]
        assert [g["state"] for g in got] == ["firing", "firing", "resolved"]
        assert [h["Idempotency-Key"] for h in s.headers] == ["a1-firing", "a1-firing", "a1-resolved"]
        assert (got[0]["endpoint"], got[0]["reason"], s.seen[0][:2]) == (
            "id of r1",
            "c20 gpu",
            ("POST", "/hook"),
        )


def test_a_refusal_is_one_line() -> None:
    with servers.serve(lambda *_: (500, b"oops\nsecond line")) as s:
        with pytest.raises(ActuatorError, match="500 oops second line"):
            Webhook(table(url=s.url)).put("notify", at("r1"), {"firing": True})
        assert Webhook(table(url=s.url)).unhealthy(["r1"]) == set()
