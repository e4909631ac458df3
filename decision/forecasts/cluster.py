"""When the jobs of a Slurm start: its queue now, or that of a case at an earlier moment; and what would help a job."""

from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np

from decision.model.errors import ConfigError
from decision.slurm.build import build_world, zero_of
from decision.slurm.case import Case
from decision.slurm.conf import Settings
from decision.slurm.jobs import SlurmJob
from decision.slurm.kernels import world as at_world
from decision.slurm.kernels.allocate import within_amounts, within_counts
from decision.slurm.queue import Queue
from decision.slurm.text import NEVER

from .answer import ALWAYS_UNKNOWN, JobStart, Starts, answer, learn_from_past
from .calibration import PRIOR_SCORES, Blend
from .forecast import QUANTILES, Forecast, Progress
from .history import WAITS, KnownJobs, RunTimes
from .slurm import LONG_QUEUE, QueueFacts, as_running, as_waiting, begin_moment, slurm_forecast, slurm_log

_PAST_FUTURES = 30  # futures of each earlier moment
_FIRST, _FIRST_OF_LONG = 8, 2  # futures of a first answer, also of a long queue
_WORTH = 0.9  # of the median wait: a change that leaves more helps little

# slurm's reasons in plain words
_REASONS = {
    "priority": "priority",
    "resources": "nodes",
    "dependency": "a dependency",
    "dependencyneversatisfied": "a dependency that can never be met",
    "begintime": "its begin time",
    "jobheldadmin": "held by an administrator",
    "jobhelduser": "held by its user",
    "reservation": "a reservation",
    "licenses": "licences",
    "jobarraytasklimit": "its array's limit on tasks",
    "none": "not looked at yet",
}


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a job's request, and when it would start with it."""

    options: str  # of sbatch
    job: JobStart
    ends_in_time: float | None  # share of cases in which it ends within the limit; None where that is as before


class ClusterMoment(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster at a moment: what has ended, what runs and what waits."""

    case: Case
    settings: Settings
    at: int  # seconds since 1970
    jobs: tuple[SlurmJob, ...]  # by submission
    log: KnownJobs
    reasons: Mapping[str, str] = {}
    priorities: Mapping[str, float] = {}
    notes: tuple[str, ...] = ()


def moment_of(case: Case, at: int, queue: Queue | None = None, extra: Sequence[SlurmJob] = ()) -> ClusterMoment:
    """The cluster at `at`: of a queue, with the case's jobs that ended before; or as the case recorded it.

    Args:
        case: the cluster and its history.
        at: seconds since 1970.
        queue: who runs and waits; None where the case says it.
        extra: jobs that are submitted now.

    Raises:
        ConfigError: if there is no history of that time.
    """
    if queue is None:
        if at < case.begin:
            raise ConfigError("the moment is before the case's first job; give a later one", field="at")
        jobs, notes = [job for job in case.jobs if job.submitted <= at], tuple[str, ...]()
    else:
        now = {job.id for job in queue.jobs}
        over = [job for job in case.jobs if job.id not in now and job.started and job.start + job.runtime <= at]
        jobs, notes = [*over, *queue.jobs], queue.notes
    jobs = sorted([*jobs, *extra], key=lambda job: job.submitted)
    return ClusterMoment(
        case=case,
        settings=case.settings,
        at=at,
        jobs=tuple(jobs),
        log=slurm_log(case, jobs),
        reasons=queue.reasons if queue else {},
        priorities=queue.priorities if queue else {},
        notes=(*notes, *_notes(case, at, jobs)),
    )


def _notes(case: Case, at: int, jobs: Sequence[SlurmJob]) -> list[str]:
    ended = [job.start + job.runtime for job in case.jobs if job.started and job.start + job.runtime <= at]
    if not ended:
        return ["no job of the case has ended by then: run times are the limits"]
    notes = []
    if (age := at - max(ended)) > 7 * 86_400:
        notes.append(f"the case's last job ended {age / 86_400:.0f} days before: read a newer history")
    gone = [window for window in case.windows if window.begin <= at < window.end and not window.reservation]
    if gone:
        count = sum(len(each.nodes) for each in gone)
        notes.append(f"{count} nodes are away: each comes back after as long as one that was away as long before")
    return notes


def cluster_starts(
    moment: ClusterMoment,
    *,
    quantiles: Sequence[float] = QUANTILES,
    before: float | None = None,
    futures: int = 200,
    moments: int = 20,
    seed: int = 0,
    only: Sequence[str] = (),
    show: Progress | None = None,
    first: Callable[[Starts], None] | None = None,
) -> Starts:
    """When the jobs that wait start; arguments as of `decision.forecasts.log.log_starts`, times since 1970.

    `only` are jobs that are asked for, if not all.
    """
    case, settings, at = moment.case, moment.settings, moment.at
    if not (moment.log.states(at) == WAITS).any():
        return Starts(at=at, futures=0, calibrated_by=0, jobs=(), before=before, notes=("no job waits at this moment",))
    notes, held = (*moment.notes, ALWAYS_UNKNOWN), held_by(moment)

    def at_moment(when: float, times: RunTimes, count: int) -> Forecast:
        return slurm_forecast(
            case, settings, int(when), log=moment.log, jobs=moment.jobs, futures=count, seed=seed, times=times
        )

    def now(count: int, progress: Progress | None) -> Forecast:
        return slurm_forecast(
            case,
            settings,
            at,
            log=moment.log,
            jobs=moment.jobs,
            futures=count,
            seed=seed,
            show=progress,
            asked=QueueFacts(moment.priorities, wanted=frozenset(only)),
        )

    def answered(found: Forecast, blend: Blend) -> Starts:
        return answer(found, moment.log, blend, quantiles=quantiles, before=before, held_by=held, notes=notes)

    if first is not None:
        first(
            answered(
                now(_FIRST if len(held) <= LONG_QUEUE else _FIRST_OF_LONG, None),
                learn_from_past(at_moment, moment.log, at, 0, 0),
            )
        )
    blend = learn_from_past(at_moment, moment.log, at, moments, _PAST_FUTURES)
    return answered(now(futures, show), blend)


def held_by(moment: ClusterMoment) -> dict[str, str]:
    """What holds back each job that waits: as Slurm says, else as the model finds."""
    found = {}
    states = moment.log.states(moment.at)
    waiting = [job for job, state in zip(moment.jobs, states, strict=True) if state == WAITS]
    unknown = [job for job in waiting if moment.reasons.get(job.id, "None") in ("", "None")]
    for job in waiting:
        reason = moment.reasons.get(job.id, "")
        if reason and reason != "None":
            key = reason.split(",")[0].lower()
            limited = key.startswith(("assoc", "qos")) or "limit" in key
            found[job.id] = _REASONS.get(key, f"a limit: {reason}" if limited else reason)
    return found | (_by_model(moment, {job.id for job in unknown}) if unknown else {})


def _by_model(moment: ClusterMoment, wanted: set[str]) -> dict[str, str]:
    """What the model finds at the moment itself."""
    states = moment.log.states(moment.at).tolist()
    running, waiting = ([j for j, s in zip(moment.jobs, states, strict=True) if s == want] for want in (1, WAITS))
    known = sorted([*map(as_running, running), *map(as_waiting, waiting)], key=lambda job: job.submitted)
    now = msgspec.structs.replace(moment.case, jobs=tuple(known))
    world = build_world(now, moment.settings)
    begin_moment(world, moment.at - zero_of(now), len(known))
    found, first = dict[str, str](), dict[str, str]()
    numbers = {job.id: number for number, job in enumerate(known)}
    ordered = sorted(
        (job for job in known if world.status[numbers[job.id]] == at_world.PENDING_JOB),
        key=lambda job: (-int(world.priority[world.entry_begin[numbers[job.id]]]), numbers[job.id]),
    )
    for job in ordered:
        number = numbers[job.id]
        if why := _own_reason(job, world, number, moment.at, numbers):
            reason = why
        elif first.setdefault(job.partition, job.id) == job.id:
            enough = int((world.free_cores >= max(1, int(world.per_task[number]))).sum()) >= int(
                world.nodes_min[number]
            )
            reason = "memory" if enough and world.has_memory else _REASONS["resources"]
        else:
            reason = _REASONS["priority"]
        if job.id in wanted:
            found[job.id] = reason
    return found


def _own_reason(job: SlurmJob, world: at_world.SlurmWorld, number: int, at: int, known: Mapping[str, int]) -> str:
    if job.held:
        return "held"
    if job.begin > NEVER and job.begin > at:
        return _REASONS["begintime"]
    needs = [need.job for need in job.needs if need.job in known]
    if needs:
        return f"a dependency on {', '.join(needs)}"
    if job.reservation:
        return f"reservation {job.reservation}"
    if not within_counts(world, number) or not within_amounts(world, number):
        return "a limit of its account, QOS or licences"
    return ""


# What would help a job.


def suggest(
    moment: ClusterMoment, job_id: str, *, quantiles: Sequence[float] = QUANTILES, futures: int = 60, seed: int = 0
) -> list[Suggestion]:
    """Changes of a job's request after which it starts sooner, the best first; with the same random numbers as before.

    Fewer nodes do the same work in more time; a shorter limit ends what would last longer.

    Raises:
        ConfigError: if the job does not wait.
    """
    places = {job.id: row for row, job in enumerate(moment.jobs)}
    states = moment.log.states(moment.at)
    if job_id not in places or states[places[job_id]] != WAITS:
        raise ConfigError(f"job {job_id} does not wait at this moment", field="job")
    row = places[job_id]
    asked = moment.jobs[row]
    base = _start_of(moment, row, asked, 1.0, quantiles, futures, seed)[0]
    found = []
    for options, changed, slower in _changes(moment.case, asked):
        start, in_time = _start_of(moment, row, changed, slower, quantiles, futures, seed)
        middle = min(quantiles, key=lambda share: abs(share - 0.5))
        if start.by[middle] - moment.at < _WORTH * (base.by[middle] - moment.at):
            found.append(Suggestion(options=options, job=start, ends_in_time=in_time if in_time < 1 else None))
    middle = min(quantiles, key=lambda share: abs(share - 0.5))
    return sorted(found, key=lambda each: each.job.by[middle])


def _start_of(
    moment: ClusterMoment, row: int, job: SlurmJob, slower: float, quantiles: Sequence[float], futures: int, seed: int
) -> tuple[JobStart, float]:
    """When the job of a row starts with another request, and in which share of the cases it ends within its limit."""
    jobs = [*moment.jobs[:row], job, *moment.jobs[row + 1 :]]
    ends: list[float] = []
    forecast = slurm_forecast(
        moment.case,
        moment.settings,
        moment.at,
        log=moment.log,
        jobs=jobs,
        futures=futures,
        seed=seed,
        asked=QueueFacts(moment.priorities, {job.id: slower}, frozenset((job.id,)), ends.append),
    )
    place = list(forecast.id).index(job.id)
    found = answer(forecast, moment.log, Blend(PRIOR_SCORES), quantiles=quantiles).jobs[place]
    return found, ends[place] if ends else 1.0


def _changes(case: Case, job: SlurmJob) -> list[tuple[str, SlurmJob, float]]:
    """Options of sbatch, the job with them, and how many times as long it then lasts."""
    replace = msgspec.structs.replace
    found = []
    for share in (2, 4):
        if np.isfinite(job.limit) and job.limit / share >= 60:
            limit = job.limit // share // 60 * 60
            minutes = round(limit / 60)
            found.append((f"--time={minutes // 60}:{minutes % 60:02}:00", replace(job, limit=limit), 1.0))
    if job.nodes >= 2:
        half = job.nodes // 2
        changed = replace(job, nodes=half, nodes_max=half, cpus=max(half, job.cpus * half // job.nodes))
        found.append((f"--nodes={half}", changed, job.nodes / half))
    for other in case.partitions:
        fits = other.takes(job.limit, job.nodes) and len(other.nodes) >= job.nodes
        if other.name not in job.partition.split(",") and fits:
            found.append((f"--partition={other.name}", replace(job, partition=other.name), 1.0))
    return found
