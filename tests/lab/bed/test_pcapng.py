"""From the bed's captures to pcapng: what is kept, where it ends, how it reads back."""

import struct

import pytest

from skewscope.lab.bed.pcapng import from_pcap
from skewscope.wire.pcapng_write import PcapngWriter

HEAD = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)
FRAME = bytes(range(60))


def capture(*times_ns, frame=FRAME, wire=1514):
    return HEAD + b"".join(
        struct.pack("<IIII", t // 10**9, t % 10**9, len(frame), wire) + frame for t in times_ns
    )


def expected(times_ns, frame=FRAME, snap=0, last=None):
    writer = PcapngWriter()
    out = writer.header("skewscope lab bed") + writer.interface("p-n0", snap_length=snap)
    out += b"".join(writer.packet(t, frame[: snap or None], 1514) for t in times_ns)
    return out + writer.statistics(0, last or times_ns[-1], 7)


def test_frames_behind_the_end_are_left_out():
    times = (1_000_000_005, 2_000_000_000, 3_000_000_000)
    data, first_ns = from_pcap(capture(*times), "p-n0", 2_500_000_000, 0, 7)
    assert data == expected(times[:2])
    assert first_ns == 1_000_000_005


@pytest.mark.parametrize("snap", [1, 31, 32, 33, 60, 200])
def test_frames_are_cut_to_the_snap_length(snap):
    data, _ = from_pcap(capture(5, 10**18), "p-n0", 2 * 10**18, snap, 7)
    assert data == expected((5, 10**18), snap=snap)


def test_small_disorder_at_the_end_keeps_everything_up_to_the_last_frame_in_time():
    times = (1_000_000_000, 2_000_000_010, 2_000_000_000)
    assert from_pcap(capture(*times), "p-n0", 2_000_000_005, 0, 7)[0] == expected(times)


def test_a_record_cut_short_is_left_out():
    times = (1_000_000_000, 2_000_000_000)
    assert from_pcap(capture(*times)[:-1], "p-n0", 9_000_000_000, 0, 7)[0] == expected(times[:1])
    assert from_pcap(capture(*times)[:-70], "p-n0", 9_000_000_000, 0, 7)[0] == expected(times[:1])


def test_an_empty_capture_has_no_first_time():
    for data in (HEAD, capture(7_000_000_000)):
        out, first_ns = from_pcap(data, "p-n0", 5, 0)
        assert first_ns == 0
        assert out.count(b"p-n0") == 1


@pytest.mark.parametrize("data", [b"", b"nonsense", HEAD[:10], b"\xd4\xc3\xb2\xa1" + HEAD[4:]])
def test_anything_else_is_refused(data):
    with pytest.raises(ValueError, match="not a capture"):
        from_pcap(data, "p-n0", 5, 0)
