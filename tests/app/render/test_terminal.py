"""The terminal report: first line says it all, 80 columns, no colour needed, nothing hidden."""

import io

import pytest

from skewscope.app.render import terminal
from skewscope.core.report import Evidence, Incident, Report


def _text(report: Report, width: int | None = None, **options: object) -> str:
    out = io.StringIO()
    terminal.print_report(report, out=terminal.console(out, width), **options)  # type: ignore[arg-type]
    return out.getvalue()


def test_the_first_line_is_the_verdict(straggler):
    first = " ".join(_text(straggler).split("\nData")[0].split())
    assert first.startswith("c20")
    assert "rank 2 (10.77.0.12) is slow" in first
    assert first.endswith("38 tokens/s are lost.")


def test_80_columns_and_no_escape_codes(straggler):
    text = _text(straggler)
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text


@pytest.mark.parametrize("width", [40, 60, 200])
def test_other_widths(straggler, width):
    assert max(map(len, _text(straggler, width).splitlines()[:-1])) <= width


def test_all_parts_are_there(straggler):
    text = _text(straggler)
    for part in (
        "95 %  rank 2 (10.77.0.12)",
        "host_cpu",
        "86 ms → 143 ms",
        "n2.pcap.gz:10235 +1",
        "Ruled out",
        "Cannot be told apart",
        "+31.40 s",
        "Lower the weight",
        "It worked if",
        "Next: skewscope diagnose captures/ --html report.html",
        "rank 0, rank 1, rank 3: waits",
        "pcie.h2d_bytes (c10, c14)",
    ):
        assert part in text, part


def test_healthy_says_what_was_seen(healthy):
    text = _text(healthy)
    assert text.startswith("Nothing found")
    assert "4 inputs" in text
    assert "which is not health" in text


def test_no_packets_is_no_verdict():
    assert _text(Report([], (0, 0))).startswith("No verdict")


def test_unknown_is_a_verdict(healthy):
    healthy.incidents = [
        Incident("i", "unknown", "Steps became slower", 0.5, *[healthy.span_ns[0] + 10**9] * 2, None)
    ]
    text = _text(healthy)
    assert text.startswith("unknown: Steps became slower.")
    assert "not determined" in text
    assert "still there at the end" in text


def test_quiet_is_one_line_per_incident(straggler, healthy):
    assert len(_text(straggler, quiet=True).splitlines()) == 1
    assert len(_text(healthy, quiet=True).splitlines()) == 1


def test_control_characters_cannot_steer_the_terminal(straggler):
    straggler.incidents[0].evidence = [Evidence("x\x1b[2J", 1.0, "s", None, [("a\x1b]0;title\x07.pcap", 1)])]
    straggler.incidents[0].summary = "bad \x1b[31m name"
    assert "\x1b" not in _text(straggler)


def test_markup_is_text(straggler):
    straggler.incidents[0].summary = "[bold]x[/bold] [link=http://a]y"
    assert "[bold]x[/bold]" in _text(straggler)


def test_says_that_it_was_interrupted(healthy):
    healthy.interrupted = True
    assert "Interrupted" in _text(healthy)


def test_long_lists_are_cut_and_say_so(straggler):
    incident = straggler.incidents[0]
    incident.evidence = [Evidence(f"feature_{k}", 1.0, "1") for k in range(20)]
    incident.victims = incident.victims * 5
    text = _text(straggler)
    assert "and 8 more in --json" in text
    assert "7 more" in text
