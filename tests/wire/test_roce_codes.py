"""Opcode tables, names, syndromes and RNR timers against the specification's tables."""

import pytest

from skewscope.wire import roce_build as rb
from skewscope.wire.roce_codes import HEADERS, LENGTHS, RNR_MS, opcode_name, syndrome_text


def test_known_opcodes():
    known = {o for o in range(256) if HEADERS[o]}
    expected = {*range(21), 22, 23, 28, 29}  # RC; 21 exists for RD only
    expected |= {*range(0x20, 0x2C)} | {*range(0x40, 0x56)} | {0x64, 0x65, 0x81}
    expected |= {*range(0xA0, 0xB5), 0xB6, 0xB7, 0xBC, 0xBD}
    assert known == expected


def test_headers_are_whole_words():
    assert all(length % 4 == 0 for length in LENGTHS)
    assert max(LENGTHS) == 40  # RD atomics: RDETH, DETH, AtomicETH


@pytest.mark.parametrize(
    ("opcode", "name"),
    [
        (0x0A, "RC WRITE Only"),
        (0x2B, "UC WRITE Only with immediate"),
        (0x64, "UD SEND Only"),
        (0xAC, "XRC READ Request"),
        (0x81, "CNP"),
        (0x80, "opcode 0x80"),
        (0x15, "opcode 0x15"),
        (300, "opcode 0x12c"),
    ],
)
def test_names(opcode, name):
    assert opcode_name(opcode) == name


def test_every_known_opcode_has_a_name():
    assert not [o for o in range(256) if HEADERS[o] and opcode_name(o).startswith("opcode")]


@pytest.mark.parametrize(
    ("syndrome", "text"),
    [
        (0x1F, "ACK"),
        (0x00, "ACK"),
        (0x20, "RNR NAK, retry after 655.36 ms"),
        (0x2C, "RNR NAK, retry after 0.64 ms"),
        (0x3F, "RNR NAK, retry after 491.52 ms"),
        (0x60, "NAK, sequence error"),
        (0x62, "NAK, remote access error"),
        (0x67, "NAK, reserved code 7"),
        (0x40, "reserved syndrome 0x40"),
        (0x9F, "reserved syndrome 0x9f"),
    ],
)
def test_syndromes(syndrome, text):
    assert syndrome_text(syndrome) == text


def test_rnr_timers_grow_with_their_code_but_for_zero():
    assert len(RNR_MS) == 32
    assert list(RNR_MS[1:]) == sorted(RNR_MS[1:])
    assert (rb.rnr_syndrome(0.64), rb.rnr_syndrome(0.5), rb.rnr_syndrome(600)) == (0x2C, 0x2C, 0x20)
