"""Users' sessions in logs, by what had ended before they came."""

from pathlib import Path

import numpy as np
import pytest

from decision.files import load_workload
from decision.model.demand import Session, find_sessions, of_fixed
from decision.model.errors import ConfigError
from decision.model.workload import Workload


def log(tmp_path: Path, *jobs: tuple[int, int, int, int], wait: int | None = None) -> Workload:
    """Jobs of (submission, wait, run time, user)."""
    rows = [
        f"{number} {submit} {waited if wait is None else wait} {run} 2 -1 -1 2 900 -1 1 {user} 1 1 1 1 -1 -1"
        for number, (submit, waited, run, user) in enumerate(jobs, 1)
    ]
    (tmp_path / "log.swf").write_text("; MaxProcs: 8\n" + "\n".join(rows) + "\n")
    return load_workload(tmp_path / "log.swf")


def test_a_session_begins_after_ends_with_a_think_time(tmp_path: Path) -> None:
    # user 1: jobs 1 and 3 before any end; job 4 after both have ended, at 120 and 150; job 5 goes on without an end
    workload = log(
        tmp_path, (0, 20, 100, 1), (5, 0, 10, 2), (30, 70, 50, 1), (200, 0, 40, 1), (210, 0, 10, 1), (300, 0, 5, 1)
    )
    found = find_sessions(workload)
    assert found.fixed.tolist() == [0, 1, 2]
    assert found.later == [
        Session(jobs=[3, 4], offsets=[0.0, 10.0], after=[0, 2], follows=2, think=50.0),
        Session(jobs=[5], offsets=[0.0], after=[4, 3], follows=4, think=60.0),
    ]


def test_an_end_before_the_last_submission_is_not_waited_for_again(tmp_path: Path) -> None:
    workload = log(tmp_path, (0, 0, 10, 1), (20, 0, 1000, 1), (30, 0, 10, 1), (50, 0, 10, 1))
    assert [(each.jobs, each.after, each.think) for each in find_sessions(workload).later] == [
        ([1, 2], [0], 10.0),  # job 3 came while job 2 ran, without a new end
        ([3], [2], 10.0),  # and not after job 2, which goes on
    ]


def test_jobs_without_a_user_come_at_their_own_times(tmp_path: Path) -> None:
    workload = log(tmp_path, (0, 0, 10, 1), (20, 0, 10, -1), (40, 0, 10, -1))
    assert find_sessions(workload).fixed.tolist() == [0, 1, 2]


def test_the_fixed_jobs_keep_what_they_do_and_nothing_of_the_record(tmp_path: Path) -> None:
    workload = log(tmp_path, (0, 0, 10, 1), (20, 0, 30, 1))
    fixed = of_fixed(workload, find_sessions(workload))
    assert [job.id for job in fixed.jobs] == ["w0!1"]
    assert list(fixed.profiles) == ["delay10"]
    assert fixed.trace is None


@pytest.mark.parametrize(
    ("wait", "user", "reason"), [(-1, 1, "no start of a job is recorded"), (0, -1, "jobs have no users")]
)
def test_a_log_without_starts_or_users_has_no_sessions(wait: int, user: int, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=reason):
        find_sessions(log(tmp_path, (0, wait, 10, user), (20, wait, 10, user)))


def test_every_job_is_in_one_session(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    drawn = rng.integers(0, (2000, 100, 200, 6), (300, 4)).tolist()
    jobs = [(submit, wait, 1 + run, user) for submit, wait, run, user in drawn]
    workload = log(tmp_path, *sorted(jobs))
    found = find_sessions(workload)
    rows = [*found.fixed.tolist(), *(row for each in found.later for row in each.jobs)]
    assert sorted(rows) == list(range(300))
    assert all(each.after and each.think >= 0 for each in found.later)
