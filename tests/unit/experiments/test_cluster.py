"""Workers of a Dask cluster: as many results as here, whatever is killed; and what is refused."""

import os
import subprocess
import sys
from concurrent.futures import Executor, Future
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.tasks import Square, die_at_three, die_once_at_three, sleep_at_three, square, squares

from decision.cli import app as application
from decision.experiments import cluster as module
from decision.experiments.store import ResultStore
from decision.experiments.tasks import run_tasks, share_out
from decision.experiments.workers import WorkerLostError
from decision.model.errors import ConfigError, RunsFailedError

distributed = pytest.importorskip("distributed")
if find_spec("dask_jobqueue") is None:  # imported, it would take SIGINT from all tests that follow
    pytest.skip("dask_jobqueue is not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def dask():
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[2])  # workers import the tasks
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "host": "127.0.0.1"}
    with distributed.LocalCluster(**options) as local:
        yield local.scheduler_address
    os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)


def test_workers_elsewhere_find_the_same_whatever_is_killed(dask, tmp_path):
    tasks = [Square(number, str(tmp_path)) for number in range(6)]
    with module.cluster(dask, 2, limit=1.0) as executor:
        assert run_tasks(die_once_at_three, tasks, tmp_path / "a/runs", executor=executor) == [
            {"square": n * n} for n in range(6)
        ]
        with pytest.raises(RunsFailedError, match="the square of 3: killed 3 workers"):
            run_tasks(die_at_three, tasks, tmp_path / "b/runs", executor=executor)
        with pytest.raises(RunsFailedError, match="the square of 3: took longer than 1 s"):
            run_tasks(sleep_at_three, tasks, tmp_path / "c/runs", executor=executor)
        again = run_tasks(square, tasks, tmp_path / "d/runs", executor=executor, audit=1.0)
        assert again == [{"square": n * n} for n in range(6)]
    assert len(ResultStore(tmp_path / "b/runs")) == len(ResultStore(tmp_path / "c/runs")) == 5


def test_ctrl_c_stays_what_it_is():
    code = """
import signal
from decision.model.errors import ConfigError
from decision.experiments.cluster import cluster
try:
    with cluster("tcp://127.0.0.1:1", 1, wait=0.1): pass
except ConfigError as error:
    print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, "no Dask scheduler answers" in str(error))
"""
    command = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n{code}"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, timeout=60)
    assert done.stdout == "True True\n"


def test_a_worker_of_another_version_is_refused_by_host(dask, tmp_path, monkeypatch):
    monkeypatch.setattr("decision.experiments.tasks.numerics", lambda: "another")
    with (
        module.cluster(dask, 2) as executor,
        pytest.raises(ConfigError, match=f"{os.uname().nodename}: has another version of decision"),
    ):
        run_tasks(square, [Square(1, str(tmp_path))], tmp_path / "runs", executor=executor)
    assert len(ResultStore(tmp_path / "runs")) == 0


def test_an_evolution_is_the_same_whoever_plays_its_candidates(dask, root, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    pytest.importorskip("gymnasium")
    monkeypatch.chdir(root)
    settings = ("learn.population=4", "learn.sequences=4", "env.jobs=4")
    command = ["train", "ranking", "-p", "toy", "-w", "toy", "--steps", "128", *(f"--set={each}" for each in settings)]
    for folder, options in (("here", ()), ("there", ("--on", dask))):
        done = CliRunner().invoke(application.app, [*command, "-o", str(tmp_path / folder), *options])
        assert done.exit_code == 0, done.output
    for name in ("ranking.ckpt", "progress.csv"):
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


class _Losing(Executor):
    """Does work at once, but for some workers that end before they have done any."""

    def __init__(self, lost):
        self.lost = lost

    def submit(self, function, /, *args):
        future = Future()
        if self.lost:
            self.lost -= 1
            future.set_exception(WorkerLostError(None))
        else:
            future.set_result(function(*args))
        return future


def test_what_a_lost_worker_had_is_done_by_another_one():
    assert share_out(_Losing(2), squares, [1, 2, 3, 4, 5]) == [1, 4, 9, 16, 25]
    with pytest.raises(ConfigError, match="ended 3 workers"):
        share_out(_Losing(10), squares, [1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--on", "slum"), "'slum' is none of local, slurm, oar"),
        (("--on", "tcp://127.0.0.1:1", "--wait", "1"), "tcp://127.0.0.1:1: no Dask scheduler answers"),
        (("--submit", "--mem=1G"), "nothing is submitted"),
        (("--share", "3/3"), "write it as I/N"),
        (("--share", "0/3", "--on", "slurm"), "a share is done here"),
    ],
)
def test_what_cannot_be_spread_is_one_line(options, message, tmp_path):
    arguments = ["compare", "-p", "toy", "-w", "toy", "--policy", "easy", "-o", str(tmp_path), *options]
    result = CliRunner().invoke(application.app, arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_without_dask_a_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(ConfigError, match=r'pip install "batsim-decision\[scale\]"'), module.cluster("slurm", 1):
        pass
