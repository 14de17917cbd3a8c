"""Comparison: what changed most comes first, hosts are matched, silence is stated."""

import io
import json

from skewscope.app.compare import compare, match_hosts, summarise
from skewscope.app.render import comparison
from skewscope.app.render.terminal import console
from skewscope.core.report import Group, HostRole, Input, Report, Series


def _report(
    values: dict[str, list[float]], hosts: list[HostRole], groups: list[Group] | None = None
) -> Report:
    series = [
        Series("member", key, "own_time_s", "s", list(range(len(v))), list(v)) for key, v in values.items()
    ]
    return Report([Input("x", "pcap", 5)], (0, 10), hosts=hosts, series=series, groups=groups or [])


def _host(address: str, name: str = "", role: str = "group member") -> HostRole:
    return HostRole(address, name, [role])


STEADY = [0.040, 0.041, 0.042, 0.041, 0.040, 0.041]


def test_the_slow_one_comes_first():
    hosts = [_host("10.0.0.1"), _host("10.0.0.2")]
    before = _report({"10.0.0.1": STEADY, "10.0.0.2": STEADY}, hosts)
    after = _report({"10.0.0.1": STEADY, "10.0.0.2": [v * 2 for v in STEADY]}, hosts)
    first, second = compare(before, after).changes
    assert first.key == "10.0.0.2"
    assert first.effect > 10 * abs(second.effect)
    assert first.at in ("median", "p95")


def test_a_tail_that_grew_is_seen():
    hosts = [_host("10.0.0.1")]
    pulses = [*STEADY * 3, 0.2, 0.2]
    result = compare(_report({"10.0.0.1": STEADY}, hosts), _report({"10.0.0.1": pulses}, hosts))
    assert result.changes[0].at == "p95"
    assert result.changes[0].effect > 3


def test_hosts_by_address_else_by_role():
    healthy = [
        _host("10.0.0.1", "rank 0"),
        _host("10.0.0.2", "rank 1"),
        _host("10.0.0.9", "client 1", "client"),
    ]
    slow = [_host("10.9.0.2", "rank 1"), _host("10.9.0.1", "rank 0"), _host("10.0.0.9", "client 1", "client")]
    matched, by_role = match_hosts(healthy, slow)
    assert matched == {"10.0.0.1": "10.9.0.1", "10.0.0.2": "10.9.0.2", "10.0.0.9": "10.0.0.9"}
    assert len(by_role) == 2


def test_links_flows_and_groups_follow_their_hosts():
    before = _report(
        {"10.0.0.1->10.0.0.2": STEADY, "10.0.0.1:8000": STEADY},
        [_host("10.0.0.1", "a"), _host("10.0.0.2", "b")],
        [Group("10.0.0.1", ["10.0.0.1", "10.0.0.2"], "gloo")],
    )
    after = _report(
        {"10.9.0.1->10.9.0.2": STEADY, "10.9.0.1:8000": STEADY},
        [_host("10.9.0.1", "a"), _host("10.9.0.2", "b")],
        [Group("10.9.0.2", ["10.9.0.1", "10.9.0.2"], "gloo")],
    )
    before.series.append(Series("group", "10.0.0.1", "interval_s", "s", [0, 1, 2], [1.0, 1.0, 1.0]))
    after.series.append(Series("group", "10.9.0.2", "interval_s", "s", [0, 1, 2], [1.0, 1.0, 1.0]))
    result = compare(before, after)
    assert {c.other_key for c in result.changes} == {"10.9.0.1->10.9.0.2", "10.9.0.1:8000", "10.9.0.2"}
    assert any("Matched by role" in n for n in result.notes)


def test_what_has_no_counterpart_is_stated():
    result = compare(
        _report({"10.0.0.1": STEADY}, [_host("10.0.0.1")]),
        _report({"10.0.0.2": STEADY}, [_host("10.0.0.2", role="client")]),
    )
    assert not result.changes
    assert result.only_healthy == ["10.0.0.1"]
    assert result.only_slow == ["10.0.0.2"]
    assert result.not_compared == 1


def test_unknown_values():
    series = Series("member", "a", "x", "s", [0, 1, 2, 3], [None, float("nan"), 1.0, 2.0])
    assert summarise(series) is None
    series.values = [1.0, 1.0, 1.0, None]
    summary = summarise(series)
    assert summary is not None
    assert (summary.median, summary.spread, summary.count) == (1.0, 0.0, 3)


def test_zero_before_does_not_divide_by_zero():
    hosts = [_host("10.0.0.1")]
    result = compare(_report({"10.0.0.1": [0.0] * 5}, hosts), _report({"10.0.0.1": [3.0] * 5}, hosts))
    assert result.changes[0].effect > 0


def test_table_and_json(healthy, straggler):
    for series in healthy.series:
        series.values = [v if k < 30 else series.values[k % 30] for k, v in enumerate(series.values)]
    result = compare(healthy, straggler)
    out = io.StringIO()
    comparison.print_comparison(result, 3, console(out))
    lines = out.getvalue().splitlines()
    assert lines[0].startswith("Changed most: own_time_p95_s of member 10.77.0.12")
    assert max(map(len, lines)) <= 80
    data = json.loads(comparison.dumps(result))
    assert data["schema"] == "skewscope.comparison/1"
    assert data["changes"][0]["key"] == "10.77.0.12"


def test_nothing_to_compare():
    out = io.StringIO()
    empty = _report({}, [])
    comparison.print_comparison(compare(empty, empty), out=console(out))
    assert out.getvalue().startswith("Nothing to compare")
