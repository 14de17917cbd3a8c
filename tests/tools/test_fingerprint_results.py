"""Figures of fingerprinting and their page, on small platforms made by hand."""

from __future__ import annotations

from tests.fingerprint.answers import collection
from tools.fingerprint_page import page
from tools.fingerprint_results import (
    distances,
    emulated,
    flips,
    open_set,
    separation,
    share_interval,
    storage,
)

PLATFORMS = [
    collection("torch-fp32", repeats=2),
    collection("torch-fp32@2"),
    collection("torch-fp32-eager", error=1e-5, platform=1),
    collection("torch-bf16", grid="bf16"),
    collection("torch-bf16-flip", grid="bf16", error=0.1, platform=2),
]


def test_figures_say_what_the_platforms_are() -> None:
    assert separation(PLATFORMS)[0]["classes"] == 4
    assert storage(PLATFORMS)["right"] == 5
    found = open_set(PLATFORMS, [])
    assert found["left_out"]["refused"] == 4
    assert (found["again"]["right"], found["again"]["of"], found["again"]["wrongly_refused"]) == (5, 5, 0)
    assert found["again"]["false_alarm_bound"] > 0.1  # five checks prove little
    assert [row[0] for row in flips({p.name: p for p in PLATFORMS})] == ["bf16"]
    assert "fp32 / fp32" in [row[0] for row in distances(PLATFORMS)]
    assert share_interval(0, 0) == (0.0, 1.0)


def test_the_page_labels_data_and_shows_only_what_was_measured() -> None:
    text = page(
        {
            "date": "2026-01-01",
            "version": "0",
            "vectors": None,
            "speed_mmac_s": {"H100 fp16": 1.0},
            "published_rules_only": [],
            "platforms": len(PLATFORMS),
            "positions": 80,
            "build": {},
            "members": [["a", "b"], ["c"]],
            "separation": separation(PLATFORMS),
            "distances": distances(PLATFORMS),
            "storage": storage(PLATFORMS),
            "unpaired": [],
            "open_set": open_set(PLATFORMS, [PLATFORMS[1]]),
            "flips": [],
            "borders": [],
            "emulated": emulated([]),
        }
    )
    assert "not at hand" in text
    assert "not shown: the exposure is too small" in text
    assert text.count("(real CPU)") >= 5
    assert text.count("(emulated)") == 2
