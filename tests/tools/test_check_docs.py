import subprocess

import pytest

from tools import check_docs

DECISION = "# 1. Title\n" + "".join(f"\n## {h}\n\nText.\n" for h in check_docs.DECISION_HEADINGS)


@pytest.fixture
def root(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "docs" / "decisions").mkdir(parents=True)
    (tmp_path / "docs" / "conditions").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("text", "flagged"),
    [
        ("see /" + "work/main", True),
        ("'/" + "tmp/x'", True),
        ("cd /" + "root", False),  # at the end of a line it may be a URL path
        ("see src/" + "work/main", False),
        ("https://example.org/" + "home/x", False),
        ("$HOME/" + "tmp/x", False),
    ],
)
def test_paths_of_one_machine(root, text, flagged):
    (root / "a.md").write_text(text)
    assert bool(check_docs.check_paths(root)) == flagged


@pytest.mark.parametrize(
    ("target", "dead"),
    [
        ("decisions", False),
        ("conditions/c20_tp_straggler.md", False),
        ("nothing.md", True),
        ("https://example.org/x", False),
    ],
)
def test_links(root, target, dead):
    (root / "docs" / "a.md").write_text(f"[text]({target})")
    assert bool(check_docs.check_links(root)) == dead


@pytest.mark.parametrize(
    ("name", "text", "problems"),
    [
        ("0001-title.md", DECISION, 0),
        ("0002-title.md", DECISION, 1),
        ("0001-title.md", DECISION + "\n" * 40, 1),
        ("0001-title.md", DECISION.replace("## Context", "## Why"), 1),
    ],
)
def test_decisions(root, name, text, problems):
    (root / "docs" / "decisions" / name).write_text(text)
    assert len(check_docs.check_decisions(root)) == problems


def test_the_readme_s_table_of_conditions(root):
    (root / "README.md").write_text("nothing")
    assert len(check_docs.check_readme(root)) == 1
    marks = check_docs.gen_docs.BLOCK
    (root / "README.md").write_text("".join(marks))
    assert len(check_docs.check_readme(root)) == 1
    (root / "README.md").write_text(f"{marks[0]}0 conditions.\n\nNone.\n{marks[1]}")
    assert check_docs.check_readme(root) == []
