"""Compare what the wire says with what the clients wrote down, on a recorded case of the test bed.

Usage: python -m tools.bed_agreement CASE
For each request whose sending and first byte are in the captures: time to first byte and chunk gaps, at
the client's tap and in its log. Prints medians and 95th percentiles of the differences in ms. Exit code 1:
one of the 95th percentiles exceeds 1 ms; 3: nothing to compare.
"""

import gzip
import json
import sys
from pathlib import Path

import numpy as np

from skewscope.app.api import tables

REQUEST, HEAD, DATA = 1, 2, 3
"""Kinds of rows of the http table: request seen, response head seen, response bytes seen."""
LIMIT_MS = 1.0
MATCH_NS = 20_000_000


def logged(case: Path) -> list[dict]:
    """Return the clients' rows of a case."""
    rows = []
    for file in sorted((case / "logs").glob("client-*.jsonl.gz")):
        rows += [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    return rows


def differences(case: Path, client: str = "lg") -> tuple[np.ndarray, np.ndarray]:
    """Return the differences (ms) in time to first byte and in chunk gaps, wire less log."""
    http = tables(sorted((case / "taps").glob(f"{client}.pcap*")), "http")
    ts, kind, flow = (http[name].to_numpy() for name in ("ts_ns", "kind", "flow"))
    asked = np.flatnonzero(kind == REQUEST)
    first_ms, gap_ms = [], []
    for row in logged(case):
        if row["first_ns"] is None or not len(asked):
            continue
        near = asked[np.argmin(np.abs(ts[asked] - row["sent_ns"]))]
        same = np.flatnonzero((flow == flow[near]) & (ts > ts[near]) & (kind == DATA))
        if abs(ts[near] - row["sent_ns"]) > MATCH_NS or not len(same):
            continue
        wire_ns = ts[same[0]] - ts[near]
        first_ms.append((wire_ns - (row["first_ns"] - row["sent_ns"])) / 1e6)
        gaps = np.diff(ts[same])[: len(row["gaps_us"])] / 1e6
        gap_ms += list(gaps - np.array(row["gaps_us"][: len(gaps)]) / 1e3)
    return np.array(first_ms), np.array(gap_ms)


def main() -> int:
    """Print the comparison of one case."""
    first, gaps = differences(Path(sys.argv[1]))
    if not len(first) or not len(gaps):
        print("nothing to compare")
        return 3
    worst = 0.0
    for name, found in (("time to first byte", first), ("chunk gap", gaps)):
        p50, p95 = np.percentile(np.abs(found), [50, 95])
        worst = max(worst, p95)
        print(f"{name}: wire and log differ by {p50:.3f} ms (median), {p95:.3f} ms (p95) over {len(found)}")
    return int(worst > LIMIT_MS)


if __name__ == "__main__":
    sys.exit(main())
