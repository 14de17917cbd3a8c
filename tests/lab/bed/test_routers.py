"""Commands and readiness of the routers; what is said where they are not installed."""

import pytest

from skewscope.lab.bed import gateways, needs, routers

BACKENDS = [["10.0.0.1", 8000], ["10.0.0.2", 8000]]


@pytest.mark.parametrize("kind", needs.PACKAGES)
def test_a_router_gets_its_workers_and_its_policy(kind):
    words = [str(w) for w in routers.command(kind, {"policy": "cache_aware"}, BACKENDS, 8080)]
    assert words[2] == f"{needs.PACKAGES[kind]}.launch_router"
    at = words.index("--worker-urls")
    assert words[at + 1 : at + 3] == ["http://10.0.0.1:8000", "http://10.0.0.2:8000"]
    assert words[words.index("--policy") + 1] == "cache_aware"
    assert words[words.index("--port") + 1] == "8080"
    assert gateways.metrics_port({"kind": kind}) == routers.METRICS_PORT


@pytest.mark.parametrize(
    ("answer", "count"),
    [('{"status":"ready","healthy_workers":2}', 2), ("", 0), ("[]", 0), ("{}", 0), ("<html>", 0)],
)
def test_ready_is_what_knows_all_its_workers(answer, count):
    assert routers.workers(answer) == count


@pytest.mark.parametrize("kind", needs.PACKAGES)
def test_a_missing_router_is_named_with_the_way_to_get_it(kind, monkeypatch):
    monkeypatch.setattr(needs, "find_spec", lambda _: None)
    found = needs.missing((kind,), torch=False)
    assert f"the package {kind} in this Python (pip install {kind})" in found
    assert not any("the program sglang" in line for line in found)
