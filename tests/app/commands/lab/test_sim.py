"""The command `skewscope lab sim`: what it writes, and what it refuses."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from skewscope.app.commands.lab.sim import command
from skewscope.lab.bed.truth import read
from skewscope.lab.sim.folder import CaseError, read_tables


def call(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, list(words))
    return result.exit_code, result.output


def test_list_and_describe_name_scenarios_culprits_and_signals() -> None:
    status, said = call("list")
    assert status == 0
    assert "c50_model_exfiltration" in said
    status, said = call("describe", "c25", "--seed", "3")
    assert status == 0
    assert "culprit link" in said
    assert "rdma.out_of_sequence" in said


def test_a_case_holds_tables_and_its_truth_beside_them(tmp_path: Path) -> None:
    folder = tmp_path / "case"
    status, said = call("run", "c42.width", "--seed", "5", "--duration", "25", "--taps", "-o", str(folder))
    assert status == 0, said
    assert "simulated" in said
    truth = read((folder / "truth.toml").read_text(encoding="utf-8"))
    assert truth.faults[0].condition == "c42"
    tables, directory = read_tables(folder / "tables")
    assert len(tables["counters"]) > 1000
    assert len(tables["http"]) == len(tables["packets"]) > 100
    names = {directory.names[n] for n in tables["counters"]["name"][:2000]}
    assert "pcie.link_width" in names
    assert any(directory.entities[e].endswith("/mlx5_0/1") for e in tables["counters"]["entity"][:2000])


def test_the_strength_and_ramp_asked_for_are_in_the_truth(tmp_path: Path) -> None:
    folder = tmp_path / "case"
    status, _ = call("run", "c12", "--strength", "0.02", "--ramp", "2", "--duration", "25", "-o", str(folder))
    assert status == 0
    truth = read((folder / "truth.toml").read_text(encoding="utf-8"))
    assert truth.faults[0].strength == ("host_delay_s", 0.02)
    assert truth.bed["ramp_s"] == 2.0


def test_an_injection_without_effect_is_no_case(tmp_path: Path) -> None:
    folder = tmp_path / "none"
    status, said = call("run", "c10", "--strength", "1e-7", "--duration", "25", "-o", str(folder))
    assert status == 5
    assert "no visible effect" in said
    assert not folder.exists()


def test_suites_write_a_folder_a_case_and_keep_what_is_there(tmp_path: Path) -> None:
    words = ("suite", "balanced", "--count", "2", "--duration", "20", "-o", str(tmp_path))
    status, said = call(*words)
    assert status == 0
    written = sorted(p.name for p in tmp_path.iterdir())
    assert f"{len(written)} cases" in said
    assert call(*words)[1].startswith(f"{tmp_path}: 0 cases")


@pytest.mark.parametrize("words", [("describe", "c99"), ("run", "c20.no", "-o", "x")])
def test_unknown_scenarios_are_refused_in_one_line(words: tuple[str, ...]) -> None:
    status, said = call(*words)
    assert status == 2
    assert len(said.strip().splitlines()) == 1


def test_a_folder_in_use_and_a_bad_cluster_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("there", encoding="utf-8")
    assert call("run", "c20", "-o", str(tmp_path))[0] == 2
    bad = tmp_path / "bad.toml"
    bad.write_text("[[replica]]\n", encoding="utf-8")
    status, said = call("run", "c20", "--cluster", str(bad), "-o", str(tmp_path / "new"))
    assert status == 2
    assert "replica 1" in said


def test_folders_that_are_no_cases_are_named(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match=r"directory\.json"):
        read_tables(tmp_path)
