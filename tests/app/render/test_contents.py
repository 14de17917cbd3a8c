"""What captures contain."""

import io
import json

from skewscope.app.render import contents
from skewscope.app.render.terminal import console
from skewscope.core.report import Input, Report


def _text(report: Report) -> str:
    out = io.StringIO()
    contents.print_contents(report, console(out))
    return out.getvalue()


def test_all_parts(straggler):
    text = _text(straggler)
    for part in (
        "n2.pcap.gz",
        "group member, engine",
        "gloo",
        "All 4 inputs overlap for 92 s",
        "No capture taken at router, client 1",
        "shortest at 114 bytes",
        "10.77.0.10 - 10.77.0.11",
    ):
        assert part in text, part
    assert max(map(len, text.splitlines())) <= 80


def test_protocols_are_summed_over_the_inputs():
    inputs = [
        Input("a", "pcap", 5, protocols={"grpc": 3, "gloo": 2}),
        Input("b", "pcap", 5, protocols={"gloo": 4}),
    ]
    report = Report(inputs, (0, 10**10))
    assert contents.protocols(report) == "gloo 6, grpc 3"
    assert "Connections by protocol\n  gloo 6, grpc 3" in _text(report)
    assert json.loads(contents.dumps(report))["inputs"][0]["protocols"] == {"grpc": 3, "gloo": 2}


def test_clocks():
    def report(*spans: tuple[int, int]) -> Report:
        return Report([Input(f"{k}", "pcap", 5, 1, a, b) for k, (a, b) in enumerate(spans)], (0, 10**10))

    assert contents.clocks(report()) == []
    assert "One input" in contents.clocks(report((1, 2)))[0]
    apart = contents.clocks(report((0, 10), (20, 30), (21, 31)))
    assert apart == ["0 shares no time with any other input."]
    chain = contents.clocks(report((0, 10), (8, 20), (18, 30)))
    assert "no moment is covered by all" in chain[0]


def test_json(straggler):
    data = json.loads(contents.dumps(straggler))
    assert data["schema"] == "skewscope.contents/1"
    assert "incidents" not in data
    assert data["clocks"]
    assert data["cannot_see"]


def test_nothing_recognised():
    assert any("No collective group" in s for s in contents.cannot_see(Report([], (0, 0))))
