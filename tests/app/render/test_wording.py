"""Sentences that terminal and page share."""

import pytest

from skewscope.app.render import wording
from skewscope.core.report import Culprit, Evidence, FrameSpan, Input, Report, Victim


@pytest.mark.parametrize(
    ("kind", "key", "name", "text"),
    [
        ("rank", "10.0.0.3", "rank 2", "rank 2 (10.0.0.3)"),
        ("rank", "10.0.0.3", "rank on n2 (10.0.0.3)", "rank on n2 (10.0.0.3)"),
        ("link", "10.0.0.3->fabric", "link of n2 (10.0.0.3)", "link of n2 (10.0.0.3)"),
        ("endpoint", "10.0.0.3:8000", "engine at 10.0.0.3:8000 on n2", "engine at 10.0.0.3:8000 on n2"),
        ("host", "10.0.0.3", "", "host 10.0.0.3"),
        ("host", "10.0.0.3", "10.0.0.3", "host 10.0.0.3"),
    ],
)
def test_a_suspect_is_named_once(kind, key, name, text):
    assert wording.suspect(Culprit(kind, key, name, 0.9)) == text


def test_short_names():
    assert wording.short_name("link of n2 (10.0.0.3)", "10.0.0.3->fabric") == "link of n2"
    assert wording.short_name("", "10.0.0.3") == "10.0.0.3"
    both = wording.short_name("link between a (10.0.0.1) and b (10.0.0.2)", "10.0.0.1->10.0.0.2")
    assert both == "link between a and b"


def test_the_condition_is_not_said_twice(straggler):
    incident = straggler.incidents[0]
    incident.summary = "c20: it is late"
    assert wording.sentence(incident) == "it is late."


def test_victims_with_one_effect_stand_together(straggler):
    incident = straggler.incidents[0]
    incident.victims.append(Victim("endpoint", "10.0.0.1:80", "", "its streams are late"))
    assert wording.victims(incident) == [
        ("rank 0, rank 1, rank 3", "waits 54 ms a round"),
        ("10.0.0.1:80", "its streams are late"),
    ]


def test_paths_as_typed():
    assert wording.shell_paths(["a/x.pcap", "a/y.pcap"]) == "a/"
    assert wording.shell_paths(["x.pcap", "y.pcap"]) == "."
    assert wording.shell_paths(["a b.pcap"]) == "'a b.pcap'"
    assert wording.shell_paths(["a/x", "b/y", "c/z", "d/w"]) == "a/x b/y c/z ..."


def test_the_next_command(straggler, healthy):
    assert wording.next_command(straggler, None).endswith("--html report.html")
    assert wording.next_command(straggler, "r.html") == "skewscope explain c20"
    assert wording.next_command(healthy, None) == "skewscope inspect captures/"


def test_the_rest_without_data_is_counted():
    report = Report([Input("x", "pcap", 5)], (0, 10**9))
    assert wording.not_judged(report) == ""


def test_where_a_number_comes_from():
    span = FrameSpan("x/n1.pcap", 7, 90, 12, "ip.addr == 10.0.0.1")
    assert wording.traces(Evidence("x", 1.0, "s")) == ""
    assert wording.traces(Evidence("x", 1.0, "s", None, [("x/n1.pcap", 8)], [span])) == "n1.pcap:8"
    assert wording.traces(Evidence("x", 1.0, "s", None, [], [span, span])) == "n1.pcap:7-90 +1"
    assert wording.frames(FrameSpan("f", 7, 7, 1, "")) == "7"


def test_commands_that_show_the_packets():
    assert wording.wireshark("a b.pcap", first=7) == "wireshark -r 'a b.pcap' -g 7"
    shown = wording.wireshark("n1.pcap", "ip.addr == 10.0.0.1", first=7, last=90)
    assert shown == (
        "wireshark -r n1.pcap -Y 'frame.number >= 7 && frame.number <= 90 && ip.addr == 10.0.0.1'"
    )
    assert wording.wireshark("n1.pcap", first=7, last=90).endswith("frame.number <= 90'")
