"""Findings, incidents and the report: what diagnosis hands to people and machines."""

from __future__ import annotations

from dataclasses import dataclass, field

SCHEMA = "skewscope.report/1"


@dataclass
class FrameSpan:
    """Frames of one file that a number was measured from, counted as Wireshark counts.

    `packets` of those from `first` to `last` belong to it: the ones that the display filter shows.
    """

    file: str
    first: int
    last: int
    packets: int
    display_filter: str


@dataclass
class Evidence:
    """One number behind a finding.

    `packets` are (file, frame) pairs where single packets carry the number, `spans` the frames of its
    scope that it was measured from.
    """

    name: str
    value: float
    unit: str
    baseline: float | None = None
    packets: list[tuple[str, int]] = field(default_factory=list)
    spans: list[FrameSpan] = field(default_factory=list)


@dataclass
class Finding:
    """A condition that held for one scope over a stretch of event time."""

    condition: str
    scope: str
    key: str
    score: float
    onset_ns: int
    detected_ns: int
    end_ns: int | None
    evidence: list[Evidence] = field(default_factory=list)
    windows: int = 0


@dataclass
class Culprit:
    """A suspect; `kind` is one of entry.CULPRITS."""

    kind: str
    id: str
    name: str
    probability: float


@dataclass
class Cause:
    """A cause class of the runbook and its probability."""

    cause: str
    probability: float


@dataclass
class Victim:
    """Someone who waits because of the culprit."""

    kind: str
    id: str
    name: str
    effect: str = ""


@dataclass
class Impact:
    """What the incident costs. Pairs are (before, during); None = not seen from here."""

    streams: int = 0
    requests: int = 0
    tokens_per_s_lost: float | None = None
    ttft_s: tuple[float | None, float | None] = (None, None)
    chunk_gap_s: tuple[float | None, float | None] = (None, None)
    step_s: tuple[float | None, float | None] = (None, None)


@dataclass
class Action:
    """A safe first step; nothing is done by `diagnose` itself."""

    id: str
    text: str
    risk: str
    reversible: bool
    verify: str = ""


@dataclass
class RuledOut:
    """A neighbour that shares the symptom and the number that excludes it."""

    condition: str
    why: str


@dataclass
class TimelineMark:
    """One event on the incident's timeline."""

    ts_ns: int
    text: str


@dataclass
class Incident:
    """Findings grouped in time and along the graph, with ranked causes and culprits."""

    id: str
    condition: str
    title: str
    score: float
    onset_ns: int
    detected_ns: int
    end_ns: int | None
    culprits: list[Culprit] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)
    also: list[str] = field(default_factory=list)
    victims: list[Victim] = field(default_factory=list)
    impact: Impact = field(default_factory=Impact)
    evidence: list[Evidence] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    ruled_out: list[RuledOut] = field(default_factory=list)
    timeline: list[TimelineMark] = field(default_factory=list)
    cannot_tell: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    summary: str = ""


@dataclass
class NoData:
    """A condition that could not be judged, and the features that were missing."""

    condition: str
    missing: list[str]


@dataclass
class Reading:
    """The last value of one series; of a histogram the mean of all that it counted, and their number."""

    entity: str
    name: str
    labels: str
    value: float | None
    unit: str
    ts_ns: int
    count: int | None = None


@dataclass
class Input:
    """One file, or one series of scrapes, that was read: what it held and what was wrong with it."""

    path: str
    kind: str
    packets: int = 0
    bytes: int = 0
    first_ns: int = 0
    last_ns: int = 0
    link_type: int = 0
    snap_length: int = 0
    host: str = ""
    notes: list[str] = field(default_factory=list)
    roce: dict[str, int] = field(default_factory=dict)
    """Counts of RoCE and InfiniBand packets by kind; empty where there are none."""
    protocols: dict[str, int] = field(default_factory=dict)
    """Connections by what they spoke, as far as their content told."""
    files: int = 1
    rows: dict[str, int] = field(default_factory=dict)
    """Rows of samples by table; empty for captures."""
    names: dict[str, int] = field(default_factory=dict)
    """Rows by canonical name."""
    entities: int = 0
    """How many hosts, ports, GPUs or endpoints it is about."""
    readings: list[Reading] = field(default_factory=list)
    """The last values, where they were asked for."""
    unmapped: dict[str, int] = field(default_factory=dict)
    """Readings left out by the product's name: it is not in the name table."""


@dataclass
class HostRole:
    """A host as learned from traffic."""

    address: str
    name: str
    roles: list[str]
    tap: str = ""


@dataclass
class Edge:
    """Traffic between two hosts, for the topology picture."""

    a: str
    b: str
    kind: str
    bytes_total: int
    packets_total: int


@dataclass
class LaneSpan:
    """A stretch of one member's round: kind is own, inside, wait or transit."""

    member: str
    kind: str
    start_ns: int
    end_ns: int
    frame: tuple[str, int] | None = None


@dataclass
class Lanes:
    """One step of a group, drawn as swim lanes; `label` says healthy or faulty."""

    group: str
    label: str
    start_ns: int
    end_ns: int
    spans: list[LaneSpan] = field(default_factory=list)


@dataclass
class StreamRow:
    """One response stream for the waterfall."""

    client: str
    endpoint: str
    request_ns: int | None
    first_ns: int | None
    end_ns: int | None
    chunk_ns: list[int] = field(default_factory=list)
    status: int = 0
    frame: tuple[str, int] | None = None


@dataclass
class Series:
    """A feature over time, for plots: values at window ends; None = not known."""

    scope: str
    key: str
    name: str
    unit: str
    ts_ns: list[int] = field(default_factory=list)
    values: list[float | None] = field(default_factory=list)


@dataclass
class Group:
    """A collective group as learned: members in address order, traffic and pace."""

    id: str
    members: list[str]
    framing: str
    step_s: float | None = None
    rounds: int = 0


@dataclass
class Report:
    """The whole answer of one run."""

    inputs: list[Input]
    span_ns: tuple[int, int]
    incidents: list[Incident] = field(default_factory=list)
    no_data: list[NoData] = field(default_factory=list)
    hosts: list[HostRole] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    lanes: list[Lanes] = field(default_factory=list)
    streams: list[StreamRow] = field(default_factory=list)
    series: list[Series] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    interrupted: bool = False
