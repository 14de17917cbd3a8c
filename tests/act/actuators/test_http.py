import socket
import threading
import time
from pathlib import Path

import pytest

from skewscope.act.actuator import ActuatorError
from skewscope.act.actuators._http import Server
from skewscope.act.settings import SettingsError
from tests.act.actuators import servers
from tests.act.actuators.servers import table


@pytest.mark.parametrize("url", ["", "localhost:80", "ftp://a", "http://", "http://user:secret@a"])
def test_an_url_that_is_none_or_holds_a_password_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match=r"actuator\[0\]\.url"):
        Server.of(table(url=url))


def test_the_token_comes_from_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t").write_text(" one \n")
    monkeypatch.setenv("ACT_TOKEN", "two")
    with servers.serve(lambda *_: (200, {})) as s:
        for settings in ({"token_file": str(tmp_path / "t")}, {"token_env": "ACT_TOKEN"}, {}):
            Server.of(table(url=s.url, **settings)).json("/")
        assert [h.get("Authorization") for h in s.headers] == ["Bearer one", "Bearer two", None]
    monkeypatch.delenv("ACT_TOKEN")
    for settings in ({"token_env": "ACT_TOKEN"}, {"token_file": str(tmp_path / "none")}):
        with pytest.raises(ActuatorError):
            Server.of(table(url="http://127.0.0.1:9", **settings)).send("GET", "/")


def test_a_prefix_is_kept_and_redirects_are_not_followed() -> None:
    with servers.serve(lambda *_: (302, {})) as s:
        with pytest.raises(ActuatorError, match="302"):
            Server.of(table(url=s.url + "/base/")).send("GET", "/x")
        assert s.seen == [("GET", "/base/x", "")]


def test_nobody_listens() -> None:
    with pytest.raises(ActuatorError, match="refused"):
        Server.of(table(url=f"http://127.0.0.1:{servers.free_port()}")).send("GET", "/")


def test_one_that_is_slow_or_drips_is_given_up() -> None:
    with (
        servers.serve(lambda *_: (200, {}), delay_s=0.6) as s,
        pytest.raises(ActuatorError, match="timed out"),
    ):
        Server.of(table(url=s.url, timeout_s=0.2)).send("GET", "/")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stop = threading.Event()

        def drip() -> None:
            c, _ = listener.accept()
            with c:
                c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n")
                while not stop.wait(0.05):
                    try:
                        c.sendall(b"x")
                    except OSError:
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        before_s = time.monotonic()
        with pytest.raises(ActuatorError, match="takes too long"):
            Server.of(table(url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout_s=0.3)).send(
                "GET", "/"
            )
        stop.set()
        thread.join()
        assert time.monotonic() - before_s < 30


def test_an_answer_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skewscope.act.actuators._http.ANSWER_BYTES", 100)
    with servers.serve(lambda *_: (200, b"x" * 101)) as s, pytest.raises(ActuatorError, match="too long"):
        Server.of(table(url=s.url)).send("GET", "/")


def test_what_is_not_json() -> None:
    with servers.serve(lambda *_: (200, b"<html>")) as s, pytest.raises(ActuatorError, match="not JSON"):
        Server.of(table(url=s.url)).json("/")
