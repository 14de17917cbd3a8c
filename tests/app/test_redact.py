"""Redaction: no original in any output, one pseudonym per original, subnets apart."""

import io

import pytest

from skewscope.app.redact import Redactor, redacted
from skewscope.app.render import contents, html, json, terminal
from skewscope.core.report import Evidence, HostRole, Input, NoData, Reading, Report, Series
from tests.app import example_report

ORIGINALS = [
    *example_report.RANKS,
    example_report.CLIENT,
    example_report.ROUTER,
    "10.77.",
    "n2.pcap",
    "captures/n",
]


def _outputs(report: Report) -> dict[str, str]:
    plain, listing = io.StringIO(), io.StringIO()
    terminal.print_report(report, out=terminal.console(plain), html=None)
    contents.print_contents(report, out=terminal.console(listing))
    return {
        "terminal": plain.getvalue(),
        "inspect": listing.getvalue(),
        "json": json.dumps(report),
        "inspect json": contents.dumps(report),
        "html": html.render(report),
        "repr": repr(report),
    }


def test_nothing_original_stays_in_any_output(straggler):
    before = _outputs(straggler)
    assert all(example_report.RANKS[2] in text for text in before.values())
    for name, text in _outputs(redacted(straggler)).items():
        for original in ORIGINALS:
            assert original not in text, f"{original} in {name}"


def test_the_verdict_stays_readable(straggler):
    text = _outputs(redacted(straggler))["terminal"]
    assert "rank 2 (198.18." in text
    assert "c20" in text


def test_consistent_over_the_report(straggler):
    report = redacted(straggler)
    incident = report.incidents[0]
    culprit = incident.culprits[0].id
    assert f"({culprit})" in incident.summary
    assert culprit in {h.address for h in report.hosts}
    assert incident.evidence[0].packets[0][0] in {i.path for i in report.inputs}
    assert incident.culprits[1].id.startswith(f"{culprit}->")
    assert len({h.address for h in report.hosts}) == len(report.hosts)


def _report(*addresses: str, note: str = "", **fields: object) -> Report:
    hosts = [HostRole(a, "", []) for a in addresses]
    return Report([Input("x.pcap", "pcap")], (0, 1), hosts=hosts, notes=[note], **fields)  # type: ignore[arg-type]


def test_subnets_stay_apart():
    report = redacted(_report("10.1.1.1", "10.1.1.2", "10.2.2.1", "fd00::1", "fd00::2", "fd00:0:0:1::1"))
    a, b, c, d, e, f = (h.address for h in report.hosts)
    assert a.rsplit(".", 1)[0] == b.rsplit(".", 1)[0] != c.rsplit(".", 1)[0]
    assert d.startswith("2001:db8:")
    assert len({a, b, c, d, e, f}) == 6
    assert d.rsplit(":", 1)[0] == e.rsplit(":", 1)[0] != f.rsplit(":", 1)[0]


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("flow 10.0.0.1:8000->10.0.0.2:443", ["10.0.0.1", "10.0.0.2"]),
        ("end of sentence 10.0.0.1.", ["10.0.0.1"]),
        ("fd00::1:8000 and [fd00::1]:443", ["fd00::1"]),
        ("fe80::aede:48ff:fe00:1122%eth0 is up", ["fe80", "aede"]),
        ("from 0a:77:00:00:01:00 to 0A-77-00-00-02-00", ["0a:77", "0A-77"]),
        ("10.0.0.1/gpu3", ["10.0.0.1"]),
    ],
)
def test_addresses_in_texts(text, gone):
    out = redacted(_report("10.0.0.1", "fd00::1", note=text)).notes[0]
    for original in gone:
        assert original not in out
    assert out != text


@pytest.mark.parametrize(
    "text", ["at 14:03:22 UTC", "took 1.5 s", "c20: late", "ratio 3.84::", "version 1.2.3"]
)
def test_other_texts_stay(text):
    assert redacted(_report("10.0.0.1", note=text)).notes[0] == text


def test_an_original_that_looks_like_a_pseudonym():
    report = redacted(_report("10.0.0.1", "198.18.0.1", "198.18.0.2"))
    made = [h.address for h in report.hosts]
    assert len(set(made)) == 3
    assert not {"10.0.0.1", "198.18.0.1", "198.18.0.2"} & set(made)


def test_names_paths_and_taps():
    report = Report(
        [Input("customers/acme/alpha-dpu.pcapng.gz", "pcapng", host="alpha.acme.example")],
        (0, 1),
        hosts=[HostRole("10.0.0.1", "alpha.acme.example", ["client"], tap="p-alpha")],
        notes=["alpha.acme.example sent less; see customers/acme/alpha-dpu.pcapng.gz at p-alpha"],
    )
    text = repr(redacted(report))
    for original in ("acme", "alpha", "customers"):
        assert original not in text
    assert "capture-01.pcapng.gz" in text
    assert "host-01" in text


def test_vocabulary_and_numbers_stay():
    report = _report("10.0.0.1", series=[Series("member", "10.0.0.1", "own_time_s", "s", [1], [0.5])])
    report.no_data = [NoData("c10", ["pcie.h2d_bytes"])]
    out = redacted(report)
    assert out.series[0].name == "own_time_s"
    assert out.series[0].values == [0.5]
    assert out.no_data == report.no_data


def test_a_walk_copies(straggler):
    before = repr(straggler)
    Redactor(straggler).walk(straggler)
    assert repr(straggler) == before
    assert Evidence("x", 1.0, "s").packets == []


def test_hosts_that_are_called_as_their_captures():
    report = Report(
        [Input("alpha7.pcap.gz", "pcap"), Input("healthy.pcap", "pcap")],
        (0, 1),
        notes=["rank on alpha7 (10.0.0.1) is late, a healthy one is not"],
    )
    note = redacted(report).notes[0]
    assert note == "rank on capture-01 (198.18.0.1) is late, a healthy one is not"


def test_what_readings_are_about_is_replaced_too():
    readings = [
        Reading("gpu-node-7/gpu3", "gpu.power_w", 'Hostname="gpu-node-7"', 1.0, "W", 5),
        Reading("10.1.2.3:8000", "engine.requests_running", "", 1.0, "requests", 5),
    ]
    one = Input("d/metrics", "prometheus text", host="10.1.2.3:8000", rows={"metrics": 2}, readings=readings)
    text = repr(redacted(Report([one], (0, 1))))
    assert "gpu-node-7" not in text
    assert "10.1.2.3" not in text
    assert "/gpu3" in text
    assert "gpu.power_w" in text
