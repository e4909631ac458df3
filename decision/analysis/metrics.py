"""Metrics of a schedule, each with its formula.

Over the jobs that ran (rejected jobs count nowhere), for a job with submission time s, start t and runtime r:
waiting time is t - s. Definitions differ between programs; these are the ones of Feitelson's and Mu'alem's papers.
"""

import math
from typing import Any

import msgspec
import numpy as np

from decision.model.record import FinalState, Floats, JobTable

BOUND = 10.0  # seconds: shorter jobs count as this long in the bounded slowdown


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a schedule comes to."""

    jobs: int  # that ran
    rejected: int
    makespan: float  # seconds
    mean_waiting_time: float  # seconds
    max_waiting_time: float  # seconds
    mean_bounded_slowdown: float
    utilization: float  # in [0, 1]
    energy: float  # joules, nan where it was not simulated


def summarise(jobs: JobTable, nb_hosts: int, joules: float = math.nan) -> Summary:
    """All metrics of a schedule on `nb_hosts` compute hosts; nan where no job ran."""
    ran = only_ran(jobs)
    return Summary(
        jobs=len(ran.id),
        rejected=len(jobs.id) - len(ran.id),
        makespan=makespan(ran),
        mean_waiting_time=_mean(waiting_times(ran)),
        max_waiting_time=float(waiting_times(ran).max(initial=-math.inf)) if ran.id else math.nan,
        mean_bounded_slowdown=_mean(bounded_slowdowns(ran)),
        utilization=utilization(ran, nb_hosts),
        energy=joules,
    )


def only_ran(jobs: JobTable) -> JobTable:
    """The jobs that were not rejected."""
    keep = np.flatnonzero(jobs.final_state != FinalState.REJECTED)
    columns: dict[str, Any] = {name: getattr(jobs, name) for name in jobs.__struct_fields__}
    for name, column in columns.items():
        columns[name] = column[keep] if isinstance(column, np.ndarray) else [column[i] for i in keep]
    return JobTable(**columns)


def makespan(jobs: JobTable) -> float:
    """``max(t + r)``: when the last job ends, in seconds since the simulation began (Batsim's definition)."""
    return float(np.max(jobs.start_time + jobs.runtime)) if jobs.id else math.nan


def waiting_times(jobs: JobTable) -> Floats:
    """``t - s`` of each job, seconds."""
    return jobs.start_time - jobs.submit_time


def bounded_slowdowns(jobs: JobTable, bound: float = BOUND) -> Floats:
    """``max(1, (t - s + r) / max(r, bound))`` of each job (Feitelson et al. 1997)."""
    return np.maximum(1.0, (waiting_times(jobs) + jobs.runtime) / np.maximum(jobs.runtime, bound))


def utilization(jobs: JobTable, nb_hosts: int) -> float:
    """``sum(size * r) / (nb_hosts * (max(t + r) - min(s)))``: the share of host time in use until the last end."""
    if not jobs.id:
        return math.nan
    span = makespan(jobs) - float(jobs.submit_time.min())
    return float(np.sum(jobs.size * jobs.runtime)) / (nb_hosts * span)


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else math.nan
