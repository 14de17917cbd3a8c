"""The smoke suite without a bed: cases that are there are judged; what the table says."""

import pytest

from skewscope.app import smoke
from skewscope.core.report import Cause, Culprit, Incident, Report
from skewscope.lab.bed.record import NoEffectError
from skewscope.lab.bed.truth import Fault, Truth, write

FAULT = Fault("c20", "rank", "10.0.0.2", ("host_cpu",), 10.0, 14.0, effect={"step_time_ratio": 1.5})


@pytest.fixture
def bed(monkeypatch):
    """A bed that writes one case, and a diagnosis that finds its straggler half a second late."""

    def record(drawn, folder, snap, say):
        if drawn.seed < 1000:
            raise NoEffectError("no measurable effect")
        folder.mkdir(parents=True)
        truth = Truth("x", "bed", drawn.seed, "w", 0, 0.1, faults=(FAULT,), round_s=0.01)
        (folder / "truth.toml").write_text(write(truth))

    def diagnose(paths):
        found = Incident("i", "c20", "", 1.0, 10_100_000_000, 10_500_000_000, None)
        found.culprits, found.causes = [Culprit("rank", "10.0.0.2", "", 0.9)], [Cause("host_cpu", 0.9)]
        return Report(inputs=[], span_ns=(0, 1), incidents=[found])

    monkeypatch.setattr(smoke, "record", record)
    monkeypatch.setattr(smoke, "diagnose", diagnose)


def test_a_seed_without_effect_is_said_and_the_next_one_is_tried(bed, tmp_path, capsys):
    smoke.run_suite(["c20"], 1, tmp_path, None)
    out = capsys.readouterr()
    assert "trying another seed" in out.err
    assert [p.name for p in tmp_path.glob("c*")] == ["c20_tp_straggler.faulty.s1001"]
    assert "right" in (tmp_path / "ledger.tsv").read_text()
    for text in ("c20 10.0.0.2", "0.50 s", "step_time x1.50", "1 of 1 right"):
        assert text in out.out


def test_what_was_recorded_is_not_recorded_again(bed, tmp_path, monkeypatch):
    smoke.run_suite(["c20"], 1001, tmp_path, None)

    def never(*_):
        raise AssertionError("recorded twice")

    monkeypatch.setattr(smoke, "record", never)
    smoke.run_suite(["c20"], 1001, tmp_path, None)


def test_a_wrong_answer_counts(bed, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(smoke, "diagnose", lambda _: Report(inputs=[], span_ns=(0, 1), incidents=[]))
    smoke.run_suite(["c20"], 1001, tmp_path, None)
    out = capsys.readouterr().out
    assert "nothing was" in out
    assert "0 of 1 right" in out
