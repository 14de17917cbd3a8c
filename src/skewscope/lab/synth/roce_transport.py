"""Reliable connections of simulated RoCE adapters: segmentation, acknowledgements, go-back-N, RNR, CNPs.

The rules are those of the InfiniBand Architecture Specification, volume 1, section 9.7 (reliable service)
and annex A17 (congestion notification). What adapters choose themselves is stated as a constant here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from skewscope.lab.synth.kernel import Loop
from skewscope.lab.synth.noise import Noise
from skewscope.wire import build
from skewscope.wire import roce_build as rb
from skewscope.wire.roce_codes import (
    ACKNOWLEDGE,
    RNR_MS,
    WRITE_FIRST,
    WRITE_LAST,
    WRITE_LAST_IMM,
    WRITE_MIDDLE,
    WRITE_ONLY,
    WRITE_ONLY_IMM,
)

ACK_NS = 1_500
"""From a packet that asks for an acknowledgement to that acknowledgement; later requests share it."""
ACK_EVERY = 16
"""Packets of a long message between two requests for an acknowledgement."""
TIMEOUT_NS = 8_000_000
"""Without progress for this long, an adapter starts again from the oldest unacknowledged packet."""
RNR_WAIT_MS = 0.64
CUT = 0.5
"""Share of its rate that a queue pair keeps at a congestion notification."""
RECOVERY_NS = 300_000
"""Every this long without a notification, half of the lost rate comes back."""

Message = tuple[int, int | None]
"""Length and immediate (or None) of a message that has arrived."""


@dataclass
class Faults:
    """What the network and the receive queue of one adapter do, as probabilities per frame or message."""

    loss: float = 0.0
    mark: float = 0.0
    rnr: float = 0.0
    slowdown: float = 1.0
    """Times as long for each frame on its link."""


@dataclass
class Nic:
    """One adapter with its link; `records` belongs to the tap of its host."""

    loop: Loop
    address: bytes
    mac: bytes
    bits_per_ns: float
    latency_ns: int
    snap_length: int
    records: list[tuple[int, bytes, int]]
    luck: Noise
    faults: Faults = field(default_factory=Faults)
    ident: int = 0
    free_ns: int = 0
    lost: int = 0
    marked: int = 0

    def record(self, frame: bytes) -> None:
        """Let the tap see a frame now."""
        self.records.append((self.loop.now, frame[: self.snap_length], len(frame)))

    def send(self, to: Nic, frame: bytes, arrived: Callable[..., None], *what: object) -> int:
        """Put a frame on the link; `arrived(marked, *what)` is called at the other side unless it is lost.

        Returns the time (ns) at which the link is free again.
        """
        worst = max(self.faults.slowdown, to.faults.slowdown)
        self.free_ns = max(self.loop.now, self.free_ns) + int(len(frame) * 8 * worst / self.bits_per_ns) + 1
        self.loop.at(self.free_ns, self._left, to, frame, arrived, what)
        return self.free_ns

    def _left(self, to: Nic, frame: bytes, arrived: Callable[..., None], what: tuple[object, ...]) -> None:
        self.record(frame)
        if to.faults.loss and self.luck.next() < to.faults.loss:
            to.lost += 1
            return
        marked = bool(to.faults.mark) and self.luck.next() < to.faults.mark
        self.loop.at(self.loop.now + self.latency_ns, arrived, marked, frame, *what)

    def next_ident(self) -> int:
        """Return the next IP identification."""
        self.ident = (self.ident + 1) & 0xFFFF
        return self.ident


@dataclass
class Packet:
    """A request packet as kept until it is acknowledged; `size` is its payload."""

    opcode: int
    size: int
    headers: bytes
    ack: bool
    ends: Message | None = None


class QueuePair:
    """One end of a reliable connection. `on_message` hears of each message that has arrived in full."""

    def __init__(self, nic: Nic, number: int, path: rb.Path, mtu: int, filler: bytes) -> None:
        self.nic, self.number, self.path, self.mtu = nic, number, path, mtu
        self.peer: QueuePair = self
        self.on_message: Callable[[Message], None] = lambda message: None
        self._filler = filler
        self._packets: dict[int, Packet] = {}
        self._next = self._end = self._acked = 0
        """Packet sequence numbers, not cut to 24 bits: to send, to assign, first unacknowledged."""
        self._pumping = False
        self._hold_until = self._progress_ns = 0
        self._expected = self._messages = 0
        self._refused = self._owes_ack = False
        self._rate, self._notified_ns, self._cnp_ns = 1.0, 0, -rb.CNP_PERIOD_NS

    def write(self, address: int, rkey: int, nbytes: int, immediate: int | None = None) -> None:
        """Send an RDMA WRITE of nbytes, with immediate data where given."""
        count = max(1, -(-nbytes // self.mtu))
        for i in range(count):
            first, last = i == 0, i == count - 1
            size = min(self.mtu, nbytes - i * self.mtu) if nbytes else 0
            imm = last and immediate is not None
            if first and last:
                opcode = WRITE_ONLY_IMM if imm else WRITE_ONLY
            elif last:
                opcode = WRITE_LAST_IMM if imm else WRITE_LAST
            else:
                opcode = WRITE_FIRST if first else WRITE_MIDDLE
            headers = rb.reth(address, rkey, nbytes) if first else b""
            if imm and immediate is not None:
                headers += rb.immediate(immediate)
            ends = (nbytes, immediate) if last else None
            ack = last or i % ACK_EVERY == ACK_EVERY - 1
            self._packets[self._end] = Packet(opcode, size, headers, ack, ends)
            self._end += 1
        self._pump_soon(self.nic.loop.now)

    def _pump_soon(self, ns: int) -> None:
        if not self._pumping:
            self._pumping = True
            self.nic.loop.at(ns, self._pump)

    def _pump(self) -> None:
        """Send the next packet, then come back when the link and the rate allow another."""
        self._pumping = False
        now = self.nic.loop.now
        if self._next >= self._end:
            return
        if now < self._hold_until:
            self._pump_soon(self._hold_until)
            return
        psn, packet = self._next, self._packets[self._next]
        pad = rb.padding(packet.size)
        bth = rb.bth(packet.opcode, self.peer.number, psn, ack=packet.ack, pad=pad)
        body = bth + packet.headers + self._filler[: packet.size] + bytes(pad)
        free_ns = self.nic.send(
            self.peer.nic, self.path.frame(body, self.nic.next_ident()), self.peer.arrived, psn, packet
        )
        if packet.ack:
            self.nic.loop.at(free_ns + TIMEOUT_NS, self._timeout, psn)
        self._next += 1
        self._pump_soon(free_ns + self._pause(len(body)))

    def _pause(self, nbytes: int) -> int:
        """Return the ns by which the present rate lets the next packet wait; a lost rate comes back."""
        if self._rate == 1.0:
            return 0
        halves = (self.nic.loop.now - self._notified_ns) / RECOVERY_NS
        rate = 1.0 - (1.0 - self._rate) * 0.5**halves
        if rate > 0.99:
            self._rate = 1.0
        return int(nbytes * 8 / self.nic.bits_per_ns * (1 / rate - 1))

    def _timeout(self, psn: int) -> None:
        """Start again where nothing moved since the packet was sent; wait on where something did."""
        if self._acked > psn:
            return
        due_ns = self._progress_ns + TIMEOUT_NS
        if due_ns > self.nic.loop.now:
            self.nic.loop.at(due_ns, self._timeout, psn)
        else:
            self._again(self._acked)

    def _again(self, psn: int) -> None:
        """Go back to a packet and send everything from there once more."""
        self._progress_ns = self.nic.loop.now
        self._next = max(psn, self._acked)
        self._pump_soon(self.nic.loop.now)

    def arrived(self, marked: bool, frame: bytes, psn: int, packet: Packet) -> None:
        """Take a request packet off the network."""
        if marked:
            frame = _congested(frame, len(self.path.vlans))
        self.nic.record(frame)
        if marked:
            self._notify()
        if psn > self._expected:
            self._refuse(rb.SEQUENCE_ERROR)
        elif psn < self._expected:
            if packet.ack:
                self._owe()
        elif packet.ends and packet.ends[1] is not None and self._queue_empty():
            self._refused = False
            self._refuse(rb.rnr_syndrome(RNR_WAIT_MS))
        else:
            self._accept(packet)

    def _queue_empty(self) -> bool:
        rnr = self.nic.faults.rnr
        return bool(rnr) and self.nic.luck.next() < rnr

    def _accept(self, packet: Packet) -> None:
        self._expected += 1
        self._refused = False
        if packet.ends is not None:
            self._messages += 1
        if packet.ack:
            self._owe()
        if packet.ends is not None:
            self.on_message(packet.ends)

    def _owe(self) -> None:
        """Acknowledge a little later everything that has arrived by then."""
        if not self._owes_ack:
            self._owes_ack = True
            self.nic.loop.at(self.nic.loop.now + ACK_NS, self._acknowledge)

    def _acknowledge(self) -> None:
        self._owes_ack = False
        self._respond(rb.NO_CREDITS, self._expected - 1)

    def _refuse(self, syndrome: int) -> None:
        """Send one NAK for the expected packet; what else comes before that is dropped in silence."""
        if not self._refused:
            self._refused = True
            self._respond(syndrome, self._expected)

    def _respond(self, syndrome: int, psn: int) -> None:
        body = rb.bth(ACKNOWLEDGE, self.peer.number, psn) + rb.aeth(syndrome, self._messages)
        frame = self.path.frame(body, self.nic.next_ident())
        self.nic.send(self.peer.nic, frame, self.peer.answered, syndrome, psn)

    def answered(self, marked: bool, frame: bytes, syndrome: int, psn: int) -> None:
        """Take an acknowledgement or a NAK off the network."""
        self.nic.record(_congested(frame, len(self.path.vlans)) if marked else frame)
        kind = syndrome >> 5
        done = psn + 1 if kind == 0 else psn
        if done > self._acked:
            for old in range(self._acked, done):
                del self._packets[old]
            self._acked = done
            self._next = max(self._next, done)
            self._progress_ns = self.nic.loop.now
        if kind == 1 and psn >= self._acked:
            self._hold_until = self.nic.loop.now + int(RNR_MS[syndrome & 31] * 1e6)
        if kind and psn >= self._acked:
            self._again(psn)

    def _notify(self) -> None:
        """Tell the sender of congestion, at most once a period."""
        now = self.nic.loop.now
        if now - self._cnp_ns >= rb.CNP_PERIOD_NS:
            self._cnp_ns = now
            frame = self.path.notification(self.peer.number, self.nic.next_ident())
            self.nic.send(self.peer.nic, frame, self.peer.notified)

    def notified(self, marked: bool, frame: bytes) -> None:
        """Take a congestion notification off the network: slow down."""
        self.nic.record(_congested(frame, len(self.path.vlans)) if marked else frame)
        self._rate = max(0.01, self._rate * CUT)
        self._notified_ns = self.nic.loop.now


def _congested(frame: bytes, tags: int) -> bytes:
    """Return a frame with its ECN bits set to "congestion experienced"."""
    at = 14 + 4 * tags
    if frame[at] >> 4 == 6:
        return frame[: at + 1] + bytes([frame[at + 1] | rb.CE << 4]) + frame[at + 2 :]
    head = bytearray(frame[at : at + 20])
    head[1] |= rb.CE
    head[10:12] = b"\0\0"
    head[10:12] = build.checksum(build.word_sum(bytes(head))).to_bytes(2, "big")
    return frame[:at] + bytes(head) + frame[at + 20 :]


def connect(a: QueuePair, b: QueuePair) -> None:
    """Make two queue pairs the ends of one connection; sequence numbers start at 0 both ways."""
    a.peer, b.peer = b, a
