"""Figures on which independent programs agree, and schedules that batsched gave under Batsim 4.2.1."""

import csv
from pathlib import Path

import msgspec
import numpy as np
import pytest
from helpers.golden import CASES, SCHEDULES

from decision.experiments.metric_list import summarise
from decision.files import load_platform, load_swf, load_workload
from decision.model.platform import Host, Platform, PowerState
from decision.simulation import simulate_workloads

LUBLIN = ("data", "lublin_256.swf")
WORKLOADS = Path(__file__).parents[2] / "workloads"


def hosts(count: int) -> Platform:
    return Platform(hosts=tuple(Host(id=i, name=f"n{i:03d}", pstates=(PowerState(1e9),)) for i in range(count)))


@pytest.mark.parametrize(
    ("policy", "mean_wait", "mean_slowdown", "utilization"),
    [
        ("fcfs", 2388443.7601, 66502.4755, 0.6549),
        ("easy", 97155.9945, 590.0538, 0.9363),
        ("sjf", 275304.2226, 53.5435, None),
    ],
)
def test_lublin_gives_the_figures_that_independent_programs_give(shared, policy, mean_wait, mean_slowdown, utilization):
    record = simulate_workloads(hosts(256), [load_swf(shared.joinpath(*LUBLIN), missing_walltime="runtime")], policy)
    summary = summarise(record.jobs, 256)
    assert summary.wait == pytest.approx(mean_wait, abs=5e-5)
    assert summary.bounded_slowdown == pytest.approx(mean_slowdown, abs=5e-5)
    if utilization is not None:
        assert summary.utilization == pytest.approx(utilization, abs=5e-5)


@pytest.mark.parametrize(
    ("policy", "mean_wait", "longest_wait"),
    [
        ("easy", 14743.3845, 186634),
        ("saf+easy", 7365.7755, 1213523),
        ("saf+easy,guard=1.5x", 12719.0810, 256701),
        ("sjf+easy,guard=1.25x", 13235.3140, 214289),
        ("learned", 11575.4700, 225003),  # with the constants that it ships with
    ],
)
def test_guards_of_multiples_of_easys_wait_give_what_they_always_gave(policy, mean_wait, longest_wait):
    """All but the last in the first versions, too; a wrong number in the bundle of a second base moves each guard."""
    whole = load_workload(WORKLOADS / "lublin_10000.json")
    record = simulate_workloads(hosts(256), [msgspec.structs.replace(whole, jobs=whole.jobs[:2000])], policy)
    waits = record.jobs.start_time - record.jobs.submit_time
    assert (float(waits.mean()), float(waits.max())) == (pytest.approx(mean_wait, abs=5e-5), longest_wait)


def test_first_fit_with_a_second_more_of_walltime_gives_what_batsched_gave(shared):
    log = load_swf(shared.joinpath(*LUBLIN), missing_walltime="runtime")
    longer = [msgspec.structs.replace(job, walltime=job.walltime + 1) for job in log.jobs]
    record = simulate_workloads(hosts(256), [msgspec.structs.replace(log, jobs=longer)], "filler")
    assert summarise(record.jobs, 256).wait == pytest.approx(63772.6403, abs=5e-5)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("policy", "file"), [("fcfs", "fcfs"), ("first-fit", "filler")])
def test_each_job_starts_when_batsched_started_it(case, policy, file):
    folder = SCHEDULES / case
    record = simulate_workloads(
        load_platform(folder / "platform.xml"), [load_workload(folder / "workload.json")], policy
    )
    ours = dict(zip(record.jobs.id, record.jobs.start_time, strict=True))
    theirs = starts(folder / f"{file}_jobs.csv")
    assert ours.keys() == theirs.keys()
    assert np.allclose([ours[job] for job in theirs], list(theirs.values()), rtol=0, atol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_backfilling_is_at_least_as_good_as_batscheds_which_reserves_particular_hosts(case):
    """batsched's rules are stricter than the count-based ones, so its metrics are near ours and not better by much."""
    folder = SCHEDULES / case
    workload, platform = load_workload(folder / "workload.json"), load_platform(folder / "platform.xml")
    for policy, file in (("easy", "easy_bf"), ("conservative", "conservative_bf")):
        record = simulate_workloads(platform, [workload], policy)
        submit = dict(zip(record.jobs.id, record.jobs.submit_time, strict=True))
        theirs = np.mean([start - submit[job] for job, start in starts(folder / f"{file}_jobs.csv").items()])
        ours = np.mean(record.jobs.start_time - record.jobs.submit_time)
        assert 0.7 * theirs < ours < 1.15 * theirs


def starts(path: Path) -> dict[str, float]:
    with path.open() as rows:
        return {f"{row['workload_name']}!{row['job_id']}": float(row["starting_time"]) for row in csv.DictReader(rows)}
