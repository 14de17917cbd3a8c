"""`skewscope compare`."""

import json

from click.testing import CliRunner

from skewscope.app.cli import main
from skewscope.app.commands.compare import spread
from tests.app import example_report


def test_paths_after_with_belong_to_it():
    assert spread(["a", "--with", "b", "c", "--json"]) == ["a", "--with", "b", "--with", "c", "--json"]
    assert spread(["--with", "b", "--json", "a"]) == ["--with", "b", "--json", "a"]


def test_two_sets(fake_pipeline, capture):
    other = capture.parent / "slow.pcap"
    other.write_bytes(capture.read_bytes())
    seen = []

    def run(paths, progress=None, stop=None, first=None, check_icrc=False, explain=False):
        seen.append([p.name for p in paths])
        return example_report.straggler()

    fake_pipeline(run)
    result = CliRunner().invoke(main, ["compare", str(capture), "--with", str(other), str(capture), "--json"])
    assert result.exit_code == 0
    assert seen == [["n0.pcap"], ["slow.pcap", "n0.pcap"]]
    assert json.loads(result.stdout)["changes"]


def test_both_sets_are_needed(capture):
    assert CliRunner().invoke(main, ["compare", str(capture)]).exit_code == 2
    assert CliRunner().invoke(main, ["compare", "--with", str(capture)]).exit_code == 2
