"""No process outlives its parent, SIGTERM is handled as SIGINT is, and two comparisons share a folder."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from decision.experiments.store import ResultStore
from decision.files.outputs_read import is_locked

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")

STANDIN = Path(sys.executable).parent / "decision-batsim"
SLOW = """
import time
from pathlib import Path

class Slow:
    def reset(self, platform, seed):
        (Path(__file__).parent / f"began-{time.monotonic_ns()}").touch()

    def decide(self, cluster, plan):
        time.sleep(0.2)
        for job in cluster.queue:
            if job.size <= plan.nb_free:
                plan.start(job)
"""


ENDLESS = """
import numpy as np
from numba import njit
from pathlib import Path

@njit(nogil=True)
def endless(number):
    while number[0] >= 0:
        number[0] = (number[0] + 1) % 7

class Slow:
    def reset(self, platform, seed):
        endless(np.full(1, -1))  # is compiled

    def decide(self, cluster, plan):
        (Path(__file__).parent / "began-it").touch()
        endless(np.zeros(1, np.int64))
"""


@pytest.fixture
def slow(root, tmp_path):
    """Start a command with a slow policy; it has begun to decide when this returns."""
    started = []

    def start(command, *options, processes=1, policy=SLOW):
        (tmp_path / "slow.py").write_text(policy)
        files = ["-p", root / "platforms/taurus.xml", "-w", root / "workloads/taurus_week_flops.json"]
        words = [command, *files, "--policy", f"{tmp_path}/slow.py:Slow", "-o", tmp_path / "out", *options]
        process = subprocess.Popen(
            [sys.executable, "-m", "decision", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        wait_until(lambda: len(list(tmp_path.glob("began-*"))) >= processes or process.poll() is not None, 120)
        assert process.poll() is None, process.stderr.read()
        return process

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def wait_until(done, seconds):
    until = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.05)


def family(pid: int) -> set[int]:
    """The process and all that it started, and those started."""
    parent_of = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent_of[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
    found, size = {pid}, 0
    while len(found) > size:
        size = len(found)
        found |= {child for child, parent in parent_of.items() if parent in found}
    return found


def alive(pids: set[int]) -> set[int]:
    def runs(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False

    return set(filter(runs, pids))


@pytest.mark.parametrize(
    ("command", "options", "processes", "members"),
    [
        ("compare", ("--seeds", 2, "-j", 2), 2, 4),  # two workers, and the tracker of resources
        ("run", ("--engine", "batsim", "--batsim", STANDIN), 1, 3),  # Batsim, and the shell that ends it
    ],
)
def test_nothing_outlives_a_command_that_is_killed(slow, tmp_path, command, options, processes, members):
    process = slow(command, *options, processes=processes)
    pids = family(process.pid)
    assert len(pids) >= members
    process.kill()
    process.wait()
    wait_until(lambda: not alive(pids), 30)
    if command == "run":
        assert not is_locked(tmp_path / "out")
        viewed = [sys.executable, "-m", "decision", "report", "view", str(tmp_path / "out"), "--live"]
        done = subprocess.run(viewed, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2
        assert "the last run in this folder died without a word" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_and_its_folder_says_so(slow, tmp_path, number):
    process = slow("run")
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert errors.splitlines()[-1].startswith("interrupted")
    facts = json.loads((tmp_path / "out/run.json").read_text())
    assert facts["state"] == "failed"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"run.json"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_machine_code_that_does_not_stop(slow, tmp_path, number):
    process = slow("run", policy=ENDLESS)
    time.sleep(1)
    process.send_signal(number)
    said = process.communicate(timeout=20)[1]
    assert process.returncode == 128 + number
    assert ("interrupted;" if number == signal.SIGINT else "interrupted (SIGTERM);") in said
    assert "cut off" in said
    assert not list((tmp_path / "out").glob("out_*"))


def test_the_exit_code_is_the_same_where_text_was_interrupted_that_python_made_code_of(root, tmp_path):
    text = "import os, signal; os.kill(os.getpid(), signal.SIGINT); list(range(10))"
    methods = f"    def reset(self, *_facts): pass\n    def decide(self, *_state): exec({text!r})\n"
    (tmp_path / "own.py").write_text(f"class Own:\n{methods}")
    words = ["run", "-p", root / "platforms/toy.xml", "-w", root / "workloads/toy.json", "-o", tmp_path / "out"]
    words += ["--policy", f"{tmp_path}/own.py:Own"]
    done = subprocess.run([sys.executable, "-m", "decision", *map(str, words)], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].startswith("interrupted"), done.stderr
    assert done.returncode == 128 + signal.SIGINT


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_whole_group_ends_a_comparison_in_order(slow, number):
    process = slow("compare", "--seeds", 2, "-j", 2, "--windows", 2, "--length", 4, processes=2)
    pids = family(process.pid)
    os.killpg(process.pid, number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number, errors
    assert "Traceback" not in errors and "killed" not in errors
    wait_until(lambda: not alive(pids), 30)


def test_two_comparisons_work_side_by_side_in_one_folder(root, tmp_path):
    files = ["-p", root / "platforms/toy.xml", "-w", root / "workloads/toy.json", "-o", tmp_path / "new" / "folder"]
    words = ["compare", *files, "--policy", "easy", "--policy", "fcfs", "--metric", "wait"]
    words += ["--seeds", "3", "--whole", "-j", "1"]
    both = [
        subprocess.Popen(
            [sys.executable, "-m", "decision", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert outputs[0][0] == outputs[1][0]
    assert len(ResultStore(tmp_path / "new/folder/runs")) == 6
