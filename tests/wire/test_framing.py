from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.core.directory import Directory
from skewscope.wire.framing import MAX_TRIES, MISSES
from skewscope.wire.streams import StreamFramer
from tests.wire.segments import SYN, Segment, chop, gloo_message, packets, rows, run, same, tls_record

REQUEST = b"GET /health HTTP/1.1\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def protocols(segments: list[Segment]) -> dict[int, str]:
    framer = StreamFramer(Directory())
    framer.feed(*packets(segments))
    return framer.protocols()


def test_protocol_comes_from_content_of_either_direction() -> None:
    segments = [
        Segment(gloo_message(2), flow=1),
        Segment(REQUEST, flow=2),
        Segment(b"\x01opaque", flow=3),
        Segment(b"\x02opaque", flow=3, way=1),
        Segment(tls_record(22), flow=4),
        Segment(b"first unknown", flow=5),
        Segment(ANSWER, flow=5, way=1),
    ]
    assert protocols(segments) == {1: "gloo", 2: "http1", 4: "tls", 5: "http1"}


def test_flow_without_signature_counts_as_opaque_and_may_still_show_one() -> None:
    segments = chop(b"\x01" * MAX_TRIES, [1])
    assert protocols(segments) == {1: "opaque"}
    assert protocols([*segments, Segment(tls_record(), 1000 + MAX_TRIES)]) == {1: "tls"}


def test_wrong_first_guess_is_given_up() -> None:
    lie = b"\x17\x03\x03\x00\x02xx"  # a TLS record by chance
    rest = chop(b"\x01" * 50 * MISSES, [50], seq=1000 + len(lie))
    real = [Segment(gloo_message(2, tag=k), 1000 + len(lie) + 50 * MISSES + 48 * k) for k in range(3)]
    tables, _ = run([Segment(lie), *rest, *real])
    assert tables["messages"]["tag"].tolist() == [0, 1, 2]


def test_protocol_with_confirmations_stays() -> None:
    start = b"".join(tls_record(23, 10) for _ in range(5))
    noise = chop(b"\x01" * 50 * (MISSES + 5), [50], seq=1000 + len(start))
    segments = [Segment(start), *noise, Segment(REQUEST, 1000 + len(start) + 50 * (MISSES + 5))]
    assert protocols(segments) == {1: "tls"}


def test_new_connection_on_the_same_flow_is_judged_anew() -> None:
    segments = [
        Segment(seq=999, flags=SYN),
        *(Segment(gloo_message(2, tag=k), 1000 + 48 * k) for k in range(6)),
        Segment(seq=99999, flags=SYN),
        Segment(REQUEST, 100000),
    ]
    tables, _ = run(segments)
    assert len(tables["messages"]) == 6
    assert rows(tables["http"], "kind", "method") == [(1, 1), (4, 0)]


flows = st.lists(
    st.tuples(
        st.sampled_from(
            [gloo_message(1, 90) * 3, REQUEST * 2 + ANSWER, tls_record(23, 70) * 4, b"\x00\x01" * 90]
        ),
        st.lists(st.integers(1, 90), min_size=1, max_size=4),
        st.integers(0, 2**32 - 1),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(flows, st.lists(st.integers(0, 200), max_size=6), st.sampled_from([None, 30, 48]), st.randoms())
def test_mixed_flows_in_any_order_and_split(talks, cuts, kept, rng) -> None:  # type: ignore[no-untyped-def]
    segments = [
        s
        for k, (stream, sizes, seq) in enumerate(talks)
        for s in chop(stream, sizes, seq=seq, flow=1 + k // 2, way=k % 2, kept=kept)
    ]
    rng.shuffle(segments)
    whole, _ = run(segments)
    assert same(whole, run(segments, cuts)[0])
    assert same(whole, run(segments, range(len(segments)))[0])
