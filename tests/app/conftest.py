"""A stand-in for the pipeline, so that the commands are tested without reading packets."""

import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest

import skewscope.app
from skewscope.core.report import Report
from tests.app import example_report


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands say nothing of compilation, whatever the state of the kernels' cache."""
    monkeypatch.setattr("skewscope.app.warm.is_first_run", lambda: False)


@pytest.fixture
def straggler() -> Report:
    return example_report.straggler()


@pytest.fixture
def healthy() -> Report:
    return example_report.healthy()


@pytest.fixture
def fake_pipeline(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., Report]], None]:
    """Return a function that puts another `run` in the place of the pipeline's."""

    def install(run: Callable[..., Report]) -> None:
        fake = types.ModuleType("skewscope.app.pipeline")
        fake.run = run  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "skewscope.app.pipeline", fake)
        monkeypatch.setattr(skewscope.app, "pipeline", fake, raising=False)

    return install


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Return a file that starts as a capture does."""
    path = tmp_path / "n0.pcap"
    path.write_bytes(b"\xd4\xc3\xb2\xa1" + bytes(20))
    return path
