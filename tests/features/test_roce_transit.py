"""Transit, marks and notifications of RoCE from a synthetic ring, against what its maker put in."""

from dataclasses import replace

import numpy as np
import pytest

from skewscope.app.pipeline import tables
from skewscope.features.roce_transit import congested, crossings
from skewscope.lab.synth.roce_ring import Ring, RingFault, write

RING = Ring(ranks=3, steps=4, collectives=3, message_bytes=60_000, gap_s=5e-4, seed=7, channels=1)


class Seen:
    """What the functions need of a graph: each end's tap is its host's."""

    def __init__(self, roce):
        top = int(roce["flow"].max()) + 1
        self.vantage = np.full((top, 2), -1)
        host = {a: t for a in set(roce["src"]) for t in set(roce["tap"][roce["src"] == a])}
        for a in host:  # a host's own tap is the one that sees all it sends first
            seen = roce["src"] == a
            host[a] = int(roce["tap"][seen][np.argmin(roce["ts_ns"][seen])])
        for f, w, s, d in _ends(roce):
            self.vantage[f, w], self.vantage[f, 1 - w] = host[s], host[d]


def shown(folder, ring):
    write(ring, folder)
    roce = tables(sorted(folder.glob("*.pcap")))["roce"]
    roce = roce.take(np.argsort(roce["ts_ns"], kind="stable"))
    return roce, Seen(roce)


def _ends(roce):
    return zip(roce["flow"], roce["way"], roce["src"], roce["dst"], strict=True)


def test_transit_is_the_latency_of_the_path(tmp_path):
    found = crossings(*shown(tmp_path, RING))
    assert len(found) > 100
    assert np.median(found[:, 1]) == pytest.approx(2_500, rel=0.01)


def test_marks_and_notifications_lie_on_the_way_to_the_congested_rank(tmp_path):
    roce, graph = shown(tmp_path, replace(RING, faults=(RingFault("congestion", 1, 0.5),)))
    marked, told = congested(roce, graph)
    assert len(marked) > 20
    assert len(told) > 0
    ends = {2 * int(f) + int(w): (int(s), int(d)) for f, w, s, d in _ends(roce)}
    ends |= {lane ^ 1: pair[::-1] for lane, pair in ends.items()}
    assert {ends[lane] for lane in told.tolist()} <= {ends[lane] for lane in marked.tolist()}
    assert len({ends[lane][1] for lane in marked.tolist()}) == 1


def test_nothing_is_marked_on_an_idle_network(tmp_path):
    marked, told = congested(*shown(tmp_path, RING))
    assert len(marked) == len(told) == 0
    assert len(crossings(None, None)) == 0
