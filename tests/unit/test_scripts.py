"""Scripts that people start before anything is installed."""

import re
import shlex
import shutil
import subprocess
import sys
import tomllib

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


@pytest.mark.parametrize(
    ("python", "said"),
    [
        ("[[ $1 == -V ]] && echo Python 3.10.13 || exit 1", "and python3 is Python 3.10.13: apt install python3"),
        (None, "and python3 is not there: apt install python3"),
        ("[[ $2 != *venv* ]]", "python3 is there without its part venv: apt install python3-venv"),
    ],
)
def test_a_python_that_does_not_serve_is_named_before_anything_is_made(root, tmp_path, python, said):
    shutil.copytree(root / "scripts", tmp_path / "scripts")
    shutil.copy(root / "pyproject.toml", tmp_path)
    (tmp_path / "bin").mkdir()
    for program in ("bash", "dirname", "grep"):
        (tmp_path / "bin" / program).symlink_to(shutil.which(program))
    if python is not None:
        (tmp_path / "bin/python3").write_text(f"#!{shutil.which('bash')}\n{python}\n")
        (tmp_path / "bin/python3").chmod(0o755)
    command = [tmp_path / "scripts/environment", "run"]
    found = subprocess.run(
        [shutil.which("bash"), *command],
        env={"PATH": str(tmp_path / "bin")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (found.returncode, found.stdout) == (2, "")
    assert len(found.stderr.splitlines()) == 1
    assert said in found.stderr
    assert not (tmp_path / ".venv").exists()


def test_each_python_that_the_package_names_is_tried_by_ci(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    named = [line.rpartition(" ")[2] for line in project["classifiers"] if "Python :: 3." in line]
    asked = ", ".join(f'"{each}"' for each in named)
    assert f"matrix: {{python: [{asked}]}}" in workflow(root)


def test_the_jobs_on_a_change_run_all_of_the_check_and_each_test_once(root):
    parts = re.findall(r"^ +- (?:run: \.ci/run )?(lint|site|bounds|tests tests/.+)$", workflow(root), re.MULTILINE)
    assert {part.split()[0] for part in parts} == {"lint", "site", "tests", "bounds"}
    named = [word for part in parts for word in part.split()[1:]]
    folders = {f"tests/{path.name}" for path in (root / "tests").iterdir() if any(path.rglob("test_*.py"))}
    assert sorted(named) == sorted(folders)


def workflow(root) -> str:
    return (root / ".github/workflows/ci.yml").read_text()


def test_a_part_of_the_check_that_there_is_not_is_refused(root):
    refused = subprocess.run([root / ".ci/run", "test"], capture_output=True, text=True, timeout=60)
    assert (refused.returncode, refused.stderr.partition(" ")[0]) == (2, "usage:")
