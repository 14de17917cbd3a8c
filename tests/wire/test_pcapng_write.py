"""What is written, an independent reader reads."""

import io

import dpkt
import pytest

from skewscope.wire.pcapng_write import PcapngWriter

NOW = 1_700_000_000_123_456_789


@pytest.mark.parametrize(("big", "resolution", "unit"), [(False, 9, 1), (True, 9, 1), (False, 6, 1000)])
def test_another_reader_agrees(big, resolution, unit):
    writer = PcapngWriter(big_endian=big)
    data = writer.header() + writer.interface("eth0", snap_length=128, resolution=resolution, comment="left")
    data += writer.packet(NOW, b"first", 60, comment="a comment", direction=2)
    data += writer.packet(NOW + 5_000, b"second", 6)
    reader = dpkt.pcapng.Reader(io.BytesIO(data))
    assert (reader.datalink(), reader.snaplen) == (1, 128)
    found = [(ts, bytes(frame)) for ts, frame in reader]
    assert [f for _, f in found] == [b"first", b"second"]
    assert [float(t) for t, _ in found] == pytest.approx(
        [NOW / 1e9, (NOW + 5_000) / 1e9], abs=unit * 1e-9 * 300
    )


def test_blocks_are_padded_and_carry_their_length_twice():
    writer = PcapngWriter()
    writer.interface("eth0")
    for size in range(5):
        block = writer.packet(NOW, b"x" * size, size)
        assert len(block) % 4 == 0
        assert block[4:8] == block[-4:] == len(block).to_bytes(4, "little")


def test_a_section_numbers_its_interfaces_anew():
    writer = PcapngWriter()
    writer.header()
    writer.interface("a")
    writer.interface("b")
    assert writer.packet(0, b"", 0, 1)
    writer.header()
    with pytest.raises(IndexError):
        writer.packet(0, b"", 0, 0)
