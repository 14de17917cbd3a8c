from tools import score_baseline


def test_the_page_counts_both_columns():
    rows = [
        ("delay", "c23", "c23 10.0.0.3", "nothing: **nothing was found**"),
        ("loss", "c25", "c25 x", "c25 x"),
    ]
    page = score_baseline.page(rows, [2, 1], "2026-01-01")
    assert "**2 of 2 right**" in page
    assert "**1 of 2 right**" in page
    assert page.count("| delay | c23 |") == 1


def test_without_samples_it_says_so(monkeypatch, capsys):
    monkeypatch.delenv("SKEWSCOPE_SAMPLES", raising=False)
    assert score_baseline.main([]) == 3
    assert "SKEWSCOPE_SAMPLES" in capsys.readouterr().err
