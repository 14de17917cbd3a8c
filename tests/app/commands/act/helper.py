"""A folder with an Envoy file, an act.toml and a fresh report: the commands run against these."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from skewscope.app.cli import main
from tests.act.actuators.test_envoy import eds
from tests.act.worlds import report


class Place:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "eds.json").write_text(json.dumps(eds([100, 100, 100])))
        self.settings()
        self.report()

    def settings(self, mode: str = "auto", more: str = "") -> None:
        ends = "".join(
            f'[[pool.endpoints]]\nid = "10.0.0.{i}:8000"\nhosts = ["10.1.0.{i}"]\n' for i in range(3)
        )
        (self.folder / "act.toml").write_text(
            f'mode = "{mode}"\nlearn_s = 0\n{more}\n[[actuator]]\nname = "edge"\nkind = "envoy"\n'
            f'file = "{self.folder}/eds.json"\ncluster = "llm"\n'
            f'[[pool]]\nname = "chat"\nactuators = ["edge"]\n{ends}'
        )

    def report(self, old_s: float = 0.0, **incident: Any) -> None:
        now_ns = time.time_ns() - int(old_s * 1e9)
        culprits = [{"kind": "rank", "id": "10.1.0.1", "name": "", "probability": 0.95}]
        data = report(**{"culprits": culprits, "onset_ns": now_ns - 10**9, **incident})
        data["span_ns"] = [now_ns - 20 * 10**9, now_ns]
        (self.folder / "report.json").write_text(json.dumps(data))

    def weight(self) -> int:
        data = json.loads((self.folder / "eds.json").read_text())
        return int(data["resources"][1]["endpoints"][0]["lb_endpoints"][1]["load_balancing_weight"])

    def run(self, *arguments: str, text: str | None = None) -> Result:
        return CliRunner().invoke(
            main, ["act", *arguments, "--config", str(self.folder / "act.toml")], input=text
        )

    def apply(self, *arguments: str) -> Result:
        return self.run("apply", str(self.folder / "report.json"), "--no-wait", *arguments)

    def ids(self) -> list[str]:
        return [a["id"] for a in json.loads(self.run("status", "--json").output)]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)
