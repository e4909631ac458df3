"""Logs of HTCondor, Flux and Philly as JSON; Slurm's and Grid Engine's are tested with their other files."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from decision.files import load_workload
from decision.files.accounting.read import TraceOptions, recognise
from decision.model.workload import Workload

CONDOR: list[dict[str, Any]] = [
    {
        "ClusterId": 10,
        "ProcId": 0,
        "QDate": 100,
        "JobStartDate": 160,
        "JobCurrentStartDate": 400,
        "CompletionDate": 1000,
    }
    | {"RequestCpus": 4, "JobStatus": 4, "LastRemoteHost": "slot1_1@n1", "GlobalJobId": "s#10.0#1", "Owner": "ann"},
    # removed while it ran, and before it did; then one that still runs
    {"ClusterId": 10, "ProcId": 1, "QDate": 100, "JobStartDate": 300, "CompletionDate": 0, "EnteredCurrentStatus": 900}
    | {"RequestCpus": "/Expr(Cpus)/", "JobStatus": 3},
    {"ClusterId": 11, "QDate": 100, "JobStatus": 3, "EnteredCurrentStatus": 900},
    {"ClusterId": 12, "QDate": 100, "JobStartDate": 300, "JobStatus": 2, "EnteredCurrentStatus": 300},
]
FLUX = [
    {"id": "f2X", "t_submit": 100.0, "t_run": 160.5, "t_cleanup": 760.5, "t_inactive": 761.0, "duration": 3600.0}
    | {"nnodes": 2, "ncores": 16, "nodelist": "n[1-2]", "result": "COMPLETED", "queue": "batch", "username": "ann"},
    {"id": 8, "t_submit": 200.0, "t_run": 260.0, "t_cleanup": 300.0, "duration": 0.0, "nnodes": 1, "ncores": 8}
    | {"nodelist": "n3", "result": "FAILED"},
    {"id": 9, "t_submit": 200.0, "state": "SCHED"},
]
PHILLY = [
    {
        **{"status": "Failed", "vc": "v1", "jobid": "a1", "user": "u1", "submitted_time": "2017-10-09 07:00:00"},
        "attempts": [
            {"start_time": f"2017-10-09 {start}", "end_time": f"2017-10-09 {end}", "detail": [{"ip": m, "gpus": gpus}]}
            for start, end, m, gpus in (
                ("07:01:00", "07:02:00", "m1", ["gpu0", "gpu1"]),
                ("07:05:00", "07:15:00", "m2", ["gpu3"]),
            )
        ],
    },
    {
        "status": "Killed",
        "vc": "v1",
        "jobid": "a2",
        "user": "u2",
        "submitted_time": "2017-10-09 07:00:00",
        "attempts": [],
    },
]


def _read(tmp_path: Path, name: str, content: object, lines: bool = False, **options: Any) -> Workload:
    path = tmp_path / name
    rows = content if isinstance(content, list) else []
    path.write_text("\n".join(map(json.dumps, rows)) if lines else json.dumps(content))
    return load_workload(path, options=TraceOptions(**options))


def _jobs(workload: Workload) -> list[tuple[str, float, int, float]]:
    assert workload.trace is not None
    return [(job.id.removeprefix("w0!"), round(job.submit_time, 1), job.size, job.walltime) for job in workload.jobs]


@pytest.mark.parametrize("lines", [False, True])
def test_condor_history_has_the_last_start_and_what_was_removed(tmp_path: Path, lines: bool) -> None:
    workload = _read(tmp_path, "h.json", CONDOR, lines, unit="cores")
    assert recognise(tmp_path / "h.json") == "condor"
    assert _jobs(workload) == [("10.0", 0.0, 4, math.inf), ("10.1", 0.0, 1, math.inf)]
    trace = workload.trace
    assert trace is not None and trace.wait.tolist() == [300, 200]
    assert [workload.profiles[job.profile].duration for job in workload.jobs] == [600, 600]


@pytest.mark.parametrize("lines", [False, True])
def test_flux_jobs_have_nodes_and_durations(tmp_path: Path, lines: bool) -> None:
    workload = _read(tmp_path, "f.json", FLUX if lines else {"jobs": FLUX}, lines)
    assert recognise(tmp_path / "f.json") == "flux"
    assert _jobs(workload) == [("f2X", 0.0, 2, 3600.0), ("8", 100.0, 1, math.inf)]
    assert workload.nb_res == 3


def test_each_attempt_of_a_job_of_philly_is_a_job_that_ended(tmp_path: Path) -> None:
    workload = _read(tmp_path, "cluster_job_log", PHILLY, unit="gpus")
    assert recognise(tmp_path / "cluster_job_log") == "philly"
    assert _jobs(workload) == [("a1", 0.0, 2, math.inf), ("a1.1", 120.0, 1, math.inf)]
    assert workload.trace is not None and workload.trace.wait.tolist() == [60, 180]
