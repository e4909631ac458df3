"""Scripts that people start before anything is installed."""

import shutil
import subprocess

import pytest


@pytest.mark.parametrize(
    "script", [f"reproduce/{name}" for name in ("dbf", "ranking", "packing", "deepscheduling")] + ["bench"]
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
