"""Injectors: found by name, checked settings, undoing, ramps."""

import pytest

from skewscope.lab.bed import injector


class Recorder(injector.Injector):
    NAME = "recorder"
    STRENGTH = "x"

    def __init__(self):
        self.seen = []

    def start(self, strength):
        self.seen.append(("start", strength))

    def stop(self):
        self.seen.append(("stop",))


def test_all_injectors_are_found_and_say_what_their_strength_is():
    found = injector.load_all()
    assert {"cpu_quota", "stop_pulses", "loss", "rate_limit", "path_change", "clients"} <= set(found)
    assert all(kind.STRENGTH and kind.__doc__ for kind in found.values())


LEAST = {
    "bulk_flow": {"src": "xa", "dst": "n0"},
    "clients": {"settings": {}},
    "core_sharing": {"processes": ["rank-n0"]},
    "cpu_hog": {"processes": ["rank-n0"]},
    "cpu_quota": {"process": "rank-n0"},
    "crash": {"process": "rank-n0"},
    "front_end": {"node": "n0", "option": "jitter_ms"},
    "flow_change": {"flow": "kv", "option": "piece_bytes"},
    "gateway": {"option": "buffer_bytes"},
    "kv_option": {"nodes": ["n0"], "option": "before_s"},
    "link_flap": {"node": "n0"},
    "loss": {"node": "n0"},
    "mtu": {"node": "n0"},
    "path_change": {"node": "n0"},
    "rank_option": {"processes": ["rank-n0"], "option": "slow"},
    "rate_limit": {"node": "n0"},
    "router": {},
}


@pytest.mark.parametrize("name", sorted(LEAST))
def test_an_injector_that_never_started_can_be_stopped(name):
    injector.build(None, name, LEAST[name]).stop()  # without a bed: nothing of it may be touched


def test_wrong_names_and_settings_are_refused():
    with pytest.raises(injector.InjectorError, match="there are"):
        injector.build(None, "nonsense", {})
    with pytest.raises(injector.InjectorError, match="colour"):
        injector.build(None, "loss", {"node": "n0", "colour": 1})
    with pytest.raises(injector.InjectorError, match="way"):
        injector.build(None, "loss", {"node": "n0", "way": "sideways"})


def test_undo_goes_backwards_once_and_tries_every_step():
    seen, undo = [], injector.Undo()

    def fail():
        seen.append("fail")
        raise OSError("no")

    undo.later(seen.append, 1)
    undo.later(fail)
    undo.later(seen.append, 2)
    with pytest.raises(OSError, match="no"):
        undo.now()
    undo.now()
    assert seen == [2, "fail", 1]


def test_a_ramp_moves_in_equal_ratios_and_ends_at_the_strength():
    one, waits = Recorder(), []
    injector.ramp(one, 1.0, 16.0, 1.0, waits.append)
    assert [s for kind, *s in one.seen if kind == "start"] == [[2.0], [4.0], [8.0], [16.0]]
    assert waits == [0.25] * 4
