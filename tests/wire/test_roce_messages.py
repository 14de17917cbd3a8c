"""RoCE packets to messages: NCCL's and others', with losses, copies, wraps and cut captures."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.core.schemas import ROCE
from skewscope.core.tables import Table
from skewscope.wire.nccl_roce import CLEAR_TO_SEND, FRAMING_NCCL_ROCE, FRAMING_RDMA
from skewscope.wire.roce_messages import RoceMessages
from tests.wire.roce_rows import READ, READ_REQUEST, SEND, START, US, WRITE, A, B, Wire

QA, QB = 0x11, 0x22
"""The queue pair at A and the one at B."""


def rows(wire, lanes=4096, finish=True):
    """Return (messages as dicts with times in us, holes as dicts) of all rows of a wire."""
    framer = RoceMessages(lanes)
    parts = [framer.feed(wire.table())] + ([framer.finish()] if finish else [])
    return tuple(listed(parts, name) for name in ("messages", "holes"))


def listed(parts, name):
    """Return the rows of one table as dicts."""
    out = []
    for part in parts:
        t = part[name]
        for i in range(len(t)):
            row = {n: int(t[n][i]) for n in t.schema.columns}
            for key in ("ts_ns", "end_ns"):
                if row.get(key):
                    row[key] = (row[key] - START) // US
            out.append(row)
    return out


def brief(messages):
    return [
        (m["framing"], m["kind"], m["src"], m["dst"], m["nbytes"], m["ts_ns"], m["end_ns"]) for m in messages
    ]


def lossless():
    """A clears B; B sends 3000 bytes in three packets; two small ones follow."""
    w = Wire()
    w.clear(A, B, QB)
    w.data(B, A, QA, 3000)
    w.clear(A, B, QB, 48)
    w.data(B, A, QA, 800)
    return w


def test_clear_and_data_are_messages_with_first_and_last_time():
    messages, holes = rows(lossless())
    assert brief(messages) == [
        (3, 3, A, B, 64, 1, 1),
        (3, 0, B, A, 3000, 2, 4),
        (3, 3, A, B, 48, 5, 5),
        (3, 0, B, A, 800, 6, 6),
    ]
    assert not holes
    assert [m["frame"] for m in messages] == [1, 2, 5, 6]
    assert {m["flow"] for m in messages} == {A * 16 + B, B * 16 + A}


def test_bulk_and_empty_write_with_immediate_are_one_message():
    w = Wire()
    w.clear(A, B, QB)
    w.message(WRITE, B, A, QA, 9000)
    w.message(WRITE, B, A, QA, 0, immediate=9000)
    messages, _ = rows(w)
    assert brief(messages) == [(3, 3, A, B, 64, 1, 1), (3, 0, B, A, 9000, 2, 11)]


def test_a_request_id_as_immediate_leaves_the_sum_of_the_payload():
    w = Wire()
    w.clear(A, B, QB)
    w.message(WRITE, B, A, QA, 5000, immediate=7)
    messages, _ = rows(w)
    assert brief(messages)[1] == (3, 0, B, A, 5000, 2, 6)


def test_an_immediate_without_the_signs_of_nccl_is_another_transfer():
    w = Wire()
    w.message(WRITE, B, A, QA, 5000, immediate=7)
    assert [m["framing"] for m in rows(w)[0]] == [FRAMING_RDMA]


def test_transfers_of_caches_are_rdma_not_nccl():
    w = Wire()
    w.packet(READ_REQUEST, A, B, QB, 0, dma_bytes=4000, has=1)
    w.message(READ, B, A, QA, 4000)
    w.psn[A, B, QB] = 4
    w.message(SEND, A, B, QB, 100)
    w.message(WRITE, A, B, QB + 1, 2_000_000)
    messages, holes = rows(w)
    assert sorted(brief(messages)) == sorted(
        [
            (FRAMING_RDMA, 0, B, A, 4000, 2, 5),
            (FRAMING_RDMA, 0, A, B, 100, 6, 6),
            (FRAMING_RDMA, 0, A, B, 2_000_000, 7, 6 + 1954),
        ]
    )
    assert not holes


def test_a_lone_write_is_given_when_time_has_passed():
    w = Wire()
    w.message(WRITE, A, B, QB, 100_000)
    w.us += 300_000
    w.data(B, A, QA, 10)
    assert [m["nbytes"] for m in rows(w, finish=False)[0]] == [100_000, 10]


def test_requests_after_a_read_may_skip_its_responses_sequence_numbers():
    w = Wire()
    w.packet(READ_REQUEST, A, B, QB, 10, dma_bytes=4000, has=1)
    w.psn[A, B, QB] = 14
    w.message(SEND, A, B, QB, 64)
    messages, holes = rows(w)
    assert brief(messages) == [(FRAMING_RDMA, 0, A, B, 64, 2, 2)]
    assert not holes


def test_a_read_asked_for_again_in_the_middle_is_one_message():
    w = Wire()
    for op, psn in ((13, 0), (14, 1), (13, 2), (15, 3)):
        w.packet(op, B, A, QA, psn, 1000)
    assert brief(rows(w)[0]) == [(FRAMING_RDMA, 0, B, A, 4000, 1, 4)]


def test_copies_after_a_loss_behind_the_tap_count_once():
    w = Wire()
    w.clear(A, B, QB)
    sent = w.data(B, A, QA, 5000)
    w.nak(A, B, QB, sent[2]["psn"])
    for row in sent[2:]:
        w.us += 1
        w.rows.append({**row, "ts_ns": START + w.us * US})
    w.data(B, A, QA, 600)
    messages, holes = rows(w)
    assert brief(messages)[1:] == [(3, 0, B, A, 5000, 2, 6), (3, 0, B, A, 600, 11, 11)]
    assert not holes


def loss_in_front(nak=True, resend=True, after=600, wait_us=0):
    """Packet 2 of 5 never reaches the tap; the rest does, with a second message; then go-back-N."""
    w = Wire()
    w.clear(A, B, QB)
    sent = w.data(B, A, QA, 5000)
    late = w.data(B, A, QA, 300)
    w.rows.remove(sent[2])
    if nak:
        w.nak(A, B, QB, sent[2]["psn"])
    w.us += wait_us
    if resend:
        for row in [*sent[2:], *late]:
            w.us += 1
            w.rows.append({**row, "ts_ns": START + w.us * US})
    w.us += 5_000
    w.data(B, A, QA, after)
    return w


def test_a_loss_in_front_of_the_tap_ends_messages_when_the_copies_come():
    messages, holes = rows(loss_in_front())
    assert brief(messages)[1:] == [
        (3, 0, B, A, 5000, 2, 11),
        (3, 0, B, A, 300, 12, 12),
        (3, 0, B, A, 600, 5013, 5013),
    ]
    assert not holes


def test_a_nak_is_waited_for_however_long_the_copies_take():
    messages, holes = rows(loss_in_front(wait_us=400_000))
    assert [m["nbytes"] for m in messages] == [64, 5000, 300, 600]
    assert messages[1]["end_ns"] == 400_011
    assert not holes


def test_a_loss_of_the_capture_is_a_hole_and_shifts_nothing():
    messages, holes = rows(loss_in_front(nak=False, resend=False))
    assert [m["nbytes"] for m in messages] == [64, 5000, 300, 600]
    assert [m["end_ns"] for m in messages] == [1, 6, 7, 5008]
    assert [(h["seq"], h["nbytes"], h["src"], h["dst"]) for h in holes] == [(2, 1024, B, A)]


def test_a_message_whose_end_was_lost_is_given_without_end():
    w = Wire()
    w.clear(A, B, QB)
    sent = w.data(B, A, QA, 5000)
    w.data(B, A, QA, 300)
    w.rows.remove(sent[-1])
    w.us += 5_000
    w.data(B, A, QA, 400)
    messages, holes = rows(w)
    assert brief(messages)[1:] == [
        (3, 0, B, A, 4096, 2, 0),
        (3, 0, B, A, 300, 7, 7),
        (3, 0, B, A, 400, 5008, 5008),
    ]
    assert len(holes) == 1


def test_sequence_numbers_wrap():
    w = Wire()
    w.psn[B, A, QA] = (1 << 24) - 2
    w.clear(A, B, QB)
    w.data(B, A, QA, 5000)
    w.data(B, A, QA, 100)
    messages, holes = rows(w)
    assert [m["nbytes"] for m in messages] == [64, 5000, 100]
    assert not holes


def test_a_message_under_way_when_the_capture_begins_has_no_row():
    w = lossless()
    del w.rows[:3]
    assert [m["nbytes"] for m in rows(w)[0]] == [48, 800]


def test_a_message_under_way_when_it_ends_has_no_end():
    w = lossless()
    w.data(B, A, QA, 3000)
    w.rows.pop()
    assert brief(rows(w)[0])[-1] == (3, 0, B, A, 2048, 7, 0)


def test_a_queue_pair_number_used_again_starts_anew():
    w = Wire()
    w.psn[B, A, QA] = 0x800000
    w.clear(A, B, QB)
    w.data(B, A, QA, 2000)
    w.psn[B, A, QA] = 0
    w.data(B, A, QA, 700)
    messages, holes = rows(w)
    assert [m["nbytes"] for m in messages] == [64, 2000, 700]
    assert not holes


def test_congestion_notifications_and_datagrams_make_no_messages():
    w = Wire()
    w.packet(0x81, A, B, QB, 0)
    w.packet(0x64, A, B, 1, 0, 256)
    w.packet(0x11, A, B, QB, 0)
    assert rows(w) == ([], [])


def test_rows_with_a_fault_are_passed_over():
    w = lossless()
    for row in w.rows:
        row["fault"] = 3
    assert rows(w) == ([], [])


def test_more_queue_pairs_than_lanes_are_evicted_and_nothing_is_invented():
    w = Wire()
    for n in range(400):
        w.message(SEND, A, B, 1000 + n, 64)
        w.packet(0, A, B, 1000 + n, 1, 1024)
    framer = RoceMessages(lanes=8)
    parts = [framer.feed(w.table()), framer.finish()]
    sizes = [m["nbytes"] for m in listed(parts, "messages")]
    assert sorted(sizes) == [64] * 400 + [1024] * 400
    assert framer.counters()["lanes_evicted"] == 392


PACKETS = st.lists(
    st.tuples(
        st.sampled_from([*range(0x18), 0x20, 0x26, 0x2A, 0x64, 0x81, 0xFF]),
        st.sampled_from([(A, B), (B, A)]),
        st.sampled_from([QA, QB]),
        st.one_of(st.integers(0, 12), st.integers(0, (1 << 24) - 1)),
        st.sampled_from([0, 48, 64, 1024, 4096]),
        st.sampled_from([0, 1024, 0xFFFFFFFF]),
        st.sampled_from([1, 2_000_000, 70_000_000_000]),
        st.sampled_from([0x60, 0x1F, 0]),
    ),
    max_size=60,
)


def hostile(packets):
    w = Wire()
    for op, (src, dst), qp, psn, size, immediate, wait, syndrome in packets:
        w.us += wait // US
        w.packet(op, src, dst, qp, psn, size, immediate=immediate, syndrome=syndrome)
    return w


@given(PACKETS, st.lists(st.integers(0, 60), max_size=6), st.sampled_from([8, 4096]))
@settings(max_examples=150, deadline=None)
def test_any_packets_in_any_split_give_the_same_rows(packets, cuts, lanes):
    table = hostile(packets).table()
    whole = RoceMessages(lanes)
    want = [whole.feed(table), whole.finish()]
    framer = RoceMessages(lanes)
    edges = sorted({0, len(table), *(c for c in cuts if c < len(table))})
    got = [framer.feed(table.take(slice(lo, hi))) for lo, hi in itertools.pairwise(edges)]
    got.append(framer.finish())
    for name in ("messages", "holes"):
        assert listed(got, name) == listed(want, name)
    messages = listed(want, "messages")
    assert len(messages) <= len(table)
    assert {m["framing"] for m in messages} <= {FRAMING_NCCL_ROCE, FRAMING_RDMA}
    assert {m["kind"] for m in messages} <= {0, CLEAR_TO_SEND}
    assert all(m["end_ns"] == 0 or m["end_ns"] >= m["ts_ns"] for m in messages)


@given(st.lists(st.tuples(st.integers(0, 6000), st.booleans()), min_size=1, max_size=12), st.data())
@settings(max_examples=100, deadline=None)
def test_go_back_n_from_anywhere_leaves_the_same_messages(plan, data):
    """Whatever packet is lost in front of or behind the tap, the sizes are those that were sent."""
    w = Wire()
    w.psn[B, A, QA] = data.draw(st.integers(0, (1 << 24) - 1))
    w.clear(A, B, QB)
    sent = []
    for size, _ in plan:
        sent += w.data(B, A, QA, size)
    lost = data.draw(st.integers(0, len(sent) - 1))
    in_front = data.draw(st.booleans())
    more = data.draw(st.integers(lost, len(sent) - 1))
    seen = [*sent[:lost], *([] if in_front else [sent[lost]]), *sent[lost + 1 : more + 1]]
    del w.rows[1:]
    w.rows += seen
    w.us = 1 + len(sent)
    if in_front:
        w.nak(A, B, QB, sent[lost]["psn"])
    for row in sent[lost:]:
        w.us += 1
        w.rows.append({**row, "ts_ns": START + w.us * US})
    messages, holes = rows(w)
    # With the first packet out of sight the lane begins later: a sequence has no known start.
    want = [size for size, _ in plan]
    got = [m["nbytes"] for m in messages[1:]]
    assert got == want[len(want) - len(got) :] if lost == 0 and in_front else got == want
    assert not holes


def test_a_table_of_the_parser_is_not_changed():
    table = lossless().table()
    before = {n: table[n].copy() for n in ROCE.columns}
    RoceMessages().feed(table)
    assert all(np.array_equal(before[n], table[n]) for n in ROCE.columns)


def test_an_empty_table_makes_nothing():
    framer = RoceMessages()
    assert len(framer.feed(Table(ROCE, {}))["messages"]) == 0
    assert len(framer.finish()["messages"]) == 0
