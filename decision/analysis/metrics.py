"""Metrics of a schedule, each with its formula.

Over the jobs that ran (rejected jobs count nowhere), each once where it was suspended. For a job, s is its submission
time, t its start, p its runtime, q its size and w = t - s its waiting time. Programs that use the same word compute
different things: Batsim's ``mean_slowdown`` is `slowdowns` (unbounded), its makespan is `makespan` until version 4 and
`makespan_from_submission` from version 5 on, and its means divide by all jobs, the rejected ones too; evalys'
utilization is a number of busy hosts; batsim-py's stretch is w / walltime.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

import msgspec
import numpy as np

from decision.model.hosts import parse_hosts
from decision.model.record import SHORTEST_RUNTIME, Context, FinalState, Floats, Ints, JobTable, PredictionTable
from decision.placement.cost import text_costs

from .worth import grid_time, join_parts, missed_deadlines, total_value, value_share

_HOUR = 3600.0  # seconds
PROMISE_TOLERANCE = 1e-3  # seconds: a start so much later breaks no promise, since clocks round

Distance = Callable[[Ints, Ints], Ints]  # hops between hosts, for arrays of ids


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a schedule comes to."""

    jobs: int  # that ran
    rejected: int
    makespan: float  # seconds, from the first submission to the last end
    mean_waiting_time: float  # seconds
    p95_waiting_time: float  # seconds
    p99_waiting_time: float  # seconds
    max_waiting_time: float  # seconds
    mean_bounded_slowdown: float
    late_starts: int  # jobs that began after the last arrival
    utilization: float  # in [0, 1]
    arrival_utilization: float  # in [0, 1], until the last arrival
    energy: float  # joules, nan where it was not simulated
    waste: float  # joules of idle hosts and switches, nan where energy was not simulated or is not asked for
    waste_bound: float  # joules: the least of any shutdown with the same starts; nan likewise
    carbon: float  # g that the energy emitted; nan where it was not simulated, or nothing says what energy emits
    cost: float  # of the energy; nan likewise
    window_gap: float  # hops of windows above a lower bound, as a share; nan where the policy knows none
    value: float  # of the jobs that ended successfully; nan where no job has one
    value_share: float  # in [0, 1], of all that was submitted; nan likewise
    violations: float  # jobs that did not end by their deadline; nan where no job has one
    lost_work: float  # host-seconds that were done in vain; nan where that is not known
    grid: float  # host-seconds beyond the supply of power; nan without one

    def __str__(self) -> str:
        """A table of what the run has, with units."""
        rows = []
        for name, (label, unit, scale, digits) in _PRINTED.items():
            value = getattr(self, name) * scale
            if not math.isnan(value):
                rows.append((label, f"{value:,.{digits}f}", unit))
        words, numbers = (max(len(row[column]) for row in rows) for column in (0, 1))
        return "\n".join(f"{label:<{words}}  {value:>{numbers}} {unit}".rstrip() for label, value, unit in rows)


_PRINTED = {  # a field's label, unit, scale and decimals
    "jobs": ("jobs", "", 1, 0),
    "rejected": ("rejected", "", 1, 0),
    "makespan": ("makespan", "s", 1, 2),
    "mean_waiting_time": ("mean waiting time", "s", 1, 2),
    "p95_waiting_time": ("95th percentile of waiting times", "s", 1, 2),
    "p99_waiting_time": ("99th percentile of waiting times", "s", 1, 2),
    "max_waiting_time": ("longest waiting time", "s", 1, 2),
    "mean_bounded_slowdown": ("mean bounded slowdown", "", 1, 2),
    "late_starts": ("starts after the last arrival", "", 1, 0),
    "utilization": ("utilization", "%", 100, 1),
    "arrival_utilization": ("utilization until the last arrival", "%", 100, 1),
    "energy": ("energy", "MJ", 1e-6, 2),
    "waste": ("energy waste", "MJ", 1e-6, 2),
    "waste_bound": ("least waste with these starts", "MJ", 1e-6, 2),
    "carbon": ("carbon", "kg", 1e-3, 2),
    "cost": ("cost of energy", "", 1, 2),
    "window_gap": ("gap of windows", "%", 100, 2),
    "value": ("value", "", 1, 2),
    "value_share": ("value, of submitted", "%", 100, 1),
    "violations": ("deadlines missed", "", 1, 0),
    "lost_work": ("lost work", "host-hours", 1 / _HOUR, 2),
    "grid": ("grid power", "host-hours", 1 / _HOUR, 2),
}


def summarise(
    jobs: JobTable,
    nb_hosts: int,
    joules: float = math.nan,
    window_gap: float = math.nan,
    known: Context | None = None,
    waste: tuple[float, float] = (math.nan, math.nan),
    rated: tuple[float, float] = (math.nan, math.nan),
    lost_work: float = math.nan,
) -> Summary:
    """The metrics of ``decision run``'s table on `nb_hosts` compute hosts; nan where no job ran."""
    pieces, jobs = only_ran(jobs), join_parts(jobs)
    ran, known = only_ran(jobs), known or Context()
    return Summary(
        jobs=len(ran.id),
        rejected=len(jobs.id) - len(ran.id),
        makespan=makespan_from_submission(ran),
        mean_waiting_time=mean(waiting_times(ran)),
        p95_waiting_time=percentile(waiting_times(ran), 95),
        p99_waiting_time=percentile(waiting_times(ran), 99),
        max_waiting_time=largest(waiting_times(ran)),
        mean_bounded_slowdown=mean(bounded_slowdowns(ran)),
        late_starts=late_starts(ran),
        utilization=utilization(ran, nb_hosts),
        arrival_utilization=arrival_utilization(ran, nb_hosts),
        energy=joules,
        waste=waste[0],
        waste_bound=waste[1],
        carbon=rated[0],
        cost=rated[1],
        window_gap=window_gap,
        value=total_value(jobs, known.worth),
        value_share=value_share(jobs, known.worth),
        violations=missed_deadlines(jobs, known.worth),
        lost_work=lost_work,
        grid=grid_time(pieces, known.supply, known.battery),
    )


def only_ran(jobs: JobTable) -> JobTable:
    """The jobs that were not rejected."""
    ran = jobs.final_state != FinalState.REJECTED
    return jobs if ran.all() else jobs.take(np.flatnonzero(ran))


def mean(values: Floats) -> float:
    """The arithmetic mean; nan of nothing."""
    return float(values.mean()) if len(values) else math.nan


def largest(values: Floats) -> float:
    """The maximum; nan of nothing."""
    return float(values.max()) if len(values) else math.nan


def percentile(values: Floats, percent: float) -> float:
    """The value that `percent` of all are not above, linear between neighbours; nan of nothing.

    As `numpy.percentile`, to the last digit; that loads modules for 15 ms.
    """
    if not len(values):
        return math.nan
    ordered = np.sort(values)
    at = (len(ordered) - 1) * (percent / 100)
    below, share = int(at), at - int(at)
    low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
    if math.isnan(ordered[-1]):
        return math.nan
    return low + (high - low) * share if share < 0.5 else high - (high - low) * (1 - share)


# --- Of each job (all take jobs that ran) ---------------------------------------------------------------------------


def waiting_times(jobs: JobTable) -> Floats:
    """``t - s`` of each job, seconds."""
    return jobs.start_time - jobs.submit_time


def turnaround_times(jobs: JobTable) -> Floats:
    """``t + p - s`` of each job, seconds."""
    return jobs.start_time + jobs.runtime - jobs.submit_time


def slowdowns(jobs: JobTable) -> Floats:
    """``(w + p) / p`` of each job; Batsim calls it stretch in ``out_jobs.csv`` and slowdown in ``out_schedule.csv``."""
    return turnaround_times(jobs) / jobs.runtime


def bounded_slowdowns(jobs: JobTable, bound: float = SHORTEST_RUNTIME) -> Floats:
    """``max(1, (w + p) / max(p, bound))`` of each job, `bound` in seconds (Feitelson et al. 1997)."""
    return np.maximum(1.0, (waiting_times(jobs) + jobs.runtime) / np.maximum(jobs.runtime, bound))


def stretches(jobs: JobTable, recorded: Mapping[str, float]) -> Floats:
    """Run times over the recorded ones (seconds by id), of the jobs that have one above 0."""
    wanted = np.array([recorded.get(job, 0.0) for job in jobs.id])
    known = wanted > 0
    return jobs.runtime[known] / wanted[known]


def waits_over_walltime(jobs: JobTable) -> Floats:
    """``w / walltime`` of each job that has a walltime."""
    known = np.isfinite(jobs.walltime)
    return waiting_times(jobs)[known] / jobs.walltime[known]


def prediction_errors(jobs: JobTable, predictions: PredictionTable) -> Floats:
    """``|e - p|`` of each job, seconds: e is the run time that was expected at its submission."""
    return np.abs(predictions.predicted - jobs.runtime)


def underpredicted(jobs: JobTable, predictions: PredictionTable) -> float:
    """Share of the jobs with ``e < p``: they ran for longer than was expected at their submission; nan of none."""
    return mean((predictions.predicted < jobs.runtime).astype(np.float64))


def broken_promises(jobs: JobTable, predictions: PredictionTable) -> float:
    """Jobs that started later than EASY promised when they first were the head of the queue; nan without promises."""
    if np.isnan(predictions.promised).all():
        return math.nan
    return float((jobs.start_time > predictions.promised + PROMISE_TOLERANCE).sum())


def per_processor_slowdowns(jobs: JobTable) -> Floats:
    """``max(1, (w + p) / (q * p))`` of each job (Zotkin and Keleher 1999, without a bound)."""
    return np.maximum(1.0, turnaround_times(jobs) / (jobs.size * jobs.runtime))


def communication_hops(jobs: JobTable, distance: Distance) -> Floats:
    """``sum over pairs (i, k), i != k, of the job's hosts of distance(i, k) / q``: the communication-hop cost.

    Each pair counts in both directions; a job on one host has no cost. It is the interference metric of topology-aware
    allocation on fat-trees, where `distance` is 2, 4 or 6 (same switch, same pod, other pod).
    """
    return np.array([_hops(np.array(parse_hosts(hosts), np.int64), distance) for hosts in jobs.allocation])


def tree_hops(jobs: JobTable, down: Sequence[int], places: Ints) -> Floats:
    """`communication_hops` on a tree of switches, in closed form (`decision.placement.cost`).

    Args:
        jobs: that ran.
        down: devices below each switch of a level, from the hosts up.
        places: (H,) the hosts' places in the tree, by id.
    """
    sets = [parse_hosts(hosts) for hosts in jobs.allocation]
    begin = np.cumsum([0, *map(len, sets)])
    hosts = np.fromiter(chain.from_iterable(sets), np.int64, begin[-1])
    costs = np.zeros(len(sets))
    text_costs(np.array(down), places[hosts], begin, costs)
    return costs


def _hops(hosts: Ints, distance: Distance) -> float:
    near, far = np.triu_indices(len(hosts), 1)
    return 2 * float(distance(hosts[near], hosts[far]).sum()) / len(hosts) if len(hosts) > 1 else 0.0


# --- Of a schedule (all take jobs that ran; nan where there are none) -------------------------------------------------


def makespan(jobs: JobTable) -> float:
    """``max(t + p)``: when the last job ends, seconds since the simulation began (Batsim 3 and 4)."""
    return largest(jobs.start_time + jobs.runtime)


def makespan_from_submission(jobs: JobTable) -> float:
    """``max(t + p) - min(s)``: seconds from the first submission to the last end (Batsim 5)."""
    return makespan(jobs) - float(jobs.submit_time.min()) if jobs.id else math.nan


def utilization(jobs: JobTable, nb_hosts: int) -> float:
    """``sum(q * p) / (nb_hosts * (max(t + p) - min(s)))``: the share of host time in use until the last end."""
    return float(np.sum(jobs.size * jobs.runtime)) / (nb_hosts * makespan_from_submission(jobs))


def arrival_utilization(jobs: JobTable, nb_hosts: int) -> float:
    """``sum(q * max(0, min(t + p, S) - t)) / (nb_hosts * (S - min(s)))``, S = max(s): the share until the last arrival.

    What comes after is the queue's end, when no jobs come that could fill the hosts; a machine in service never sees
    it. nan where all jobs came at once.
    """
    if not jobs.id or (span := float(np.ptp(jobs.submit_time))) == 0:
        return math.nan
    last = float(jobs.submit_time.max())
    used = np.minimum(jobs.start_time + jobs.runtime, last) - np.minimum(jobs.start_time, last)
    return float(np.sum(jobs.size * used)) / (nb_hosts * span)


def late_starts(jobs: JobTable) -> int:
    """Jobs with ``t > max(s)``, which began after the last arrival: had more jobs come, they might have waited on."""
    return int((jobs.start_time > jobs.submit_time.max()).sum()) if jobs.id else 0


def mean_queue_length(jobs: JobTable) -> float:
    """``sum(w) / (max(t + p) - min(s))``: waiting jobs, averaged over the time from first submission to last end."""
    return float(waiting_times(jobs).sum()) / makespan_from_submission(jobs)


def mean_job_load(jobs: JobTable) -> float:
    """``sum(w * load) / (max(t + p) - min(s))``: the load that waits, host-seconds, averaged over the same time.

    A job's load is ``q * walltime``, or ``q * p`` where it has no walltime.
    """
    return float((waiting_times(jobs) * loads(jobs)).sum()) / makespan_from_submission(jobs)


def loads(jobs: JobTable) -> Floats:
    """``q * walltime`` of each job, host-seconds; ``q * p`` where it has no walltime."""
    return np.multiply(jobs.size, np.where(np.isfinite(jobs.walltime), jobs.walltime, jobs.runtime), dtype=np.float64)


def throughput(jobs: JobTable) -> float:
    """``n / (max(t + p) - min(s))``: jobs per hour that ran between the first submission and the last end."""
    return len(jobs.id) * _HOUR / makespan_from_submission(jobs)


def fairness(jobs: JobTable, users: Mapping[str, str]) -> float:
    """``sum(x)^2 / (n * sum(x^2))`` of the n users' mean bounded slowdowns x: 1 if all fare alike, 1/n at worst.

    Jain, Chiu and Hawe's index (1984). `users` are the users by job id; jobs without one count as one user's, and
    where no job has one, each job is a user of its own.
    """
    names = [users.get(job, "") for job in jobs.id]
    number = {name: at for at, name in enumerate(sorted(set(names)))}
    owners = np.array([number[name] for name in names]) if any(names) else np.arange(len(names))
    slowdown = bounded_slowdowns(jobs)
    if not len(slowdown):
        return math.nan
    each = np.bincount(owners, weights=slowdown) / np.bincount(owners)
    return float(each.sum() ** 2 / (len(each) * (each**2).sum()))
