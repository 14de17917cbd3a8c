"""pcapng files from their parts: the inverse of `wire.pcapng`, for the lab and for tests.

Pure: values in, bytes out; what is returned is to be written in that order. Little-endian unless asked.
"""

from __future__ import annotations

import struct

COMMENT, IF_NAME, IF_TSRESOL, IF_TSOFFSET, EPB_FLAGS, ISB_IFDROP, SHB_USERAPPL = 1, 2, 9, 14, 2, 5, 4


class PcapngWriter:
    """One section: `header`, then `interface` for each, then packets in any order."""

    def __init__(self, *, big_endian: bool = False) -> None:
        self._order = ">" if big_endian else "<"
        self._interfaces: list[tuple[int, int]] = []

    def block(self, kind: int, body: bytes, options: list[tuple[int, bytes]] | None = None) -> bytes:
        """Return a block of any type: body padded to 4 bytes, options, both lengths."""
        body += b"\0" * (-len(body) % 4)
        for code, value in options or []:
            body += struct.pack(self._order + "HH", code, len(value)) + value + b"\0" * (-len(value) % 4)
        if options:
            body += b"\0\0\0\0"
        size = struct.pack(self._order + "I", 12 + len(body))
        return struct.pack(self._order + "I", kind) + size + body + size

    def header(self, application: str = "skewscope") -> bytes:
        """Return the section header; interfaces are numbered from 0 again behind it."""
        self._interfaces = []
        body = struct.pack(self._order + "IHHq", 0x1A2B3C4D, 1, 0, -1)
        return self.block(0x0A0D0D0A, body, [(SHB_USERAPPL, application.encode())])

    def interface(
        self,
        name: str,
        *,
        link: int = 1,
        snap_length: int = 0,
        resolution: int = 9,
        offset_s: int = 0,
        comment: str = "",
    ) -> bytes:
        """Return an interface description; its number is how many came before it in the section.

        snap_length 0 = frames are never cut; `resolution` is the if_tsresol byte: 9 = ns, 0x80 + k = 2^-k s;
        `offset_s` is taken off all times that are written.
        """
        self._interfaces.append((resolution, offset_s))
        options = [(IF_NAME, name.encode()), (IF_TSRESOL, bytes([resolution]))]
        if offset_s:
            options.append((IF_TSOFFSET, struct.pack(self._order + "q", offset_s)))
        if comment:
            options.append((COMMENT, comment.encode()))
        return self.block(1, struct.pack(self._order + "HHI", link, 0, snap_length), options)

    def packet(
        self,
        ts_ns: int,
        frame: bytes,
        wire_bytes: int,
        interface: int = 0,
        *,
        direction: int = 0,
        comment: str = "",
    ) -> bytes:
        """Return an enhanced packet block; direction: 0 unknown, 1 inbound, 2 outbound."""
        resolution, offset_s = self._interfaces[interface]
        ns, power = ts_ns - offset_s * 10**9, resolution & 0x7F
        ticks = (ns << power if resolution & 0x80 else ns * 10**power) // 10**9
        head = struct.pack(
            self._order + "IIIII",
            interface,
            ticks >> 32 & 0xFFFFFFFF,
            ticks & 0xFFFFFFFF,
            len(frame),
            wire_bytes,
        )
        options = [(EPB_FLAGS, struct.pack(self._order + "I", direction))] if direction else []
        if comment:
            options.append((COMMENT, comment.encode()))
        return self.block(6, head + frame, options)

    def statistics(self, interface: int, ts_ns: int, dropped: int) -> bytes:
        """Return an interface statistics block with the number of packets dropped since the start."""
        resolution, offset_s = self._interfaces[interface]
        ns, power = ts_ns - offset_s * 10**9, resolution & 0x7F
        ticks = (ns << power if resolution & 0x80 else ns * 10**power) // 10**9
        body = struct.pack(self._order + "III", interface, ticks >> 32 & 0xFFFFFFFF, ticks & 0xFFFFFFFF)
        return self.block(5, body, [(ISB_IFDROP, struct.pack(self._order + "Q", dropped))])
