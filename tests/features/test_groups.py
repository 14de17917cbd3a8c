"""Pace of a group against its own pace."""

import numpy as np
import pytest

from skewscope.features.graph import Graph
from skewscope.features.groups import Groups
from skewscope.features.parts import Parts
from skewscope.features.rounds import RoundFeature
from tests.features.packet_tables import MS, Net, at, cell, play
from tests.features.team import ADDRESSES, ring

GROUP = ADDRESSES[0]


def paced(net, until_ms=None):
    return [r["group"] for r in play(net, Graph(), Parts(), RoundFeature(), Groups(), until_ms=until_ms)]


def values(found, name):
    made = [cell(r, GROUP, name) for r in found if GROUP in r.keys]
    return [v for v in made if np.isfinite(v)]


def test_a_steady_group_has_a_ratio_of_one():
    found = paced(ring(40))
    assert values(found, "slowdown_ratio") == pytest.approx(
        [1.0] * len(values(found, "slowdown_ratio")), rel=0.01
    )
    assert values(found, "interval_s")[-1] == pytest.approx(0.0205, rel=0.01)
    assert values(found, "members")[-1] == 3
    assert found[-1].round_s[1] == pytest.approx(0.0205, rel=0.01)
    assert found[-1].settled == {1}


def test_nothing_is_usual_in_the_first_rounds():
    found = paced(ring(4, own_ms=80.0))
    assert values(found, "slowdown_ratio") == []
    assert np.isnan(cell(found[0], GROUP, "longest_ref_s"))


def test_a_slow_group_is_timed_before_any_kind_of_round_was_seen_often():
    """Kinds alternate, so none has come three times; the mean and the largest interval stand in."""
    net = Net(["n0", "n1", "n2"])
    flows = [net.flow(ADDRESSES[i], ADDRESSES[(i + 1) % 3], 41_000 + i, 42_000) for i in range(3)]
    for number, ms in enumerate((1.0, 81.0, 201.0, 281.0, 361.0)):
        for i in range(3):
            more = {"collective": 4 if number % 2 else 6}
            net.message(ms, flows[i], number + 1, 0, i, **more)
            net.message(ms + 0.5, flows[i], number + 1, 0, (i + 1) % 3, **more)
    found = paced(net)
    assert found[1].round_s == {}
    assert found[-1].round_s[1] == pytest.approx((80 + 120 + 80) / 3e3, rel=0.01)
    assert found[-1].longest_s[1] == pytest.approx(0.120, rel=0.01)
    assert found[-1].settled == set()


def test_a_slowdown_does_not_become_usual():
    found = paced(ring(120, late={(n, i): 20.0 for n in range(40, 120) for i in range(3)}))
    ratios = values(found, "slowdown_ratio")
    assert ratios[2] == pytest.approx(1.0, rel=0.02)
    assert ratios[-1] == pytest.approx(2.0, rel=0.05)
    assert values(found, "interval_ref_s")[-1] == pytest.approx(0.0205, rel=0.01)


def test_an_idle_time_is_no_slow_round():
    found = paced(ring(60, late={(30, i): 900.0 for i in range(3)}))
    assert max(values(found, "slowdown_ratio")) < 1.1
    assert values(found, "longest_ref_s")[-1] == pytest.approx(0.0205, rel=0.02)


def test_silence_grows_from_the_last_message_on():
    found = paced(ring(40), until_ms=1_400)
    silence = [cell(r, GROUP, "silence_s") for r in found]
    assert silence[-1] == pytest.approx(1.4 - 0.82, abs=0.03)
    assert silence[-1] - silence[-2] == pytest.approx(0.1)
    row = list(found[-1].keys).index(GROUP)
    assert (found[-1].onset_ns["silence_ratio"][row] - at(0)) / MS == pytest.approx(820, abs=30)
    assert cell(found[-1], GROUP, "silence_ratio") == pytest.approx(silence[-1] / 0.0205, rel=0.02)


def test_message_sizes():
    found = paced(ring(60, size=lambda n: 4096 if n % 10 == 5 else 512))
    assert max(values(found, "message_max_bytes")) == 4096
    assert values(found, "message_bytes")[-1] == 512
    assert values(found, "message_ref_bytes")[-1] == 512
