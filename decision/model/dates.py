"""Dates and a workload's seconds: what the machine's clock showed when a job was submitted.

A workload's `unix_start` and `time_zone` fix the clock once for the whole of it: changes to and from summer time
within a log are not followed, so that each day has 24 hours.
"""

import datetime
import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from .demand import Floats, submit_times
from .errors import ConfigError
from .record import Ints
from .workload import Workload

DAY = 86_400  # seconds
DAY_LEAD = 3600.0  # seconds from the beginning of a day's own run to its midnight: idle servers fall asleep in it
SEQUENTIAL = 300.0  # seconds; closer submissions are sequential
GROUPS = 5  # of days: fifths of their share of sequential submissions
_FEWEST_OF_A_DAY = 2  # submissions
LAST_DATE = 253_402_300_799.0  # the end of the year 9999, in seconds since 1970
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_THURSDAY = 3  # 1970-01-01


class Moment(msgspec.Struct, frozen=True):
    """A time as a user writes it: seconds of the workload, or a date on the machine's clock."""

    text: str
    seconds: float | None = None
    date: datetime.datetime | None = None

    def of(self, workload: Workload) -> float:
        """The moment in the workload's seconds.

        Raises:
            ConfigError: if it is a date and the workload does not say when it began.
        """
        if self.date is None:
            return self.seconds or 0.0
        if workload.unix_start is None:
            raise ConfigError(f"{self.text}: {workload.path} does not say on which date it began; give seconds")
        if self.date.tzinfo is not None:
            return self.date.timestamp() - workload.unix_start
        return self.date.replace(tzinfo=datetime.UTC).timestamp() - _clock(workload)


def read_moment(text: str) -> Moment:
    """A moment from seconds (``86400``) or an ISO date (``2016-05-10`` or ``2016-05-10T08:30``, with or without zone).

    Raises:
        ConfigError: if it is neither.
    """
    try:
        seconds = float(text)
    except ValueError:
        return Moment(text, date=_date(text))
    if not math.isfinite(seconds):
        raise ConfigError(f"{text}: not a time; give seconds or a date like 2016-05-10T08:30")
    return Moment(text, seconds)


def _date(text: str) -> datetime.datetime:
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{text}: not a time; give seconds or a date like 2016-05-10T08:30") from None


def clock_at_zero(workloads: Sequence[Workload]) -> float | None:
    """What the machine's clock showed at 0 s, in seconds since 1970; None where it is unknown or workloads differ."""
    clocks = {None if workload.unix_start is None else _clock(workload) for workload in workloads}
    return clocks.pop() if len(clocks) == 1 else None


def _clock(workload: Workload) -> float:
    """What the machine's clock showed at 0 s, in seconds since 1970; 0 where it is unknown."""
    return 0.0 if workload.unix_start is None else workload.unix_start + workload.time_zone


def _shown(workload: Workload) -> Floats:
    """What the clock showed when each job was submitted, (J,) seconds since 1970, or since 0 s if no date is known.

    Raises:
        ConfigError: if a job comes later than any calendar goes.
    """
    shown = submit_times(workload) + _clock(workload)
    if len(shown) and shown.max() > LAST_DATE:
        reason = f"a job is submitted at {shown.max():.3g} s, after the year 9999"
        raise ConfigError(f"{workload.path}: {reason}; are all times in seconds?")
    return shown


def days(workload: Workload) -> Ints:
    """The day on which each job is submitted, (J,), counted from 1970-01-01, or from 0 s where no date is known."""
    return np.floor(_shown(workload) / DAY).astype(np.int64)


class BusyDay(NamedTuple):
    """A day with two submissions or more."""

    midnight: float  # when it begins, in the workload's seconds
    first: int  # job, in order of submission
    jobs: int


def busy_days(workload: Workload) -> list[BusyDay]:
    """The days with two submissions or more."""
    day, first, jobs = np.unique(np.sort(days(workload)), return_index=True, return_counts=True)
    rows = zip(day.tolist(), first.tolist(), jobs.tolist(), strict=True)
    return [BusyDay(midnight(workload, d), f, n) for d, f, n in rows if n >= _FEWEST_OF_A_DAY]


def chosen_days(workload: Workload, chosen: slice) -> list[BusyDay]:
    """Some of the days with two submissions or more, counted from 0.

    Raises:
        ConfigError: if none is left.
    """
    days = busy_days(workload)
    if not days[chosen]:
        where = workload.path or f"workload {workload.name}"
        asked = f"{'' if chosen.start is None else chosen.start}:{'' if chosen.stop is None else chosen.stop}"
        there_are = f"it has {len(days):,} days with two submissions or more, counted from 0"
        raise ConfigError(f"{where}: no day is left of {asked}; {there_are}", field="days")
    return days[chosen]


def on_days(workload: Workload, chosen: slice) -> Workload:
    """The jobs of some of the days with two submissions or more. Raises ConfigError if there are none."""
    jobs = sorted(workload.jobs, key=lambda job: job.submit_time)
    rows = [jobs[day.first : day.first + day.jobs] for day in chosen_days(workload, chosen)]
    return msgspec.structs.replace(workload, jobs=[job for day in rows for job in day])


def sequential_groups(submit: Floats, days: Sequence[BusyDay]) -> Ints:
    """The group of each day, from 0 on: in which fifth its share of sequential submissions is.

    Args:
        submit: (J,) seconds, ascending: when all jobs are submitted.
        days: of these jobs.
    """
    gaps = (np.diff(submit[day.first : day.first + day.jobs]) for day in days)
    share = np.array([(gap < SEQUENTIAL).sum() / (len(gap) + 1) for gap in gaps])
    return np.minimum((share * GROUPS).astype(np.int64), GROUPS - 1)


def of_day(workload: Workload, day: BusyDay) -> Workload:
    """The jobs of one day of a workload whose jobs are in order of submission; it begins `DAY_LEAD` before midnight."""
    later = DAY_LEAD - day.midnight
    jobs = [
        msgspec.structs.replace(job, submit_time=job.submit_time + later)
        for job in workload.jobs[day.first : day.first + day.jobs]
    ]
    start = None if workload.unix_start is None else workload.unix_start - later
    return msgspec.structs.replace(workload, jobs=jobs, unix_start=start)


def hours(workload: Workload) -> Ints:
    """The hour of the day at which each job is submitted, (J,), from 0 to 23."""
    return np.floor(_shown(workload) % DAY / 3600).astype(np.int64)


def weekdays(workload: Workload) -> Ints:
    """The weekday on which each job is submitted, (J,): 0 is Monday, or the first day where no date is known."""
    return (days(workload) + (0 if workload.unix_start is None else _THURSDAY)) % 7


def midnight(workload: Workload, day: int) -> float:
    """When that day (see `days`) begins, in the workload's seconds."""
    return day * DAY - _clock(workload)


def day_name(workload: Workload, day: int) -> str:
    """``2016-05-10``, or ``day0017`` (the first is 1) where no date is known."""
    if workload.unix_start is None:
        return f"day{day + 1:04d}"
    return str(datetime.date(1970, 1, 1) + datetime.timedelta(days=day))


def clock_text(workload: Workload, seconds: float) -> str:
    """What the machine's clock showed then: ``1993-10-01 00:00:03``; the workload must know its `unix_start`."""
    shown = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=_clock(workload) + seconds)
    return shown.strftime("%Y-%m-%d %H:%M:%S")


def date_text(seconds: float) -> str:
    """A date and the time of the day, of seconds since 1970: ``1993-10-01 08:30``."""
    return f"{datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds):%Y-%m-%d %H:%M}"
