"""What is shipped is found by name from any folder, and files go first."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from decision.files import load_platform, load_workload
from decision.model.computer import find_platform, find_workload, shipped_platforms, shipped_workloads
from decision.model.errors import InputError


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


def test_a_folder_of_the_same_name_does_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("toy").mkdir()
    Path("mine").mkdir()
    assert find_workload("toy").suffix == ".json"
    assert find_workload("mine") == Path("mine")


def test_an_unknown_name_gets_the_nearest_and_all():
    with pytest.raises(InputError, match=r"tarus: .* nor a shipped platform .*; did you mean taurus\? .*toy"):
        find_platform("tarus")
    with pytest.raises(InputError, match=r"nor a shipped workload of that name .shipped: green"):
        find_workload("xyz")


LOG = "; MaxNodes: 4\n1 0 0 10 1 -1 -1 1 20 -1 1 1 1 -1 -1 -1 -1 -1\n"


def test_a_compressed_log_is_read(tmp_path):
    path = tmp_path / "log.swf.gz"
    path.write_bytes(gzip.compress(LOG.encode()))
    assert find_workload(path).name == "log.swf"
    assert [job.id for job in load_workload(path).jobs] == ["w0!1"]


def test_a_damaged_compressed_log_is_refused(tmp_path):
    path = tmp_path / "log.swf.gz"
    path.write_bytes(gzip.compress(LOG.encode())[:-12])
    with pytest.raises(InputError, match=r"log\.swf\.gz: damaged, or not compressed with gzip; copy it again"):
        load_workload(path)
    with pytest.raises(InputError, match=r"none\.swf\.gz: cannot be read \(No such file or directory\)"):
        load_workload(tmp_path / "none.swf.gz")


@pytest.mark.parametrize("content", [LOG.encode(), gzip.compress(LOG.encode())], ids=["plain", "gzip"])
def test_standard_input_is_a_workload(content):
    code = "from decision.files import load_workload; print([job.id for job in load_workload('-').jobs])"
    found = subprocess.run([sys.executable, "-c", code], input=content, capture_output=True, check=True, timeout=60)
    assert found.stdout == b"['w0!1']\n"
