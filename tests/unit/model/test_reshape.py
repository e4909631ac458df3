"""Workloads from workloads: who is left out and why, and what becomes of the others."""

import math
from typing import Any

import numpy as np
import pytest

from decision.model.dates import day_name, days, hours, read_moment, weekdays
from decision.model.demand import offered_load, runtimes
from decision.model.errors import ConfigError, InputError
from decision.model.reshape import Filters, by_day, reshape
from decision.model.workload import (
    Composed,
    Delay,
    Foreign,
    Job,
    Parallel,
    ParallelHomogeneous,
    ParallelHomogeneousTotal,
    Workload,
)

SEVEN_MAY_1993 = 736_732_800.0  # 00:00 UTC, a Friday


def workload(*jobs: tuple[float, int, float], walltime: float = math.inf, **facts: Any) -> Workload:
    """A workload for 4 hosts of jobs (submission, size, run time)."""
    return Workload(
        name="w0",
        jobs=tuple(
            Job(id=f"w0!{i}", submit_time=at, size=size, walltime=walltime, profile=f"delay{run:g}")
            for i, (at, size, run) in enumerate(jobs)
        ),
        profiles={f"delay{run:g}": Delay(run) for _, _, run in jobs},
        **{"nb_res": 4, "path": "w.json", **facts},
    )


FIVE = workload((0.0, 1, 10.0), (100.0, 4, 20.0), (50.0, 2, 30.0), (200.0, 3, 10.0), (400.0, 1, 40.0))


def names(found: Workload) -> list[str]:
    return [job.name for job in found.jobs]


@pytest.mark.parametrize(
    ("filters", "left", "dropped"),
    [
        (Filters(), ["0", "1", "2", "3", "4"], {}),
        (Filters(nodes=2), ["0", "2", "4"], {"larger than 2 hosts": 2}),
        (Filters(begin=read_moment("50")), ["1", "2", "3", "4"], {"submitted before 50": 1}),
        (Filters(end=read_moment("200")), ["0", "1", "2"], {"submitted from 200 on": 2}),
        (Filters(jobs=slice(1, 3)), ["1", "2"], {"outside the range 1:3 of jobs": 3}),
        (Filters(jobs=slice(3, None)), ["3", "4"], {"outside the range 3: of jobs": 3}),
        (
            Filters(nodes=3, begin=read_moment("1"), jobs=slice(None, 1)),
            ["2"],
            {"larger than 3 hosts": 1, "submitted before 1": 1, "outside the range :1 of jobs": 2},
        ),
    ],
)
def test_jobs_are_kept_or_counted(filters: Filters, left: list[str], dropped: dict[str, int]) -> None:
    found = reshape(FIVE, filters)
    assert (names(found), found.dropped) == (left, dropped)
    assert set(found.profiles) == {job.profile for job in found.jobs}


def test_reasons_add_to_those_of_the_reader() -> None:
    read = workload((0.0, 1, 1.0), (1.0, 4, 1.0), dropped={"not 18 numbers": 7})
    assert reshape(read, Filters(nodes=1)).dropped == {"not 18 numbers": 7, "larger than 1 hosts": 1}


def test_a_smaller_machine_is_the_workloads_machine() -> None:
    assert reshape(FIVE, Filters(nodes=3)).nb_res == 3


def test_when_nobody_is_left_the_reasons_are_told() -> None:
    with pytest.raises(InputError, match=r"w.json: no usable job \(left out: 5 submitted before 1e6\)"):
        reshape(FIVE, Filters(begin=read_moment("1e6")))


@pytest.mark.parametrize(
    ("policy", "walltimes"), [("requested", [15.0, 15.0]), ("runtime", [10.0, 20.0]), ("none", [math.inf, math.inf])]
)
def test_walltimes_are_as_requested_or_exact_or_none(policy: Any, walltimes: list[float]) -> None:
    found = reshape(workload((0.0, 1, 10.0), (1.0, 1, 20.0), walltime=15.0), Filters(walltime=policy))
    assert [job.walltime for job in found.jobs] == walltimes


def test_offered_load_is_the_share_of_the_machine_that_jobs_would_take() -> None:
    two = workload((0.0, 2, 10.0), (20.0, 4, 30.0), walltime=15.0)
    assert offered_load(two, runtimes(two)) == (2 * 10 + 4 * 15) / (4 * 20)
    at_once = workload((5.0, 2, 10.0), (5.0, 2, 10.0))
    assert math.isnan(offered_load(at_once, runtimes(at_once)))


def test_arrivals_are_stretched_to_a_load() -> None:
    found = reshape(workload((10.0, 2, 10.0), (20.0, 4, 20.0), (50.0, 1, 60.0)), Filters(load=0.5))
    assert offered_load(found, runtimes(found)) == pytest.approx(0.5)
    assert [job.submit_time for job in found.jobs] == [10.0, 30.0, 90.0]


def test_arrivals_that_no_factor_can_change_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"load: the jobs of w\.json come all at once"):
        reshape(workload((5.0, 1, 1.0), (5.0, 1, 1.0)), Filters(load=0.5))


@pytest.mark.parametrize("load", [1e300, 1e-320])
def test_loads_at_which_all_would_come_at_once_or_never_are_refused(load: float) -> None:
    with pytest.raises(ConfigError, match=r"the jobs of w\.json too close together or too far apart"):
        reshape(workload((5.0, 1, 1.0), (7.0, 1, 1.0)), Filters(load=load))


def test_time_begins_with_the_window_or_with_the_first_job() -> None:
    late = workload((1000.0, 1, 1.0), (1500.0, 1, 1.0), (1700.0, 1, 1.0), unix_start=SEVEN_MAY_1993)
    first = reshape(late, Filters(jobs=slice(1, None), shift=True))
    assert [job.submit_time for job in first.jobs] == [0.0, 200.0]
    assert first.unix_start == SEVEN_MAY_1993 + 1500
    window = reshape(late, Filters(begin=read_moment("1200"), shift=True))
    assert [job.submit_time for job in window.jobs] == [300.0, 500.0]


@pytest.mark.parametrize("text", ["1993-05-07T08:00", "1993-05-07T06:00+00:00", "1993-05-07 01:00-05:00", "21600"])
def test_a_moment_is_seconds_or_a_date_on_the_machines_clock(text: str) -> None:
    machine = workload((0.0, 1, 1.0), unix_start=SEVEN_MAY_1993, time_zone=7200.0)
    assert read_moment(text).of(machine) == 6 * 3600


@pytest.mark.parametrize("text", ["yesterday", "nan", "inf", "1993-13-01", ""])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="not a time; give seconds or a date"):
        read_moment(text)


def test_a_date_needs_a_workload_that_knows_its_own() -> None:
    with pytest.raises(ConfigError, match=r"w\.json does not say on which date it began; give seconds"):
        reshape(FIVE, Filters(begin=read_moment("1993-05-07")))


def test_the_clock_is_the_machines() -> None:
    machine = workload((0.0, 1, 1.0), (23 * 3600.0, 1, 1.0), unix_start=SEVEN_MAY_1993, time_zone=3 * 3600.0)
    assert hours(machine).tolist() == [3, 2]
    assert weekdays(machine).tolist() == [4, 5]  # Friday, and two hours into Saturday
    assert [day_name(machine, day) for day in days(machine).tolist()] == ["1993-05-07", "1993-05-08"]


@pytest.mark.parametrize("unix_start", [None, SEVEN_MAY_1993])
def test_no_calendar_goes_beyond_the_year_9999(unix_start: float | None) -> None:
    with pytest.raises(ConfigError, match=r"w\.json: a job is submitted at 1e\+300 s, after the year 9999"):
        dict(by_day(workload((0.0, 1, 1.0), (1e300, 1, 1.0), unix_start=unix_start)))


def test_each_day_begins_at_midnight() -> None:
    two_days = workload((3600.0, 1, 1.0), (80_000.0, 1, 1.0), (90_000.0, 2, 5.0), unix_start=SEVEN_MAY_1993 + 18_000)
    parts = dict(by_day(two_days))
    assert list(parts) == ["1993-05-07", "1993-05-08"]
    assert [job.submit_time for job in parts["1993-05-08"].jobs] == [
        80_000.0 + 18_000 - 86_400,
        90_000.0 + 18_000 - 86_400,
    ]
    assert parts["1993-05-08"].unix_start == SEVEN_MAY_1993 + 86_400
    assert parts["1993-05-08"].dropped == {"not of 1993-05-08": 1}
    assert list(dict(by_day(FIVE))) == ["day0001"]


PROFILES = {
    "delay": Delay(60.0),
    "each": ParallelHomogeneous(2e9, 5.0),
    "total": ParallelHomogeneousTotal(8e9, 5.0),
    "rows": Parallel((1e9, 3e9), (0.0,) * 4),
    "twice": Composed(("delay", "each"), 2),
    "mpi": Foreign("smpi", {"type": "smpi", "trace": "t.txt"}),
}


@pytest.mark.parametrize(
    ("profile", "size", "seconds"),
    [("delay", 4, 60.0), ("each", 4, 2.0), ("total", 4, 2.0), ("total", 2, 4.0), ("rows", 2, 3.0), ("twice", 4, 124.0)],
)
def test_run_times_of_profiles_on_hosts_of_a_gigaflop(profile: str, size: int, seconds: float) -> None:
    jobs = (Job(id="w0!1", submit_time=0.0, size=size, profile=profile),)
    assert runtimes(Workload(name="w0", jobs=jobs, profiles=PROFILES, nb_res=4), 1e9) == np.array([seconds])


@pytest.mark.parametrize(("profile", "reason"), [("each", "give the hosts' speed, like 11.77Gf"), ("mpi", "'smpi'")])
def test_run_times_that_nobody_knows_are_not_guessed(profile: str, reason: str) -> None:
    jobs = (Job(id="w0!1", submit_time=0.0, size=2, profile=profile),)
    with pytest.raises(ConfigError, match=reason):
        runtimes(Workload(name="w0", jobs=jobs, profiles=PROFILES, nb_res=4, path="w.json"))
