"""Profiles of converted jobs: each takes as long as it was recorded."""

from typing import Any

import pytest

from decision.files.generate.jobs import Tasks, as_tasks
from decision.model.demand import runtimes
from decision.model.errors import ConfigError
from decision.model.workload import Delay, Job, ParallelHomogeneous, ParallelHomogeneousTotal, Workload

RECORDED = Workload(
    name="w0",
    jobs=tuple(
        Job(id=f"w0!{i}", submit_time=0.0, size=size, profile=profile)
        for i, (size, profile) in enumerate([(1, "a"), (5, "a"), (5, "b"), (2, "failed")])
    ),
    profiles={"a": Delay(60.0), "b": Delay(100.0), "failed": Delay(60.0, 1)},
    nb_res=8,
    path="w.json",
)


@pytest.mark.parametrize(
    "tasks",
    [Tasks(kind="delay"), Tasks(kind="computation", speed=2e9), Tasks(kind="parallel", speed=2e9, comm_ratio=0.5)],
    ids=lambda tasks: tasks.kind,
)
def test_jobs_take_as_long_as_recorded(tasks: Tasks) -> None:
    found = as_tasks(RECORDED, tasks)
    assert runtimes(found, 2e9).tolist() == [60.0, 60.0, 100.0, 60.0]
    assert [found.profiles[job.profile].exit_code for job in found.jobs] == [0, 0, 0, 1]
    assert as_tasks(found, Tasks(kind="delay", speed=2e9)) == as_tasks(RECORDED, Tasks(kind="delay"))


def test_a_computation_keeps_each_host_busy() -> None:
    found = as_tasks(RECORDED, Tasks(kind="computation", speed=2e9))
    assert found.profiles["computation60"] == ParallelHomogeneous(1.2e11, 0.0)
    assert len(found.profiles) == 3


def test_communication_keeps_each_hosts_link_busy_for_its_share_of_the_run_time() -> None:
    found = as_tasks(RECORDED, Tasks(kind="parallel", speed=2e9, comm_ratio=0.25, bandwidth=1e9))
    profile = found.profiles["parallel60x5"]
    assert isinstance(profile, ParallelHomogeneous)
    assert profile.bytes * 4 / 1e9 == pytest.approx(0.25 * 60.0)
    assert found.profiles["parallel60x1"] == ParallelHomogeneous(1.2e11, 0.0)


def test_computations_shared_among_the_hosts_depend_on_the_size() -> None:
    jobs = tuple(Job(id=f"w0!{size}", submit_time=0.0, size=size, profile="p") for size in (1, 4))
    total = Workload(name="w0", jobs=jobs, profiles={"p": ParallelHomogeneousTotal(8e9, 0.0)}, nb_res=8)
    assert as_tasks(total, Tasks(kind="delay", speed=1e9)).profiles == {"delay8": Delay(8.0), "delay2": Delay(2.0)}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"kind": "computation"}, "jobs of kind computation need"),
        ({"kind": "parallel", "speed": 1e9}, "communication ratio: give it for jobs of kind parallel"),
        ({"kind": "delay", "comm_ratio": 0.1}, "communication ratio: give it for jobs of kind parallel"),
        ({"kind": "parallel", "speed": 1e9, "comm_ratio": 1.5}, "communication ratio: must be a share"),
        ({"kind": "parallel", "speed": 1e9, "comm_ratio": float("nan")}, "communication ratio: must be a share"),
        ({"kind": "parallel", "speed": 1e9, "comm_ratio": 0.5, "bandwidth": 0.0}, "bandwidth: must be above 0"),
        ({"kind": "sleep"}, "kind of jobs: must be delay"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: Any, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        Tasks(**options)


def test_a_job_that_computes_nothing_has_no_other_profile() -> None:
    jobs = (Job(id="w0!1", submit_time=0.0, size=1, profile="p"),)
    idle = Workload(name="w0", jobs=jobs, profiles={"p": ParallelHomogeneous(0.0, 1e9)}, nb_res=8, path="w.json")
    with pytest.raises(ConfigError, match=r"w.json: job 'w0!1' computes nothing"):
        as_tasks(idle, Tasks(kind="delay", speed=1e9))
