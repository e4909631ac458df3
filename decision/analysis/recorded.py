"""What really happened, as a run next to those of policies: the same measures, and no simulation.

A recorded schedule is not a policy's. Jobs waited for what a log does not hold: outages, reservations, limits of users
and partitions, memory, dependencies. So nothing is said to be better or worse than it; how far the two can be compared
is said by `Standing`.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from decision.model.demand import walltimes
from decision.model.errors import ConfigError
from decision.model.record import FinalState, Floats, HostState, HostTable, JobTable, RunRecord
from decision.model.usage import Recorded, fitted, recorded, use_of
from decision.model.workload import Workload

RECORDED = "recorded"  # the name among policies
_CLOSE = 60.0  # seconds: waits so near count as alike
_FIGURES = ("recorded_distance", "recorded_ratio", "recorded_rank", "recorded_close")  # of a run: see `agreement`


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How far what was recorded of a workload can be compared with a simulation of it."""

    workload: str
    fitted: float | None  # share of all waiting next to enough free hosts; None where nothing waited
    over: float  # share of the time with more than the machine in use
    hosts: int
    closest: str  # the simulated policy whose waits are nearest; "" where none was simulated
    ratio: float | None  # recorded mean wait over its mean wait; None where it lets nothing wait
    rank: float | None  # correlation of the waits' ranks; None where all waits of one are equal
    close: float | None  # share of the jobs whose waits are within `_CLOSE`; None where `closest` is ""
    verdict: str = "not comparable"


def recorded_jobs(workload: Workload) -> Recorded:
    """The jobs whose start is known.

    Raises:
        ConfigError: if there are none.
    """
    jobs = recorded(workload)
    if jobs is None:
        where = workload.path or f"workload {workload.name}"
        raise ConfigError(
            f"{where}: no start of a job is recorded, so there is nothing to compare with", field="policy"
        )
    return jobs


def recorded_run(workloads: Sequence[Workload], nb_hosts: int) -> RunRecord:
    """What was recorded of the workloads, as the record of a run; no job has a placement.

    Raises:
        ConfigError: if no start is known.
    """
    parts = [_table(workload, recorded_jobs(workload)) for workload in workloads]
    columns = {name: [getattr(part, name) for part in parts] for name in JobTable.__struct_fields__}
    joined: dict[str, Any] = {
        name: np.concatenate(some) if isinstance(some[0], np.ndarray) else [item for column in some for item in column]
        for name, some in columns.items()
    }
    jobs = JobTable(**joined)
    jobs = jobs.take(np.argsort(jobs.start_time + jobs.runtime, kind="stable"))
    states = len(HostState)
    return RunRecord(
        nb_hosts=nb_hosts,
        jobs=jobs,
        host_states=HostTable(time=np.empty(0), counts=np.empty((0, states), np.int64)),
        time_in_state=np.zeros(states),
    )


def _table(workload: Workload, jobs: Recorded) -> JobTable:
    rows, count = jobs.rows.tolist(), len(jobs.rows)
    chosen = [workload.jobs[row] for row in rows]
    return JobTable(
        id=[job.id for job in chosen],
        profile=[job.profile for job in chosen],
        submit_time=jobs.submit,
        size=jobs.size.astype(np.int64),
        walltime=walltimes(workload)[jobs.rows],
        final_state=np.full(count, FinalState.COMPLETED_SUCCESSFULLY),
        start_time=jobs.start,
        runtime=jobs.run,
        allocation=[""] * count,
        energy=np.full(count, -1.0),
        metadata=[""] * count,
    )


def agreement(record: RunRecord, workload: Workload) -> dict[str, float]:
    """How near a run's waits are to the recorded ones, over the jobs of both, by `_FIGURES`.

    Mean distance in seconds, recorded mean wait over the run's, rank correlation (Spearman), share within `_CLOSE`.
    """
    jobs = recorded(workload)
    if jobs is None:
        return {}
    waits = (jobs.start - jobs.submit).tolist()
    known = {workload.jobs[row].id: wait for row, wait in zip(jobs.rows.tolist(), waits, strict=True)}
    return _nearness(record.jobs, known)


def _nearness(jobs: JobTable, known: Mapping[str, float]) -> dict[str, float]:
    mine = (jobs.start_time - jobs.submit_time).tolist()
    both = zip(jobs.id, mine, strict=True)
    pairs = [(known[job], wait) for job, wait in both if job in known and math.isfinite(wait)]
    if not pairs:
        return {}
    real, simulated = np.round(pairs, 3).T  # clocks of simulators round, which would break ties
    apart = np.abs(real - simulated)
    ratio = real.mean() / simulated.mean() if simulated.mean() else math.nan
    figures = (apart.mean(), ratio, rank_correlation(real, simulated), (apart <= _CLOSE).mean())
    return {name: float(value) for name, value in zip(_FIGURES, figures, strict=True) if math.isfinite(value)}


def rank_correlation(a: Floats, b: Floats) -> float:
    """Spearman's: the correlation of ranks, equal values having the mean of theirs; nan where one is constant."""
    x, y = _ranks(a), _ranks(b)
    if x.std() == 0 or y.std() == 0:
        return math.nan
    return float(np.corrcoef(x, y)[0, 1])


def _ranks(values: Floats) -> Floats:
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[which]


def standing(workload: Workload, name: str, runs: Sequence[tuple[str, dict[str, float]]]) -> Standing:
    """How far a workload's record can be compared with runs of policies.

    Args:
        workload: the jobs.
        name: of the workload.
        runs: each policy's name and figures, with those of `agreement`.
    """
    return _standing(recorded_jobs(workload), workload.nb_res, name, runs)


def standing_of_tables(tables: Mapping[str, JobTable], hosts: int, name: str) -> Standing | None:
    """How far what was recorded, if it is among some runs' tables by policy, can be compared with the others."""
    if RECORDED not in tables:
        return None
    table = tables[RECORDED]
    wait = table.start_time - table.submit_time
    jobs = Recorded(
        np.arange(len(wait)), table.submit_time, table.start_time, table.runtime, np.asarray(table.size, np.float64)
    )
    known = dict(zip(table.id, wait.tolist(), strict=True))
    runs = [(policy, _nearness(own, known)) for policy, own in tables.items() if policy != RECORDED]
    return _standing(jobs, hosts, name, runs)


def _standing(jobs: Recorded, hosts: int, name: str, runs: Sequence[tuple[str, dict[str, float]]]) -> Standing:
    use = use_of(jobs)
    near = [run for run in runs if _FIGURES[0] in run[1]]
    policy, figures = min(near, key=lambda run: run[1][_FIGURES[0]], default=("", {}))
    ratio, rank, close = (figures.get(figure) for figure in _FIGURES[1:])
    share = fitted(jobs, use, hosts)
    return Standing(
        workload=name,
        fitted=None if math.isnan(share) else share,
        over=use.over(hosts),
        hosts=hosts,
        closest=policy,
        ratio=ratio,
        rank=rank,
        close=close,
    )


def standing_text(found: Standing) -> str:
    """A line for people."""
    waited = "nothing waited"
    if found.fitted is not None:
        waited = f"{100 * found.fitted:.0f} % of its waiting was next to enough free hosts (fitted)"
    parts = [
        f"recorded of {found.workload} is not comparable: {waited}, {100 * found.over:.1f} % of the time more than "
        f"{found.hosts:,} hosts were in use (over)"
    ]
    if found.close is not None:
        ratio = "" if found.ratio is None else f"recorded waits are {found.ratio:.2g} times its own, "
        rank = "" if found.rank is None else f"rank correlation {found.rank:.2f}, "
        parts.append(
            f"closest is {found.closest}: {ratio}{rank}{100 * found.close:.0f} % of the jobs within {_CLOSE:g} s"
        )
    return "; ".join(parts)
