"""InfiniBand transport codes: opcodes and the headers that each brings, AETH syndromes, RNR timers.

Source: InfiniBand Architecture Specification, volume 1, chapter 9 (transport layer) and annexes A14
(XRC), A17 (RoCEv2: CNP), A19 (FLUSH and ATOMIC WRITE).
"""

from __future__ import annotations

import numpy as np

from skewscope.core.tables import Array

RC, UC, RD, UD, CNP, XRC = 0x00, 0x20, 0x40, 0x60, 0x81, 0xA0
"""First opcode of each transport service; the congestion notification packet is one opcode."""

RETH, AETH, IMMEDIATE, DETH, GRH = 1, 2, 4, 8, 16
"""Bits of the `has` column of the `roce` table."""
RDETH, XRCETH, ATOMIC_ETH, ATOMIC_ACK_ETH, IETH, FETH, CNP_BLANK, KNOWN = (1 << k for k in range(5, 13))
"""Headers of an opcode which have no column: their lengths count. KNOWN = the opcode exists."""

SIZES = {
    RETH: 16, AETH: 4, IMMEDIATE: 4, DETH: 8, RDETH: 4, XRCETH: 4, ATOMIC_ETH: 28, ATOMIC_ACK_ETH: 8,
    IETH: 4, FETH: 4, CNP_BLANK: 16,
}  # fmt: skip
"""Length in bytes of each header behind the BTH."""

SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM = range(6)
WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM = range(6, 12)
READ_REQUEST, READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY, ACKNOWLEDGE, ATOMIC_ACK = range(12, 19)
COMPARE_SWAP, FETCH_ADD, RESYNC, SEND_LAST_INV, SEND_ONLY_INV = range(19, 24)
FLUSH, ATOMIC_WRITE = 28, 29

NAMES = {
    0: "SEND First", 1: "SEND Middle", 2: "SEND Last", 3: "SEND Last with immediate", 4: "SEND Only",
    5: "SEND Only with immediate", 6: "WRITE First", 7: "WRITE Middle", 8: "WRITE Last",
    9: "WRITE Last with immediate", 10: "WRITE Only", 11: "WRITE Only with immediate", 12: "READ Request",
    13: "READ Response First", 14: "READ Response Middle", 15: "READ Response Last",
    16: "READ Response Only", 17: "Acknowledge", 18: "ATOMIC Acknowledge", 19: "Compare & Swap",
    20: "Fetch & Add", 21: "RESYNC", 22: "SEND Last with invalidate", 23: "SEND Only with invalidate",
    28: "FLUSH", 29: "ATOMIC WRITE",
}  # fmt: skip
"""Names of operations: the lower five bits of an opcode."""

_SERVICES = {RC: "RC", UC: "UC", RD: "RD", UD: "UD", XRC: "XRC"}

_OWN = {
    SEND_LAST_IMM: IMMEDIATE, SEND_ONLY_IMM: IMMEDIATE, WRITE_FIRST: RETH, WRITE_LAST_IMM: IMMEDIATE,
    WRITE_ONLY: RETH, WRITE_ONLY_IMM: RETH | IMMEDIATE, READ_REQUEST: RETH, READ_FIRST: AETH,
    READ_LAST: AETH, READ_ONLY: AETH, ACKNOWLEDGE: AETH, ATOMIC_ACK: AETH | ATOMIC_ACK_ETH,
    COMPARE_SWAP: ATOMIC_ETH, FETCH_ADD: ATOMIC_ETH, SEND_LAST_INV: IETH, SEND_ONLY_INV: IETH,
    FLUSH: FETH | RETH, ATOMIC_WRITE: RETH,
}  # fmt: skip
"""Headers that an operation brings in every service which has it."""

_RESPONSES = range(READ_FIRST, ATOMIC_ACK + 1)
_OPERATIONS = {
    RC: (*range(RESYNC), SEND_LAST_INV, SEND_ONLY_INV, FLUSH, ATOMIC_WRITE),
    UC: tuple(range(READ_REQUEST)),
    RD: tuple(range(RESYNC + 1)),
    UD: (SEND_ONLY, SEND_ONLY_IMM),
    XRC: (*range(RESYNC), SEND_LAST_INV, SEND_ONLY_INV, FLUSH, ATOMIC_WRITE),
}


def _headers() -> Array:
    table = np.zeros(256, np.int64)
    for service, operations in _OPERATIONS.items():
        for operation in operations:
            request = operation not in _RESPONSES
            extra = {UD: DETH, XRC: XRCETH if request else 0, RD: RDETH | (DETH if request else 0)}
            table[service | operation] = KNOWN | _OWN.get(operation, 0) | extra.get(service, 0)
    table[CNP] = KNOWN | CNP_BLANK
    table.flags.writeable = False
    return table


def _lengths(headers: Array) -> Array:
    table = np.array([sum(size for bit, size in SIZES.items() if int(h) & bit) for h in headers], np.int64)
    table.flags.writeable = False
    return table


HEADERS: Array = _headers()
"""Header bits by opcode, int64 (256,); 0 = no such opcode."""

LENGTHS: Array = _lengths(HEADERS)
"""Bytes of the headers between BTH and payload by opcode, int64 (256,)."""


def opcode_name(opcode: int) -> str:
    """Return a name as in the specification, such as "RC WRITE Only"."""
    if opcode == CNP:
        return "CNP"
    if not 0 <= opcode < 256 or not HEADERS[opcode]:
        return f"opcode {opcode:#04x}"
    return f"{_SERVICES[opcode & 0xE0]} {NAMES[opcode & 0x1F]}"


ACK_KIND, RNR_KIND, NAK_KIND = 0, 1, 3
"""Kinds of an AETH syndrome: its bits 6 and 5; 2 is reserved."""
NAK_CODES = {
    0: "sequence error",
    1: "invalid request",
    2: "remote access error",
    3: "remote operational error",
    4: "invalid RD request",
}
"""Meanings of the lower five bits of a NAK syndrome."""

RNR_MS: tuple[float, ...] = (
    655.36, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.32, 0.48, 0.64, 0.96, 1.28, 1.92,
    2.56, 3.84, 5.12, 7.68, 10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76,
    327.68, 491.52,
)  # fmt: skip
"""Waiting time in ms by RNR NAK timer code (the lower five bits of the syndrome)."""


def syndrome_text(syndrome: int) -> str:
    """Say what an AETH syndrome means."""
    kind, code = syndrome >> 5 & 3, syndrome & 31
    if syndrome > 127 or kind == 2:
        return f"reserved syndrome {syndrome:#04x}"
    if kind == ACK_KIND:
        return "ACK"
    if kind == RNR_KIND:
        return f"RNR NAK, retry after {RNR_MS[code]:g} ms"
    return f"NAK, {NAK_CODES.get(code, f'reserved code {code}')}"
