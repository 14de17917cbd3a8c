"""The archive of recordings: what is in it, that it repeats, that a limit holds."""

import gzip
import io
import tarfile

import pytest

from tools import recordings


@pytest.fixture
def folder(tmp_path):
    for name in ("b.s1", "a.s1"):
        (tmp_path / "cases" / name / "taps").mkdir(parents=True)
        (tmp_path / "cases" / name / "truth.toml").write_text(name)
        with gzip.open(tmp_path / "cases" / name / "taps" / "n0.pcapng.gz", "wb") as file:
            file.write(bytes(range(256)) * 40)
    (tmp_path / "cases" / "not_a_case").mkdir()
    return tmp_path / "cases"


def test_each_case_unpacks_to_what_was_recorded(folder, tmp_path):
    sizes = recordings.pack(folder, tmp_path / "x.tar")
    assert list(sizes) == ["a.s1", "b.s1"]
    with tarfile.open(tmp_path / "x.tar") as tar:
        for name, size in sizes.items():
            data = tar.extractfile(f"{name}.tar.xz").read()
            assert len(data) == size
            with tarfile.open(fileobj=io.BytesIO(data)) as case:
                assert case.extractfile(f"{name}/truth.toml").read() == name.encode()
                assert case.extractfile(f"{name}/taps/n0.pcapng").read() == bytes(range(256)) * 40


def test_the_same_cases_make_the_same_bytes(folder, tmp_path):
    recordings.pack(folder, tmp_path / "x.tar")
    recordings.pack(folder, tmp_path / "y.tar")
    assert (tmp_path / "x.tar").read_bytes() == (tmp_path / "y.tar").read_bytes()


def test_an_archive_over_the_limit_and_an_empty_folder_fail(folder, tmp_path, capsys):
    archive = tmp_path / "x.tar"
    assert recordings.main([str(folder), str(archive)]) == 0
    assert "2 cases" in capsys.readouterr().out
    assert recordings.main([str(folder), str(archive), "--most", "0.001"]) == 1
    assert recordings.main([str(tmp_path / "none"), str(archive)]) == 3
    assert not archive.exists()
