"""Receiving over the loopback interface."""

import gzip
import http.client
import json
import socket

import pyarrow as pa
import pytest

from skewscope.core.directory import Directory
from skewscope.sources import protobufs, receive
from skewscope.sources.documents import Document
from skewscope.sources.inbox import Inbox
from skewscope.sources.receive import MAX_BODY_BYTES, ReceiveError, Receiver, plain_body

pytest.importorskip("google.protobuf", reason="protobuf (the extra `metrics`) is not installed")


def write_request():
    request = protobufs.message("WriteRequest")()
    series = request.timeseries.add()
    series.labels.add(name="__name__", value="DCGM_FI_DEV_POWER_USAGE")
    series.labels.add(name="gpu", value="3")
    series.samples.add(value=250.0, timestamp=1_700_000_000_000)
    return bytes(pa.Codec("snappy").compress(request.SerializeToString()))


OTLP = json.dumps(
    {
        "resourceMetrics": [
            {
                "scopeMetrics": [
                    {
                        "metrics": [
                            {
                                "name": "node_load1",
                                "gauge": {"dataPoints": [{"timeUnixNano": "5", "asDouble": 2.0}]},
                            }
                        ]
                    }
                ]
            }
        ]
    }
).encode()


class Bench:
    def __init__(self, tmp_path):
        self.directory = Directory()
        self.inbox = Inbox(self.directory, spool=tmp_path)
        self.receiver = Receiver(self.inbox, port=0)
        self.receiver.start()

    def post(self, path, body, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.receiver.port, timeout=10)
        connection.request("POST", path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        got = answer.status, answer.read()
        connection.close()
        return got

    def rows(self):
        rounds = iter([False, True])
        tables = [t for b in self.inbox.batches(lambda: next(rounds)) for t in b.values()]
        return [
            (self.directory.entities[int(t["entity"][i])], float(t["value"][i]))
            for t in tables
            for i in range(len(t))
        ]


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path)
    yield made
    made.receiver.close()


def test_both_protocols_and_their_replay(bench, tmp_path):
    assert bench.post("/api/v1/write", write_request(), Content_Encoding="snappy") == (200, b"")
    assert bench.post("/v1/metrics", OTLP, Content_Type="application/json") == (200, b"{}")
    packed = gzip.compress(OTLP)
    assert bench.post("/v1/metrics", packed, Content_Encoding="gzip")[0] == 200
    assert bench.rows() == [("127.0.0.1/gpu3", 250.0), ("127.0.0.1", 2.0), ("127.0.0.1", 2.0)]
    kinds = sorted(Document(f, Directory()).kind for f in tmp_path.rglob("*") if f.is_file())
    assert kinds == ["otlp metrics", "otlp metrics", "prometheus remote write"]


def test_what_is_refused(bench, monkeypatch):
    assert bench.post("/", b"x")[0] == 404
    assert bench.post("/v1/metrics", b"x", Content_Length=str(MAX_BODY_BYTES + 1))[0] == 413
    assert bench.post("/v1/metrics", b"x", Content_Length="many")[0] == 411
    assert bench.post("/v1/metrics", b"x", Content_Encoding="br")[0] == 400
    assert bench.post("/v1/metrics", b"x", Content_Encoding="gzip")[0] == 400
    assert bench.post("/v1/metrics", gzip.compress(b"x" * 9)[:-9], Content_Encoding="gzip")[0] == 400
    monkeypatch.setattr(bench.inbox, "put", lambda *args, **more: False)
    assert bench.post("/v1/metrics", OTLP)[0] == 429
    for _ in range(receive.MAX_REQUESTS):
        bench.receiver._server.room.acquire()
    assert bench.post("/v1/metrics", OTLP)[0] == 503


def test_a_bomb_is_not_unpacked(monkeypatch):
    monkeypatch.setattr(receive, "MAX_PLAIN_BYTES", 1000)
    with pytest.raises(ValueError, match="too large"):
        plain_body(gzip.compress(bytes(100_000)), "gzip")
    assert plain_body(gzip.compress(b"ok"), "gzip") == b"ok"


def test_a_broken_connection_is_counted_and_harms_nobody(bench):
    raw = socket.create_connection(("127.0.0.1", bench.receiver.port))
    raw.sendall(b"POST /v1/metrics HTTP/1.1\r\nContent-Length: 50\r\n\r\nabc")
    raw.shutdown(socket.SHUT_WR)
    assert b"400" in raw.recv(1000)
    raw.close()
    assert bench.post("/v1/metrics", OTLP)[0] == 200


def test_it_listens_on_the_loopback_interface_and_says_where_it_cannot(bench):
    assert bench.receiver._server.server_address[0] == "127.0.0.1"
    with pytest.raises(ReceiveError, match="cannot listen"):
        Receiver(Inbox(Directory()), port=bench.receiver.port)


def test_rubbish_is_noted(bench):
    assert bench.post("/v1/metrics", b"\xff\xff")[0] == 200
    assert bench.rows() == []
    assert bench.inbox.notes == {"cannot be read: not a ExportMetricsServiceRequest": 1}
