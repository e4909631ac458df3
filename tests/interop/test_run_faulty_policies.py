"""What becomes of a run whose policy decides the impossible: one line, an exit code, and no half-written files."""

import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.complaints import complaints

from decision.cli.app import app

HELPERS = Path(__file__).parents[1] / "helpers"
STANDIN = Path(sys.executable).parent / "decision-batsim"
ENGINES = ("embedded", "reference", "batsim")


@pytest.fixture
def command(root, tmp_path):
    """The command line of a run of one of the faulty policies."""

    def make(policy: str, engine: str) -> list[str]:
        arguments = ["run", "-p", root / "platforms" / "toy.xml", "-w", root / "workloads" / "toy.json"]
        arguments += ["--policy", f"{HELPERS / 'faulty_policies.py'}:{policy}", "--engine", engine]
        arguments += [*(["--batsim", STANDIN] if engine == "batsim" else []), "-o", tmp_path / "out"]
        return [*map(str, arguments)]

    return make


def run(words: list[str]):
    """Run the command in this process."""
    return CliRunner().invoke(app, words)


def started(words: list[str]) -> list[str]:
    """The command line of a process of its own."""
    return [sys.executable, "-m", "decision", *words]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("policy", "complaint"),
    [
        ("Raises", "policy Raises: decide failed: ValueError: out of ideas ("),
        ("StartsARunningJob", "cannot start: it is running"),
        ("OverAllocates", "cannot start on hosts"),
    ],
)
def test_an_impossible_decision_ends_the_run_in_one_line_with_its_time(command, tmp_path, policy, complaint, engine):
    result = run(command(policy, engine))
    assert result.exit_code == 2, result.stderr
    (line,) = complaints(result.stderr)
    assert line.startswith("error: t=")
    assert complaint in line
    assert not list((tmp_path / "out").glob("*.csv"))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_policy_that_never_starts_anything_is_named_not_waited_for(command, engine):
    result = run(command("NeverStarts", engine))
    assert result.exit_code == 2
    assert "nothing can happen any more" in result.stderr
    assert "w0!" in result.stderr


@pytest.mark.parametrize("engine", ENGINES)
def test_ctrl_c_ends_a_run_at_once_and_leaves_no_files(command, tmp_path, engine):
    with subprocess.Popen(
        started(command("Sleeps", engine)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "interrupted" in errors
    assert "Traceback" not in errors
    assert not list((tmp_path / "out").glob("*.csv"))


def test_a_disk_that_fills_up_leaves_no_files_behind(root, tmp_path):
    week = ["-p", root / "platforms" / "taurus.xml", "-w", root / "workloads" / "taurus_week.json"]
    arguments = ["run", *map(str, week), "--policy", "fcfs", "-o"]
    assert run([*arguments, str(tmp_path / "warm")]).exit_code == 0
    arguments = started([*arguments, str(tmp_path / "out")])
    result = subprocess.run(arguments, capture_output=True, text=True, timeout=120, preexec_fn=only_small_files)
    assert result.returncode == 2
    assert "out_jobs.csv: cannot be written (File too large)" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert list((tmp_path / "out").iterdir()) == []


def only_small_files() -> None:
    """No file may grow beyond 50 kB, which is how a full disk can be had without filling one."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))


def test_a_folder_that_cannot_be_made_is_told_before_the_run(command):
    result = run([*command("First", "embedded")[:-1], "/proc/out"])
    assert result.exit_code == 2
    assert result.stderr.startswith("error: /proc/out: cannot be written")


def test_a_file_where_the_output_folder_should_be_is_told_before_the_run(command, tmp_path):
    (tmp_path / "out").write_text("in the way")
    result = run(command("First", "embedded"))
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {tmp_path / 'out'}: cannot be written")
