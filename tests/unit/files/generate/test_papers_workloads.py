"""The workloads of papers meet the figures that the papers publish, whatever the seed."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from decision.files import load_workload, write_workload
from decision.files.generate.paper_workloads import (
    PUBLISHED_TRACES,
    GreenModel,
    green_workload,
    grid5000_days,
    predicted_runtimes,
    topology_workload,
    trace_figures,
)
from decision.model.demand import offered_load, runtimes, sizes, submit_times, walltimes
from decision.model.errors import ConfigError
from decision.model.workload import Delay, Job, Workload

DAY = 86_400


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# ------------------------------------------------------------------------------------------------ predicted runtimes


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "single"), [("WL1", 0.8), ("WL2", 0.2)])
def test_wl1_and_wl2_have_their_published_figures(name: str, single: float, seed: int) -> None:
    workload = predicted_runtimes(rng(seed), name, "100")
    requested, gaps = walltimes(workload), np.diff(submit_times(workload))
    assert (len(workload.jobs), workload.nb_res) == (2000, 256)
    assert (sizes(workload) == 1).mean() == single
    assert requested.max() <= 6 * 3600
    assert requested.mean() == pytest.approx(1800, rel=0.01)
    assert gaps.max() <= 1800
    assert gaps.mean() == pytest.approx(100, rel=0.01)


@pytest.mark.parametrize(("accuracy", "spread"), [("100", 0.0), ("050", 0.0), ("RND", 12**-0.5)])
def test_accuracy_is_the_run_time_of_the_requested_time(accuracy: str, spread: float) -> None:
    workload = predicted_runtimes(rng(), "WL1", accuracy)
    found = runtimes(workload) / walltimes(workload)
    assert found.mean() == pytest.approx(1 if accuracy == "100" else 0.5, abs=0.001)
    assert found.std() == pytest.approx(spread, abs=0.001)
    assert found.max() <= 1


def test_accuracies_share_their_jobs_and_halves_are_the_whole() -> None:
    exact, random = (predicted_runtimes(rng(), "WL2", name) for name in ("100", "RND"))
    assert [(j.id, j.submit_time, j.size, j.walltime) for j in exact.jobs] == [
        (j.id, j.submit_time, j.size, j.walltime) for j in random.jobs
    ]
    halves = [predicted_runtimes(rng(), "WL2", "RND", half) for half in "ab"]
    assert [job.id for half in halves for job in half.jobs] == [job.id for job in random.jobs]
    assert [len(half.jobs) for half in halves] == [1000, 1000]
    assert [half.jobs[0].submit_time for half in halves] == [0, 0]


def test_single_node_share_and_load_are_as_asked() -> None:
    workload = predicted_runtimes(rng(), "WL2", "050", single=0.5, load=1.5)
    assert (sizes(workload) == 1).mean() == 0.5
    assert offered_load(workload, runtimes(workload)) == pytest.approx(1.5)


def test_large_jobs_request_more_time() -> None:
    workload = predicted_runtimes(rng(), "WL2", "100")
    large = sizes(workload) >= 32
    assert walltimes(workload)[large].mean() > 1.3 * walltimes(workload)[~large].mean()


# ------------------------------------------------------------------------------------------------ Grid'5000


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", PUBLISHED_TRACES)
def test_days_of_grid5000_have_their_published_figures(name: str, seed: int) -> None:
    """Counted here from the jobs alone: within 5 % of the table, the five groups too."""
    trace = PUBLISHED_TRACES[name]
    workload = grid5000_days(rng(seed), trace)
    assert workload.nb_res == {"orion": 48, "graphite": 64, "econome": 352}[name]
    assert len(workload.jobs) == pytest.approx(trace.jobs, rel=0.05)
    assert (np.diff(submit_times(workload)) >= 0).all()
    by_day: dict[int, list[float]] = {}
    area = 0.0
    for job in workload.jobs:
        by_day.setdefault(int(job.submit_time // DAY), []).append(job.submit_time)
        profile = workload.profiles[job.profile]
        assert isinstance(profile, Delay)
        area += job.size * min(profile.duration, job.walltime)
    close = {day: sum(b - a < 300 for a, b in pairwise(at)) for day, at in by_day.items()}
    share = [close[day] / len(at) for day, at in by_day.items()]
    assert min(map(len, by_day.values())) >= 2
    assert sum(close.values()) / len(workload.jobs) == pytest.approx(trace.sequential, rel=0.05)
    assert area / (trace.cores * DAY * len(by_day)) == pytest.approx(trace.utilization, rel=0.05)
    groups = np.bincount([int(part * 5) for part in share], minlength=5)
    assert groups.tolist() == [pytest.approx(days, rel=0.05) for days in trace.groups]
    assert max(by_day) < (trace.last - trace.first).days + 1


@pytest.fixture(scope="module")
def orion() -> Workload:
    return grid5000_days(rng(), PUBLISHED_TRACES["orion"])


def test_people_work_in_office_hours_and_less_at_weekends(orion: Workload) -> None:
    at = submit_times(orion)
    hours = at // 3600 % 24
    assert ((hours >= 9) & (hours < 18)).mean() > 0.5  # 9 of 24 hours
    weekday = at // DAY % 7  # 2012-10-01 was a Monday
    assert (weekday >= 5).mean() < 0.15  # 2 of 7 days
    assert orion.unix_start == 1_349_049_600  # 2012-10-01, midnight


def test_jobs_use_of_their_walltimes_what_real_ones_use(orion: Workload) -> None:
    used = runtimes(orion) / walltimes(orion)
    assert np.quantile(used, 0.1) < 0.03
    assert np.median(used) == pytest.approx(0.3, rel=0.25)
    assert (used > 1).mean() == pytest.approx(0.3, abs=0.05)


def test_users_repeat_themselves(orion: Workload) -> None:
    pairs = pairwise(orion.jobs)
    close = [(a.user, a.size) == (b.user, b.size) for a, b in pairs if b.submit_time - a.submit_time < 300]
    assert np.mean(close) > 0.95
    users = np.unique([job.user for job in orion.jobs], return_counts=True)[1]
    assert np.sort(users)[-10:].sum() / len(orion.jobs) > 0.4


def test_a_part_of_the_days_is_the_same_days_from_their_midnight(orion: Workload) -> None:
    part = grid5000_days(rng(), PUBLISHED_TRACES["orion"], slice(10, 12))
    days = np.unique(submit_times(orion) // DAY)[10:12]
    whole = [job for job in orion.jobs if job.submit_time // DAY in days]
    assert [job.submit_time for job in part.jobs] == [job.submit_time - days[0] * DAY for job in whole]
    assert (part.unix_start or 0) - (orion.unix_start or 0) == days[0] * DAY
    with pytest.raises(ConfigError, match="no day is left; the trace has 2,089 days"):
        grid5000_days(rng(), PUBLISHED_TRACES["orion"], slice(5000, None))


def test_figures_are_counted_by_hand() -> None:
    """Day 0: 3 jobs, one sequential. Day 1: one job, left out. Day 2: 5 minutes apart is not sequential."""
    times = (0, 299, 599, DAY + 1, 2 * DAY, 2 * DAY + 300)
    jobs = tuple(Job(id=f"w0!{at}", submit_time=at, size=2, profile="p", walltime=50) for at in times)
    found = trace_figures(Workload(name="w0", jobs=jobs, profiles={"p": Delay(100.0)}, nb_res=4), cores=4)
    assert (found.jobs, found.days, found.groups) == (5, 2, (1, 1, 0, 0, 0))
    assert found.sequential == pytest.approx(1 / 5)
    assert found.utilization == pytest.approx(5 * 2 * 50 / (4 * 2 * DAY))


# ------------------------------------------------------------------------------------------------ green, topology


def test_green_jobs_arrive_as_a_poisson_process_at_their_rate() -> None:
    workload = green_workload(rng(), 20_000, GreenModel(hosts=50, most_hosts=25))
    assert offered_load(workload, runtimes(workload)) == pytest.approx(1.2, rel=0.03)
    per_step = np.bincount((submit_times(workload) / 60).astype(int))[:-1]
    assert per_step.var() == pytest.approx(per_step.mean(), rel=0.05)


def test_green_jobs_have_values_and_deadlines_in_their_json(tmp_path: Path) -> None:
    model = GreenModel(most_hosts=3, most_steps=4, most_value=2, step=30.0)
    workload = green_workload(rng(), 500, model)
    write_workload(tmp_path / "green.json", workload)
    sources = [json.loads(job.source or b"") for job in load_workload(tmp_path / "green.json", keep_source=True).jobs]
    lasting = runtimes(workload).tolist()
    assert {job["res"] for job in sources} == {1, 2, 3}
    assert set(lasting) == {30, 60, 90, 120}
    for job, seconds in zip(sources, lasting, strict=True):
        assert job["value"] / (job["res"] * seconds / 30) in (1, 2)
        assert job["deadline"] == pytest.approx(job["subtime"] + seconds / (job["qos"] / 100))
        assert (job["expected"], job["walltime"]) == (seconds, seconds + 30)  # Batsim stops what takes all of it
        assert job["subtime"] % 30 == 0


def test_prices_grow_with_the_qos_on_request() -> None:
    workload = green_workload(rng(), 500, GreenModel(most_value=11, price_by_qos=True))
    prices = {job.worth.qos: job.worth.value / (job.size * job.worth.expected / 60) for job in workload.jobs}
    assert prices == pytest.approx({50: 1, 60: 3, 70: 5, 80: 7, 90: 9, 100: 11})


def test_topology_jobs_are_uniform_within_their_published_bounds() -> None:
    workload = topology_workload(rng())
    columns = (sizes(workload), runtimes(workload), np.diff(submit_times(workload)))
    assert len(workload.jobs) == 100_000
    for values, (low, high) in zip(columns, ((1, 40), (10, 1800), (5, 30)), strict=True):
        assert (values.min(), values.max()) == (low, high)
        assert values.mean() == pytest.approx((low + high) / 2, rel=0.01)
        assert values.std() == pytest.approx((((high - low + 1) ** 2 - 1) / 12) ** 0.5, rel=0.01)


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: predicted_runtimes(rng(seed), "WL1", "RND", "a"),
        lambda seed: grid5000_days(rng(seed), PUBLISHED_TRACES["graphite"], slice(0, 5)),
        lambda seed: green_workload(rng(seed), 50, GreenModel()),
        lambda seed: topology_workload(rng(seed), 50),
    ],
)
def test_the_same_seed_gives_the_same_workload(make: Callable[[int], Workload]) -> None:
    assert make(1) == make(1) != make(2)
