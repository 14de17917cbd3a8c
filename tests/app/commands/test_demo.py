"""`skewscope demo`."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from skewscope.app import demo
from skewscope.app.cli import main
from tests.app import example_report


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch, fake_pipeline) -> Path:
    for name in ("b_loss", "a_straggler"):
        (tmp_path / "shelf" / name).mkdir(parents=True)
        (tmp_path / "shelf" / name / "n0.pcap.gz").write_bytes(b"")
    (tmp_path / "shelf" / "empty").mkdir()
    monkeypatch.setattr(demo, "RECORDINGS", tmp_path / "shelf")
    monkeypatch.chdir(tmp_path)
    fake_pipeline(lambda paths, progress=None, stop=None, first=None: example_report.straggler())
    return tmp_path


def _run(*arguments: str):
    return CliRunner().invoke(main, ["demo", *arguments])


def test_plays_all_and_writes_pages(shelf):
    result = _run()
    assert result.exit_code == 0
    assert result.stdout.index("a_straggler") < result.stdout.index("b_loss")
    assert "rank 2 (10.77.0.12) is slow" in " ".join(result.stdout.split())
    assert "skewscope-demo/a_straggler.html" in result.stdout
    assert (shelf / "skewscope-demo" / "b_loss.html").exists()


def test_only_one(shelf):
    assert _run("--only", "b_loss", "--out", "pages").exit_code == 0
    assert [p.name for p in (shelf / "pages").iterdir()] == ["b_loss.html"]
    assert _run("--only", "nothing").exit_code == 2


def test_list(shelf):
    assert _run("--list").stdout.split() == ["a_straggler", "b_loss"]


def test_no_recordings(shelf, monkeypatch):
    monkeypatch.setattr(demo, "RECORDINGS", shelf / "none")
    result = _run()
    assert result.exit_code == 3
    assert result.stderr == "skewscope: no recordings are installed\n"
