"""The cost model against the published numbers that it is calibrated with."""

import numpy as np
import pytest

from skewscope.lab.sim.params import collective_s, load, step_model


def test_kernel_sums_of_a_70b_decode_step() -> None:
    model = step_model("llama70b-tp8-h100")
    for batch, ms in ((1, 10.3), (32, 11.1), (64, 12.1), (128, 14.7)):  # AIConfigurator, 2 k context
        assert model.kernels_s(batch, batch * 2048) == pytest.approx(ms / 1e3, rel=0.05)


def test_prefill_and_the_practitioners_range() -> None:
    model = step_model("llama70b-tp8-h100")
    assert model.kernels_s(0, 0, 2048, 1024) == pytest.approx(0.080, rel=0.05)
    assert 0.018 <= model.kernels_s(1, 2048) + model.overhead_s(1) <= 0.028  # llm-d-inference-sim


def test_collectives_meet_their_tables_and_grow() -> None:
    for name, table in load()["collective"].items():
        sizes = np.array(table["bytes"], float)
        assert collective_s(name, sizes) * 1e6 == pytest.approx(np.array(table["us"]))
        between = collective_s(name, np.geomspace(sizes[0], sizes[-1] * 4, 50))
        assert np.all(np.diff(between) >= -1e-12)


def test_every_number_has_a_source() -> None:
    from importlib.resources import files

    text = files("skewscope.lab.sim").joinpath("params.toml").read_text(encoding="utf-8")
    for name in ("llama70b-tp8-h100", "llama70b-tp8-a100", "llama8b-tp1-h100"):
        block = text.split(f"[step.{name}]")[1].split("\n[")[0]
        assert block.count("#") >= 3, name
