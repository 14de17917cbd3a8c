import time

from skewscope.core.directory import Directory
from skewscope.core.tables import Heard
from skewscope.sources import inbox as module
from skewscope.sources.formats.prometheus_text import FORMAT
from skewscope.sources.inbox import Inbox, bare_endpoint


def drain(inbox):
    rounds = iter([False, True])
    return list(inbox.batches(lambda: next(rounds)))


def test_time_goes_on_in_silence():
    before = time.time_ns()
    batches = drain(Inbox(Directory()))
    assert all(isinstance(b, Heard) and not b for b in batches)
    assert batches[0].reached_ns >= before


def test_there_is_a_limit(monkeypatch):
    monkeypatch.setattr(module, "MAX_BODIES", 2)
    inbox = Inbox(Directory())
    assert [inbox.put(FORMAT, b"node_load1 1\n", "h:1", "x") for _ in range(3)] == [True, True, False]
    assert sum(len(b["metrics"]) for b in drain(inbox) if b) == 2
    assert inbox.rows == 2
    monkeypatch.setattr(module, "MAX_NOTES", 1)
    for text in "abc":
        inbox.note(text)
    assert inbox.notes == {"a": 1}


def test_sources_are_named_once_and_notes_are_kept():
    directory = Directory()
    inbox = Inbox(directory)
    for body in (b"node_load1 1\n", b"rubbish\n"):
        inbox.put(FORMAT, body, "h:1", "x")
    drain(inbox)
    assert directory.sources == ["h:1"]
    assert inbox.notes == {"1 lines are not samples": 1}


def test_a_spool_that_cannot_be_written_is_told_of(tmp_path):
    (tmp_path / "file").write_text("")
    inbox = Inbox(Directory(), spool=tmp_path / "file")
    assert inbox.put(FORMAT, b"node_load1 1\n", "h:1", "a/{time}.prom")
    assert [n.startswith("cannot keep a body") for n in inbox.notes] == [True]


def test_an_endpoint_is_no_path():
    assert bare_endpoint("../../etc/x") == "_.._etc_x"
    assert bare_endpoint("[fd00::1]:80") == "[fd00::1]:80"
    assert bare_endpoint("..") == "unknown"
