"""Every number of every finding leads to packets that are there, in the file and under the frame named."""

from pathlib import Path

import numpy as np
import pytest

from skewscope.app import pipeline
from skewscope.core.directory import Directory
from skewscope.sources.captures import Capture
from skewscope.wire.packets import PacketParser

RECORDINGS = Path(pipeline.__file__).parent / "recordings"


def _addresses_by_frame(path):
    """Return for each frame of a capture its two addresses."""
    directory = Directory()
    capture = Capture(Path(path), directory, PacketParser(directory))
    ends = {}
    for batch in capture.batches():
        p = batch["packets"]
        for frame, src, dst in zip(p["frame"].tolist(), p["src"].tolist(), p["dst"].tolist(), strict=True):
            ends[frame] = {directory.addresses[src], directory.addresses[dst]}
    capture.close()
    return ends


@pytest.mark.parametrize("name", sorted(p.name for p in RECORDINGS.iterdir() if p.is_dir()))
def test_every_number_of_a_recorded_fault_leads_to_its_packets(name):
    report = pipeline.run(sorted((RECORDINGS / name).glob("*.pcap.gz")))
    findings = [f for i in report.incidents for f in i.findings]
    assert findings
    files = {}
    for finding in findings:
        hosts = {end.rsplit(":", 1)[0] for end in finding.key.split("->")}
        assert finding.evidence
        for evidence in finding.evidence:
            assert evidence.packets or evidence.spans, (finding.condition, evidence.name)
            for file, frame in evidence.packets:
                assert frame in files.setdefault(file, _addresses_by_frame(file))
            for span in evidence.spans:
                ends = files.setdefault(span.file, _addresses_by_frame(span.file))
                inside = [f for f in range(span.first, span.last + 1) if hosts <= ends[f]]
                assert {span.first, span.last} <= set(inside)
                # Slices hold packets by time and frames are numbered by place: reordering may move a few.
                assert np.isclose(len(inside), span.packets, rtol=0.02)


def test_incidents_tell_what_their_findings_tell():
    report = pipeline.run(sorted((RECORDINGS / "cpu_throttle").glob("*.pcap.gz")))
    for incident in report.incidents:
        assert all(e.packets or e.spans for e in incident.evidence)
