"""What is installed from a wheel works in an empty folder, without the checkout."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

FOLDERS, FILES = ("decision", "platforms", "workloads"), ("pyproject.toml", "README.md")


def run(*command: object, cwd: Path) -> str:
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "COLUMNS")}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(root, tmp_path_factory) -> Path:
    """A wheel of the checkout, built from a copy so that the checkout gets no build folder."""
    folder = tmp_path_factory.mktemp("wheel")
    (folder / "source").mkdir()
    for name in FOLDERS:
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(root / name, folder / "source" / name, symlinks=True, ignore=ignore)
    for name in FILES:
        shutil.copy(root / name, folder / "source")
    pip = (sys.executable, "-m", "pip", "--quiet", "wheel", "--no-deps", "--no-build-isolation", "--no-index")
    run(*pip, "--wheel-dir", folder, folder / "source", cwd=folder)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def fresh(wheel, tmp_path_factory) -> Path:
    """The bin folder of a new environment with the wheel; what it depends on is borrowed from this one."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, symlinks=True)
    python = folder / "bin/python"
    pip = (sys.executable, "-m", "pip", "--quiet", "--python", python)
    run(*pip, "install", "--no-deps", "--no-index", wheel, cwd=folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    borrowed = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "borrowed.pth").write_text("\n".join(borrowed))
    return folder / "bin"


def test_the_wheel_has_the_right_name(wheel):
    assert wheel.name.startswith("batsim_decision-")


def test_the_showcase_runs_in_an_empty_folder(fresh, tmp_path):
    shown = run(fresh / "decision", "showcase", cwd=tmp_path)
    assert shown.splitlines()[0] == "taurus_week_flops on taurus"
    assert (tmp_path / "out/easy/schedule.png").is_file()


def test_names_are_found_from_the_installed_package(fresh, tmp_path):
    code = "import decision as d; print(d.__file__); print(d.simulate('toy', 'toy', 'easy').summary().makespan)"
    place, makespan = run(fresh / "python", "-c", code, cwd=tmp_path).split()
    assert Path(place).is_relative_to(fresh.parent)
    assert makespan == "8.0"
