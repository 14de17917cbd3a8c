"""Against a stand-in that speaks the documented paths of api/v2; Alertmanager itself does not run here."""

import json
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from skewscope.act.actuator import ActuatorError, Target
from skewscope.act.actuators.alertmanager import Alertmanager
from tests.act.actuators import servers
from tests.act.actuators.servers import at, table


class Alerts:
    """Keeps alerts by their labels; one whose end has come is no longer listed."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, Any]] = {}
        self.now = datetime.fromisoformat("2001-09-09T01:46:45Z")  # within the life of the alert of `at`

    def reply(self, method: str, path: str, body: str) -> tuple[int, Any]:
        parts = urlsplit(path)
        if parts.path != "/api/v2/alerts":
            return 404, {}
        if method == "POST":
            for alert in json.loads(body):
                self.kept[json.dumps(alert["labels"], sort_keys=True)] = alert
            return 200, b""
        wanted = dict(f.replace('"', "").split("=", 1) for f in parse_qs(parts.query)["filter"])
        active = [a for a in self.kept.values() if datetime.fromisoformat(a["endsAt"]) > self.now]
        return 200, [a for a in active if wanted.items() <= a["labels"].items()]


def test_it_fires_until_the_time_to_live_and_resolves() -> None:
    alerts = Alerts()
    with servers.serve(alerts.reply) as s:
        made = Alertmanager(table(url=s.url, labels={"team": "infra"}))
        before = made.read("notify", at("r1"))
        assert before == {"firing": False}
        for _ in range(2):
            made.put("notify", at("r1"), made.wanted("notify", at("r1"), before, 0.0))
        (alert,) = alerts.kept.values()
        assert alert["labels"] == {"team": "infra", "alertname": "SkewscopeIncident", "endpoint": "id of r1"}
        assert (alert["startsAt"], alert["endsAt"]) == (
            "2001-09-09T01:46:40.000Z",
            "2001-09-09T01:48:20.000Z",
        )
        assert made.read("notify", at("r1")) == {"firing": True}
        assert made.read("notify", at("r2")) == {"firing": False}
        made.put("notify", at("r1"), before)
        assert made.read("notify", at("r1")) == before


def test_a_name_with_quotes_stays_one_filter() -> None:
    with servers.serve(lambda *_: (200, [])) as s:
        Alertmanager(table(url=s.url)).read("notify", Target('r"1', 'x",y="z'))
        assert len(parse_qs(urlsplit(s.seen[0][1]).query)["filter"]) == 2


def test_nonsense_is_one_line() -> None:
    with servers.serve(lambda *_: (200, {})) as s, pytest.raises(ActuatorError, match="not a list of alerts"):
        Alertmanager(table(url=s.url)).read("notify", at("r1"))
