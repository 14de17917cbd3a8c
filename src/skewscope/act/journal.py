"""The audit log: one JSON object a line, on disk before anything is sent, never rewritten.

One process at a time may append (a lock on the file). A last line that was cut off by a crash is removed
when the journal is opened for appending: it was not yet on disk when its writer died, so nothing followed it.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from skewscope.act.ledger import Ledger

VERSION = 1


class JournalError(Exception):
    """The journal cannot be used; the message is one line."""


class JournalBusyError(JournalError):
    """Another process holds the journal."""


def _split(path: Path, data: bytes) -> tuple[list[dict[str, Any]], int]:
    """Return the records and the length of the whole lines; raises JournalError for a damaged line."""
    whole = data.rfind(b"\n") + 1
    records = []
    for number, line in enumerate(data[:whole].splitlines(), 1):
        try:
            record = json.loads(line)
            if record["v"] != VERSION or not isinstance(record["event"], str):
                raise ValueError("unknown version or event")
            int(record["ts_ns"])
        except (ValueError, KeyError, TypeError) as error:
            raise JournalError(
                f"{path}:{number}: damaged ({error}); nothing is done until it is repaired"
            ) from None
        records.append(record)
    return records, whole


def _ledger(path: Path, records: list[dict[str, Any]]) -> Ledger:
    ledger = Ledger()
    for number, record in enumerate(records, 1):
        try:
            ledger.take(record)
        except (ValueError, KeyError, TypeError) as error:
            raise JournalError(f"{path}:{number}: does not fit the lines before ({error})") from None
    return ledger


def look(path: Path) -> Ledger:
    """Return what a journal says, without locking or changing it; an absent one is empty."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Ledger()
    except OSError as error:
        raise JournalError(f"{path}: {error.strerror}") from None
    return _ledger(path, _split(path, data)[0])


class Journal:
    """A journal that is open for appending; `ledger` is what its lines say so far."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise JournalError(f"{path}: {error.strerror}") from None
        try:
            self.ledger = self._begin()
        except BaseException:
            os.close(self._fd)
            raise

    def _begin(self) -> Ledger:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise JournalBusyError(f"{self.path}: another skewscope holds it") from None
        records, whole = _split(self.path, self.path.read_bytes())
        os.ftruncate(self._fd, whole)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # a new file's name must outlive a crash as well
        finally:
            os.close(folder)
        return _ledger(self.path, records)

    def append(self, event: str, ts_ns: int, **fields: Any) -> None:
        """Write one record to disk, then fold it into the ledger."""
        record: Mapping[str, Any] = {"v": VERSION, "ts_ns": ts_ns, "event": event, **fields}
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        try:
            while line:
                line = line[os.write(self._fd, line) :]
            os.fsync(self._fd)
        except OSError as error:
            raise JournalError(f"{self.path}: {error.strerror}") from None
        self.ledger.take(record)

    def close(self) -> None:
        """Release the journal."""
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
