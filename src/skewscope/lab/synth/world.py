"""A whole synthetic cluster: hosts, ranks, gateway, clients and the faults among them."""

from __future__ import annotations

from itertools import combinations, permutations

from skewscope.core.scenario import Fault, Scenario
from skewscope.lab.synth.foreign import Bulk, Datagrams, Heartbeat
from skewscope.lab.synth.gloo import Member
from skewscope.lab.synth.kernel import Loop
from skewscope.lab.synth.nccl import RingMember
from skewscope.lab.synth.nccl_mesh import MeshMember
from skewscope.lab.synth.network import OTHERS, Network
from skewscope.lab.synth.noise import Noise, rng
from skewscope.lab.synth.process import Process, seconds
from skewscope.lab.synth.schedule import SECOND, Active, Schedule
from skewscope.lab.synth.serving import Replica
from skewscope.lab.synth.traffic import Client, Dialler, FrontEnd, Gateway, Server

EPOCH_NS = 1_700_000_000 * SECOND
CRASH_TO_FIN_NS = 9_000_000
"""From the end of a process to the closing of its sockets (measured on the test bed)."""
SMALL_BUFFER_BYTES = 2_048
DEFAULT_BULK_BPS = 8e6


class World:
    """Everything that runs. Times: the capture begins at `start_ns`, after a warm-up."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        w, seed = scenario.workload, scenario.seed
        draw = rng(seed, "world")
        self.start_ns = EPOCH_NS + int(draw.integers(0, 10**8)) * SECOND + int(draw.integers(0, SECOND))
        step_ns = seconds(w.own_s) * 2 * w.layers
        self._warm_ns = min(max(6 * w.clients // w.replicas * step_ns // 2, 12 * step_ns), SECOND)
        self.loop = Loop(self.start_ns - self._warm_ns)
        self.schedule = Schedule(scenario, self.start_ns)
        self.network = Network(scenario, self.schedule, self.loop, self.start_ns)
        self.dialler = Dialler(self.network, seed)
        self.processes = {name: self._process(name, name, OTHERS[name]) for name in OTHERS}
        """Of the ranks by number ("0", "1", ...), of the others by host name."""
        for k in range(w.ranks * w.replicas):
            host = f"n{k // w.per_host}"
            name = host if w.per_host == 1 else f"{host}.{k % w.per_host}"
            self.processes[str(k)] = self._process(host, name, k)
        self._luck = Noise(seed, "crash")
        self._filler = rng(seed, "filler").integers(0, 256, 8_192, dtype="uint8").tobytes()
        self._port = int(draw.integers(20_000, 30_000))
        self.replicas = [self._replica(i) for i in range(w.replicas)]
        fronts = [FrontEnd(r, int(draw.integers(8_000, 9_000)), seed) for r in self.replicas]
        rt = self.processes["rt"]
        self.entry: Server = fronts[0]
        if w.gateway or w.replicas > 1:
            self.entry = Gateway(rt, self.dialler, fronts, int(draw.integers(8_000, 9_000)), self.schedule)
        self._clients()
        self._foreign()
        for entry in self.schedule.of("crash"):
            self.loop.at(entry.start_ns, self._crash, entry)

    def run(self) -> dict[str, bytes]:
        """Run to the end; returns the capture file of every tap by host name."""
        for replica in self.replicas:
            replica.start()
        self.loop.run(self.start_ns + seconds(self.scenario.duration_s))
        return self.network.captures()

    def _process(self, host: str, name: str, number: int) -> Process:
        own_ns = seconds(self.scenario.workload.own_s)
        place = self.network.hosts[host]
        return Process(self.loop, place, self.schedule, self.scenario.seed, own_ns, name, number)

    def _replica(self, number: int) -> Replica:
        w, seed = self.scenario.workload, self.scenario.seed
        ranks = [self.processes[str(number * w.ranks + i)] for i in range(w.ranks)]
        if w.framing == "nccl" and w.pattern != "ring":
            return Replica(w, self.schedule, self._mesh(ranks), seed, f"{number}")
        if w.framing == "nccl":
            return Replica(w, self.schedule, self._ring(ranks), seed, f"{number}")
        opaque = w.framing == "opaque"
        members = [Member(process, i, w.ranks, seed, opaque) for i, process in enumerate(ranks)]
        edges = {tuple(sorted((i, (i + 1) % w.ranks))) for i in range(w.ranks) if w.ranks > 1}
        edges |= {(i ^ (1 << b), i) for i in range(w.ranks) for b in [i.bit_length() - 1] if i}
        if w.pattern == "all_to_all":
            edges |= set(combinations(range(w.ranks), 2))
        for low, high in sorted(edges):
            dialled = self.dialler.dial(ranks[high], ranks[low], self._port + low, established=True)
            members[high].attach(low, dialled[0])
            members[low].attach(high, dialled[1])
        return Replica(w, self.schedule, members, seed, f"{number}")

    def _ring(self, ranks: list[Process]) -> list[RingMember]:
        """Return the members of a ring of NCCL's, each connected to the next."""
        members = [RingMember(p, i, len(ranks), self.scenario.seed) for i, p in enumerate(ranks)]
        for i, member in enumerate(members if len(ranks) > 1 else ()):
            after = members[(i + 1) % len(members)]
            port = self._port + after.rank
            near, far = self.dialler.dial(member.process, after.process, port, established=True)
            member.send_to(near)
            after.receive_from(far)
        return members

    def _mesh(self, ranks: list[Process]) -> list[MeshMember]:
        """Return members of NCCL's with a connection each way: between neighbours, or between all."""
        size, chain = len(ranks), self.scenario.workload.pattern == "chain"
        members = [MeshMember(p, i, size, self.scenario.seed) for i, p in enumerate(ranks)]
        for a, b in permutations(range(size), 2):
            if chain and b != (a + 1) % size:
                continue
            near, far = self.dialler.dial(ranks[a], ranks[b], self._port + b, established=True)
            members[a].send_to(b, near)
            members[b].receive_from(a, far)
        for b in range(1, size if not chain else 1):
            near, far = self.dialler.dial(ranks[0], ranks[b], self._port + 50, established=True)
            members[0].tell(near)
            members[b].hear(far)
        return members

    def _client(self, name: str) -> Client:
        w = self.scenario.workload
        return Client(self.processes["lg"], self.dialler, self.entry, w, self.scenario.seed, name)

    def _clients(self) -> None:
        w, schedule = self.scenario.workload, self.schedule
        slow = schedule.of("slow_reader")
        for i in range(w.clients):
            client = self._client(str(i))
            if slow and i < -(-slow[0].fault.share * w.clients // 1):
                client.buffer, client.stalls = SMALL_BUFFER_BYTES, slow
            client.start(self.loop.now + (self._warm_ns * i) // (2 * w.clients))
        for entry in schedule.of("overload"):
            for i in range(round((entry.fault.strength - 1) * w.clients)):
                self._visit(self._client(f"extra {i}"), entry, i)
        for entry in schedule.of("long_prompts"):
            client = self._client("long")
            client.prompt_tokens = round(w.prompt_tokens * entry.fault.strength)
            client.answer_tokens = 4
            self._visit(client, entry, 0)

    def _visit(self, client: Client, entry: Active, number: int) -> None:
        client.until_ns = entry.end_ns
        client.start(entry.start_ns + 2_000_000 * number)

    def _foreign(self) -> None:
        w, processes = self.scenario.workload, self.processes
        ranks = w.ranks
        end_ns = self.start_ns + seconds(self.scenario.duration_s)
        stops = self.schedule.of("reader_stops")
        if w.bulk_bps or stops:
            target = stops[0].fault.target if stops else 0
            source = target // ranks * ranks + (target + 1) % ranks
            near, far = self.dialler.dial(
                processes[str(source)], processes[str(target)], self._port + 100, established=True
            )
            for entry in stops:
                self.loop.at(entry.start_ns, far.receiver.block, entry.end_ns)
            Bulk(self.loop, near, w.bulk_bps or DEFAULT_BULK_BPS, self._filler).run(self.loop.now, end_ns)
        for i in range(-(-w.ranks * w.replicas // w.per_host) if w.heartbeat_s else 0):
            noise = Noise(self.scenario.seed, f"heartbeat {i}")
            hosts, faults = self.network.hosts, self.schedule.of("starved_heartbeat", i)
            beat = Heartbeat(
                self.network, hosts[f"n{i}"], hosts["xa"], w.heartbeat_s, self._filler, noise, faults
            )
            beat.run(self.loop.now, end_ns)
        for entry in self.schedule.of("fetch"):
            every = -(-w.ranks * w.replicas // w.per_host)
            for i in range(entry.fault.target if entry.fault.target > 0 else every):
                fetcher = processes[str(i * w.per_host)]
                self.loop.at(
                    entry.start_ns, self._transfer, entry, processes["xa"], fetcher, self._port + 102
                )
        for entry in self.schedule.of("upload"):
            sender = processes[str(entry.fault.target * w.per_host)]
            self.loop.at(entry.start_ns, self._transfer, entry, sender, processes["xa"], 443)
        for entry in self.schedule.of("cross_traffic"):
            fault = entry.fault
            if fault.where == "deep":
                near, _ = self.dialler.dial(
                    processes["xa"],
                    processes[str(fault.target * w.per_host)],
                    self._port + 101,
                    established=True,
                )
                Bulk(self.loop, near, 0.0, self._filler).run(entry.start_ns, entry.end_ns)
            else:
                src, dst = self.network.hosts["xa"], self.network.hosts[f"n{fault.target}"]
                noise = Noise(self.scenario.seed, f"datagrams {dst.name}")
                udp = Datagrams(self.network, src, dst, fault.strength, self._filler, noise)
                udp.run(entry.start_ns, entry.end_ns)

    def _transfer(self, entry: Active, source: Process, target: Process, port: int) -> None:
        """Send bulk over a connection that begins now."""
        near, _ = self.dialler.dial(source, target, port, established=True)
        Bulk(self.loop, near, entry.fault.strength, self._filler).run(self.loop.now, entry.end_ns)

    def _crash(self, entry: Active) -> None:
        """End a process: sockets close a little later, and the rest of its group gives up in time."""
        victim = self.processes[str(entry.fault.target)]
        self._exit(victim, CRASH_TO_FIN_NS)
        replica = self.replicas[entry.fault.target // self.scenario.workload.ranks]
        for member in replica.members[1:]:  # rank 0's front end stays, without an engine
            if member.process is not victim:
                late_ns = seconds(0.2 + 0.5 * self._luck.next())
                self.loop.at(self.loop.now + late_ns, self._exit, member.process, 0)

    def _exit(self, process: Process, after_ns: int) -> None:
        process.dead = True
        process.stop()
        for endpoint in self.dialler.opened.get(process.name, []):
            self.loop.at(self.loop.now + after_ns, endpoint.close)


RANK_FAULTS = ("straggler", "pause", "crash", "reader_stops", "hot_expert")
LINK_FAULTS = ("loss", "delay", "jitter", "reorder", "rate_limit", "cross_traffic", "link_down", "mtu")
LOAD_FAULTS = ("long_prompts", "overload")
ROUTER_FAULTS = ("uneven_routing", "token_blind_routing")
GATEWAY_FAULTS = ("gateway_buffer", "gateway_ceiling")
OTHER_NAMES = {index: name for name, index in OTHERS.items()}


def culprits(scenario: Scenario, fault: Fault, addresses: dict[str, str]) -> tuple[str, list[str]]:
    """Return (kind, addresses) of the hosts that a fault sits on; any one of them is right."""
    w = scenario.workload
    if fault.kind in RANK_FAULTS and fault.target < 0:
        return "rank", [addresses[f"n{k // w.per_host}"] for k in range(w.ranks * w.replicas)]
    if fault.kind in RANK_FAULTS:
        return "rank", [addresses[f"n{fault.target // w.per_host}"]]
    if fault.kind == "fetch":
        return "host", [addresses["xa"]]
    if fault.kind in ("upload", "starved_heartbeat"):
        return "host", [addresses[f"n{fault.target}"]]
    if fault.kind == "host_busy":
        return "rank" if w.per_host == 1 else "host", [addresses[f"n{fault.target}"]]
    if fault.kind in LINK_FAULTS:
        return "link", [addresses[OTHER_NAMES.get(fault.target, f"n{fault.target}")]]
    if fault.kind == "slow_reader":
        return "client", [addresses["lg"]]
    if fault.kind in ROUTER_FAULTS + GATEWAY_FAULTS:
        return "gateway" if fault.kind in GATEWAY_FAULTS else "router", [addresses["rt"]]
    if fault.kind in LOAD_FAULTS:  # where the work piles up
        return "endpoint", [addresses[f"n{i * w.ranks // w.per_host}"] for i in range(w.replicas)]
    return "endpoint", [addresses[f"n{max(fault.target, 0) // w.per_host}"]]
