"""The same conversations over HTTP/1.1, HTTP/2 with server-sent events, and gRPC: same features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from skewscope.core.directory import Directory, Flow, Tap
from skewscope.core.features import Slice
from skewscope.core.schemas import MESSAGES
from skewscope.features.graph import GraphRows
from skewscope.features.streams import Streams
from skewscope.lab.synth import http as lab_http
from skewscope.wire.build import grpc_message
from skewscope.wire.streams import StreamFramer
from tests.wire.http2_peer import HELLO, WELCOME, Peer, answer, call, data, reset
from tests.wire.segments import FIN, Segment, packets

START = 1_700_000_000_000_000_000
TICK = 100_000_000
SAME = (
    "arrivals", "first_tokens", "completions", "open_requests", "active_streams", "chunks", "errors",
    "ttft_s", "chunk_gap_s", "chunk_gap_ratio", "steps", "paused_share", "common_pause_s",
)  # fmt: skip
EVENT = b'data: {"text": "tok"}\n\n'


@dataclass
class Ask:
    """A request: when it comes, when its pieces go out, and how it ends (0 well, 1 the client leaves)."""

    at: float
    pieces: list[float]
    end: float = 0.0
    left: bool = False


Bytes = list[tuple[float, int, int, bytes, int]]
"""(time, flow, way, data, flags)"""


def http1(asks: list[Ask]) -> Bytes:
    """A connection for each request."""
    out: Bytes = []
    for flow, ask in enumerate(asks, 1):
        out.append((ask.at, flow, 0, lab_http.request(np.arange(5), 10), 0))
        for k, at in enumerate(ask.pieces):
            head = lab_http.RESPONSE_HEAD if k == 0 else b""
            out.append((at, flow, 1, head + b"%x\r\n%s\r\n" % (len(EVENT), EVENT), 0))
        if ask.end:
            out.append((ask.end, flow, 0 if ask.left else 1, b"" if ask.left else b"0\r\n\r\n", FIN))
    return out


def http2(content: str, piece: bytes) -> Callable[[list[Ask]], Bytes]:
    """One connection for all requests."""

    def made(asks: list[Ask]) -> Bytes:
        steps: list[tuple[float, int, int]] = []
        for k, ask in enumerate(asks):
            steps += [(ask.at, k, -1), *((at, k, n) for n, at in enumerate(ask.pieces))]
            steps += [(ask.end, k, -2)] if ask.end else []
        client, server = Peer(), Peer()
        out: Bytes = [(0.0, 1, 0, HELLO, 0), (0.0, 1, 1, WELCOME, 0)]
        for at, k, what in sorted(steps):
            stream = 2 * k + 1
            if what == -1:
                body = client.headers(stream, call("/v1", content)) + data(
                    stream, grpc_message(b"ask"), end=True
                )
            elif what == -2 and asks[k].left:
                body = reset(stream, 8)
            elif what == -2:
                body = server.headers(stream, [("grpc-status", "0")], end=True)
            else:
                body = server.headers(stream, answer(content)) if what == 0 else b""
                body += data(stream, piece)
            out.append((at, 1, int(what >= 0 or (what == -2 and not asks[k].left)), body, 0))
        return out

    return made


WAYS: dict[str, Callable[[list[Ask]], Bytes]] = {
    "http1": http1,
    "events": http2("text/event-stream", EVENT),
    "grpc": http2("application/grpc", grpc_message(b"a token")),
}


def features(made: Bytes, seconds: float) -> tuple[dict[str, list[float]], Streams, Directory]:
    """Frame the bytes, cut the tables into slices and return each column over the windows."""
    made = sorted(made, key=lambda m: m[0])
    at: dict[tuple[int, int], int] = {}
    segments = []
    for when, flow, way, body, flags in made:
        seq = at.get((flow, way), 1000)
        segments.append(
            Segment(body, seq, way, at.get((flow, 1 - way), 1000), flags, flow, ts=START + round(when * 1e9))
        )
        at[flow, way] = seq + len(body)
    table, buffer = packets(segments)
    directory = Directory(addresses=["-", "10.9.0.1", "10.9.0.2"], taps=[Tap(0, "one.pcap")])
    flows = int(table["flow"].max())
    directory.flows += [Flow(1, 40000 + k, 2, 8000, 6) for k in range(flows)]
    framer = StreamFramer(directory)
    tables = {**framer.feed(table, buffer), "packets": table, "messages": MESSAGES.empty()}
    family, found = Streams(), []
    graph = GraphRows(
        "host",
        [],
        {},
        vantage=np.zeros((flows + 1, 2), np.int32),
        ends=np.array([[f.a, f.b] for f in directory.flows], np.int64),
        server=np.ones(flows + 1, np.int8),
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        for start in range(START, START + round(seconds * 1e9), TICK):
            cut = {n: t.take((t["ts_ns"] >= start) & (t["ts_ns"] < start + TICK)) for n, t in tables.items()}
            rows = family.update(Slice(start, start + TICK, cut, directory), {"host": graph})
            found.append({n: float(v[0]) if len(v) else np.nan for n, v in rows.columns.items()})
    return {n: [w.get(n, np.nan) for w in found] for n in SAME}, family, directory


def steps(first: float, until: float, gap: float) -> list[float]:
    return [float(t) for t in np.arange(first, until, gap)]


def steady() -> list[Ask]:
    return [Ask(0.02 + k * 1e-3, steps(0.1 + k * 1e-4, 2.9, 0.05), 2.95 + k * 1e-3) for k in range(4)]


def slow_endpoint() -> list[Ask]:
    """All streams slow down to a third of their pace at 1.5 s."""
    return [
        Ask(
            0.02 + k * 1e-3,
            steps(0.1 + k * 1e-4, 1.5, 0.05) + steps(1.6 + k * 1e-4, 2.9, 0.15),
            2.95 + k * 1e-3,
        )
        for k in range(4)
    ]


def slow_reader() -> list[Ask]:
    """One stream stands still from 1.0 to 2.5 s while the others go on; one client leaves."""
    made = steady()
    made[2].pieces = [t for t in made[2].pieces if not 1.0 < t < 2.5]
    made[3].pieces, made[3].end, made[3].left = [t for t in made[3].pieces if t < 2], 2.01, True
    return made


def unanswered() -> list[Ask]:
    return [*steady(), Ask(1.0, []), Ask(1.001, [])]


def compared(asks: list[Ask]) -> dict[str, dict[str, list[float]]]:
    return {name: features(way(asks), 3.0)[0] for name, way in WAYS.items()}


@pytest.mark.parametrize("asks", [steady, slow_endpoint, slow_reader, unanswered])
def test_protocols_give_the_same_features(asks: Callable[[], list[Ask]]) -> None:
    seen = compared(asks())
    for name in ("events", "grpc"):
        for column in SAME:
            np.testing.assert_allclose(
                seen[name][column], seen["http1"][column], rtol=1e-6, err_msg=f"{name} {column}"
            )


@pytest.mark.parametrize("way", sorted(WAYS))
def test_slow_endpoint_and_slow_reader_are_seen(way: str) -> None:
    seen = features(WAYS[way](slow_endpoint()), 3.0)[0]
    assert seen["active_streams"][10] == 4
    assert np.nanmax(seen["chunk_gap_ratio"][:15]) < 1.2
    assert seen["chunk_gap_ratio"][-2] > 2
    reader = features(WAYS[way](slow_reader()), 3.0)[0]
    assert reader["paused_share"][15] == pytest.approx(0.25)
    assert reader["chunk_gap_ratio"][15] < 1.2
    assert reader["active_streams"][22] == 3


def test_report_names_each_stream() -> None:
    _, family, directory = features(WAYS["grpc"](slow_reader()), 3.0)
    rows = family.rows_for_report(directory, directory.taps)
    assert len(rows) == 4
    assert {r.client for r in rows} == {"10.9.0.1:40000"}
    assert sorted(len(r.chunk_ns) for r in rows) == sorted(len(a.pieces) for a in slow_reader())


def test_grpc_errors_count() -> None:
    client, server = Peer(), Peer()
    ask = client.headers(1, call("/s/M"), end=True)
    reply = server.headers(1, [*answer(), ("grpc-status", "14")], end=True)
    made = [(0.0, 1, 0, HELLO, 0), (0.01, 1, 1, WELCOME, 0), (0.02, 1, 0, ask, 0), (0.03, 1, 1, reply, 0)]
    assert features(made, 0.2)[0]["errors"][0] == 1


def test_close_of_the_connection_ends_its_streams() -> None:
    asks = [Ask(0.02 + k * 1e-3, [0.1, 0.15]) for k in range(3)]
    made = [*WAYS["grpc"](asks), (0.3, 1, 1, b"", FIN)]
    seen, family, directory = features(made, 0.5)
    assert seen["active_streams"][:4] == [0, 3, 3, 0]
    assert all(r.end_ns == START + 300_000_000 for r in family.rows_for_report(directory, directory.taps))
