"""A TCP endpoint: connection set-up and end, segments to frames, and the application's messages.

Enough of Linux's TCP for captures that behave: see `tcp_send` for loss recovery and `tcp_receive`
for acknowledgements. Sequence numbers are unbounded integers here, cut to 32 bits in the frames.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from skewscope.lab.synth.network import Host, Network
from skewscope.lab.synth.process import Process
from skewscope.lab.synth.tcp_receive import Receiver
from skewscope.lab.synth.tcp_send import Sender
from skewscope.wire import build
from skewscope.wire.build import ACK, FIN, RST, SYN

MSS = 1_448
"""1500 less IPv4, TCP and timestamps."""
BUFFER_BYTES = 65_536
WINDOW_SCALE = 10
SYN_WINDOW = 64_240


class Segment(NamedTuple):
    """What one frame says to the other end."""

    seq: int
    ack: int
    flags: int
    window: int
    data: bytes
    sacks: tuple[tuple[int, int], ...]
    tsval: int


def _nothing(*_: object) -> None:
    """Do nothing: the default of every callback."""


class Endpoint:
    """One end of a connection. `peer` is the other one: the simulation needs no demultiplexing."""

    peer: Endpoint

    def __init__(
        self,
        network: Network,
        process: Process,
        peer_host: Host,
        port: int,
        peer_port: int,
        isn: int,
        buffer: int,
    ) -> None:
        self.network, self.process, self.host = network, process, process.host
        self.loop = network.loop
        self.peer_host = peer_host
        self.port, self.peer_port = port, peer_port
        host = self.host
        self.lane = build.Lane(host.mac, peer_host.mac, host.address, peer_host.address, port, peer_port)
        self.mss = MSS
        self.scale = WINDOW_SCALE if buffer >= BUFFER_BYTES else 0
        self.sender = Sender(self, isn)
        self.receiver = Receiver(self, buffer)
        self._ip_id = isn & 0xFFFF
        self._echo = 0
        self.queued = False
        self.established = False
        self.closed = False
        self.reset = False
        self.on_message: Callable[[object], None] = _nothing
        self.on_open: Callable[[], None] = _nothing
        self.on_close: Callable[[], None] = _nothing

    # --- the application's side -------------------------------------------------------------------

    def open(self) -> None:
        """Begin the handshake."""
        self.sender.control(SYN)

    def send(self, data: bytes, message: object = None) -> None:
        """Write bytes; `message` reaches the other application once all of them were read."""
        if self.reset or self.sender.closing:
            return
        self.peer.receiver.expect(self.sender.written + len(data), message)
        self.sender.write(data)

    def read(self) -> None:
        """Take what has arrived and hand it to the application."""
        opened, messages, ended = self.receiver.read()
        if opened:
            self.on_open()
        for message in messages:
            self.on_message(message)
        if ended:
            self.closed = True
            self.on_close()

    def close(self) -> None:
        """Send a FIN behind what was written."""
        if not self.reset:
            self.sender.close()

    # --- the network's side -----------------------------------------------------------------------

    def transmit(
        self, seq: int, flags: int, data: bytes = b"", sacks: tuple[tuple[int, int], ...] = ()
    ) -> None:
        """Send one segment with the current acknowledgement and window."""
        ack, window = self.receiver.acknowledge()
        self._ip_id = ident = (self._ip_id + 1) & 0xFFFF
        tsval = self.host.uptime_ms + self.loop.now // 1_000_000
        if sacks or flags & SYN:
            if flags & SYN:
                ack = ack if flags & ACK else 0
                field = window = min(SYN_WINDOW, window)
                options = build.tcp_options(
                    mss=MSS + 12, sack_permitted=True, timestamps=(tsval, self._echo), wscale=self.scale
                )
            else:
                field = window >> self.scale
                options = build.tcp_options(timestamps=(tsval, self._echo), sacks=sacks)
            frame = self.lane.frame_with(ident, seq, ack, flags, field, options, data)
        else:
            field = window >> self.scale
            window = field << self.scale
            frame = self.lane.frame(ident, seq, ack, flags, field, tsval, self._echo, data)
        segment = Segment(seq, ack, flags, window, data, sacks, tsval)
        self.network.send(self.host, self.peer_host, frame, len(frame), self.peer.arrive, segment)

    def arrive(self, segment: Segment) -> None:
        """Take a segment from the network."""
        if segment.flags & RST:
            self._drop()
            return
        if self.process.dead and (segment.flags == SYN or (self.sender.closing and segment.data)):
            self._refuse(segment)
            return
        self._echo = segment.tsval
        if segment.flags & SYN:
            self._handshake(segment)
        if segment.flags & ACK:
            self.sender.on_ack(segment.ack, segment.window, segment.sacks, bool(segment.data))
        if segment.data or segment.flags & FIN:
            self.receiver.on_data(segment.seq, len(segment.data), bool(segment.flags & FIN))
        elif segment.seq < self.receiver.acked and not segment.flags & SYN:
            self.receiver.answer_now()  # a window probe

    def _handshake(self, segment: Segment) -> None:
        if self.receiver.nxt == 0:
            self.receiver.begin(segment.seq + 1)
            if segment.flags & ACK:
                self.established = True
                self.transmit(self.sender.nxt, ACK)
                self.receiver.opened = True
                self.process.notify(self)
            else:
                self.sender.control(SYN | ACK)
                self.established = True
        else:
            self.receiver.answer_now()

    def _refuse(self, segment: Segment) -> None:
        """Refuse a segment."""
        self.reset = True
        self._echo = segment.tsval
        frame = self.lane.frame_with(0, segment.ack, segment.seq + 1, RST | ACK, 0, b"", b"")
        answer = Segment(segment.ack, segment.seq + 1, RST | ACK, 0, b"", (), 0)
        self.network.send(self.host, self.peer_host, frame, len(frame), self.peer.arrive, answer)

    def _drop(self) -> None:
        self.reset = True
        self.sender.abandon()
        self.receiver.fin = True
        self.process.notify(self)


def connect(
    network: Network,
    client: Process,
    server: Process,
    ports: tuple[int, int],
    isns: tuple[int, int],
    *,
    buffers: tuple[int, int] = (BUFFER_BYTES, BUFFER_BYTES),
    established: bool = False,
) -> tuple[Endpoint, Endpoint]:
    """Make both ends of a connection; `established` ones were opened before the capture began."""
    a = Endpoint(network, client, server.host, ports[0], ports[1], isns[0], buffers[0])
    b = Endpoint(network, server, client.host, ports[1], ports[0], isns[1], buffers[1])
    a.peer, b.peer = b, a
    if established:
        a.receiver.begin(b.sender.nxt)
        b.receiver.begin(a.sender.nxt)
        a.established = b.established = True
        a.sender.warm(buffers[1])
        b.sender.warm(buffers[0])
    return a, b
