"""A Batsim that is started before our own files are read."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from decision.batsim import process
from decision.cli.app import app

STANDIN = Path(sys.executable).parent / "decision-batsim"
COUNTS = f"""#!/bin/sh
[ "$1" = --help ] && exit
echo $$ "$@" >> "$(dirname "$0")/starts"
exec {STANDIN} "$@"
"""


@pytest.fixture
def run(root, tmp_path, monkeypatch):
    """Runs EASY on a real Batsim's stand-in, which notes its starts: the exit code, what was said, and the starts."""
    (tmp_path / "batsim").write_text(COUNTS)
    (tmp_path / "batsim").chmod(0o755)

    class Noted(subprocess.Popen):
        """Starts it, and waits until it has noted that: it may be ended at once."""

        def __init__(self, command, **options):
            counts = str(command[0]) == str(tmp_path / "batsim") and "--help" not in command
            before, end = (tmp_path / "starts").read_text() if counts else "", time.monotonic() + 30
            super().__init__(command, **options)
            while counts and (tmp_path / "starts").read_text() == before and time.monotonic() < end:
                time.sleep(0.01)

    monkeypatch.setattr(process.subprocess, "Popen", Noted)

    def run(*options: str, workload: Path = root / "workloads" / "toy.json", policy: str = "easy"):
        (tmp_path / "starts").write_text("")
        arguments = ["-p", root / "platforms" / "toy.xml", "-w", workload, "--policy", policy, "-o", tmp_path / "out"]
        real = ["--engine", "batsim", "--batsim", tmp_path / "batsim"]
        result = CliRunner().invoke(app, ["run", *map(str, (*arguments, *real)), *options])
        return result.exit_code, result.stderr, (tmp_path / "starts").read_text().splitlines()

    return run


def test_a_plain_run_has_one_batsim_and_its_files(run, tmp_path):
    code, said, starts = run()
    assert (code, len(starts)) == (0, 1)
    assert all("this is done once" in line for line in said.splitlines()), "at most what it compiles"
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"out_jobs.csv", "batsim.log", "run.json"}
    assert not list((tmp_path / "out").glob(".*"))


def test_records_are_left_out_for_it(run, root, tmp_path):
    workload = json.loads((root / "workloads" / "toy.json").read_text())
    workload["jobs"][0]["recorded"] = {"size": 1, "state": "COMPLETED"}
    (tmp_path / "w.json").write_text(json.dumps(workload))
    code, _, starts = run(workload=tmp_path / "w.json")
    assert code == 0 and len(starts) == 1
    assert "/out/.batsim-" in starts[0] and "w0.json" in starts[0]


@pytest.mark.parametrize(
    ("options", "policy"), [(("--select", "0:2"), "easy"), (("-O", "guard=1.5x"), "easy"), ((), "easy,guard=1.5x")]
)
def test_a_run_that_changes_its_inputs_starts_it_when_they_are_known(run, options, policy):
    code, _, starts = run(*options, policy=policy)
    assert code == 0 and len(starts) == 1


def test_a_run_of_another_command_ends_it_and_starts_its_own(run, root, tmp_path, monkeypatch):
    from decision.experiments import run as runs

    monkeypatch.setattr(runs, "_switches", lambda options: ["-E"])
    code, _, starts = run()
    assert code == 0 and len(starts) == 2
    assert starts[1].split()[1:-2] == [*starts[0].split()[1:-2], "-E"]
    assert _gone(int(starts[0].split()[0]))


def test_a_run_that_is_refused_ends_it_and_leaves_nothing(run, tmp_path):
    code, said, starts = run(policy="easyy")
    assert code == 2 and "there is no policy 'easyy'" in said
    assert len(starts) == 1 and _gone(int(starts[0].split()[0]))
    assert not (tmp_path / "out").exists()


def _gone(pid: int) -> bool:
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False
