import pytest

from skewscope.sources import protobufs

pytest.importorskip("google.protobuf", reason="protobuf (the extra `metrics`) is not installed")


def test_every_message_is_made():
    for name in protobufs.MESSAGES:
        assert protobufs.message(name)().SerializeToString() == b""


def test_the_bytes_are_those_of_the_specification():
    # One series of prompb: label a = "b", sample 1.0 at 2 ms.
    data = bytes.fromhex("0a15 0a06 0a0161 120162 120b 09000000000000f03f 1002".replace(" ", ""))
    request = protobufs.parse("WriteRequest", data)
    (series,) = request.timeseries
    assert [(pair.name, pair.value) for pair in series.labels] == [("a", "b")]
    assert [(s.value, s.timestamp) for s in series.samples] == [(1.0, 2)]


def test_what_is_no_message_is_an_error_of_value():
    with pytest.raises(ValueError, match="not a WriteRequest"):
        protobufs.parse("WriteRequest", b"\x0a\xff")
    for text in ("{", "3", '{"resourceMetrics": 3}', "[" * 5000):
        with pytest.raises(ValueError, match="not a Export"):
            protobufs.parse_json("ExportMetricsServiceRequest", text)
