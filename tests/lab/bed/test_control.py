"""Control messages between the runner and programs."""

import pytest

from skewscope.lab.bed.control import heard, listen, ready, tell


def test_a_message_arrives_as_it_was_sent(tmp_path):
    path = tmp_path / "x.ctl"
    with listen(path) as s:
        tell(path, {"go": True, "weights": [1.5, 2]})
        assert heard(s) == {"go": True, "weights": [1.5, 2]}


def test_nobody_listening_is_an_error(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        tell(tmp_path / "none.ctl", {})


def test_what_is_no_table_is_heard_as_nothing(tmp_path):
    path = tmp_path / "x.ctl"
    with listen(path) as s:
        tell(path, [1, 2])
        assert heard(s) == {}


def test_ready_leaves_a_mark(tmp_path):
    ready({"folder": str(tmp_path), "name": "rank-n0"})
    assert (tmp_path / "rank-n0.ready").exists()
