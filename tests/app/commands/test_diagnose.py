"""`skewscope diagnose`."""

import json

import jsonschema
import pytest
from click.testing import CliRunner

from skewscope.app.cli import main
from skewscope.app.render.json import schema
from tests.app import example_report


@pytest.fixture(autouse=True)
def _pipeline(fake_pipeline):
    fake_pipeline(lambda paths, progress=None, stop=None: example_report.straggler())


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
