"""The comparison of wire and log, on rows made by hand."""

import gzip
import json

import pyarrow as pa
import pytest

from tools import bed_agreement

MS = 1_000_000


@pytest.fixture
def case(tmp_path, monkeypatch):
    """One request: the wire sees it 0.2 ms after sending, and each chunk 0.3 ms before the client does."""
    rows = [(1002, 1, 4), (1050, 2, 4), (1050, 3, 4), (1090, 3, 4), (1095, 3, 9), (1130, 3, 4)]
    http = pa.table(
        {
            "ts_ns": [int(t * MS) for t, _, _ in rows],
            "kind": [k for _, k, _ in rows],
            "flow": [f for _, _, f in rows],
        }
    )
    monkeypatch.setattr(bed_agreement, "tables", lambda path, name: http)
    (tmp_path / "logs").mkdir()
    return tmp_path


def write(case, **changes):
    row = {"sent_ns": 1001 * MS, "first_ns": 1050 * MS + 300_000, "gaps_us": [40_000, 40_100], **changes}
    with gzip.open(case / "logs" / "client-main.jsonl.gz", "wt") as file:
        file.write(json.dumps(row) + "\n")


def test_waits_and_gaps_are_compared_on_the_request_s_own_connection(case):
    write(case)
    first, gaps = bed_agreement.differences(case)
    assert first.tolist() == pytest.approx([-1.3])
    assert gaps.tolist() == pytest.approx([0.0, -0.1])


def test_a_request_that_the_capture_does_not_hold_is_left_out(case):
    write(case, sent_ns=5000 * MS)
    assert not len(bed_agreement.differences(case)[0])
    write(case, first_ns=None)
    assert not len(bed_agreement.differences(case)[0])
