"""The demonstration: recorded faults that ship with the project, through the whole product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from skewscope.core.report import Report

LABEL = "Data: real packets, recorded on the project's test bed with an injected fault"
RECORDINGS = Path(__file__).parent / "recordings"


@dataclass(frozen=True)
class Recording:
    """A folder of captures of one recorded fault."""

    name: str
    files: tuple[Path, ...]


@dataclass(frozen=True)
class Shown:
    """What the demonstration made of one recording."""

    recording: Recording
    report: Report
    page: Path


def recordings(folder: Path | None = None) -> list[Recording]:
    """Return the recordings that ship with the project, in order of name."""
    folder = folder or RECORDINGS
    if not folder.is_dir():
        return []
    found = []
    for path in sorted(p for p in folder.iterdir() if p.is_dir()):
        files = tuple(sorted([*path.glob("*.pcap*"), *path.glob("*.pcapng*")]))
        if files:
            found.append(Recording(path.name, tuple(dict.fromkeys(files))))
    return found


def play(found: list[Recording], pages: Path) -> Iterator[Shown]:
    """Diagnose each recording and write its page into the folder `pages`."""
    from skewscope.app import pipeline
    from skewscope.app.render import html

    pages.mkdir(parents=True, exist_ok=True)
    for recording in found:
        report = pipeline.run(list(recording.files))
        report.notes.insert(0, LABEL)
        page = pages / f"{recording.name}.html"
        page.write_text(html.render(report), encoding="utf-8")
        yield Shown(recording, report, page)
