"""Where the recorded faults of the samples are; the rules by which a report is judged are tools.testbed's."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tools import testbed
from tools.testbed import ROUND_S, Truth, faults_of

__all__ = ["NEEDED", "ROOT", "ROUND_S", "SAMPLES", "WHY", "Truth", "expected", "faults_of", "truth"]

SAMPLES = os.environ.get("SKEWSCOPE_SAMPLES", "")
ROOT = Path(SAMPLES) / "testbed"
NEEDED = not SAMPLES or not (ROOT / "expected.toml").is_file()
WHY = "SKEWSCOPE_SAMPLES names no folder that holds testbed/"


def expected() -> dict[str, dict[str, Any]]:
    """Return expected.toml, empty where there are no samples."""
    return {} if NEEDED else testbed.expected(ROOT)


def truth(name: str) -> Truth:
    """Return the truth of one recording."""
    return testbed.truth(ROOT, name)
