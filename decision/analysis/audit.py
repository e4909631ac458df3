"""What a log is, what it can answer, and what really happened in it.

`audit` is one object, which the command line prints as a page or as JSON. Figures of what was recorded are those of
`decision.model.usage`, on the hosts that the workload has.
"""

import math
from typing import Any

import msgspec
import numpy as np

from decision.formats.traces.account import REASONS
from decision.model.dates import DAY
from decision.model.demand import runtimes, sizes, submit_times
from decision.model.errors import ConfigError
from decision.model.record import SHORTEST_RUNTIME, Floats
from decision.model.usage import Recorded, Use, fitted, recorded, use_of
from decision.model.workload import Workload

from .unanswered import named_users, unanswered_questions
from .unsimulated import Unsimulated, unsimulated

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
    """What really happened."""

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
    jobs, lengths = recorded(workload, speed), runtimes(workload, speed)
    use = use_of(jobs) if jobs is not None else None
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
        hosts=workload.nb_res,
        hosts_from=reading.hosts_from,
        walltimes=reading.requested,
        users=len(named_users(workload)),
        host_seconds=float((sizes(workload) * lengths).sum()),
        lost=dict(reading.lost),
        clock=reading.clock,
        recorded=_figures(jobs, use, workload.nb_res) if jobs is not None and use is not None else None,
        edges=_edges(workload, jobs, use),
        cannot=unanswered_questions(workload),
        not_simulated=unsimulated(workload, speed),
        notes=list(workload.notes),
    )


def _left_out(workload: Workload) -> dict[str, LeftOutRecords]:
    """Records by reason; jobs that no machine of so many hosts could run have no size."""
    found: dict[str, LeftOutRecords] = {}
    for text, count in workload.dropped.items():
        key = _KEYS.get(text, "never_started" if "never" in text else "not_ended" if "end" in text else "no_size")
        if text == "with an unknown or zero run time":
            key = "no_time"
        lines = list(workload.dropped_lines.get(text, ()))
        before = found.get(key, LeftOutRecords(0, []))
        found[key] = LeftOutRecords(before.count + count, sorted([*before.lines, *lines])[:5])
    return found


def _figures(jobs: Recorded, use: Use, machine: int) -> RecordedFigures:
    """What really happened on a machine of so many hosts."""
    wait, run = jobs.start - jobs.submit, jobs.run
    slowdown = np.maximum(1.0, (wait + run) / np.maximum(run, SHORTEST_RUNTIME))
    span = float((jobs.start + run).max() - jobs.submit.min())
    return RecordedFigures(
        jobs=len(wait),
        mean_wait=float(wait.mean()),
        max_wait=float(wait.max()),
        mean_bounded_slowdown=float(slowdown.mean()),
        peak=int(use.hosts.max()),
        machine=machine,
        over=use.over(machine),
        fitted=fitted(jobs, use, machine),
        utilization=float((jobs.size * run).sum()) / (machine * span),
    )


def _edges(workload: Workload, jobs: Recorded | None, use: Use | None) -> Edges:
    submit, nan = submit_times(workload), math.nan
    first, last = float(submit.min()), float(submit.max())
    if jobs is None or use is None:
        unknown = ("first_start", "last_end", "utilization_first_day", "utilization_first_week", "utilization")
        rest: dict[str, Any] = dict.fromkeys((*unknown, "warm_up", "cool_down"), nan)
        return Edges(first_submission=first, last_submission=last, submitted_before_first_end=0, **rest)
    end = float(use.time[-1])
    warm_up, cool_down = _warm(use, first, end)
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


def _warm(use: Use, first: float, end: float) -> tuple[float, float]:
    """Seconds until a day is as full as most, and since the last such day; none of a log of less than a day."""
    days = int((end - first) // DAY)
    if not 0 < days < _MOST_DAYS:
        return 0.0, 0.0
    daily = np.diff(_areas(use, first + DAY * np.arange(days + 1)))
    full = np.flatnonzero(daily >= _FULL * np.median(daily))
    return float(full[0] * DAY), float(end - first - (full[-1] + 1) * DAY)
