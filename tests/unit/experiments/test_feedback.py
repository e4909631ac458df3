"""Closed loops: users' later sessions come when their earlier jobs have ended, on every engine."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from decision.cli.app import app
from decision.engine.rules import EngineOptions
from decision.experiments import Engine
from decision.experiments.inputs import Inputs, LoadedInputs, PolicyChoice, load_inputs
from decision.experiments.run import RealBatsim, run_inputs, run_to_folder
from decision.files.outputs_read import read_jobs
from decision.files.workload import Selection
from decision.model.errors import ConfigError
from decision.model.record import JobTable

BIN = Path(sys.executable).parent
# Hosts are 4. In the log no job waited: users 1 and 2 had the machine to themselves
LOG = """; MaxProcs: 4
1 0 0 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1
2 10 0 100 4 -1 -1 4 200 -1 1 2 1 1 1 1 -1 -1
3 150 0 50 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1
4 160 0 50 2 -1 -1 2 200 -1 1 2 1 1 1 1 -1 -1
5 165 0 50 2 -1 -1 2 200 -1 1 2 1 1 1 1 -1 -1
6 400 0 10 1 -1 -1 1 200 -1 1 2 1 1 1 1 -1 -1
7 170 0 10 1 -1 -1 1 200 -1 1 -1 1 1 1 1 -1 -1
"""
# Simulated, job 2 waits for job 1 and ends at 200. Job 3 comes 50 s after job 1, jobs 4 and 5 come 50 and 55 s after
# job 2. Job 7 is beside job 4 until 260, so job 5 ends at 310; job 6 came 185 s after the later end of jobs 4 and 5
SUBMITTED = {1: 0, 2: 10, 3: 150, 4: 250, 5: 255, 6: 495, 7: 170}


@pytest.fixture
def case(tmp_path: Path, make_platform: Callable[[int], Path]) -> Callable[..., LoadedInputs]:
    (tmp_path / "log.swf").write_text(LOG)

    def load(**changes: Any) -> LoadedInputs:
        inputs = {"platform": make_platform(4), "workloads": (tmp_path / "log.swf",), "feedback": True}
        return load_inputs(Inputs(**inputs | changes))

    return load


@pytest.fixture
def make_platform(tmp_path: Path) -> Callable[[int], Path]:
    def make(hosts: int) -> Path:
        path = tmp_path / f"{hosts}.xml"
        names = ("master_host", *(f"h{number}" for number in range(hosts)))
        listed = "".join(f'<host id="{name}" speed="1Gf"/>' for name in names)
        path.write_text(
            f'<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
            f'<platform version="4.1"><zone id="z" routing="None">{listed}</zone></platform>'
        )
        return path

    return make


def submissions(jobs: JobTable) -> dict[int, float]:
    return {int(job.split("!")[-1]): time for job, time in zip(jobs.id, jobs.submit_time.tolist(), strict=True)}


@pytest.mark.parametrize("engine", [Engine.EMBEDDED, Engine.REFERENCE])
def test_the_next_session_comes_after_the_ends_of_the_one_before(case, engine: Engine) -> None:
    record = run_inputs(case(), PolicyChoice(policy="fcfs"), engine=engine)
    assert submissions(record.jobs) == SUBMITTED


@pytest.mark.parametrize(("program", "within"), [("decision-batsim", 1e-6), ("decision-batsim5", 2e-3)])
def test_under_batsim_jobs_are_registered(case, program: str, within: float, tmp_path: Path) -> None:
    real = RealBatsim(command=str(BIN / program), timeout=60)
    run_to_folder(case(), PolicyChoice(policy="fcfs"), tmp_path / "out", engine=Engine.BATSIM, batsim=real)
    assert submissions(read_jobs(tmp_path / "out" / "out")) == pytest.approx(SUBMITTED, abs=within)


def test_where_nothing_is_late_jobs_come_as_in_the_log(case, make_platform) -> None:
    record = run_inputs(case(platform=make_platform(16)), PolicyChoice(policy="fcfs"))
    assert submissions(record.jobs) == {1: 0, 2: 10, 3: 150, 4: 160, 5: 165, 6: 400, 7: 170}


def test_a_job_that_is_rejected_counts_as_over(case, make_platform) -> None:
    record = run_inputs(case(platform=make_platform(3)), PolicyChoice(policy="fcfs"))
    found = submissions(record.jobs)
    assert found[4] == pytest.approx(60, abs=1e-6)  # 50 s after job 2, which came at 10 s, was larger than the machine
    assert sorted(found) == [1, 2, 3, 4, 5, 6, 7]


def test_windows_have_sessions_of_their_own(case) -> None:
    record = run_inputs(case(selection=Selection(jobs=(2, 5))), PolicyChoice(policy="fcfs"))
    assert sorted(submissions(record.jobs)) == [3, 4, 5]


def test_a_policy_that_may_suspend_is_refused(case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("decision.experiments.run.may_suspend", lambda policy, events: True)
    with pytest.raises(ConfigError, match="may suspend jobs"):
        run_inputs(case(), PolicyChoice(policy="fcfs"))


def test_a_scheduler_that_answers_messages_itself_is_refused() -> None:
    from decision.batsim.agent import make_agent
    from decision.batsim.dynamic_jobs import ClosedLoop

    scheduler = "pybatsim.schedulers:Nothing"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("decision.batsim.agent.find_agent", lambda policy, settings: object())
        with pytest.raises(ConfigError, match="answers messages itself"):
            make_agent(scheduler, {}, loop=ClosedLoop([]))


def test_commands_take_feedback_and_throughput_is_a_metric(case, make_platform, tmp_path: Path) -> None:
    inputs = ["-p", str(make_platform(4)), "-w", str(tmp_path / "log.swf"), "--feedback"]
    out = CliRunner().invoke(app, ["run", *inputs, "--policy", "fcfs", "-o", str(tmp_path / "run")])
    assert out.exit_code == 0, out.stderr
    assert submissions(read_jobs(tmp_path / "run" / "out")) == SUBMITTED
    policies = ["--policy", "fcfs", "--policy", "recorded", "--json", "-j", "1"]
    out = CliRunner().invoke(app, ["compare", *inputs, *policies, "-o", str(tmp_path / "compare")])
    assert out.exit_code == 0, out.stderr
    assert '"throughput"' in out.stdout
    assert (tmp_path / "compare" / "report.html").is_file()
    out = CliRunner().invoke(app, ["compare", *inputs, *policies, "--days", "0:1", "-o", str(tmp_path / "days")])
    assert out.exit_code == 2
    assert "feedback" in out.stderr


def test_profiles_are_shared_and_jobs_registered_by_batsims_options(case) -> None:
    from decision.experiments.run import options_by_messages

    options = options_by_messages(case(), PolicyChoice(policy="fcfs"))
    assert options == EngineOptions(dynamic_jobs=True, profile_reuse=True)
