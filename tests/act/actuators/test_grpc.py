import contextlib
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.act.actuator import ActuatorError
from skewscope.act.actuators import _grpc


def answered(folder: Path, said: bytes, timeout_s: float = 0.3) -> str:
    """Call a server that says these bytes and closes; return what went wrong."""
    path = folder / "s"
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(path))
        s.listen()

        def answer() -> None:
            c, _ = s.accept()
            with c, contextlib.suppress(OSError):
                c.sendall(said)
                c.shutdown(socket.SHUT_WR)
                while c.recv(65536):
                    pass

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            _grpc.call(str(path), "/a/B", b"m", timeout_s)
        except ActuatorError as error:
            return str(error)
        finally:
            thread.join()
    return ""


def frame(kind: int, flags: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + b"\0\0\0\1" + payload


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"", "closed before"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "longer than agreed"),
        (frame(3, 0, b"\0\0\0\2"), "broke the call off"),
        (frame(7, 0, b"\0" * 8), "broke the call off"),
        (frame(0, 1, b""), "grpc-status missing"),
        (frame(1, 5, b"\xff\xff\xff\xff\xff"), ""),
    ],
)
def test_an_answer_that_is_none_is_one_line(tmp_path: Path, said: bytes, words: str) -> None:
    got = answered(tmp_path, said)
    assert got
    assert words in got
    assert "\n" not in got


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_refused_in_one_line(tmp_path_factory: pytest.TempPathFactory, said: bytes) -> None:
    assert answered(tmp_path_factory.getbasetemp(), said)
