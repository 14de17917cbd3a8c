import multiprocessing
from pathlib import Path

import pytest

from skewscope.act.journal import Journal, JournalBusyError, JournalError, look
from skewscope.act.ledger import action_to
from tests.core.test_action import ACTION


def test_what_is_appended_is_there_again(tmp_path: Path) -> None:
    path = tmp_path / "act.jsonl"
    with Journal(path) as journal:
        journal.append("started", 3)
        journal.append("intended", 5, action=action_to(ACTION))
    assert look(path).actions.keys() == {"a1"}
    with Journal(path) as journal:
        assert (journal.ledger.started_ns, [a.id for a in journal.ledger.in_force()]) == (3, ["a1"])
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("cut", range(1, 40, 7))
def test_a_line_that_a_crash_cut_off_is_as_if_it_was_never_written(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "act.jsonl"
    with Journal(path) as journal:
        journal.append("started", 3)
        journal.append("intended", 5, action=action_to(ACTION))
    path.write_bytes(path.read_bytes()[:-cut])
    assert not look(path).actions
    with Journal(path) as journal:
        assert not journal.ledger.actions
        journal.append("intended", 9, action=action_to(ACTION))
    assert look(path).actions["a1"].state == "intended"


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b'{"v":2,"ts_ns":1,"event":"started"}',
        b'{"v":1,"ts_ns":1,"event":"applied","id":"a9"}',
        b"\xff",
        b"[]",
        b'{"v":1,"ts_ns":null,"event":"started"}',
        b'{"v":1,"ts_ns":1,"event":"intended","action":{}}',
    ],
)
def test_a_damaged_journal_is_refused_with_its_line(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "act.jsonl"
    path.write_bytes(b'{"v":1,"ts_ns":1,"event":"started"}\n' + line + b"\n")
    for use in (look, Journal):
        with pytest.raises(JournalError, match=r"act\.jsonl:2: ") as caught:
            use(path)
        assert "\n" not in str(caught.value)


def test_there_is_one_writer(tmp_path: Path) -> None:
    path = tmp_path / "act.jsonl"
    with Journal(path):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.apply(_try, (path,)) == "busy"
        with pytest.raises(JournalBusyError):
            Journal(path)
    Journal(path).close()


def _try(path: Path) -> str:
    try:
        Journal(path).close()
    except JournalBusyError:
        return "busy"
    return "free"


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "act.jsonl", tmp_path):
        with pytest.raises(JournalError):
            Journal(path)
    assert not look(tmp_path / "no" / "act.jsonl").actions
