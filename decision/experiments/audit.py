"""What a log is, what it can answer, and what really happened in it.

`audit` is one object, which the command line prints as a page or as JSON. Figures of what was recorded are those of
`decision.model.demand`, on the hosts that the workload has.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from decision.files.accounting.assemble import sharing
from decision.files.accounting.records import REASONS
from decision.model.columns import Labelled, labelled
from decision.model.dates import DAY
from decision.model.demand import Recorded, Use, fitted, recorded, runtimes, sizes, submit_times, use_of, walltimes
from decision.model.errors import ConfigError
from decision.model.record import SHORTEST_RUNTIME, FinalState, Floats, HostState, HostTable, JobTable, RunRecord
from decision.model.reshape import TOO_LARGE
from decision.model.trace import Trace, of_jobs
from decision.model.workload import Workload

# What a log says of its jobs that a simulation of hosts and times leaves out.

_MOST_VALUES = 10  # of partitions and the like that are named
_MEANT = {
    "partitions": "jobs run on any hosts, and no partition goes first or limits a job",
    "queues": "all jobs wait in one queue, and no queue goes first",
    "qualities of service": "they give no priority and set no limits",
    "limits": "none holds a job back",
    "memory": "hosts have room for any job",
    "gpus": "a host is a host, with a GPU or without",
    "shared nodes": "hosts are alike, whatever node they are of, and each has one job at a time",
    "dependencies": "jobs wait for hosts alone",
}


_NOUNS = {"gpus": "GPUs"}
# sacct's Reason of a job that a limit of its partition, QOS, association or array held back
_LIMITED = re.compile(r"(Assoc|QOS)\w*(Limit|Mins|Not)\w*|Partition(Node|Time)Limit|JobArrayTaskLimit|MaxMemPerLimit")


class Unsimulated(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a log says and that is not simulated."""

    what: str  # one of the keys of `_MEANT`
    jobs: int  # that it touches
    share: float  # of all jobs' host-seconds, 0 to 1; nan where run times are not known
    values: dict[str, int] = {}  # jobs of each partition, queue or QOS, the most first; of ten at most
    meant: str = ""  # what the simulation does instead
    job_share: float = math.nan  # of all jobs, 0 to 1

    def text(self) -> str:
        """``partitions (3,000 jobs, 97 % of the host-hours: short, long): jobs run on any hosts``, for people."""
        return f"{self.brief()}: {self.meant}"

    def brief(self) -> str:
        """The same without what the simulation does instead."""
        jobs = "" if math.isnan(self.job_share) else f", {_percent(self.job_share)} of all"
        share = jobs if math.isnan(self.share) else f"{jobs}, {_percent(self.share)} of the host-hours"
        names = f": {', '.join(self.values)}" if self.values else ""
        return f"{_NOUNS.get(self.what, self.what)} ({self.jobs:,} job{'' if self.jobs == 1 else 's'}{share}{names})"


def unsimulated(workload: Workload, speed: float | None = None) -> list[Unsimulated]:
    """What a log says that is not simulated, with the jobs that it touches, from the largest share of host-seconds.

    Touched are, of partitions, queues and qualities of service, the jobs that name one, where jobs name several; of
    memory and GPUs those that asked for some; of shared nodes those that had a node together with another job at one
    time; of dependencies and limits those that had to wait for another job or for one, as sacct's Reason says. What no
    job says is left out. Policies ``slurm`` read a whole case of their own, and do simulate these.

    Args:
        workload: as it was read, with its `trace`; jobs may have been left out since.
        speed: flop/s of the hosts, where jobs compute.
    """
    if not len(workload.jobs) or (workload.trace is None and not hasattr(workload.jobs, "extra")):
        return []
    trace = Trace(id=(), wait=np.full(len(workload.jobs), np.nan))
    if workload.trace is not None:
        trace = of_jobs(workload.trace, workload.jobs)
    try:
        seconds = runtimes(workload, speed)
    except ConfigError:
        seconds = np.full(len(workload.jobs), np.nan)
    work = sizes(workload) * seconds
    extra = getattr(workload.jobs, "extra", None)
    queues: Sequence[str] = ()
    if isinstance(extra, Labelled):
        queues = Labelled([str((fields or {}).get("queue") or "") for fields in extra.labels], extra.codes)
    reasons = trace.texts("request", "reason")
    held = Labelled([reason if _LIMITED.fullmatch(reason) else "" for reason in reasons.labels], reasons.codes)
    found = [
        _of_names("partitions", trace.texts("request", "partition"), work),
        _of_names("queues", queues, work),
        _of_names("qualities of service", trace.texts("request", "qos"), work),
        _of_names("limits", held, work, least=1),
        *(_of_rows(field, touched, work) for field, touched in _touched(workload, trace, seconds)),
    ]
    return sorted((each for each in found if each.jobs), key=lambda each: (-np.nan_to_num(each.share), -each.jobs))


def _of_names(what: str, names: Sequence[str], work: Floats, least: int = 2) -> Unsimulated:
    """Of what jobs name: nothing where they name fewer things than `least`."""
    column = names if isinstance(names, Labelled) else labelled(names)
    used, jobs = column.used(), np.bincount(column.codes, minlength=len(column.labels))
    values: Counter[str] = Counter()
    for code, name in zip(used.codes.tolist(), used, strict=True):
        if name:
            values[name] += int(jobs[code])
    if len(values) < least:
        return Unsimulated(what=what, jobs=0, share=0.0)
    found = _of_rows(what, np.array([bool(name) for name in column.labels])[column.codes], work)
    return msgspec.structs.replace(found, values=dict(values.most_common(_MOST_VALUES)))


def _touched(workload: Workload, trace: Trace, seconds: Floats) -> list[tuple[str, np.ndarray]]:
    """Which jobs each of the other things touches, (J,)."""
    counts_gpus = workload.reading is not None and workload.reading.unit == "gpus"
    gpus = np.fmax(trace.number("recorded", "gpus"), trace.number("request", "gpus"))
    named = trace.texts("request", "dependency")
    after = np.array([bool(text) for text in named.labels])[named.codes]
    shared = None
    nodes = trace.recorded.get("nodes")
    if isinstance(nodes, Labelled):
        start = submit_times(workload) + trace.wait
        known = ~np.isnan(start) & ~np.isnan(seconds)
        rows = np.flatnonzero(known)
        shared = sharing(nodes.take(rows), start[rows], seconds[rows])
        shared = None if shared is None else np.isin(np.arange(len(start)), rows[shared])
    return [
        ("memory", trace.number("request", "memory") > 0),
        ("gpus", np.zeros(len(after), bool) if counts_gpus else gpus > 0),
        ("shared nodes", np.zeros(len(after), bool) if shared is None else shared),
        ("dependencies", after | (trace.number("request", "dependency") > 0)),
    ]


def _of_rows(what: str, touched: np.ndarray, work: Floats) -> Unsimulated:
    total = float(work.sum())
    share = float(work[touched].sum()) / total if total > 0 else math.nan
    jobs = int(touched.sum())
    return Unsimulated(
        what=what,
        jobs=jobs,
        share=share,
        meant=_MEANT[what],
        job_share=jobs / len(touched) if len(touched) else math.nan,
    )


def better_command(workload: Workload, found: Sequence[Unsimulated]) -> str:
    """The commands that simulate what is not simulated here, where it is a log of Slurm's; "" where there are none."""
    folder = Path(workload.path).parent
    if Path(workload.path).name == "workload.json" and (folder / "case.json").is_file():
        return f"{folder} is a case of Slurm's scheduler with all that it had: decision slurm agree {folder}"
    if not found or workload.reading is None or workload.reading.format not in ("sacct", "sacct-json"):
        return ""
    things = ", ".join(_NOUNS.get(each.what, each.what) for each in found)
    read = f"decision slurm read --conf slurm.conf --jobs {workload.path} -o CASE"
    return f"this is a log of Slurm's, whose {things} are simulated by: {read}, then decision slurm agree CASE"


def _percent(share: float) -> str:
    return "under 1 %" if 0 < share < 0.01 else f"{100 * share:.0f} %"


# The questions that a log does not answer, and why.


def named_users(workload: Workload) -> set[str]:
    """The users that jobs name."""
    column = getattr(workload.jobs, "user", None)
    names = set(column.used()) if isinstance(column, Labelled) else {job.user for job in workload.jobs}
    return names - {""}


def unanswered_questions(workload: Workload) -> dict[str, str]:
    """The questions that a log does not answer, and why."""
    reading, trace = workload.reading, workload.trace
    empty = Trace(id=(), wait=np.array([]))
    trace = empty if trace is None else of_jobs(trace, workload.jobs)
    why: dict[str, str] = {}
    if not len(trace.wait) or np.isnan(trace.wait).all():
        why["recorded"] = "no waiting time or start is known of any job, so what really happened is not known"
    if reading is not None and not reading.requested:
        why["estimates"] = "no job has a requested time, so backfilling with the users' estimates cannot be tried"
    users = named_users(workload)
    if len(users) < 2:
        reason_of_users = "every job has the same user" if users else "no job names its user"
        why["users"] = f"{reason_of_users}, so fairness, fair share and users' habits cannot be studied"
    if not any(trace.texts("recorded", "nodes")):
        why["topology"] = "no job says on which nodes it ran, so placement and sharing cannot be compared"
    for question, fields, what in (
        ("memory", (("recorded", "memory"), ("request", "memory")), "memory"),
        ("gpus", (("recorded", "gpus"), ("request", "gpus")), "GPUs"),
        ("partitions", (("request", "partition"), ("extra", "queue")), "partitions or queues"),
        ("dependencies", (("request", "dependency"),), "dependencies"),
    ):
        if reason := _no_data(workload, trace, fields, what):
            why[question] = reason
    if workload.unix_start is None:
        why["dates"] = "the log does not say when it began, so hours and weekdays are counted from its first second"
    return why


def _no_data(workload: Workload, trace: Trace, fields: tuple[tuple[str, str], ...], what: str) -> str:
    """Why fields say nothing of the jobs: they are empty or the same everywhere; "" where they say something."""
    constant = False
    for part, name in fields:
        field = None if part == "extra" else getattr(trace, part).get(name)
        values: set[Any] = set()  # some of them: two numbers at most, None where one is not known
        if part == "extra":
            extra = getattr(workload.jobs, "extra", None)
            extras = extra.used() if isinstance(extra, Labelled) else (job.extra for job in workload.jobs)
            values = {(each or {}).get(name) for each in extras}
        elif isinstance(field, np.ndarray):
            there = ~np.isnan(field)
            values = {*np.unique(field[there])[:2].tolist(), *([] if there.all() else [None])}
        elif isinstance(field, Labelled):
            values = set(field.used())
        known = values - {"", None}
        partly = len(values) > len(known) > 0
        if len(known) > 1 or (known and what in ("memory", "GPUs")) or (partly and what == "dependencies"):
            return ""
        constant |= bool(known)
    reason = f"the field of {what} is the same for every job" if constant else f"no job says anything of {what}"
    return f"{reason}, so it is not data"


_WEEK = 7 * DAY
_MOST_DAYS = 100_000  # of a log; more are a mistake
_FULL = 0.9  # of the median day's utilization: a machine that is warm

# what readers call the reasons of records that they leave out, where it is not a text of `REASONS`
_KEYS = {
    "not 18 numbers": "malformed",
    "with a field that is not a finite number": "malformed",
    "with a negative submission time": "malformed",
    "with a fractional size or job number": "malformed",
    "parts of a checkpointed job (status 2, 3 or 4)": "partial",
    "with a job number seen before": "repeat",
    "that ended when they started, or before": "no_time",
    "without resources": "no_size",
    **{text: key for key, text in REASONS.items()},
}


class LeftOutRecords(msgspec.Struct, frozen=True):
    """Records that became no jobs, for one reason."""

    count: int
    lines: list[int]  # the first of them, as far as they are known


class RecordedFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What really happened in a log, in the measures of `Summary`."""

    jobs: int  # whose start is known
    mean_wait: float  # seconds
    max_wait: float  # seconds
    mean_bounded_slowdown: float
    peak: int  # hosts in use at most
    machine: int  # hosts
    over: float  # share of the time with more than the machine in use
    fitted: float  # share of all waiting during which the job would have fitted
    utilization: float  # from the first submission to the last end


class Edges(msgspec.Struct, frozen=True, kw_only=True):
    """Where a log begins and ends, seconds of the workload; nan where no start is known."""

    first_submission: float
    last_submission: float
    first_start: float
    last_end: float
    submitted_before_first_end: int
    utilization_first_day: float
    utilization_first_week: float
    utilization: float
    warm_up: float  # seconds from the first submission until the machine was as full as on a usual day
    cool_down: float  # seconds before the last end since when it no longer was


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """What a log is; `records` are `jobs`, those left out and those `joined`."""

    format: str
    records: int
    jobs: int
    left_out: dict[str, LeftOutRecords]
    joined: int
    unit: str
    unit_reason: str
    unit_changes: int | None
    hosts: int
    hosts_from: str
    walltimes: int  # jobs with a requested time
    users: int
    host_seconds: float  # job size times run time
    lost: dict[str, int]
    clock: str
    recorded: RecordedFigures | None
    edges: Edges
    cannot: dict[str, str]
    not_simulated: list[Unsimulated]
    notes: list[str]


def audit(workload: Workload, speed: float | None = None) -> Audit:
    """What a log is, and what it cannot answer.

    Args:
        workload: as it was read, with nothing changed.
        speed: flop/s of the hosts, where jobs compute.

    Raises:
        ConfigError: if a run time is needed and not known.
    """
    reading = workload.reading
    if reading is None:
        raise ConfigError(f"{workload.path}: was made, not read; only what was read from a file can be audited")
    jobs, lengths, machine = recorded(workload, speed), runtimes(workload, speed), workload.nb_res
    use = happened = None
    if jobs is not None:
        use, wait = use_of(jobs), jobs.start - jobs.submit
        span = float((jobs.start + jobs.run).max() - jobs.submit.min())
        happened = RecordedFigures(
            jobs=len(wait),
            mean_wait=float(wait.mean()),
            max_wait=float(wait.max()),
            mean_bounded_slowdown=float(
                np.maximum(1.0, (wait + jobs.run) / np.maximum(jobs.run, SHORTEST_RUNTIME)).mean()
            ),
            peak=int(use.hosts.max()),
            machine=machine,
            over=use.over(machine),
            fitted=fitted(jobs, use, machine),
            utilization=float((jobs.size * jobs.run).sum()) / (machine * span),
        )
    left_out = _left_out(workload)
    return Audit(
        format=reading.format,
        records=len(workload.jobs) + reading.joined + sum(entry.count for entry in left_out.values()),
        jobs=len(workload.jobs),
        left_out=left_out,
        joined=reading.joined,
        unit=reading.unit,
        unit_reason=reading.unit_reason,
        unit_changes=reading.unit_changes,
        hosts=machine,
        hosts_from=reading.hosts_from,
        walltimes=reading.requested,
        users=len(named_users(workload)),
        host_seconds=float((sizes(workload) * lengths).sum()),
        lost=dict(reading.lost),
        clock=reading.clock,
        recorded=happened,
        edges=_edges(workload, jobs, use),
        cannot=unanswered_questions(workload),
        not_simulated=unsimulated(workload, speed),
        notes=list(workload.notes),
    )


def _left_out(workload: Workload) -> dict[str, LeftOutRecords]:
    """The records that were left out, by reason."""
    found: dict[str, LeftOutRecords] = {}
    for text, count in workload.dropped.items():
        key = _KEYS.get(text, "never_started" if "never" in text else "not_ended" if "end" in text else "no_size")
        if text == "with an unknown or zero run time":
            key = "no_time"
        if text.startswith(TOO_LARGE):
            key = "too_large"
        lines = list(workload.dropped_lines.get(text, ()))
        before = found.get(key, LeftOutRecords(0, []))
        found[key] = LeftOutRecords(before.count + count, sorted([*before.lines, *lines])[:5])
    return found


def _edges(workload: Workload, jobs: Recorded | None, use: Use | None) -> Edges:
    submit, nan = submit_times(workload), math.nan
    first, last = float(submit.min()), float(submit.max())
    if jobs is None or use is None:
        unknown = ("first_start", "last_end", "utilization_first_day", "utilization_first_week", "utilization")
        rest: dict[str, Any] = dict.fromkeys((*unknown, "warm_up", "cool_down"), nan)
        return Edges(first_submission=first, last_submission=last, submitted_before_first_end=0, **rest)
    end = float(use.time[-1])
    warm_up = cool_down = 0.0  # until a day is as full as most, and since the last such day; none of less than a day
    if 0 < (whole_days := int((end - first) // DAY)) < _MOST_DAYS:
        daily = np.diff(_areas(use, first + DAY * np.arange(whole_days + 1)))
        full = np.flatnonzero(daily >= _FULL * np.median(daily))
        warm_up, cool_down = float(full[0] * DAY), float(end - first - (full[-1] + 1) * DAY)
    return Edges(
        first_submission=first,
        last_submission=last,
        first_start=float(jobs.start.min()),
        last_end=end,
        submitted_before_first_end=int((submit < (jobs.start + jobs.run).min()).sum()),
        utilization_first_day=_share(use, first, min(first + DAY, end), workload.nb_res),
        utilization_first_week=_share(use, first, min(first + _WEEK, end), workload.nb_res),
        utilization=_share(use, first, end, workload.nb_res),
        warm_up=warm_up,
        cool_down=cool_down,
    )


def _areas(use: Use, edges: Any) -> Floats:
    """Host-seconds in use until each of the times."""
    area = np.append(0.0, np.cumsum(use.hosts[:-1] * np.diff(use.time)))
    return np.interp(edges, use.time, area)


def _share(use: Use, begin: float, end: float, machine: int) -> float:
    area = _areas(use, np.array([begin, end]))
    return float(area[1] - area[0]) / (machine * (end - begin)) if end > begin else math.nan


# What really happened, as a run next to those of policies: the same measures, and no simulation.
#
# A recorded schedule is not a policy's. Jobs waited for what a log does not hold: outages, reservations, limits of
# users and partitions, memory, dependencies. So nothing is said to be better or worse than it; how far the two can be
# compared is said by `Standing`.

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
    parts = []
    for workload in workloads:
        known = recorded_jobs(workload)
        count, chosen = len(known.rows), [workload.jobs[row] for row in known.rows.tolist()]
        parts.append(
            JobTable(
                id=[job.id for job in chosen],
                profile=[job.profile for job in chosen],
                submit_time=known.submit,
                size=known.size.astype(np.int64),
                walltime=walltimes(workload)[known.rows],
                final_state=np.full(count, FinalState.COMPLETED_SUCCESSFULLY),
                start_time=known.start,
                runtime=known.run,
                allocation=[""] * count,
                energy=np.full(count, -1.0),
                metadata=[""] * count,
            )
        )
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
    ranks = []
    for values in (a, b):
        _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
        ranks.append((np.cumsum(counts) - (counts - 1) / 2)[which])
    return math.nan if 0 in (ranks[0].std(), ranks[1].std()) else float(np.corrcoef(ranks[0], ranks[1])[0, 1])


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
    runs = [(policy, _nearness(rows, known)) for policy, rows in tables.items() if policy != RECORDED]
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
    """Where a policy stands, as a line of text."""
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
