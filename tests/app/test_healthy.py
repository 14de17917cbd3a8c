"""The ledger of healthy hours, without a bed: turns, lines, what goes on where."""

import pytest

from skewscope.app import healthy
from skewscope.core.report import Incident, Report
from skewscope.lab.bed.record import BusyError, Case
from skewscope.lab.bed.truth import Truth


@pytest.fixture
def bed(monkeypatch):
    """A bed that writes a case; every third is refused. A diagnosis that finds c38 in piece 1."""
    made = []

    def record(drawn, folder, snap, say, paired):
        assert not paired
        made.append(drawn)
        if len(made) % 3 == 0:
            raise BusyError("others took the bed's time")
        (folder / "taps").mkdir(parents=True)
        truth = Truth("x", "bed", drawn.seed, "w", 0, 0.5, bed={"waited_ratio": 0.01})
        return Case(folder, truth, 1)

    def diagnose(paths):
        found = [Incident("i", "c38", "", 1.0, 5, 6, None)] if "00001" in str(paths[0]) else []
        return Report(inputs=[], span_ns=(0, 120_000_000_000), incidents=found)

    monkeypatch.setattr(healthy, "record", record)
    monkeypatch.setattr(healthy, "diagnose", diagnose)
    return made


def run(tmp_path, monkeypatch, pieces):
    """Make `pieces` pieces: the clock runs out behind them."""
    ticks = iter([0.0, *[1.0] * pieces, 1e9])
    monkeypatch.setattr(healthy.time, "monotonic", lambda: next(ticks))
    healthy.run(tmp_path / "ledger.tsv", tmp_path / "cases", 60.0, 120.0, lambda _: None)


def test_a_later_run_goes_on_behind_the_last_line(bed, tmp_path, monkeypatch):
    run(tmp_path, monkeypatch, 2)
    run(tmp_path, monkeypatch, 2)
    found = healthy.read_ledger(tmp_path / "ledger.tsv")
    assert [p.number for p in found] == [0, 1, 2, 3]
    assert len({p.case for p in found}) == 4
    assert [d.seed for d in bed] == [healthy.FIRST_SEED + k for k in range(4)]


def test_a_refused_piece_has_no_exposure_and_a_false_alarm_keeps_its_case(bed, tmp_path, monkeypatch):
    run(tmp_path, monkeypatch, 3)
    quiet, alarmed, refused = healthy.read_ledger(tmp_path / "ledger.tsv")
    assert (quiet.exposure_s, quiet.false_alarms, quiet.not_used) == (120.0, "", "")
    assert alarmed.false_alarms == "c38 -"
    assert (refused.exposure_s, refused.not_used) == (0.0, "others took the bed's time")
    assert [p.name for p in (tmp_path / "cases").iterdir()] == ["00001"]


def test_all_scenarios_and_all_levels_of_noise_take_turns():
    turns = healthy.turns()
    drawn = [healthy.planned(k, 120.0) for k in range(len(turns))]
    assert {d.name for d in drawn} >= {"c20_tp_straggler", "c32_gateway_buffering"}
    assert {d.workload.noise for d in drawn} == set(healthy.NOISES)
    assert not any(d.expected.condition for d in drawn)
    for d in drawn:
        assert d.lead_s + d.fault_s + d.after_s == pytest.approx(120.0)
    again = healthy.planned(len(turns), 120.0)
    assert (again.name, again.variant) == (drawn[0].name, drawn[0].variant)
    assert (again.seed, again.workload.noise) != (drawn[0].seed, drawn[0].workload.noise)


def test_a_damaged_line_is_named(tmp_path):
    ledger = tmp_path / "ledger.tsv"
    ledger.write_text("number\tutc\n1\tx\n")
    with pytest.raises(ValueError, match="line 2"):
        healthy.read_ledger(ledger)


def test_the_rules_have_a_name_of_eight_digits_that_stays():
    assert healthy.rules() == healthy.rules()
    assert len(healthy.rules()) == 8
