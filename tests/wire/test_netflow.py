import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.wire import netflow
from skewscope.wire.netflow import MAPPED, MAX_TEMPLATES, NetflowDecoder, header, looks_right

SECONDS = 1_700_000_000
FIELDS = [(8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (6, 1), (5, 1), (1, 4), (2, 4), (22, 4), (21, 4)]
RECORD = bytes([10, 0, 0, 1, 10, 0, 0, 2]) + struct.pack(
    ">HHBBBIIII", 4000, 8000, 6, 0x12, 0x68, 1500, 3, 1000, 4000
)


def sets(*parts):
    return b"".join(struct.pack(">HH", number, len(body) + 4) + body for number, body in parts)


def v9(*parts, up_ms=5000, domain=7):
    body = sets(*parts)
    return struct.pack(">HHIIII", 9, len(parts), up_ms, SECONDS, 1, domain) + body


def ipfix(*parts, domain=7):
    body = sets(*parts)
    return struct.pack(">HHIII", 10, 16 + len(body), SECONDS, 1, domain) + body


def template(number, fields):
    return struct.pack(">HH", number, len(fields)) + b"".join(
        struct.pack(">HH", *f) if len(f) == 2 else struct.pack(">HHI", f[0] | 0x8000, f[1], f[2])
        for f in fields
    )


def test_nine_with_its_template():
    decoder = NetflowDecoder()
    assert len(decoder.feed(v9((0, template(256, FIELDS))), "a")) == 0
    rows = decoder.feed(v9((256, RECORD * 2 + bytes(3))), "a")
    assert len(rows) == 2
    row = rows[0]
    assert (row["src_low"], row["dst_low"]) == (MAPPED | 0x0A000001, MAPPED | 0x0A000002)
    assert (row["sport"], row["dport"], row["proto"], row["flags"], row["dscp"]) == (4000, 8000, 6, 0x12, 26)
    assert (row["nbytes"], row["packets"], row["sampling"], row["timed"]) == (1500, 3, 1, 1)
    # The machine came up 5 s before the export; the flow began 1 s and ended 4 s after that.
    assert row["first_ns"] == (SECONDS - 4) * 10**9
    assert row["last_ns"] == (SECONDS - 1) * 10**9


def test_a_template_is_of_one_exporter_domain_and_version():
    decoder = NetflowDecoder()
    decoder.feed(v9((0, template(256, FIELDS))), "a")
    for data, exporter in (
        (v9((256, RECORD)), "b"),
        (v9((256, RECORD), domain=8), "a"),
        (ipfix((256, RECORD)), "a"),
    ):
        assert len(decoder.feed(data, exporter)) == 0
    assert decoder.counts == {"data sets without their template": 3}


def test_ipfix_with_addresses_of_six_milliseconds_and_fields_of_a_vendor():
    fields = [(27, 16), (28, 16), (99, 4, 12345), (152, 8), (153, 8), (85, 8), (86, 8), (195, 1)]
    record = (
        b"\xfd"
        + bytes(14)
        + b"\x01"
        + b"\xfd"
        + bytes(14)
        + b"\x02"
        + bytes(4)
        + struct.pack(">QQQQB", SECONDS * 1000 - 250, SECONDS * 1000, 10**10, 10**7, 46)
    )
    decoder = NetflowDecoder()
    (row,) = decoder.feed(ipfix((2, template(300, fields)), (300, record)), "a")
    assert (row["src_high"], row["src_low"], row["dst_low"]) == (0xFD << 56, 1, 2)
    assert (row["first_ns"], row["last_ns"]) == (SECONDS * 10**9 - 250_000_000, SECONDS * 10**9)
    assert (row["nbytes"], row["packets"], row["dscp"]) == (1e10, 1e7, 46)


def test_fields_of_variable_length_are_walked():
    fields = [(8, 4), (371, 0xFFFF), (1, 4)]
    long = b"\xff" + struct.pack(">H", 300) + bytes(300)
    body = (
        bytes([1, 2, 3, 4])
        + b"\x02ab"
        + struct.pack(">I", 5)
        + bytes([1, 2, 3, 5])
        + long
        + struct.pack(">I", 6)
    )
    rows = NetflowDecoder().feed(ipfix((2, template(300, fields)), (300, body)), "a")
    assert rows["nbytes"].tolist() == [5, 6]
    assert rows["src_low"].tolist() == [MAPPED | 0x01020304, MAPPED | 0x01020305]


def test_options_tell_the_sampling_rate():
    decoder = NetflowDecoder()
    decoder.feed(v9((0, template(256, FIELDS))), "a")
    options = struct.pack(">HHH", 257, 4, 8) + struct.pack(">HHHHHH", 1, 4, 34, 4, 35, 1)
    decoder.feed(v9((1, options), (257, struct.pack(">IIB", 0, 512, 1))), "a")
    assert decoder.feed(v9((256, RECORD)), "a")["sampling"].tolist() == [512]
    scoped = struct.pack(">HHH", 400, 2, 1) + struct.pack(">HHHH", 149, 4, 305, 4)
    decoder.feed(ipfix((3, scoped), (400, struct.pack(">II", 7, 64))), "a")
    assert decoder.sampling["a", 7] == 64


def test_templates_are_bounded():
    decoder = NetflowDecoder()
    for domain in range(MAX_TEMPLATES + 10):
        decoder.feed(v9((0, template(256, FIELDS)), domain=domain), "a")
    assert len(decoder.templates) == MAX_TEMPLATES
    assert decoder.counts == {"templates dropped for room": 10}


def test_a_template_of_no_fields_withdraws_one():
    decoder = NetflowDecoder()
    decoder.feed(ipfix((2, template(300, FIELDS))), "a")
    decoder.feed(ipfix((2, template(300, []))), "a")
    assert not decoder.templates


def test_a_template_of_empty_fields_has_no_records():
    decoder = NetflowDecoder()
    fields = [(8, 0), (12, 0)]
    assert len(decoder.feed(ipfix((2, template(300, fields)), (300, RECORD)), "a")) == 0
    assert len(decoder.feed(v9((0, template(300, fields)), (300, RECORD)), "a")) == 0


@pytest.mark.parametrize(
    "data", [v9((0, template(256, FIELDS))), ipfix((2, template(256, FIELDS)), (256, RECORD))]
)
def test_what_looks_right(data):
    assert looks_right(data)
    assert not looks_right(data[:-5])
    assert not looks_right(b"\x00\x05" + data[2:])
    assert header(data[:10]) is None


@settings(deadline=None)
@given(
    st.binary(max_size=80),
    st.binary(max_size=60),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 0xFFFF)), max_size=8),
)
def test_any_bytes_and_any_template_are_taken(data, body, fields):
    decoder = NetflowDecoder()
    for exporter in ("a", "b"):
        decoder.feed(data, exporter)
        decoder.feed(b"\x00\x0a" + data, exporter)
        for rows in (
            decoder.feed(ipfix((2, template(300, fields)), (300, body)), exporter),
            decoder.feed(v9((0, template(300, fields)), (300, body)), exporter),
            decoder.feed(v9((1, body), (0, body), (300, body)), exporter),
        ):
            assert rows.dtype == netflow.FLOW
            assert np.isfinite(rows["nbytes"]).all()
