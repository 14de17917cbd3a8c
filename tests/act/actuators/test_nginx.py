import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from skewscope.act.actuator import ActuatorError
from skewscope.act.actuators.nginx import Nginx
from tests.act.actuators import servers
from tests.act.actuators.servers import at, table

FILE = """# servers
upstream other { server 10.0.0.1:80; }
upstream llm {
    least_conn;
    server 10.0.0.1:80 weight=100 max_fails=0; # first
    server 10.0.0.2:80;
    server 10.0.0.3:80 down;
}
server { listen 80; }
"""


@pytest.fixture
def real(tmp_path: Path) -> Iterator[tuple[Nginx, int, list[str]]]:
    with (
        servers.workers(3) as w,
        servers.nginx(tmp_path, [s.port for s in w]) as (port, file, command),
    ):
        names = [f"127.0.0.1:{s.port}" for s in w]
        yield Nginx(table(file=str(file), upstream="llm", command=command)), port, names


def counts(port: int, asked: int) -> Counter[int]:
    return Counter(servers.ask(port) for _ in range(asked))


def test_a_real_nginx_sends_less_to_a_lower_weight_and_the_same_again_afterwards(
    real: tuple[Nginx, int, list[str]],
) -> None:
    proxy, port, names = real
    text = proxy.file.read_text()
    before = proxy.read("lower_weight", at(names[1]))
    after = proxy.wanted("lower_weight", at(names[1]), before, 0.25)
    assert (before, after) == ({"weight": 100}, {"weight": 25})
    for _ in range(2):
        proxy.put("lower_weight", at(names[1]), after)
    time.sleep(0.5)  # the old worker ends
    assert counts(port, 90)[1] == pytest.approx(10, abs=3)
    proxy.put("lower_weight", at(names[1]), before)
    time.sleep(0.5)
    assert proxy.file.read_text() == text
    assert counts(port, 60)[1] == pytest.approx(20, abs=3)


def test_a_real_nginx_drains(real: tuple[Nginx, int, list[str]]) -> None:
    proxy, port, names = real
    before = proxy.read("drain_endpoint", at(names[0]))
    proxy.put("drain_endpoint", at(names[0]), proxy.wanted("drain_endpoint", at(names[0]), before, 0.0))
    time.sleep(0.5)
    assert proxy.unhealthy(names) == {names[0]}
    assert counts(port, 12)[0] == 0
    proxy.put("drain_endpoint", at(names[0]), before)
    time.sleep(0.5)
    assert counts(port, 12)[0] == 4


def test_what_a_real_nginx_refuses_is_put_back(real: tuple[Nginx, int, list[str]]) -> None:
    proxy, port, names = real
    text = proxy.file.read_text()
    for bad in ("weight=-3", "nonsense"):
        broken = text.replace("weight=100", bad, 1)
        proxy.file.write_text(broken)
        with pytest.raises(ActuatorError, match="-t: nginx: "):
            proxy.put("drain_endpoint", at(names[1]), {"down": True})
        assert proxy.file.read_text() == broken
    assert sum(counts(port, 6).values()) == 6


@pytest.fixture
def made(tmp_path: Path) -> Nginx:
    (tmp_path / "u.conf").write_text(FILE)
    return Nginx(table(file=str(tmp_path / "u.conf"), upstream="llm", command=["true"]))


def test_only_one_line_of_one_upstream_changes(made: Nginx) -> None:
    made.put("lower_weight", at("10.0.0.1:80"), {"weight": 25})
    assert made.file.read_text() == FILE.replace("weight=100", "weight=25")
    (change, check, load) = made.requests("drain_endpoint", at("10.0.0.2:80"), {"down": True})
    assert [x for x in change.body.splitlines() if x[0] in "+-"] == [
        "-    server 10.0.0.2:80;",
        "+    server 10.0.0.2:80 down;",
    ]
    assert (check.what, load.what) == ("-t", "-s reload")


def test_a_weight_of_one_cannot_be_lowered(made: Nginx) -> None:
    with pytest.raises(ActuatorError, match="give every server weight=100"):
        made.wanted("lower_weight", at("10.0.0.2:80"), made.read("lower_weight", at("10.0.0.2:80")), 0.25)


def test_an_unknown_server_file_or_command(made: Nginx, tmp_path: Path) -> None:
    with pytest.raises(ActuatorError, match="no line"):
        made.read("lower_weight", at("10.0.0.9:80"))
    with pytest.raises(ActuatorError, match="No such file"):
        Nginx(table(file=str(tmp_path / "x"), upstream="llm")).unhealthy([])
    for command in (["false"], [str(tmp_path / "none")], ["sleep", "9"]):
        other = Nginx(table(file=str(made.file), upstream="llm", command=command, timeout_s=0.2))
        with pytest.raises(ActuatorError):
            other.put("drain_endpoint", at("10.0.0.2:80"), {"down": True})
        assert made.file.read_text() == FILE
