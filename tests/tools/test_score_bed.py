"""The page of the live bed: what is searched, how it is grouped, what a row says."""

import pytest

from skewscope.core.report import Cause, Culprit, Incident, Report
from skewscope.lab.bed.truth import Fault, Truth, write
from tools import score_bed

FAULT = Fault("c20", "rank", "10.0.0.2", ("host_cpu",), 10.0, 14.0, effect={"step_time_ratio": 1.5})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A right faulty case, a wrong one with more noise, a near miss with four false alarms."""
    for name, variant, noise, faults in (
        ("a.s1", "faulty", "mid", (FAULT,)), ("b.s1", "faulty", "high", (FAULT,)),
        ("c.s1", "near_miss", "mid", ()),
    ):  # fmt: skip
        case = tmp_path / variant / name
        case.mkdir(parents=True)
        bed = {"variant": variant, "noise": noise}
        truth = Truth(name, "bed", 1, "w", 0, 0.93, faults=faults, round_s=0.01, bed=bed)
        (case / "truth.toml").write_text(write(truth))

    def diagnose(paths):
        found = Incident("i", "c20", "", 1.0, 10_100_000_000, 10_500_000_000, None)
        found.culprits, found.causes = [Culprit("rank", "10.0.0.2", "", 0.9)], [Cause("host_cpu", 0.9)]
        count = {"a.s1": 1, "b.s1": 0, "c.s1": 4}[paths[0].parent.name]
        return Report(inputs=[], span_ns=(0, 20_000_000_000), incidents=[found] * count)

    monkeypatch.setattr(score_bed, "diagnose", diagnose)
    return tmp_path


def test_totals_stand_by_variant_and_noise(folder, capsys):
    assert score_bed.main([str(folder)]) == 0
    out = capsys.readouterr().out
    # One of one right: at least 0.025; no alarm in 20 s: at most 3.69 in them.
    assert "| faulty | mid | 1 | 1 (0.03) | 1 | 0 | 20 s (664/h) |" in out
    assert "| faulty | high | 1 | 0 (0.00) | 0 | 0 | 20 s (664/h) |" in out
    assert "| near_miss | mid | 1 | 0 (0.00) | - | 4 |" in out


def test_a_row_says_how_busy_the_machine_was_and_counts_what_is_too_much(folder, tmp_path):
    score_bed.main([str(folder / "faulty"), str(folder / "near_miss"), "--page", str(tmp_path / "x.md")])
    text = (tmp_path / "x.md").read_text()
    assert "| a.s1 | mid | 93% | step_time x1.50 | c20 10.0.0.2 | c20 10.0.0.2 | 0.50 s | right |" in text
    assert "c20 10.0.0.2; 1 more | - | false alarm c20" in text
    assert (
        text.index("## faulty, noise mid") < text.index("## faulty, noise high") < text.index("## near miss")
    )


def test_a_folder_without_cases_is_said(tmp_path):
    assert score_bed.main([str(tmp_path)]) == 3
