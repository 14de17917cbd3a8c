"""The public names, used as a program would use them."""

from __future__ import annotations

import importlib
from pathlib import Path

import skewscope

RECORDING = Path(skewscope.__file__).parent / "app" / "recordings" / "cpu_throttle"


def test_diagnose_stays_a_function_after_the_first_run():
    reports = [skewscope.diagnose(RECORDING) for _ in range(2)]
    assert [r.incidents[0].condition for r in reports] == ["c20", "c20"]
    importlib.import_module("skewscope.diagnose.incidents")
    assert callable(skewscope.diagnose)


def test_tables_are_arrow_tables_of_whole_captures():
    messages = skewscope.tables(RECORDING, "messages")
    assert messages.num_rows > 1000
    assert {"ts_ns", "src", "dst", "tag"} <= set(messages.column_names)
