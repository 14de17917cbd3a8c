import pytest

from tools import check_sizes

DETECTOR = "src/skewscope/conditions/c20_tp_straggler/detector.py"


def function(lines: int) -> str:
    return "def f():\n" + "    pass\n" * (lines - 1)


@pytest.mark.parametrize(
    ("path", "text", "problems"),
    [
        ("src/skewscope/wire/pcap.py", "x = 1\n" * 400, 0),
        ("src/skewscope/wire/pcap.py", "x = 1\n" * 401, 1),
        ("src/skewscope/wire/pcap.py", "# size: data table, because names\n" + "x = 1\n" * 900, 0),
        ("src/skewscope/wire/pcap.py", "# size: data table, because\n" + "x = 1\n" * 900, 1),
        ("src/skewscope/wire/pcap.py", function(60), 0),
        ("src/skewscope/wire/pcap.py", "@decorator\n" + function(61), 1),
        (DETECTOR, "x = 1\n" * 150, 0),
        (DETECTOR, "x = 1\n" * 151, 1),
        (DETECTOR, function(41), 1),
    ],
)
def test_limits(path, text, problems):
    assert len(check_sizes.problems_of(path, text)) == problems


def test_core_is_capped_as_a_whole(tmp_path, capsys):
    core = tmp_path / "src" / "skewscope" / "core"
    core.mkdir(parents=True)
    for number in range(4):
        (core / f"part{number}.py").write_text("x = 1\n" * 400)
    assert check_sizes.main(tmp_path) == 1
    assert "core: 1600 lines in all" in capsys.readouterr().out
