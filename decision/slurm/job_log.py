"""The jobs of a log, by submission: those that were requeued once, those that ran when it began marked."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from zoneinfo import ZoneInfo

import msgspec

from decision.formats.traces.account import REASONS, Account
from decision.formats.traces.sacct_columns import UNFINISHED
from decision.model.errors import InputError

from .job_rows import read_job
from .jobs import SlurmJob
from .records import RecordRow
from .text import MINUTE, NEVER, read_hosts

_COMPLETE = 0.8  # share of the job ids before the first end that a log from the very beginning has


class JobLog(msgspec.Struct, frozen=True):
    """The jobs of a log, by submission."""

    jobs: tuple[SlurmJob, ...]
    notes: tuple[str, ...] = ()  # what was skipped or assumed


def make_log(rows: Sequence[RecordRow], zone: ZoneInfo | None = None, account: Account | None = None) -> JobLog:
    """The jobs of sacct's records.

    Args:
        rows: the records.
        zone: of their dates; None where they are those of the clock's face.
        account: what became of the file's other records.

    Raises:
        InputError: naming the line.
    """
    skipped = Counter(
        {f"records {REASONS[why]}": each.count for why, each in account.left_out.items()} if account else {}
    )
    unfinished: Counter[str] = Counter()
    runs: defaultdict[str, list[SlurmJob]] = defaultdict(list)
    shifted = 0
    for row in rows:
        job_id = row.text("JobIDRaw", "JobID")
        if "." in job_id:
            skipped["steps of jobs"] += 1
            continue
        job = read_job(row, job_id, zone)
        if job.submit == NEVER:
            skipped["lines without submission"] += 1
            continue
        shifted += _is_shifted(job)
        unfinished[_why_no_run(job)] += 1
        runs[job_id].append(job)
    jobs = [_last_run(sorted(each, key=lambda job: (job.submit, job.end))) for each in runs.values()]
    if not jobs:
        raise InputError(f"{rows[0].place}: there is no job in it")
    jobs = _with_array_limits(sorted(jobs, key=_place))
    notes = [f"{count:,} {what} were skipped" for what, count in skipped.items()]
    if again := sum(map(len, runs.values())) - len(runs):
        notes.append(f"{again:,} records are of attempts of jobs that were requeued later")
    if never := sum(count for why, count in unfinished.items() if why):
        reasons = ", ".join(f"{count:,} {REASONS[why]}" for why, count in sorted(unfinished.items()) if why)
        notes.append(f"{never:,} jobs count here, and decision workload leaves them out: {reasons}")
    if shifted:
        notes.append(
            f"{shifted:,} jobs ran an hour more or less than their dates say: the clock was changed; name the time zone"
        )
    jobs, begun = _mark_running(jobs)
    if begun:
        notes.append(f"{begun:,} jobs ran already when the log began: they keep their recorded start")
    return JobLog(tuple(jobs), tuple(notes))


def _place(job: SlurmJob) -> tuple[int, int, int, str]:
    """Jobs stand in order of their first submission; tasks of an array, at its place, by their numbers."""
    return job.submitted, _number(job.array or job.id), job.task, job.id


def _number(job_id: str) -> int:
    return int(re.match(r"\d*", job_id)[0] or 0)  # type: ignore[index]


def _is_shifted(job: SlurmJob) -> bool:
    """Whether the dates of a job differ from its time by the hour of a change of the clock."""
    known = job.started and job.end != NEVER and job.runtime > 0
    return known and abs(abs(job.end - job.start - job.runtime) - 60 * MINUTE) < 2


def _why_no_run(job: SlurmJob) -> str:
    """Why a workload of jobs that ran is without this one, as one of `REASONS`; "" where it ran."""
    if not job.started:
        return "never_started"
    if job.state in UNFINISHED or job.end == NEVER:
        return "not_ended"
    return "" if job.runtime > 0 else "no_time"


def _last_run(runs: Sequence[SlurmJob]) -> SlurmJob:
    """A job that was requeued, as its last line has it; it may begin where its first one does."""
    last = runs[-1]
    if len(runs) == 1:
        return last
    first = runs[0]
    return msgspec.structs.replace(last, first_submit=first.submit, requeues=len(runs) - 1, begin=first.begin)


def _with_array_limits(jobs: Iterable[SlurmJob]) -> list[SlurmJob]:
    """Where the limit of an array is unknown and its tasks waited for one: as many as ever ran together."""
    jobs = list(jobs)
    arrays: defaultdict[str, list[SlurmJob]] = defaultdict(list)
    for job in jobs:
        if job.array:
            arrays[job.array].append(job)
    limits = {
        name: most_together(tasks)
        for name, tasks in arrays.items()
        if any(task.reason == "JobArrayTaskLimit" for task in tasks) and not any(task.array_limit for task in tasks)
    }
    return [msgspec.structs.replace(job, array_limit=limits[job.array]) if job.array in limits else job for job in jobs]


def most_together(jobs: Iterable[SlurmJob]) -> int:
    """How many of these jobs ran at the same time at most, at least 1."""
    ran = [job for job in jobs if job.started]
    steps = sorted([(job.start, 1) for job in ran] + [(job.start + max(1, job.runtime), -1) for job in ran])
    most = now = 1 if not ran else 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return max(1, most)


def _mark_running(jobs: list[SlurmJob]) -> tuple[list[SlurmJob], int]:
    """Mark the jobs that ran when the log began, and count them.

    A log that was cut has only those of the earlier jobs that were still there: their ids have gaps.
    """
    ends = [job.start + job.runtime for job in jobs if job.started]
    if not ends:
        return jobs, 0
    begin = min(ends)
    early = {_number(job.array or job.id) for job in jobs if job.submitted <= begin}
    known = {_number(name) for job in jobs for name in (job.id, job.array) if name}
    span = range(min(early, default=0), max(early, default=0) + 1)
    if not early or sum(number in span for number in known) >= _COMPLETE * len(span):
        return jobs, 0
    marked = [msgspec.structs.replace(job, before=True) if job.started and job.start < begin else job for job in jobs]
    return marked, sum(job.before for job in marked)


def cluster_hosts(jobs: Iterable[SlurmJob]) -> list[str]:
    """All hosts that jobs of the log had."""
    names: dict[str, None] = {}
    for job in jobs:
        names.update(dict.fromkeys(read_hosts(job.hosts)))
    return sorted(names)
