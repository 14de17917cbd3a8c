"""Cutting captures so that they end together."""

import struct

from skewscope.lab.bed.taps import cut

HEAD = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)


def capture(*times_ns):
    return HEAD + b"".join(
        struct.pack("<IIII", t // 10**9, t % 10**9, 3, 60) + bytes([k, k, k]) for k, t in enumerate(times_ns)
    )


def test_frames_behind_the_end_are_left_out():
    whole = capture(1_000_000_005, 2_000_000_000, 3_000_000_000)
    data, first_ns = cut(whole, 2_500_000_000)
    assert data == whole[: len(HEAD) + 2 * 19]
    assert first_ns == 1_000_000_005


def test_small_disorder_at_the_end_keeps_everything_up_to_the_last_frame_in_time():
    whole = capture(1_000_000_000, 2_000_000_010, 2_000_000_000)
    assert cut(whole, 2_000_000_005)[0] == whole


def test_a_record_cut_short_is_left_out():
    whole = capture(1_000_000_000, 2_000_000_000)
    assert cut(whole[:-1], 9_000_000_000)[0] == whole[:-19]


def test_an_empty_or_foreign_file_stays_as_it_is():
    assert cut(HEAD, 5) == (HEAD, 0)
    assert cut(b"nonsense", 5) == (b"nonsense", 0)
    assert cut(capture(7_000_000_000), 5) == (HEAD, 0)
