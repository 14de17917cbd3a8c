"""`skewscope watch` as a user sees it, with interfaces that are capture files in disguise."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import skewscope
from skewscope.app import watch
from skewscope.app.cli import main
from skewscope.core.directory import Directory
from skewscope.sources.captures import Capture
from skewscope.sources.live import LiveStats

RECORDED = Path(skewscope.__file__).parent / "app" / "recordings" / "cpu_throttle"


class Replayed:
    """A capture file in the place of an interface."""

    def __init__(self, interface, directory: Directory, parser):
        self.interface, self.stats = interface, LiveStats()
        self._capture = Capture(RECORDED / interface, directory, parser)

    def batches(self, stop):
        yield from self._capture.batches()

    def close(self):
        self._capture.close()


@pytest.fixture
def interfaces(monkeypatch):
    monkeypatch.setattr(watch, "LiveTap", Replayed)
    return sorted(p.name for p in RECORDED.iterdir() if ".pcap" in p.name)


def test_live_and_offline_find_the_same_on_the_same_packets(interfaces):
    words = [w for name in interfaces for w in ("--iface", name)]
    done = CliRunner().invoke(main, ["watch", *words])
    assert done.exit_code == 0, done.output
    offline = skewscope.diagnose(RECORDED)
    first = offline.incidents[0]
    assert f"began  {first.condition}" in done.output
    assert first.culprits[0].id in done.output
    live = watch.Watch(interfaces)
    list(live.changes(lambda: False))
    live.close()
    found = [(i.condition, i.culprits[0].id, i.onset_ns) for i in live.report().incidents]
    assert found == [(i.condition, i.culprits[0].id, i.onset_ns) for i in offline.incidents]


def test_an_interface_that_cannot_be_read_is_no_input():
    done = CliRunner().invoke(main, ["watch", "--iface", "nonsense0"])
    assert done.exit_code == 3
    assert "nonsense0: cannot capture" in done.output


def test_without_an_interface_it_is_wrong_usage():
    assert CliRunner().invoke(main, ["watch"]).exit_code == 2


@pytest.mark.parametrize("where", ["http", "a:b", "1:99999"])
def test_a_port_that_is_none_is_wrong_usage(where):
    result = CliRunner().invoke(main, ["watch", "--receive", where])
    assert result.exit_code == 2
    assert "--receive" in result.output


def test_an_endpoint_that_cannot_be_one_is_no_input():
    result = CliRunner().invoke(main, ["watch", "--scrape", "ftp://a/metrics"])
    assert result.exit_code == 3
    assert "only http and https" in result.output
