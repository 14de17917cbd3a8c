"""How readings are shown."""

import io

import pytest

from skewscope.app.render import contents, readings
from skewscope.app.render.terminal import console
from skewscope.core.report import Input, Reading, Report


def reading(name="gpu.power_w", value=1.0, unit="W", labels="", entity="h/gpu0", count=None):
    return Reading(entity, name, labels, value, unit, 5, count)


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (reading(value=8.969), "8.969 W"),
        (reading(value=7557572.0, unit="tokens"), "7,557,572 tokens"),
        (reading(value=None), "not known"),
        (reading(value=4.649e11, unit="bytes/s"), "465 GB/s"),
        (reading(value=79.0, unit="code"), "79"),
        (reading(value=0.5, unit="s", count=1200), "500 ms (mean of 1,200)"),
    ],
)
def test_value_text(one, text):
    assert readings.value_text(one) == text


def test_labels_that_all_share_are_told_once():
    shown = [reading(labels='a="x,=",b="1"'), reading(labels='a="x,=",b="2"'), reading()]
    assert readings.common_labels(shown) == ['a="x,="']
    assert readings.common_labels(shown[:1]) == []


def test_an_input_of_readings_is_explained():
    shown = [reading(labels='m="q",r="1"', entity="e:1"), reading(name="gpu.memory_used_bytes", unit="bytes")]
    one = Input(
        "d/n1.prom",
        "prometheus text",
        first_ns=0,
        last_ns=15 * 10**9,
        files=2,
        rows={"counters": 3, "events": 2},
        names={"gpu.power_w": 3, "gpu.xid": 2},
        entities=2,
        readings=shown,
        unmapped={"odd": 4},
    )
    out = io.StringIO()
    contents.print_contents(Report([one], (0, 15 * 10**9)), console(out))
    text = " ".join(out.getvalue().split())
    assert "1 input: 5 readings." in text
    assert "n1.prom (2 files): prometheus text, 3 counter readings, 2 events about 2 entities" in text
    assert "for 15 s" in text
    assert 'gpu.power_w 1 W m="q", r="1"' in text
    assert "events: gpu.xid 2" in text.replace("gpu.power_w 3, ", "")
    assert "not mapped: odd" in text
    assert "packets" not in text
    assert max(map(len, out.getvalue().splitlines())) <= 80


def test_many_readings_are_cut():
    shown = [reading(name=f"gpu.n{i:02d}") for i in range(readings.SHOWN + 3)]
    one = Input("a", "k", rows={"counters": 43}, entities=1, readings=shown)
    out = io.StringIO()
    contents.print_contents(Report([one], (0, 1)), console(out))
    assert "gpu.n39" in out.getvalue()
    assert "gpu.n40" not in out.getvalue()
    assert "and 3 more readings in --json" in out.getvalue()
