"""What is shipped is found by name from any folder, and files go first."""

from pathlib import Path

import pytest

from decision.formats import load_platform, load_workload
from decision.model.errors import InputError
from decision.shipped import find_platform, find_workload, shipped_platforms, shipped_workloads


def test_shipped_inputs_are_found_by_name_in_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(load_platform("taurus").hosts) == 16
    assert len(load_workload("taurus_week").jobs) == 1500


def test_every_file_of_the_folders_is_shipped(root):
    assert shipped_platforms() == sorted(file.stem for file in (root / "platforms").iterdir())
    assert shipped_workloads() == sorted(file.stem for file in (root / "workloads").iterdir())


@pytest.mark.parametrize("path", ["./taurus", "folder/taurus", "taurus.xml", "/taurus"])
def test_what_has_a_folder_or_an_ending_is_a_path(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taurus.swf").touch()
    assert find_platform(path) == Path(path)


def test_a_file_of_the_same_name_goes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("toy").touch()
    assert find_workload("toy") == Path("toy")


def test_an_unknown_name_gets_the_nearest_and_all():
    with pytest.raises(InputError, match=r"tarus: .* nor a shipped platform .*; did you mean taurus\? .*toy"):
        find_platform("tarus")
    with pytest.raises(InputError, match=r"nor a shipped workload of that name .shipped: green"):
        find_workload("xyz")
