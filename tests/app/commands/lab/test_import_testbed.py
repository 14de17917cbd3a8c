"""`skewscope lab import-testbed` as a user sees it."""

import json

from click.testing import CliRunner

from skewscope.app.cli import main


def run(*words):
    return CliRunner().invoke(main, ["lab", "import-testbed", *map(str, words)])


def test_it_counts_the_cases(tmp_path):
    old = tmp_path / "old" / "healthy"
    old.mkdir(parents=True)
    said = {"inject_start_s": 0, "inject_end_s": 1, "first_packet_epoch": 1.0}
    (old / "truth.json").write_text(json.dumps(said))
    (tmp_path / "old" / "expected.toml").write_text("[healthy]\nconditions = []\n")
    done = run(tmp_path / "old", "-o", tmp_path / "new")
    assert done.exit_code == 0
    assert "1 cases" in done.output


def test_a_folder_of_another_form_is_no_input(tmp_path):
    done = run(tmp_path, "-o", tmp_path / "new")
    assert done.exit_code == 3
    assert "expected.toml" in done.output
