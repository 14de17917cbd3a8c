"""The fuzz targets themselves: on their seeds, and on cut and changed seeds, as a small run in CI."""

import random

import pytest

from fuzz.corpus import SEEDS
from fuzz.targets import TARGETS, _rows
from skewscope.sources.formats import otlp_metrics, prometheus_text, remote_write

FORMATS = {m.__name__.rpartition(".")[2]: m.FORMAT for m in (prometheus_text, remote_write, otlp_metrics)}
READ = ("prometheus_text", "remote_write", "otlp_metrics")


def changed(seed: bytes, chance: random.Random) -> bytes:
    """Return the seed with a few bytes changed, a part doubled or the end cut off."""
    data = bytearray(seed)
    for _ in range(chance.randint(1, 8)):
        if data:
            data[chance.randrange(len(data))] = chance.randrange(256)
    at = chance.randrange(len(data) + 1)
    return bytes(data[:at] * 2 if chance.random() < 0.2 else data[:at] if chance.random() < 0.3 else data)


def test_every_target_has_seeds() -> None:
    assert set(SEEDS) == set(TARGETS)
    assert all(list(make()) for make in SEEDS.values())


def test_seeds_of_readings_hold_readings() -> None:
    pytest.importorskip("google.protobuf", reason="protobuf (the extra `metrics`) is not installed")
    for name, count in zip(READ, (6, 1, 1), strict=True):
        for seed in SEEDS[name]():
            assert _rows(FORMATS[name], seed) == count, name


@pytest.mark.parametrize("name", ["capture", "frames", "roce", "stream", "document", "exports", *READ])
def test_changed_seeds_are_taken(name: str) -> None:
    chance = random.Random(name)
    for seed in SEEDS[name]():
        TARGETS[name](seed)
        for _ in range(25):
            TARGETS[name](changed(seed, chance))


def test_changed_captures_are_diagnosed() -> None:
    chance = random.Random(5)
    for seed in SEEDS["diagnose"]():
        for _ in range(4):
            TARGETS["diagnose"](changed(seed, chance))
