import socket
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from skewscope.act.actuator import ActuatorError
from skewscope.act.actuators.haproxy import HAProxy
from skewscope.act.settings import SettingsError
from tests.act.actuators import servers
from tests.act.actuators.servers import at, table


@pytest.fixture
def real(tmp_path: Path) -> Iterator[tuple[HAProxy, int]]:
    with servers.workers(3) as w, servers.haproxy(tmp_path, [s.port for s in w]) as (port, sock):
        yield HAProxy(table(socket=sock, backend="llm")), port


def test_a_real_haproxy_sends_less_to_a_lower_weight_and_the_same_again_afterwards(
    real: tuple[HAProxy, int],
) -> None:
    proxy, port = real
    before = proxy.read("lower_weight", at("r1"))
    assert before == {"weight": 100}
    after = proxy.wanted("lower_weight", at("r1"), before, 0.25)
    assert [r.what for r in proxy.requests("lower_weight", at("r1"), after)] == [
        "set server llm/r1 weight 25"
    ]
    for _ in range(2):  # twice is once
        proxy.put("lower_weight", at("r1"), after)
        assert proxy.read("lower_weight", at("r1")) == {"weight": 25}
    got = Counter(servers.ask(port) for _ in range(90))
    assert got[1] == pytest.approx(10, abs=2)
    proxy.put("lower_weight", at("r1"), before)
    got = Counter(servers.ask(port) for _ in range(60))
    assert got[1] == pytest.approx(20, abs=2)


def test_a_real_haproxy_drains(real: tuple[HAProxy, int]) -> None:
    proxy, port = real
    before = proxy.read("drain_endpoint", at("r0"))
    after = proxy.wanted("drain_endpoint", at("r0"), before, 0.0)
    assert (before, after) == ({"state": "ready"}, {"state": "drain"})
    proxy.put("drain_endpoint", at("r0"), after)
    assert proxy.read("drain_endpoint", at("r0")) == after
    assert proxy.unhealthy(["r0", "r1", "r2"]) == {"r0"}
    assert 0 not in {servers.ask(port) for _ in range(20)}
    proxy.put("drain_endpoint", at("r0"), before)
    assert proxy.unhealthy(["r0", "r1", "r2"]) == set()
    assert 0 in {servers.ask(port) for _ in range(20)}


def test_maintenance_by_a_person_is_not_turned_into_a_drain(real: tuple[HAProxy, int]) -> None:
    proxy, _ = real
    proxy.put("drain_endpoint", at("r0"), {"state": "maint"})
    before = proxy.read("drain_endpoint", at("r0"))
    assert proxy.wanted("drain_endpoint", at("r0"), before, 0.0) == before


def test_a_real_haproxy_refuses_in_one_line(real: tuple[HAProxy, int]) -> None:
    proxy, _ = real
    with pytest.raises(ActuatorError, match="no such server"):
        proxy.read("lower_weight", at("r9"))
    with pytest.raises(ActuatorError, match="set server llm/r9 weight 5: No such server"):
        proxy.put("lower_weight", at("r9"), {"weight": 5})
    with pytest.raises(ActuatorError, match="set server llm/r1 weight 999"):
        proxy.put("lower_weight", at("r1"), {"weight": 999})
    other = HAProxy(table(socket=proxy.socket, backend="nope"))
    with pytest.raises(ActuatorError):
        other.read("lower_weight", at("r1"))


@pytest.mark.parametrize("name", ["r1;disable server llm/r2", "r1\nshutdown sessions", "", "a b"])
def test_a_name_cannot_carry_a_second_command(name: str) -> None:
    proxy = HAProxy(table(socket="/nowhere", backend="llm"))
    with pytest.raises(ActuatorError, match="not a name"):
        proxy.requests("lower_weight", at(name), {"weight": 1})


def test_a_socket_is_a_path_or_host_and_port() -> None:
    for where in ("", "admin.sock", "localhost", "a:b"):
        with pytest.raises(SettingsError, match="neither a path nor host:port"):
            HAProxy(table(socket=where, backend="llm"))


def test_nobody_listens(tmp_path: Path) -> None:
    for where in (str(tmp_path / "none"), f"127.0.0.1:{servers.free_port()}"):
        with pytest.raises(ActuatorError, match=where):
            HAProxy(table(socket=where, backend="llm")).read("lower_weight", at("r1"))


def test_one_that_never_answers_is_given_up(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(tmp_path / "s"))
        s.listen()
        proxy = HAProxy(table(socket=str(tmp_path / "s"), backend="llm", timeout_s=0.2))
        with pytest.raises(ActuatorError, match="timed out"):
            proxy.read("lower_weight", at("r1"))


@pytest.mark.parametrize("said", [b"", b"Permission denied\n", b"# a\n1 2 3 4 5 6\n", b"\xff\x00" * 50])
def test_nonsense_is_one_line(tmp_path: Path, said: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(tmp_path / "s"))
        s.listen()

        def answer() -> None:
            c, _ = s.accept()
            with c:
                c.recv(999)
                c.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ActuatorError) as caught:
            HAProxy(table(socket=str(tmp_path / "s"), backend="llm")).read("lower_weight", at("r1"))
        thread.join()
        assert "\n" not in str(caught.value)
