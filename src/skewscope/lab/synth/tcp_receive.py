"""The receiving half of a TCP endpoint: reassembly, acknowledgements and the window.

Acknowledgements as in Linux (net/ipv4/tcp_input.c, tcp.c): at once when a gap is open or a
duplicate came, at once when the application read and the peer is not being answered (or two
pushes are pending), else with the next data or after 40 ms.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from skewscope.wire.build import ACK

if TYPE_CHECKING:
    from skewscope.lab.synth.tcp import Endpoint

DELAYED_ACK_NS = 40_000_000
TICK_NS = 4_000_000
"""A kernel timer fires on a tick (HZ = 250)."""
FULL_BYTES = 1_000
"""More unacknowledged bytes than this are acknowledged without waiting for the application."""


class Receiver:
    """Bytes in, in order and out of order."""

    def __init__(self, endpoint: Endpoint, buffer: int) -> None:
        self._ep = endpoint
        self._buffer = buffer
        self._silly = min(buffer // 2, endpoint.mss)
        self.nxt = 0
        self.acked = 0
        self._read_to = 0
        self._edge = buffer
        self._early: list[tuple[int, int]] = []
        self._marks: deque[tuple[int, object]] = deque()
        self._pushes = 0
        self._answering = False
        self._last_data_ns = 0
        self._delayed_ns = 0
        self._timer_set = False
        self.opened = False
        self.fin = False
        self._fin_seq = -1
        self._told = False
        self.blocked_until_ns = 0
        """The application reads nothing before this time."""

    def begin(self, seq: int) -> None:
        """Set the first sequence number expected."""
        self.nxt = self.acked = self._read_to = seq
        self._edge = seq + self._buffer

    def expect(self, end: int, message: object) -> None:
        """Note that a message ends before sequence number `end`."""
        if message is not None:
            self._marks.append((end, message))

    def acknowledge(self) -> tuple[int, int]:
        """Return (acknowledgement, window) for a segment that leaves now; nothing is owed after it."""
        self.acked = self.nxt
        self._pushes = 0
        self._delayed_ns = 0
        nxt = self.nxt
        window = self._buffer - (nxt - self._read_to)
        # Silly window avoidance (RFC 1122, section 4.2.3.3); a window never shrinks from the right.
        if window >= self._silly and nxt + window > self._edge:
            self._edge = nxt + window
        return nxt, self._edge - nxt

    def on_data(self, seq: int, size: int, fin: bool) -> None:
        """Take a segment's payload."""
        end = seq + size
        if fin:
            self._fin_seq = end
            end += 1
        now = self._ep.loop.now
        if end <= self.nxt:
            self._ep.transmit(self._ep.sender.nxt, ACK, sacks=((seq, end), *self._blocks(2)))
            return
        if seq > self.nxt:
            self._keep(seq, end)
            self._ep.transmit(self._ep.sender.nxt, ACK, sacks=self._blocks(3, seq))
            return
        gap = bool(self._early)
        self.nxt = end
        self._merge()
        if self._fin_seq >= 0 and self.nxt > self._fin_seq:
            self.fin = True
        self._pushes += 1
        self._last_data_ns = now
        if gap or self.fin or self.nxt - self.acked > FULL_BYTES + 448:
            self._ep.transmit(self._ep.sender.nxt, ACK, sacks=self._blocks(3))
        else:
            self._delay(now)
        if now >= self.blocked_until_ns or self.fin:
            self._ep.process.notify(self._ep)

    def block(self, until_ns: int) -> None:
        """Let the application read nothing until then."""
        self.blocked_until_ns = until_ns
        self._ep.loop.at(until_ns, self._ep.process.notify, self._ep)

    def read(self) -> tuple[bool, list[object], bool]:
        """Take all that is in order: (handshake done just now, messages, other end closed just now)."""
        opened, self.opened = self.opened, False
        if self._ep.loop.now < self.blocked_until_ns and not self.fin:
            return opened, [], False
        before = self._edge - self.nxt
        fresh = self.nxt > self._read_to
        self._read_to = self.nxt
        if fresh and self.nxt > self.acked and (self._pushes > 1 or not self._answering):
            self.answer_now()
        elif fresh and before < self._ep.mss and not self.fin:
            self.answer_now()  # the window opens again
        messages = []
        while self._marks and self._marks[0][0] <= self.nxt:
            messages.append(self._marks.popleft()[1])
        ended = self.fin and not self._told
        self._told |= self.fin
        return opened, messages, ended

    def answer_now(self) -> None:
        """Send a bare acknowledgement."""
        self._ep.transmit(self._ep.sender.nxt, ACK, sacks=self._blocks(3))

    def sent_data(self) -> None:
        """Note that the application answers: acknowledgements may ride on its data."""
        if self._ep.loop.now - self._last_data_ns < DELAYED_ACK_NS:
            self._answering = True

    def _delay(self, now: int) -> None:
        if not self._delayed_ns:
            self._delayed_ns = ((now + DELAYED_ACK_NS) // TICK_NS + 1) * TICK_NS
            if not self._timer_set:
                self._timer_set = True
                self._ep.loop.at(self._delayed_ns, self._timer)

    def _timer(self) -> None:
        self._timer_set = False
        if not self._delayed_ns:
            return
        if self._delayed_ns > self._ep.loop.now:
            self._timer_set = True
            self._ep.loop.at(self._delayed_ns, self._timer)
            return
        self._answering = False
        self.answer_now()

    def _keep(self, seq: int, end: int) -> None:
        ranges = sorted([*self._early, (seq, end)])
        merged = [ranges[0]]
        for lo, hi in ranges[1:]:
            if lo <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(hi, merged[-1][1]))
            else:
                merged.append((lo, hi))
        self._early = merged

    def _merge(self) -> None:
        while self._early and self._early[0][0] <= self.nxt:
            self.nxt = max(self.nxt, self._early.pop(0)[1])

    def _blocks(self, count: int, newest: int = -1) -> tuple[tuple[int, int], ...]:
        """Return SACK blocks, the one that holds `newest` first (RFC 2018, section 4)."""
        if not self._early:
            return ()
        return tuple(sorted(self._early, key=lambda r: not r[0] <= newest < r[1])[:count])
