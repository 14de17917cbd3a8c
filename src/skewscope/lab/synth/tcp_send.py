"""The sending half of a TCP endpoint: window, loss recovery, probes.

A simplified Linux: time-based loss detection from SACK (RFC 8985), tail-loss probes (two round
trips and a tick, or the retransmission timer where one segment is out), retransmission timer of at
least 200 ms that doubles, duplicate SACK widens the reordering window, zero-window probes.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from skewscope.lab.synth.tcp_receive import TICK_NS
from skewscope.wire.build import ACK, FIN, PSH

if TYPE_CHECKING:
    from skewscope.lab.synth.tcp import Endpoint

MIN_RTO_NS = 200_000_000
FIRST_RTO_NS = 1_000_000_000
MAX_RTO_NS = 120_000_000_000
FIRST_WINDOW = 10
PROBE, RETRANSMIT, REORDER, PERSIST = range(4)


class Sent:
    """A segment in flight."""

    __slots__ = ("copies", "data", "end", "flags", "lost", "sacked", "sent_ns", "seq")

    def __init__(self, seq: int, end: int, data: bytes, flags: int, now: int) -> None:
        self.seq, self.end, self.data, self.flags = seq, end, data, flags
        self.sent_ns = now
        self.copies = 1
        self.sacked = self.lost = False


class Sender:
    """Bytes out, again where they were lost."""

    def __init__(self, endpoint: Endpoint, isn: int) -> None:
        self._ep = endpoint
        self.una = self.nxt = isn
        self.written = isn
        self._unsent: deque[bytes] = deque()
        self._flight: deque[Sent] = deque()
        self._gone = 0  # in flight no more: marked as sacked or lost
        self._window = 0
        self.closing = self._fin_sent = False
        self._cwnd, self._ssthresh = float(FIRST_WINDOW), 1e9
        self._recover = 0
        self._srtt = self._rttvar = 0
        self._min_rtt = FIRST_RTO_NS
        self._rto = FIRST_RTO_NS
        self._backoff = 0
        self._probed = False
        self._rack_sent_ns = self._rack_rtt = 0
        self._steps = 0
        self._deadline, self._mode, self._timer_ns = 0, RETRANSMIT, 0

    def warm(self, window: int, rtt_ns: int = 60_000) -> None:
        """Begin as a connection that has been in use."""
        self._window = window
        self._measured(rtt_ns)

    def control(self, flags: int) -> None:
        """Send a SYN, which takes one sequence number."""
        self.written += 1
        self._emit(b"", flags, 1)

    def write(self, data: bytes) -> None:
        """Queue bytes and send what may be sent."""
        self.written += len(data)
        self._unsent.append(data)
        if self._ep.established:
            self._push()

    def close(self) -> None:
        """Send a FIN behind the queued bytes."""
        if not self.closing:
            self.closing = True
            self._push()

    def abandon(self) -> None:
        """Forget everything: the connection was reset."""
        self._unsent.clear()
        self._flight.clear()
        self.closing = self._fin_sent = True
        self._deadline = 0

    def backlog(self) -> int:
        """Return the queued bytes that were never sent."""
        return sum(map(len, self._unsent))

    def _emit(self, data: bytes, flags: int, length: int) -> None:
        sent = Sent(self.nxt, self.nxt + length, data, flags, self._ep.loop.now)
        self.nxt += length
        self._flight.append(sent)
        self._ep.transmit(sent.seq, flags, data)
        self._arm()

    def _push(self) -> None:
        unsent, mss = self._unsent, self._ep.mss
        while unsent:
            size = min(len(unsent[0]), mss)
            if len(self._flight) - self._gone >= self._cwnd:
                break
            if self.una + self._window - self.nxt < size:
                if not self._flight:
                    self._wait_for_window()
                break
            data = unsent.popleft()
            flags = PSH | ACK
            if len(data) > mss:
                unsent.appendleft(data[mss:])
                data, flags = data[:mss], ACK
            while unsent and len(data) + len(unsent[0]) <= min(mss, self.una + self._window - self.nxt):
                data += unsent.popleft()
            self._ep.receiver.sent_data()
            self._emit(data, flags, len(data))
        if self.closing and not self._fin_sent and not unsent:
            self._fin_sent = True
            self._emit(b"", FIN | ACK, 1)

    # --- acknowledgements -------------------------------------------------------------------------

    def on_ack(self, ack: int, window: int, sacks: tuple[tuple[int, int], ...], with_data: bool) -> None:
        """Take an acknowledgement, the window and SACK blocks."""
        self._window = window
        flight, now = self._flight, self._ep.loop.now
        moved = ack > self.una
        if moved:
            self._pop(ack, now)
        if sacks:
            self._mark(ack, sacks, now)
        if moved or sacks:
            if self._gone or self._recover:
                self._find_lost(now)
            if self._mode == PERSIST or not flight:
                self._deadline = 0
            if flight:
                self._arm()
        elif self._mode == PERSIST and window > 0:
            self._deadline = 0
        self._resend()
        if self._unsent or self.closing:
            self._push()

    def _pop(self, ack: int, now: int) -> None:
        flight, acked = self._flight, 0
        while flight and flight[0].end <= ack:
            sent = flight.popleft()
            acked += 1
            self._gone -= sent.sacked or sent.lost
            if sent.copies == 1 and not sent.sacked:
                self._measured(now - sent.sent_ns)
            if not sent.sacked:
                self._delivered(sent, now)
        self.una = ack
        self._backoff = 0
        self._probed = False
        if self._recover and ack >= self._recover:
            self._recover = 0
            self._cwnd = max(self._ssthresh, 2.0)
        elif not self._recover:
            self._cwnd += acked if self._cwnd < self._ssthresh else acked / self._cwnd

    def _mark(self, ack: int, sacks: tuple[tuple[int, int], ...], now: int) -> None:
        if sacks[0][1] <= ack:  # a duplicate arrived: the network reorders, wait longer (RFC 8985, 6.2)
            self._steps = min(self._steps + 1, 20)
        for lo, hi in sacks:
            if hi <= ack:
                continue
            for sent in self._flight:
                if lo <= sent.seq and sent.end <= hi and not sent.sacked:
                    self._gone += not sent.lost
                    sent.sacked, sent.lost = True, False
                    self._delivered(sent, now)

    def _delivered(self, sent: Sent, now: int) -> None:
        if sent.sent_ns >= self._rack_sent_ns and (sent.copies == 1 or now - sent.sent_ns >= self._min_rtt):
            self._rack_sent_ns, self._rack_rtt = sent.sent_ns, now - sent.sent_ns

    def _find_lost(self, now: int) -> None:
        wait = min(self._min_rtt // 4 * (1 + self._steps), max(self._srtt, self._min_rtt))
        soonest = 0
        for sent in self._flight:
            if sent.sacked or sent.lost or sent.sent_ns > self._rack_sent_ns:
                continue
            left = sent.sent_ns + self._rack_rtt + wait - now
            if left <= 0:
                sent.lost = True
                self._gone += 1
            else:
                soonest = max(soonest, left)
        if soonest:
            self._set(REORDER, now + soonest)

    def _resend(self) -> None:
        if not self._gone:
            return
        lost = [s for s in self._flight if s.lost]
        if lost and not self._recover:
            self._ssthresh = max(2.0, 0.7 * self._cwnd)
            self._cwnd = self._ssthresh
            self._recover = self.nxt
        for sent in lost:
            if len(self._flight) - self._gone >= max(self._cwnd, 1.0):
                break
            self._copy(sent)

    def _copy(self, sent: Sent) -> None:
        if sent.lost:
            sent.lost = False
            self._gone -= 1
        sent.copies += 1
        sent.sent_ns = self._ep.loop.now
        self._ep.transmit(sent.seq, sent.flags, sent.data)
        self._arm()

    def _measured(self, rtt: int) -> None:
        self._min_rtt = min(self._min_rtt, rtt)
        if self._srtt:
            self._rttvar += (abs(rtt - self._srtt) - self._rttvar) // 4
            self._srtt += (rtt - self._srtt) // 8
        else:
            self._srtt, self._rttvar = rtt, rtt // 2
        self._rto = min(self._srtt + max(4 * self._rttvar, MIN_RTO_NS), MAX_RTO_NS)

    # --- timers -----------------------------------------------------------------------------------

    def _arm(self) -> None:
        """Set the timer that the flight calls for: a probe, or else the retransmission timer."""
        now = self._ep.loop.now
        if self._probed or self._gone or self._recover or not self._srtt or self._backoff:
            self._set(RETRANSMIT, now + min(self._rto << self._backoff, MAX_RTO_NS))
        elif len(self._flight) == 1:
            self._set(PROBE, now + self._rto)
        else:
            self._set(PROBE, now + 2 * self._srtt + TICK_NS)

    def _wait_for_window(self) -> None:
        if self._mode != PERSIST or not self._deadline:
            self._set(PERSIST, self._ep.loop.now + min(self._rto << self._backoff, MAX_RTO_NS))

    def _set(self, mode: int, deadline: int) -> None:
        """Set the one timer; it fires on a tick, and lazily: most deadlines are moved before."""
        self._mode = mode
        self._deadline = (deadline // TICK_NS + 1) * TICK_NS
        if not self._timer_ns or self._timer_ns > self._deadline:
            self._timer_ns = self._deadline
            self._ep.loop.at(self._deadline, self._timer, self._deadline)

    def _timer(self, at: int) -> None:
        if at != self._timer_ns:
            return
        self._timer_ns = 0
        if not self._deadline:
            return
        if self._deadline > at:
            self._timer_ns = self._deadline
            self._ep.loop.at(self._deadline, self._timer, self._deadline)
            return
        self._deadline = 0
        self._fire()

    def _fire(self) -> None:
        if self._mode == PERSIST:
            self._backoff += 1
            room = self.una + self._window - self.nxt
            if self._unsent and room > 0:  # what fits goes as it is
                data = self._unsent.popleft()
                if len(data) > room:
                    self._unsent.appendleft(data[room:])
                self._emit(data[:room], PSH | ACK, len(data[:room]))
            elif self._unsent:
                self._ep.transmit(self.una - 1, ACK)
                self._wait_for_window()
            return
        if not self._flight:
            return
        if self._mode == REORDER:
            self._find_lost(self._ep.loop.now)
            self._resend()
            if self._flight and not self._deadline:
                self._arm()
            return
        if self._mode == PROBE:
            self._probed = True
            self._copy(self._flight[-1])
            return
        self._backoff += 1
        for sent in self._flight:
            if not sent.sacked and not sent.lost:
                sent.lost = True
                self._gone += 1
        self._ssthresh = max(2.0, self._cwnd / 2)
        self._cwnd = 1.0
        self._recover = self.nxt
        self._copy(self._flight[0])
