"""The page: self-contained, escaped, complete, and readable without sight or mouse."""

import re
from html.parser import HTMLParser

import pytest

from skewscope.app.render import html
from skewscope.core.report import Evidence, HostRole, Incident, Report, Series

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Outline(HTMLParser):
    """Checks nesting and collects tags."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open[-1] == "li" and tag in ("ul", "ol"):
            self.open.pop()
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> at {self.getpos()}"


def _outline(page: str) -> Outline:
    outline = Outline()
    outline.feed(page)
    assert not outline.open
    return outline


@pytest.mark.parametrize("name", ["straggler", "healthy"])
def test_well_formed_and_self_contained(name, request):
    page = html.render(request.getfixturevalue(name))
    outline = _outline(page)
    for tag, attrs in outline.tags:
        assert tag not in ("link", "img", "iframe", "object"), tag
        assert "src" not in attrs
        assert not (attrs.get("href") or "#").startswith(("http", "//"))
    assert "default-src 'none'" in page
    assert not re.search(r"url\((?!#)", page)
    assert "@import" not in page


def test_ids_are_unique_and_links_lead_somewhere(straggler):
    outline = _outline(html.render(straggler))
    ids = [a["id"] for _, a in outline.tags if "id" in a]
    assert len(ids) == len(set(ids))
    for tag, attrs in outline.tags:
        if tag == "a":
            assert (attrs["href"] or "")[1:] in ids
        for key in ("aria-labelledby",):
            assert key not in attrs or attrs[key] in ids


def test_says_what_the_report_says(straggler):
    page = html.render(straggler).replace("\u00a0", " ")
    for part in (
        "rank 2 (10.77.0.12) is slow",
        "Data: packet captures, recorded on a test bed",
        "n2.pcap.gz:10235",
        "wireshark -r captures/n2.pcap.gz -g 10235",
        "n2.pcap.gz:9001-10600",
        "Healthy rounds beside faulty ones",
        "86 ms",
        "143 ms",
        "Lower the weight",
        "transit p50 stayed",
        "pcie.h2d_bytes",
        "own time of rank 2 leaves its baseline",
        "Who talks to whom",
        "own_time_p95_s",
    ):
        assert part in page, part


def test_figures_have_words_for_those_who_cannot_see_them(straggler):
    outline = _outline(html.render(straggler))
    for tag, attrs in outline.tags:
        if attrs.get("role") == "img":
            assert attrs.get("aria-label"), tag
        if tag == "svg":
            assert attrs.get("aria-hidden") == "true" or attrs.get("role") == "img"
        if tag == "th":
            assert attrs.get("scope") in ("col", "row")


def test_hostile_names_are_text(straggler):
    evil = '"><script>alert(1)</script>'
    straggler.hosts.append(HostRole("10.9.9.9", evil, [evil]))
    straggler.incidents[0].summary = evil
    straggler.incidents[0].culprits[0].name = evil
    straggler.incidents[0].evidence.append(Evidence(evil, 1.0, evil, None, [(evil, 1)]))
    straggler.notes.append(evil)
    straggler.inputs[0].path = evil
    page = html.render(straggler)
    assert page.count("<script>") == 1
    _outline(page)


def test_healthy_page(healthy):
    page = html.render(healthy)
    assert 'class="healthy"' in page
    assert "Nothing found" in page
    assert 'id="incidents"' not in page


def test_an_empty_report_and_a_bare_incident():
    assert "No verdict" in html.render(Report([], (0, 0)))
    bare = Incident("i", "unknown", "Something is slow", 0.4, 5, 6, None)
    page = html.render(Report([], (0, 10), [bare]))
    assert "Not determined" in page
    _outline(page)


def test_unknown_values_are_not_drawn(straggler):
    nan = float("nan")
    straggler.series = [
        Series("member", "10.77.0.12", "own_time_p95_s", "s", [straggler.span_ns[0]] * 3, [nan, None, nan]),
        Series(
            "member",
            "10.77.0.11",
            "own_time_p95_s",
            "s",
            [straggler.span_ns[0] + 1] * 4,
            [1.0, None, 2.0, nan],
        ),
    ]
    straggler.incidents[0].evidence.append(Evidence("x", nan, "s", nan))
    page = html.render(straggler)
    assert "nan" not in page.lower()


def test_numbers_stay_with_their_units(straggler):
    page = html.render(straggler)
    assert "95\u00a0ms" in page
