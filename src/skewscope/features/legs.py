"""The path between a client and the server that it asks: loss, windows and delay, each direction."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from skewscope.core.features import FeatureColumn, FeatureRows, FeatureSpec, Slice, nan_rows
from skewscope.features.graph import GraphRows
from skewscope.features.reference import Reference
from skewscope.features.transport import PairRows

RECENT = 20
"""Slices (2 s) over which losses and closed windows of a leg are counted together: a stream sends a
segment every 10-100 ms, so fewer slices hold too few segments to speak of a share."""

MAX_LEGS = 8192

SUMMED = (
    "segments_up",
    "segments_down",
    "lost_up",
    "lost_down",
    "zero_windows",
    "zero_window_s",
    "server_zero_windows",
)

DATED = {"lost_up": "lost", "lost_down": "lost", "zero_windows": "zero_windows"}
"""Columns that carry an onset, and the pair's column that gives it."""


class Legs:
    """Per client and server: the requests' direction (up) and the responses' direction (down)."""

    SPEC = FeatureSpec(
        "leg",
        "path between a client and the server or gateway that it asks",
        {
            "segments_up": FeatureColumn("1", "data segments from client to server in the last two seconds"),
            "segments_down": FeatureColumn("1", "the same from server to client"),
            "lost_up": FeatureColumn("1", "copies lost from client to server in the last two seconds"),
            "lost_down": FeatureColumn("1", "the same from server to client"),
            "lost_up_share": FeatureColumn("1", "lost over sent, up"),
            "lost_down_share": FeatureColumn("1", "lost over sent, down"),
            "zero_windows": FeatureColumn("1", "times that the client could take no more, last two seconds"),
            "zero_window_s": FeatureColumn("s", "time in the last two seconds in which it could not"),
            "peers_zero_window_s": FeatureColumn(
                "s", "the most of that among the other clients of the server"
            ),
            "rtt_s": FeatureColumn("s", "least round trip seen on the leg in the window"),
            "rtt_ref_s": FeatureColumn("s", "its reference"),
            "server_zero_windows": FeatureColumn("1", "times that the server could take no more"),
        },
    )
    NEEDS: Sequence[str] = ("host", "pair")

    def __init__(self) -> None:
        self._recent: dict[tuple[int, int], deque[tuple[float, ...]]] = {}
        self._rtt = Reference()
        self._first: dict[tuple[tuple[int, int], str], int] = {}

    def update(self, slice_: Slice, others: Mapping[str, FeatureRows]) -> FeatureRows:
        """Absorb one slice."""
        graph = cast(GraphRows, others["host"])
        pairs = cast(PairRows, others["pair"])
        client = graph.is_client()
        for a, b in pairs.pair_of:
            if client[a] != client[b] and len(self._recent) < MAX_LEGS:
                leg = (a, b) if client[a] else (b, a)
                if graph.serves[leg[1]]:
                    self._recent.setdefault(leg, deque(maxlen=RECENT))
        legs = sorted(self._recent)
        columns = {name: nan_rows(len(legs)) for name in self.SPEC.columns}
        onset = {n: np.zeros(len(legs), dtype=np.int64) for n in DATED}
        frames = {n: np.full((len(legs), 2), -1, dtype=np.int64) for n in onset}
        names = slice_.directory.addresses
        rows = FeatureRows("leg", [f"{names[a]}->{names[b]}" for a, b in legs], columns, onset, frames)
        for i, leg in enumerate(legs):
            self._leg(rows, i, leg, pairs, slice_)
        for i, (_, server) in enumerate(legs):
            others_of = [j for j, other in enumerate(legs) if j != i and other[1] == server]
            columns["peers_zero_window_s"][i] = max(columns["zero_window_s"][others_of], default=0.0)
        return rows

    def _leg(self, rows: FeatureRows, i: int, leg: tuple[int, int], pairs: PairRows, slice_: Slice) -> None:
        c = rows.columns
        up, down = pairs.pair_of.get(leg), pairs.pair_of.get((leg[1], leg[0]))
        p = pairs.columns

        def value(name: str, at: int | None) -> float:
            return float(p[name][at]) if at is not None and np.isfinite(p[name][at]) else 0.0

        # Zero windows are counted on the pair whose data they hold back.
        now = (
            value("segments", up), value("segments", down), value("lost", up), value("lost", down),
            value("zero_windows", down), value("zero_window_s", down), value("zero_windows", up),
        )  # fmt: skip
        recent = self._recent[leg]
        recent.append(now)
        total = np.sum(np.array(recent), axis=0)
        for name, amount in zip(SUMMED, total, strict=True):
            c[name][i] = amount
        c["lost_up_share"][i] = total[2] / max(total[0], 1.0)
        c["lost_down_share"][i] = total[3] / max(total[1], 1.0)
        rtt = [p["rtt_min_s"][at] for at in (up, down) if at is not None and np.isfinite(p["rtt_min_s"][at])]
        if rtt:
            self._rtt.learn(leg, np.array([max(rtt)]), max(rtt))
            c["rtt_s"][i] = max(rtt)
        c["rtt_ref_s"][i] = self._rtt.get(leg)[0]
        self._date(rows, i, leg, pairs, up, down, slice_)

    def _date(
        self, rows: FeatureRows, i: int, leg: tuple[int, int], pairs: PairRows,
        up: int | None, down: int | None,
        slice_: Slice,
    ) -> None:  # fmt: skip
        """Date losses and closed windows by the first of those still counted."""
        c = rows.columns
        for name, source in DATED.items():
            at = up if name == "lost_up" else down
            key = (leg, name)
            if c[name][i] == 0 and not (name == "zero_windows" and c["zero_window_s"][i] > 0):
                self._first.pop(key, None)
                continue
            if key not in self._first:
                onset = pairs.onset_ns.get(source)
                known = int(onset[at]) if onset is not None and at is not None else 0
                self._first[key] = known or slice_.start_ns
            rows.onset_ns[name][i] = self._first[key]
            if at is not None and pairs.columns[source][at] > 0:
                rows.frames[name][i] = pairs.frames[source][at]


FEATURE = Legs
