from pathlib import Path

import pytest

from skewscope.act.actuator import ActuatorError
from skewscope.act.actuators import _files


def test_a_file_is_replaced_whole_with_the_same_rights(tmp_path: Path) -> None:
    path = tmp_path / "x.conf"
    path.write_text("old")
    path.chmod(0o640)
    before = path.stat().st_ino
    _files.replace(path, "new")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o640)
    assert path.stat().st_ino != before
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_keeps_pointing(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    _files.replace(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_what_cannot_be_read_or_written_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "b").write_bytes(b"\xff")
    for path, words in (
        (tmp_path / "no", "No such file"),
        (tmp_path, "directory"),
        (tmp_path / "b", "UTF-8"),
    ):
        with pytest.raises(ActuatorError, match=words):
            _files.read(path)
    with pytest.raises(ActuatorError, match="No such file"):
        _files.replace(tmp_path / "no", "x")
    monkeypatch.setattr(_files, "FILE_BYTES", 0)
    with pytest.raises(ActuatorError, match="larger"):
        _files.read(tmp_path / "b")


def test_a_diff_shows_what_changes(tmp_path: Path) -> None:
    assert _files.diff(tmp_path, "a\nb\nc\n", "a\nB\nc\n").splitlines()[1:] == [" a", "-b", "+B", " c"]
    assert _files.diff(tmp_path, "a\n", "a\n") == ""
