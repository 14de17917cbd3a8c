"""The message by hand, the call against a real gRPC server where grpcio is at hand; no NVSentinel."""

import json
from pathlib import Path

import pytest

from skewscope.act.actuator import ActuatorError
from skewscope.act.actuators import _grpc
from skewscope.act.actuators.nvsentinel import METHOD, NVSentinel, encode
from tests.act.actuators import servers
from tests.act.actuators.servers import at, table

SERVER = """
import sys, time, grpc
from concurrent import futures
got = open(sys.argv[2], "ab", buffering=0)
def handle(message, context):
    got.write(len(message).to_bytes(4, "big") + message)
    if b"refuse" in message:
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "queue full")
    return b""
class Any(grpc.GenericRpcHandler):
    def service(self, details):
        if details.method != "/datamodels.PlatformConnector/HealthEventOccurredV1":
            return None
        return grpc.unary_unary_rpc_method_handler(handle)
server = grpc.server(futures.ThreadPoolExecutor(1))
server.add_generic_rpc_handlers((Any(),))
server.add_insecure_port("unix:" + sys.argv[1])
server.start()
time.sleep(60)
"""


def make(socket: str = "/nowhere", **more: str) -> NVSentinel:
    return NVSentinel(table(socket=socket, **more))


def fields(data: bytes) -> list[tuple[int, int | bytes]]:
    """Read a protobuf message into (field, value), by an own few lines."""
    out: list[tuple[int, int | bytes]] = []
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            out.append((key >> 3, varint()))
        else:
            size = varint()
            out.append((key >> 3, data[at : at + size]))
            at += size
    return out


def test_the_message_has_the_published_field_numbers() -> None:
    made, target = make(recommend="RUN_FIELDDIAG", strategy="EXECUTE_REMEDIATION"), at("r1", node="n7")
    (request,) = made.requests("hand_over_node", target, {"healthy": False})
    assert request.what == METHOD
    (version, (number, event)) = fields(encode(json.loads(request.body)))
    assert (version, number) == ((1, 1), 2)
    assert isinstance(event, bytes)
    assert fields(event) == [
        (1, 1), (2, b"skewscope"), (3, b"Node"), (4, b"SkewscopeFailSlow"), (7, b"a1: c20 gpu"), (8, 6),
        (12, b"\x08\x80\x94\xeb\xdc\x03"), (13, b"n7"), (16, 1),
    ]  # fmt: skip


def test_taking_back_is_a_healthy_event_that_asks_for_nothing() -> None:
    made = make(recommend="RESTART_BM")
    (request,) = made.requests("hand_over_node", at("r1", node="n7"), made.read("hand_over_node", at("r1")))
    event = json.loads(request.body)
    assert (event["isHealthy"], event["recommendedAction"], event["processingStrategy"]) == (
        True,
        "NONE",
        "STORE_ONLY",
    )


def test_without_a_node_or_a_socket() -> None:
    with pytest.raises(ActuatorError, match="has no node"):
        make().requests("hand_over_node", at("r1"), {"healthy": False})
    with pytest.raises(ActuatorError, match="/nowhere: "):
        make().put("hand_over_node", at("r1", node="n7"), {"healthy": False})


def test_a_real_grpc_server_takes_the_call(tmp_path: Path) -> None:
    environment = servers.packages("grpc")
    sock, got = tmp_path / "s", tmp_path / "got"
    (tmp_path / "server.py").write_text(SERVER)
    command = servers.python("-W", "ignore", str(tmp_path / "server.py"), str(sock), str(got))
    with servers.running(command, sock.exists, env=environment):
        made, target = make(str(sock)), at("r1", node="n7")
        made.put("hand_over_node", target, {"healthy": False})
        (request,) = made.requests("hand_over_node", target, {"healthy": False})
        assert got.read_bytes()[4:] == encode(json.loads(request.body))
        with pytest.raises(ActuatorError, match="grpc-status 8 queue full"):
            made.put("hand_over_node", at("r1", node="refuse"), {"healthy": False})
        with pytest.raises(ActuatorError, match="grpc-status 12"):
            _grpc.call(str(sock), "/other/Method", b"", 5.0)
        with pytest.raises(ActuatorError, match="longer than"):
            _grpc.call(str(sock), METHOD, b"x" * 20000, 5.0)
