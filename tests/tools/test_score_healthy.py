"""The sums of a ledger: exposure, false alarms, bounds, what is left out."""

import pytest

from skewscope.app.healthy import Piece, append
from tools import score_healthy


def piece(number, kind="healthy", noise="mid", hours=1.0, alarms="", not_used=""):
    return Piece(
        number, f"2026-11-30T0{number}:00:00Z", "0badcafe", f"c20.{kind}.s{number}", kind, noise,
        0.0 if not_used else hours * 3600, 1, 0.5, 0.01, alarms, not_used,
    )  # fmt: skip


@pytest.fixture
def ledger(tmp_path):
    for one in (
        piece(0),
        piece(1, "control", "low", 2.0, "c38 a; c38 b; c20 a"),
        piece(2, not_used="others took the bed's time"),
    ):
        append(tmp_path / "ledger.tsv", one)
    return tmp_path / "ledger.tsv"


def test_rates_and_bounds_are_per_hour_of_what_was_used(ledger, capsys):
    assert score_healthy.main([str(ledger)]) == 0
    rows = {
        x.split(" | ")[0].strip("| *"): x.strip("| ").split(" | ")[1:]
        for x in capsys.readouterr().out.splitlines()
    }
    # No event: the bound is -ln(0.025) = 3.69 events; three events: 8.77.
    assert rows["healthy"] == ["1", "1.00", "0", "0", "0.00", "3.69"]
    assert rows["control"] == ["1", "2.00", "3", "1", "1.50", "4.38"]
    assert rows["all"] == ["2", "3.00", "3", "1", "1.00", "2.92"]
    assert rows["noise high"] == ["0", "0.00", "-", "-", "-", "-"]


def test_the_page_says_what_is_short_of_six_hours_and_lists_every_alarm(ledger, tmp_path):
    assert score_healthy.main([str(ledger), "--page", str(tmp_path / "x.md")]) == 0
    text = (tmp_path / "x.md").read_text()
    assert "3.00 h so far; 6 h were asked for: not shown. 1 pieces were not used" in text
    assert "| c20.control.s1 | low | 50% | c38 x2, c20 |" in text
    for number in range(3, 7):
        append(ledger, piece(number))
    score_healthy.main([str(ledger), "--page", str(tmp_path / "x.md")])
    assert "7.00 h so far; 6 h were asked for: reached" in (tmp_path / "x.md").read_text()


def test_an_empty_or_damaged_ledger_is_said(tmp_path, capsys):
    assert score_healthy.main([str(tmp_path / "none.tsv")]) == 3
    (tmp_path / "x.tsv").write_text("number\n1\n")
    assert score_healthy.main([str(tmp_path / "x.tsv")]) == 1
    assert "line 2" in capsys.readouterr().out
