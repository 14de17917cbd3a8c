import json
import socket
import sys
import threading

import pytest

from skewscope.core.directory import Directory
from skewscope.core.tables import Heard
from skewscope.sources.adapters.poll import FetchError, Poll, command, ras, tree
from skewscope.sources.formats import ethtool, nccl_json, nccl_ras, sysfs
from tests.sources.formats.reading import rows_of
from tests.sources.formats.test_nccl_json import STATUS
from tests.sources.formats.test_nccl_ras import LATE

TEXT = b"mlx5_0/ports/1/counters/port_rcv_packets: %d\n"


def test_each_turn_is_one_reading():
    directory, turns = Directory(), iter(range(10))
    poll = Poll("/sys", lambda: TEXT % next(turns), sysfs.FORMAT, directory, host="n1", period_s=0.02)
    batches = list(poll.batches(lambda: poll.fetched >= 3))
    rows = [r for tables in batches for r in rows_of(directory, tables)]
    assert [r["value"] for r in rows] == [0.0, 1.0, 2.0]
    assert [r["entity"] for r in rows] == ["n1/mlx5_0/1"] * 3
    assert rows[0]["ts_ns"] < rows[1]["ts_ns"] < rows[2]["ts_ns"]
    assert all(
        isinstance(b, Heard) and b.reached_ns <= r["ts_ns"] for b, r in zip(batches, rows, strict=True)
    )
    assert directory.sources == ["/sys"]


def test_a_fetch_that_fails_is_tried_again():
    answers = iter([FetchError("refused"), TEXT % 5])

    def fetch():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    poll = Poll("x", fetch, sysfs.FORMAT, Directory())
    assert poll.once() == {}
    assert (poll.failed, poll.problem) == (1, "refused")
    assert len(poll.once()["counters"]) == 1


def test_this_machine_has_network_devices():
    directory = Directory()
    tables = Poll("/sys", tree(), sysfs.FORMAT, directory, host="here").once()
    if not tables or not len(tables["counters"]):
        pytest.skip("no /sys here")
    assert ("here/lo", "eth.rx_bytes") in {
        (r["entity"], r["name"]) for r in rows_of(directory, tables) if "name" in r
    }


def test_a_program_is_run_without_a_shell(tmp_path):
    program = tmp_path / "ethtool"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nprint('NIC statistics:\\n     rx_packets: 4', sys.argv[1:] and"
        " '')\n",
        encoding="utf-8",
    )
    program.chmod(0o755)
    directory = Directory()
    tables = Poll(
        "ethtool", command([str(program), "-S", "eth0; true"]), ethtool.FORMAT, directory, host="n1"
    ).once()
    assert [(r["entity"], r["value"]) for r in rows_of(directory, tables)] == [("n1/eth0", 4.0)]


def test_a_program_that_fails_says_why():
    with pytest.raises(FetchError, match="no such device"):
        command([sys.executable, "-c", "import sys; sys.exit('no such device')"])()
    with pytest.raises(FetchError, match="no answer within"):
        command([sys.executable, "-c", "import time; time.sleep(9)"], timeout_s=0.2)()


@pytest.fixture
def ras_server():
    """A server that answers each connection with what `answers` says for the commands that came."""
    answers: dict[bytes, bytes] = {}
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            with client:
                asked = b""
                while data := client.recv(4096):
                    asked += data
                client.sendall(answers.get(asked, b"ERROR: unknown command\n"))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield server.getsockname()[1], answers
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join(5)


def test_ras_answers_in_json_or_in_text(ras_server):
    port, answers = ras_server
    answers[b"VERBOSE STATUS\n"] = LATE.encode()
    directory = Directory()
    rows = rows_of(directory, Poll("ras", ras(port=port), nccl_ras.FORMAT, directory).once())
    assert [r["kind"] for r in rows] == ["nccl.ras.mismatch"]
    answers[b"SET FORMAT json\nVERBOSE STATUS\n"] = b"OK\n" + json.dumps(STATUS).encode()
    rows = rows_of(directory, Poll("ras", ras(port=port), nccl_json.FORMAT, directory).once())
    assert "nccl.ras.dead" in {r["kind"] for r in rows}


def test_nobody_at_the_port_is_a_problem_and_no_error():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    poll = Poll("ras", ras(port=port), nccl_ras.FORMAT, Directory())
    assert poll.once() == {}
    assert "refused" in poll.problem
