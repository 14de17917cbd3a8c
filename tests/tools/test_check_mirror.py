import pytest

from tools import check_mirror


@pytest.fixture
def root(tmp_path):
    for path in (
        "src/skewscope/wire/pcap.py",
        "src/skewscope/wire/tcp/flow.py",
        "src/skewscope/app/commands/_run.py",
        "src/skewscope/conditions/c20_tp_straggler/detector.py",
        "tools/lock.py",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("test", "stray"),
    [
        ("tests/wire/test_pcap.py", False),
        ("tests/wire/test_pcap_any_split.py", False),
        ("tests/wire/test_wire.py", False),
        ("tests/wire/test_tcp.py", False),
        ("tests/wire/tcp/test_flow.py", False),
        ("tests/app/commands/test_run.py", False),
        ("tests/tools/test_lock.py", False),
        ("tests/whole/test_anything.py", False),
        ("src/skewscope/conditions/c20_tp_straggler/test_c20.py", False),
        ("tests/wire/test_http.py", True),
        ("tests/test_pcap.py", True),
        ("src/skewscope/wire/test_pcap.py", True),
        ("src/skewscope/conditions/c20_tp_straggler/test_c21.py", True),
    ],
)
def test_where_a_test_may_stand(root, test, stray):
    (root / test).parent.mkdir(parents=True, exist_ok=True)
    (root / test).touch()
    assert len(check_mirror.strays(root)) == stray


def test_sources_without_a_test_are_listed_but_do_not_fail(root, capsys):
    assert check_mirror.main(["--missing"], root) == 0
    assert "src/skewscope/wire/pcap.py" in capsys.readouterr().out


def test_the_tree_itself_is_a_mirror():
    assert check_mirror.strays(check_mirror.ROOT) == []
