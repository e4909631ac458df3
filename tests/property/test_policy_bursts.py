"""Every policy with every power slot and allocation runs bursts of short jobs on small clusters whose hosts sleep.

200 cases are tried; ``DECISION_BURSTS=2000`` tries so many. Each is a test of its own, made from its number. With
``NUMBA_BOUNDSCHECK=1`` kernels refuse to read or write beyond their arrays.
"""

import itertools
import math
import os
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from helpers.policy_toys import platform

from decision.batsim.agent import make_agent
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.rules import EngineOptions
from decision.experiments.run import simulate_by_messages
from decision.model.hosts import parse_hosts
from decision.model.platform import FatTree, Link, Platform
from decision.model.record import FinalState, JobTable
from decision.model.workload import Delay, Job, Workload, Worth
from decision.policies.options import ALLOCATIONS, BACKFILLS, ORDER_LINES, POWERS
from decision.policies.policy import Policy
from decision.rl.schedulers.ranking import RankingPolicy, first_guess
from decision.simulation import simulate_workloads

CASES = int(os.environ.get("DECISION_BURSTS", "200"))
ENERGY = EngineOptions(energy=True)
SLOTS = list(itertools.product(ORDER_LINES, BACKFILLS, ALLOCATIONS, POWERS))
POLICIES: list[tuple[str, ...]] = [*SLOTS, ("kamelot",), ("ranking",)]
STRIDE = 389  # prime, so that cases go through all policies in a scattered order
MESSAGES = 4  # one case in so many is also decided through Batsim's messages


@pytest.mark.parametrize("case", range(CASES))
def test_a_burst_of_short_jobs(case: int) -> None:
    rng = np.random.default_rng(case)
    policy = _policy(rng, POLICIES[case * STRIDE % len(POLICIES)])
    hosts = int(rng.choice([1, 2, 3, 3, 4, 4, 5, 70]))
    cluster = platform(
        hosts, True, wake=float(rng.choice([0.5, 20.0, 151.5, 151.5])), doze=float(rng.choice([0.1, 6.0]))
    )
    if "tree" in str(policy) or "hops" in str(policy):
        cluster = msgspec.structs.replace(cluster, topology=_tree(hosts))
    workload = _workload(rng, hosts)
    record = simulate_workloads(cluster, [workload], policy, engine_options=ENERGY, seed=case)
    _check(record.jobs, workload.jobs, hosts)
    if case % MESSAGES == 0 and isinstance(policy, str):
        assert _starts(_through_messages(cluster, workload, policy, case)) == _starts(record.jobs)


def _policy(rng: np.random.Generator, slots: Sequence[str]) -> str | Policy:
    if slots == ("kamelot",):
        return "kamelot"
    if slots == ("ranking",):
        return RankingPolicy(first_guess())
    order, backfill, allocation, power = slots
    numbers = {
        "never": "",
        "idle-timeout": f",idle_timeout={rng.choice([0, 5, 60, 600])}",
        "keep-awake": f",keep_awake={rng.choice([0, 1, 3])}",
    }
    name = order if backfill == "none" else f"{order}+{backfill}"
    return f"{name},allocation={allocation},power={power}{numbers[power]}"


def _tree(hosts: int) -> FatTree:
    """Two hosts on each switch, where their number is even, and links that take no time."""
    down = (2, hosts // 2) if hosts % 2 == 0 else (1, hosts)
    return FatTree(down, (1, 1), (1, 1), (Link(1e9, 0.0),) * 2)


def _workload(rng: np.random.Generator, hosts: int) -> Workload:
    """Up to 150 jobs in one burst or several, with or without ties; some reach their walltime."""
    count = int(rng.choice([5, 40, 150, 150, 150]))
    bursts = rng.choice([0.0, 0.0, 1.0, 30.0, 1000.0, 5000.0], rng.integers(1, 4))
    submit = np.sort(rng.choice(bursts, count) + rng.choice([0.0, 0.1, 2.0]) * rng.integers(0, 10, count))
    size = rng.integers(1, hosts + 1, count) if rng.random() < 0.7 else rng.choice([1, hosts], count)
    longest = rng.choice([2.0, 5.0, 60.0])  # seconds
    walltime = rng.choice([1.0, 2.0, 3.0], count) if rng.random() < 0.3 else rng.uniform(0.3, longest, count).round(2)
    runtime = walltime * rng.choice([0.1, 0.5, 1.0, 1.25], count)
    columns = zip(submit.tolist(), size.tolist(), walltime.tolist(), strict=True)
    jobs = [
        Job(id=f"w0!{i:03}", submit_time=when, size=width, walltime=limit, profile=f"{i}", worth=_worth(i, when))
        for i, (when, width, limit) in enumerate(columns)
    ]
    profiles = {f"{i}": Delay(seconds) for i, seconds in enumerate(runtime.tolist())}
    return Workload(name="w0", jobs=jobs, profiles=profiles, nb_res=hosts)


def _worth(job: int, submitted: float) -> Worth:
    """Of all orders by worth; what is far too late to matter is the deadline of every third job."""
    deadline = submitted + 1e7 - job if job % 3 == 0 else math.nan
    return Worth(value=1.0 + 7 * job % 10, qos=1.0 + 13 * job % 100, deadline=deadline)


def _through_messages(cluster: Platform, workload: Workload, policy: str, seed: int) -> JobTable:
    agent = make_agent(policy, {}, platform=cluster, seed=seed)
    return simulate_by_messages(EmbeddedEngine(cluster, [workload], (), ENERGY), agent).jobs


def _starts(jobs: JobTable) -> dict[str, tuple[float, str]]:
    return {job: (start, hosts) for job, start, hosts in zip(jobs.id, jobs.start_time, jobs.allocation, strict=True)}


def _check(jobs: JobTable, submitted: Sequence[Job], hosts: int) -> None:
    """Every job ran once, on as many hosts as it asked for and on none that another job had meanwhile."""
    assert sorted(jobs.id) == sorted(job.id for job in submitted)
    assert set(jobs.final_state) <= {FinalState.COMPLETED_SUCCESSFULLY, FinalState.COMPLETED_WALLTIME_REACHED}
    assert (jobs.start_time >= jobs.submit_time - 1e-6).all()
    busy_until = np.zeros(hosts)
    for row in np.lexsort((jobs.start_time + jobs.runtime, jobs.start_time)):
        mine = parse_hosts(jobs.allocation[row])
        assert len(mine) == jobs.size[row]
        assert busy_until[mine].max() <= jobs.start_time[row] + 1e-6
        busy_until[mine] = jobs.start_time[row] + jobs.runtime[row]
