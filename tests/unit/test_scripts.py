"""Scripts that people start before anything is installed."""

import shlex
import shutil
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "script", [f"reproduce/{name}" for name in ("dbf", "ranking", "packing", "deepscheduling")] + ["bench", "versions"]
)
def test_help_installs_nothing(root, tmp_path, script):
    shutil.copytree(root / "scripts", tmp_path / "scripts")
    before = sorted(tmp_path.rglob("*"))
    command = ["bash", str(tmp_path / "scripts" / script), "--help"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0
    assert f"scripts/{script}" in result.stdout
    assert result.stderr == ""
    assert sorted(tmp_path.rglob("*")) == before


def test_a_warning_of_the_site_fails_the_check(root, tmp_path):
    pytest.importorskip("mkdocs")
    (step,) = (line for line in (root / ".ci/run").read_text().splitlines() if "mkdocs" in line)
    words = shlex.split(step, comments=True)
    build = [sys.executable, "-m", "mkdocs", *words[words.index(".venv/bin/mkdocs") + 1 :]]
    (tmp_path / "mkdocs.yml").write_text("site_name: x")
    (tmp_path / "docs").mkdir()
    for text, code in (("[here](index.md)", 0), ("[nowhere](nowhere.md)", 1)):
        (tmp_path / "docs/index.md").write_text(text)
        result = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert result.returncode == code, result.stderr


def test_a_python_that_is_not_there_is_skipped_by_name(root):
    found = subprocess.run([root / "scripts/versions", "3.99"], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout.splitlines()[1:] == [
        f"3.99 {age} skipped: python3.99 is not there" for age in ("oldest", "newest")
    ]
