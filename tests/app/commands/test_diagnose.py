"""`skewscope diagnose`."""

import json
import os
import re
import signal
import subprocess
import sys

import jsonschema
import pytest
from click.testing import CliRunner

from bench import mirror
from skewscope.app.cli import main
from skewscope.app.render.json import schema
from tests.app import example_report


@pytest.fixture(autouse=True)
def _pipeline(fake_pipeline):
    fake_pipeline(lambda paths, **_: example_report.straggler())


def _run(*arguments):
    return CliRunner().invoke(main, ["diagnose", *map(str, arguments)])


def test_json_on_stdout_fits_the_schema(capture):
    result = _run(capture, "--json")
    assert result.exit_code == 0
    assert result.stderr == ""
    jsonschema.validate(json.loads(result.stdout), schema())


def test_quiet_is_one_line(capture):
    assert len(_run(capture, "-q").stdout.splitlines()) == 1


def test_html(capture, tmp_path):
    page = tmp_path / "report.html"
    result = _run(capture, "--html", page)
    assert result.exit_code == 0
    assert page.read_text("utf-8").startswith("<!DOCTYPE html>")
    assert "Page: " in result.stdout
    assert "Next: skewscope explain c20" in result.stdout


def test_html_beside_json(capture, tmp_path):
    page = tmp_path / "report.html"
    assert json.loads(_run(capture, "--json", "--html", page).stdout)["incidents"]
    assert page.exists()


def test_a_page_that_cannot_be_written(capture, tmp_path):
    result = _run(capture, "--html", tmp_path / "no-folder" / "report.html")
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("option", ["--json", "-q", "--redact"])
def test_redacted_everywhere(capture, tmp_path, option):
    page = tmp_path / "report.html"
    result = _run(capture, option, "--redact", "--html", page)
    for text in (result.stdout, page.read_text("utf-8")):
        assert "10.77." not in text


def test_the_current_folder_is_the_default(capture, monkeypatch):
    monkeypatch.chdir(capture.parent)
    assert _run().exit_code == 0


@pytest.fixture
def long_capture(tmp_path):
    """A minute of traffic with a fault in its first seconds; reading it takes a few seconds."""
    path = tmp_path / "long.pcap"
    mirror.write(path, copies=2, repeats=12)
    return path


def test_the_first_sign_comes_early_and_an_interrupt_keeps_what_was_found(long_capture):
    command = [sys.executable, "-m", "skewscope.app.cli", "diagnose", str(long_capture)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        line = next(line for line in process.stderr if "first sign" in line)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    host = re.match(r"skewscope: \S+ \S+ c\d\d \w+: rank on (10\.77\.\d\.12) ", line)[1]
    share = int(re.search(r"reading on, (\d+) % read", line)[1])
    assert 0 < share < 90
    assert err.startswith("skewscope: interrupted")
    assert process.returncode == 130
    assert "Interrupted" in out
    assert host in out


def test_the_first_sign_names_nobody_where_the_report_is_redacted(fake_pipeline, capture, straggler):
    def run(paths, progress=None, stop=None, first=None, check_icrc=False, explain=False):
        first(straggler.incidents[0], 0.34)
        return straggler

    fake_pipeline(run)
    culprit = straggler.incidents[0].culprits[0].name
    plain = CliRunner().invoke(main, ["diagnose", "--json", str(capture)])
    hidden = CliRunner().invoke(main, ["diagnose", "--json", "--redact", str(capture)])
    assert culprit in plain.stderr
    assert "(first sign, may change; reading on, 34 % read)" in hidden.stderr
    assert culprit not in hidden.stderr
    assert json.loads(plain.stdout)["incidents"]


def test_quiet_has_no_first_sign(fake_pipeline, capture, straggler):
    def run(paths, progress=None, stop=None, first=None, check_icrc=False, explain=False):
        assert first is None
        return straggler

    fake_pipeline(run)
    assert CliRunner().invoke(main, ["diagnose", "-q", str(capture)]).exit_code == 0
