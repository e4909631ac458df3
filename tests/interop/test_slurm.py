"""The model against a real Slurm that runs here: 60 jobs on 8 nodes, at a clock 60 times as fast."""

import random
from pathlib import Path

import pytest

from decision.slurm.agree import agree
from decision.slurm.case import Sources, load_case, read_case, write_case
from tests.helpers import slurm_real


def _jobs() -> list[slurm_real.RealJob]:
    rng = random.Random(36)
    jobs, submit = [], 60.0
    for _ in range(60):
        submit += rng.expovariate(1 / 45)
        limit = rng.choice((5, 10, 20, 30))
        seconds = int(limit * 60 * rng.uniform(0.1, 0.5))
        jobs.append(slurm_real.RealJob(submit, seconds, f"-N {rng.choice((1, 1, 1, 2, 2, 3, 4, 6))} -t {limit}"))
    return jobs


@pytest.mark.nightly  # three minutes of a clock that a busy machine cannot follow
@pytest.mark.skipif(bool(slurm_real.missing()), reason=f"needs {', '.join(slurm_real.PROGRAMS)}: apt install slurm-wlm")
def test_jobs_start_when_a_real_slurm_starts_them(tmp_path: Path) -> None:
    parameters = "SchedulerType=sched/backfill\nSchedulerParameters=bf_interval=60,bf_max_job_test=20\n"
    parameters += "PriorityType=priority/basic"
    conf, jobs, cycles = slurm_real.record(tmp_path, 8, parameters, _jobs())
    case, read = read_case(Sources(conf=conf, jobs=jobs, cycles=cycles))
    write_case(case, read, tmp_path / "case")
    case = load_case(tmp_path / "case")
    found = agree(case, case.settings, runs=10)
    assert len(found.started) >= 55
    assert found.recorded.mean() > 60  # jobs really waited
    # at this speed a second is 17 ms: what a job starts late by decides whether it makes a cycle of backfill
    assert found.close["30 s"] >= 0.3
    assert found.close["5 min"] >= 0.7
    assert abs(found.means["simulated"] / found.means["recorded"] - 1) <= 0.1
    assert abs(found.means["easy"] / found.means["recorded"] - 1) > abs(
        found.means["simulated"] / found.means["recorded"] - 1
    )
    assert found.interval[0] <= found.recorded.mean() <= found.interval[1]
