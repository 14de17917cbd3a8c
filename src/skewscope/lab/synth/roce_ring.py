"""Synthetic captures of a ring all-reduce over RoCE, as NCCL puts it on the wire in decode steps.

Per connection (one a channel from each rank to the next): the receiver grants a buffer by a 64-byte WRITE
on the same queue pair in the opposite direction ("clear to send"), the sender answers by WRITEs whose last
one carries the message size as immediate data. A decode step is a train of small all-reduces, then a gap.

Everything made here is synthetic and says so: `Truth["synthetic"]`, and the MAC addresses of all frames.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skewscope.lab.synth.kernel import Loop
from skewscope.lab.synth.network import MAC_MARK
from skewscope.lab.synth.noise import Noise, rng
from skewscope.lab.synth.roce_transport import Faults, Nic, QueuePair, connect
from skewscope.wire import build
from skewscope.wire import roce_build as rb

EPOCH_NS = 1_700_000_000_000_000_000
CTS_BYTES = 64
SLOTS = 8
"""Buffers of a connection: messages that a receiver may grant ahead."""
SLOT_BYTES = 512 * 1024
POST_NS = 2_000
"""From a rank's start of a collective to its first grants."""
REDUCE_NS = 5_000
"""Time to notice a piece, add it and have the proxy thread hand it to the adapter; half-normal spread."""
REDUCE_SPREAD = 0.2
NVLINK_BYTES_PER_NS = 200.0
NVLINK_NS = 1_000
SPLIT_ABOVE = 8_192
"""Bytes: longer messages are two WRITEs where adaptive routing is on."""

KINDS = ("slow_rank", "slow_receiver", "loss", "rnr", "congestion", "slow_link")


@dataclass(frozen=True)
class RingFault:
    """One fault of a rank or of its link, from `start_step` to before `end_step`.

    slow_rank: its own time is `strength` x the usual; slow_receiver: it grants `strength` s late; loss:
    probability that a frame to it vanishes; rnr: probability that a message finds no receive buffer there;
    congestion: probability that a frame to it is marked; slow_link: frames take `strength` x as long.
    `share`: of the collectives hit (slow_rank and slow_receiver).
    """

    kind: str
    target: int
    strength: float
    start_step: int = 0
    end_step: int = 1 << 30
    share: float = 1.0


@dataclass(frozen=True)
class Ring:
    """A tensor-parallel group on one ring; times in s, sizes in bytes. Same values, same capture."""

    name: str = "ring"
    ranks: int = 4
    per_host: int = 1
    """Ranks on each host, each with its own adapter; what they send each other is in no capture."""
    channels: int = 2
    qps: int = 1
    """Queue pairs of each connection, taken in turn by its messages."""
    steps: int = 20
    collectives: int = 16
    message_bytes: int = 131_072
    """Of the all-reduced tensor; each message is its share by ranks and channels."""
    low_latency: bool = False
    """The protocol in which every 8 bytes of data travel with 8 bytes of flags."""
    split: bool = False
    """Adaptive routing: long messages are a WRITE without and an empty one with immediate data."""
    own_s: float = 60e-6
    own_spread: float = 0.1
    gap_s: float = 2e-3
    mtu: int = 4096
    link_bps: float = 100e9
    latency_s: float = 2.5e-6
    ipv6: bool = False
    vlan: int = 0
    dscp: int = 0
    snap_length: int = 128
    clock_spread_s: float = 0.0
    """Standard deviation of the constant by which the clock of each host's tap is off."""
    seed: int = 1
    faults: tuple[RingFault, ...] = ()


class Connection:
    """A channel from one rank to the next: counts of grants and of messages, whatever carries them."""

    def __init__(self, ring: Ring, pairs: list[tuple[QueuePair, QueuePair]], loop: Loop, rkey: int) -> None:
        self._ring, self._pairs, self._loop, self._rkey = ring, pairs, loop, rkey
        self._granted = self._ready = self._sent = self._posted = 0
        self._nbytes = 0
        self.receiver: Rank | None = None
        self.channel = 0
        for near, far in pairs:
            near.on_message = lambda message: self._grant_arrived()
            far.on_message = lambda message: self._data_arrived(message[1])

    def grant(self) -> None:
        """Tell the sender, from the receiver, that one more buffer is free."""
        slot = self._posted
        self._posted += 1
        if not self._pairs:
            self._loop.at(self._loop.now + NVLINK_NS, self._grant_arrived)
            return
        far = self._pairs[slot % len(self._pairs)][1]
        far.write(0x7F00_0000_0000 + slot % SLOTS * CTS_BYTES, self._rkey, CTS_BYTES)

    def offer(self, nbytes: int) -> None:
        """Send a message from the sender as soon as there is a buffer for it."""
        self._nbytes = nbytes
        self._ready += 1
        self._send()

    def _grant_arrived(self) -> None:
        self._granted += 1
        self._send()

    def _send(self) -> None:
        while self._sent < min(self._granted, self._ready):
            slot = self._sent
            self._sent += 1
            size = self._nbytes
            if not self._pairs:
                took = NVLINK_NS + int(size / NVLINK_BYTES_PER_NS)
                self._loop.at(self._loop.now + took, self._data_arrived, size)
                continue
            near = self._pairs[slot % len(self._pairs)][0]
            address = 0x7E00_0000_0000 + slot % SLOTS * SLOT_BYTES
            if self._ring.split and size > SPLIT_ABOVE:
                near.write(address, self._rkey + 1, size)
                near.write(address, self._rkey + 1, 0, size)
            else:
                near.write(address, self._rkey + 1, size, size)

    def _data_arrived(self, immediate: int | None) -> None:
        if immediate is not None and self.receiver is not None:
            self.receiver.received(self.channel)


class Rank:
    """One rank: its own time before each collective, and its part in the ring."""

    def __init__(self, world: World, index: int) -> None:
        self.world, self.index, ring = world, index, world.ring
        self.sends: list[Connection] = []
        self.takes: list[Connection] = []
        self._own = Noise(ring.seed, f"own {index}", normal=True)
        self._chance = Noise(ring.seed, f"chance {index}")
        self._work = Noise(ring.seed, f"work {index}", normal=True)
        self._got = [0] * ring.channels
        self._granted = [0] * ring.channels
        self._open = 0
        self._done = 0
        self._late_ns = 0

    def next(self) -> None:
        """Begin the own time before the next collective."""
        ring, world = self.world.ring, self.world
        if self._done == ring.steps * ring.collectives:
            return
        step, place = divmod(self._done, ring.collectives)
        own_ns = self.own_ns(step, 1.0)
        if place == 0 and step:
            own_ns += ring.gap_s * 1e9 * max(0.5, 1 + 0.02 * self._own.next())
        world.loop.at(world.loop.now + int(own_ns), self._begin)

    def own_ns(self, step: int, work: float) -> float:
        """Return the own time for `work` x the usual in a step, and draw how late this rank grants."""
        ring, world = self.world.ring, self.world
        world.reached(step)
        own_ns = ring.own_s * 1e9 * work * max(0.2, 1 + ring.own_spread * self._own.next())
        chance = self._chance.next()
        for fault in world.active("slow_rank", step, self.index):
            if chance < fault.share:
                own_ns += ring.own_s * 1e9 * work * (fault.strength - 1)
        late = [f.strength for f in world.active("slow_receiver", step, self.index) if chance < f.share]
        self._late_ns = int(max(late, default=0.0) * 1e9)
        return own_ns

    def _begin(self) -> None:
        self.world.begun.setdefault(self._done, []).append((self.index, self.world.loop.now))
        self._open = self.world.ring.channels
        for channel in range(self.world.ring.channels):
            self._got[channel] = self._granted[channel] = 0
            self._grant_later(channel, min(SLOTS, self.world.rounds), POST_NS)
            self.sends[channel].offer(self.world.piece)

    def _grant_later(self, channel: int, count: int, after_ns: int) -> None:
        self._granted[channel] += count
        for _ in range(count):
            self.world.loop.at(self.world.loop.now + after_ns + self._late_ns, self.takes[channel].grant)

    def received(self, channel: int) -> None:
        """Take a piece: pass it on after adding it, grant the buffer again, end with the last one."""
        self._got[channel] += 1
        loop = self.world.loop
        work_ns = int(REDUCE_NS * (1 + REDUCE_SPREAD * abs(self._work.next())))
        if self._granted[channel] < self.world.rounds:
            self._grant_later(channel, 1, work_ns)
        if self._got[channel] < self.world.rounds:
            loop.at(loop.now + work_ns, self.sends[channel].offer, self.world.piece)
            return
        self._open -= 1
        if self._open == 0:
            self._done += 1
            loop.at(loop.now + work_ns, self.next)


class World:
    """All ranks, their adapters and connections."""

    def __init__(self, ring: Ring) -> None:
        unknown = {f.kind for f in ring.faults} - set(KINDS)
        if unknown or ring.ranks < 2:
            raise ValueError(f"ring {ring.name}: {ring.ranks} ranks, unknown faults {sorted(unknown)}")
        self.ring = ring
        draw = rng(ring.seed, "roce ring")
        self.start_ns = EPOCH_NS + int(draw.integers(0, 10**15))
        self.loop = Loop(self.start_ns)
        self.rounds = 2 * (ring.ranks - 1)
        piece = max(8, -(-ring.message_bytes // (ring.ranks * ring.channels)))
        self.piece = piece * 2 if ring.low_latency else piece
        self.begun: dict[int, list[tuple[int, int]]] = {}
        self.step = -1
        self._draw = draw
        self._filler = draw.integers(0, 256, ring.mtu, dtype="uint8").tobytes()
        self._prefix = bytes([10, int(draw.integers(1, 255)), int(draw.integers(0, 255))])
        hosts = -(-ring.ranks // ring.per_host)
        self.records: list[list[tuple[int, bytes, int]]] = [[] for _ in range(hosts)]
        self.nics = [self._nic(i) for i in range(ring.ranks)]
        self.ranks: list[Rank] = self.wire()

    def wire(self) -> list[Rank]:
        """Make the ranks and connect them: a ring for each channel."""
        ring = self.ring
        ranks = [Rank(self, i) for i in range(ring.ranks)]
        for i in range(ring.ranks):
            for channel in range(ring.channels):
                self.connect(ranks[i], ranks[(i + 1) % ring.ranks], channel)
        return ranks

    def _nic(self, index: int) -> Nic:
        ring = self.ring
        host = index // ring.per_host
        address = self._prefix + bytes([index + 1])
        if ring.ipv6:
            address = b"\xfd" + self._prefix[1:] + bytes(12) + bytes([index + 1])
        mac = MAC_MARK + bytes([host, index + 1])
        latency_ns, luck = int(ring.latency_s * 1e9), Noise(ring.seed, f"nic {index}")
        return Nic(
            self.loop,
            address,
            mac,
            ring.link_bps / 1e9,
            latency_ns,
            ring.snap_length,
            self.records[host],
            luck,
        )

    def connect(self, sender: Rank, receiver: Rank, channel: int) -> None:
        """Open a connection from a rank to another."""
        ring, a, b = self.ring, sender.index, receiver.index
        pairs = []
        if a // ring.per_host != b // ring.per_host:
            for _ in range(ring.qps):
                ends = [self._pair(a, b), self._pair(b, a)]
                connect(*ends)
                pairs.append((ends[0], ends[1]))
        link = Connection(ring, pairs, self.loop, int(self._draw.integers(1, 1 << 24)) << 8)
        link.receiver, link.channel = receiver, channel
        sender.sends.append(link)
        receiver.takes.append(link)

    def _pair(self, near: int, far: int) -> QueuePair:
        one, two = self.nics[near], self.nics[far]
        sport = int(self._draw.integers(0xC000, 0x10000))
        vlans = (self.ring.vlan,) if self.ring.vlan else ()
        path = rb.Path(one.mac, two.mac, one.address, two.address, sport, self.ring.dscp, vlans)
        return QueuePair(one, int(self._draw.integers(2, 1 << 24)), path, self.ring.mtu, self._filler)

    def active(self, kind: str, step: int, target: int) -> list[RingFault]:
        """Return the faults of a kind that act on a rank in a step."""
        same = [f for f in self.ring.faults if f.kind == kind and f.target == target]
        return [f for f in same if f.start_step <= step < f.end_step]

    def reached(self, step: int) -> None:
        """Switch the faults of links on and off when the first rank enters a step."""
        if step <= self.step:
            return
        self.step = step
        for i, nic in enumerate(self.nics):
            nic.faults = Faults(
                loss=self._strength("loss", step, i, 0.0),
                mark=self._strength("congestion", step, i, 0.0),
                rnr=self._strength("rnr", step, i, 0.0),
                slowdown=self._strength("slow_link", step, i, 1.0),
            )

    def _strength(self, kind: str, step: int, target: int, otherwise: float) -> float:
        return max((f.strength for f in self.active(kind, step, target)), default=otherwise)

    def run(self) -> dict[str, bytes]:
        """Run everything to its end; returns a capture file per host."""
        for rank in self.ranks:
            rank.next()
        self.loop.run(self.start_ns + 10**15)
        files = {}
        clock = Noise(self.ring.seed, "clocks", normal=True)
        for host, records in enumerate(self.records):
            off_ns = int(self.ring.clock_spread_s * 1e9 * clock.next())
            seen = sorted(((ts + off_ns, frame, size) for ts, frame, size in records), key=lambda r: r[0])
            files[f"h{host}"] = build.capture(seen, self.ring.snap_length)
        return files


Truth = dict[str, Any]


def capture(ring: Ring) -> tuple[dict[str, bytes], Truth]:
    """Run a ring; returns (capture file per host name, truth). Same values, same bytes."""
    world = World(ring)
    files = world.run()
    return files, truth_of(world)


def write(ring: Ring, folder: Path) -> Truth:
    """Run a ring and write `<host>.pcap` files to an existing or new folder; returns the truth."""
    files, truth = capture(ring)
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / f"{name}.pcap").write_bytes(data)
    return truth


def _text(address: bytes) -> str:
    return str(ipaddress.ip_address(address))


def truth_of(world: World) -> Truth:
    """Say who is who, when each rank began each collective, and what was wrong where and when.

    By rank: `ranks` (addresses), `hosts` (n of the tap "hn"), `lost` (frames to it); `begun_ns`: a row per
    collective, a column per rank.
    """
    ring = world.ring
    begun = [sorted(world.begun[k]) for k in sorted(world.begun)]
    faults = []
    for fault in ring.faults:
        first = begun[min(fault.start_step * ring.collectives, len(begun) - 1)]
        after = fault.end_step * ring.collectives
        last = begun[after] if after < len(begun) else begun[-1]
        faults.append(
            {
                "kind": fault.kind,
                "culprit": {"kind": "link" if fault.kind in KINDS[2:] else "rank", "id": fault.target},
                "address": _text(world.nics[fault.target].address),
                "onset_ns": min(ns for _, ns in first),
                "end_ns": max(ns for _, ns in last),
                "strength": {"name": fault.kind, "value": fault.strength},
            }
        )
    return {
        "schema": "skewscope.truth/1",
        "name": f"{ring.name}.s{ring.seed}",
        "source": "sim",
        "synthetic": True,
        "seed": ring.seed,
        "ranks": [_text(n.address) for n in world.nics],
        "hosts": [i // ring.per_host for i in range(ring.ranks)],
        "message_bytes": world.piece,
        "rounds": world.rounds,
        "begun_ns": [[ns for _, ns in row] for row in begun],
        "lost": [n.lost for n in world.nics],
        "fault": faults,
    }
