"""The closed loop with real proxies (tests/act/loop.py): it helps, it ends, a wrong one is undone."""

from pathlib import Path

import pytest

from tests.act import loop

COUNT = 90


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["haproxy", "nginx"])
def test_the_slow_server_gets_less_while_the_action_lasts(kind: str, tmp_path: Path) -> None:
    told = loop.run(kind, tmp_path, seed=1, count=COUNT, ttl_s=6)
    assert told.events == ["started", "intended", "applied", "observed", "reverting", "ended"]
    assert (told.verdict, told.how) == ("helped", "reverted")
    assert told.during is not None
    assert told.before.share(1) > 0.25
    assert told.during.share(1) <= 0.06
    assert told.after.share(1) > 0.2
    assert told.before.p95_s() >= loop.SLOW_S  # by construction: a third waits that long
    assert told.during.p95_s() < told.before.p95_s()
    assert told.before.failed() + told.during.failed() + told.after.failed() == 0


@pytest.mark.slow
def test_a_healthy_server_that_was_blamed_is_given_its_weight_back(tmp_path: Path) -> None:
    told = loop.run("haproxy", tmp_path, seed=2, count=60, ttl_s=300, blame=0)
    assert (told.verdict, told.how) == ("harmed", "reverted")
    assert told.after.share(0) > 0.2
