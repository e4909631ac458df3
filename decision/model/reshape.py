"""Workloads from workloads: fewer jobs, other arrivals, sizes, walltimes and users.

Every job that is left out is counted by reason in `Workload.dropped`: kept and dropped are always all. These
functions are part of the model so that readers, generators and conversions of workloads use the same ones.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from . import dates
from .columns import DelayProfiles, JobColumns, columns_of, labelled
from .dates import DAY, Moment, read_moment
from .demand import Floats, offered_load, runtimes, sizes, submit_times, walltimes
from .errors import ConfigError, InputError
from .trace import of_jobs
from .workload import Delay, Job, Workload, used_profiles

# The archive's language of filters: ``user=68 and (job>=58 and job<=564)`` names jobs to leave out.
#
# Fields are job, user, submit, proc (processors), app (executable), queue, part (partition) and status; operators are
# ``=``, ``!=``, ``<``, ``<=``, ``>`` and ``>=``, joined by ``and``, ``or``, ``not`` and parentheses. Dates like
# 2012-02-03 stand for their first second on the machine's clock.

_TOKEN = re.compile(r"\s*(\(|\)|<=|>=|!=|==|=|<|>|[^\s()<>=!]+)")
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": np.equal,
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_EXTRA = {"app": "executable", "queue": "queue", "group": "group"}
FIELDS = ("job", "user", "submit", "proc", "part", "status", *_EXTRA)
_STATUS = {"0": "FAILED", "1": "COMPLETED", "5": "CANCELLED"}

Mask = np.ndarray  # (J,) of bool


def matches(workload: Workload, text: str) -> Mask:
    """Which jobs a filter names, (J,).

    Raises:
        ConfigError: if it is not a filter, with the place of the first mistake.
    """
    return _Parser(workload, text).whole()


def keep(workload: Workload, keep: NDArray[np.bool_], reason: str) -> Workload:
    """The jobs that are to be kept and the profiles that they need; the others counted under `reason`."""
    if keep.all():
        return workload
    jobs: Sequence[Job]
    if isinstance(workload.jobs, JobColumns):
        jobs = workload.jobs.take(keep)
        used = used_profiles(workload.profiles, jobs.profile.used())
    else:
        jobs = tuple(workload.jobs[i] for i in np.flatnonzero(keep).tolist())
        used = used_profiles(workload.profiles, {job.profile for job in jobs})
    profiles = {name: profile for name, profile in workload.profiles.items() if name in used}
    dropped = Counter(workload.dropped) + Counter({reason: len(keep) - len(jobs)})
    return replace(workload, jobs=jobs, profiles=profiles, dropped=dict(dropped))


class _Parser:
    """A filter read from the left to the right, one rule a method."""

    def __init__(self, workload: Workload, text: str) -> None:
        self._workload, self._text = workload, text
        self._tokens = _TOKEN.findall(text)
        if "".join(self._tokens) != re.sub(r"\s", "", text):
            raise self._error("unreadable")
        self._at = 0

    def whole(self) -> Mask:
        mask = self._either()
        if self._at < len(self._tokens):
            raise self._error("'and' or 'or' is missing")
        return mask

    def _error(self, why: str) -> ConfigError:
        near = " ".join(self._tokens[getattr(self, "_at", 0) :][:3]) or "the end"
        example = "user=68 and (job>=58 and job<=564)"
        return ConfigError(f"filter {self._text!r}: {why} at {near!r}; write it like {example}", field="filter")

    def _next(self) -> str:
        if self._at >= len(self._tokens):
            raise self._error("incomplete")
        self._at += 1
        return str(self._tokens[self._at - 1])

    def _takes(self, word: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at].lower() == word:
            self._at += 1
            return True
        return False

    def _either(self) -> Mask:
        mask = self._both()
        while self._takes("or"):
            mask = mask | self._both()
        return mask

    def _both(self) -> Mask:
        mask = self._one()
        while self._takes("and"):
            mask = mask & self._one()
        return mask

    def _one(self) -> Mask:
        if self._takes("not"):
            return ~self._one()
        if self._takes("("):
            mask = self._either()
            if not self._takes(")"):
                raise self._error("')' is missing")
            return mask
        field = self._next().lower()
        if field not in FIELDS:
            self._at -= 1
            raise self._error(f"unknown field (known are {', '.join(FIELDS)})")
        operator = self._next()
        if operator not in _OPERATORS:
            self._at -= 1
            raise self._error("one of = != < <= > >= is missing")
        return self._compare(field, operator, self._next())

    def _compare(self, field: str, operator: str, value: str) -> Mask:
        compare = _OPERATORS[operator]
        if field in ("submit", "proc"):
            numbers = submit_times(self._workload) if field == "submit" else sizes(self._workload)
            return np.asarray(compare(numbers, self._number(field, value)), bool)
        texts = self._texts(field)
        if operator in ("=", "==", "!="):
            wanted = _STATUS.get(value, value) if field == "status" else value
            return np.asarray(compare(np.array(texts, object), wanted), bool)
        numbers = np.array([float(text) if text.isdecimal() else np.nan for text in texts])
        return np.asarray(compare(numbers, self._number(field, value)), bool)

    def _number(self, field: str, value: str) -> float:
        try:
            return read_moment(value).of(self._workload) if field == "submit" else float(value)
        except ValueError:
            raise self._error(f"{value!r} is not a number") from None

    def _texts(self, field: str) -> list[str]:
        jobs = self._workload.jobs
        if field == "job":
            return [job.name for job in jobs]
        if field == "user":
            return [job.user for job in jobs]
        if field in _EXTRA:
            return [str((job.extra or {}).get(_EXTRA[field], "")) for job in jobs]
        if self._workload.trace is None:
            return [""] * len(jobs)
        trace = of_jobs(self._workload.trace, jobs)
        return list(trace.texts("request", "partition") if field == "part" else trace.texts("recorded", "state"))


_LONGEST = 1e15  # seconds that simulations can last
Walltimes = Literal["requested", "runtime", "none"]
TOO_LARGE = "larger than"
MISSING = ("none", "runtime", "longest")


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a workload, in the order in which it happens.

    Raises:
        ConfigError: if a value is out of range.
    """

    nodes: int | None = None  # leave out larger jobs; the workload is then for so many hosts
    begin: Moment | None = None  # leave out jobs submitted before
    end: Moment | None = None  # leave out jobs submitted then or later
    without: str = ""  # leave out the jobs that a filter names, as `decision.model.reshape` has it
    jobs: slice | None = None  # keep these of the jobs still there, counted in order of submission
    walltime: Walltimes = "requested"  # as they are, or the run time (perfect estimates), or none
    missing: str = "none"  # what takes the place of a walltime that is not known: the run time, the longest, or nothing
    scale_sizes: int | None = None  # hosts of another machine, to which sizes are scaled
    load_by: str = "arrivals"  # "arrivals" stretches or squeezes them, "users" resamples users by whole weeks
    seed: int = 0  # of that
    load: float | None = None  # stretch or squeeze the arrivals to this offered load
    shift: bool = False  # let `begin`, or else the first submission, be 0 s
    speed: float | None = None  # flop/s of the hosts, for the run times of jobs that compute

    def __post_init__(self) -> None:
        if self.nodes is not None and self.nodes < 1:
            raise ConfigError(f"nodes: must be at least 1; found {self.nodes}")
        if self.walltime not in ("requested", "runtime", "none"):
            raise ConfigError(f"walltime: must be requested, runtime or none; found {self.walltime!r}")
        if self.load_by not in ("arrivals", "users"):
            raise ConfigError(f"load_by: must be arrivals or users; found {self.load_by!r}")
        if self.missing not in MISSING:
            raise ConfigError(f"missing_walltime: must be none, runtime or longest; found {self.missing!r}")
        if self.jobs is not None and self.jobs.step not in (None, 1):
            raise ConfigError(f"jobs: must be a range a:b without a step; found a step of {self.jobs.step}")
        if self.load is not None and not 0 < self.load < float("inf"):
            raise ConfigError(f"load: must be above 0; found {self.load:g}")


def reshape(workload: Workload, filters: Filters) -> Workload:
    """The workload with all that `filters` ask for.

    Raises:
        InputError: if no job is left.
        ConfigError: if a date is asked for and none is known, or a run time is needed and not known.
    """
    if filters.nodes is not None:
        workload = at_most(workload, filters.nodes)
    workload = _within(workload, filters.begin, filters.end)
    if filters.without:
        workload = keep(workload, ~matches(workload, filters.without), f"removed by {filters.without}")
    if filters.jobs is not None:
        jobs = filters.jobs
        chosen = np.zeros(len(workload.jobs), bool)
        chosen[np.argsort(submit_times(workload), kind="stable")[jobs]] = True
        first, last = ("" if bound is None else bound for bound in (jobs.start, jobs.stop))
        workload = keep(workload, chosen, f"outside the range {first}:{last} of jobs")
    refuse_empty(workload)
    begin = filters.begin.of(workload) if filters.begin else float(submit_times(workload).min())
    if filters.walltime != "requested":
        is_perfect = filters.walltime == "runtime"
        limits = _perfect(workload, filters.speed) if is_perfect else np.full(len(workload.jobs), np.inf)
        workload = with_walltimes(workload, limits)
    elif filters.missing != "none":
        workload = fill_walltimes(workload, filters.missing, filters.speed)
    if filters.scale_sizes is not None:
        workload = at_sizes(workload, filters.scale_sizes)
    if filters.load is not None and filters.load_by == "users":
        workload = at_load_by_users(workload, filters.load, filters.seed, filters.speed)
    elif filters.load is not None:
        workload = at_load(workload, filters.load, filters.speed)
    return beginning(workload, begin) if filters.shift else workload


def refuse_empty(workload: Workload) -> None:
    """Refuse a workload without jobs. Raises InputError, with the reasons for which jobs were left out."""
    if not workload.jobs:
        why = f" (left out: {dropped_text(workload)})" if workload.dropped else ""
        raise InputError(f"{workload.path}: no usable job{why}; choose other jobs or another file")


def dropped_text(workload: Workload) -> str:
    """How many jobs and lines were left out, by reason: ``7 not 18 numbers (lines 2, 5, 6, 9, 11, ...), 1 ...``."""
    return ", ".join(f"{count:,} {reason}{_lines(workload, reason)}" for reason, count in workload.dropped.items())


def _lines(workload: Workload, reason: str) -> str:
    """The numbers of the lines that were left out for a reason, as far as they are known."""
    known = workload.dropped_lines.get(reason, ())
    if not known:
        return ""
    more = ", ..." if workload.dropped[reason] > len(known) else ""
    misfit = workload.reading.misfit if workload.reading is not None and "do not fit" in reason else ""
    why = f"; {misfit}" if misfit else ""
    return f" (line{'s' * (len(known) > 1)} {', '.join(f'{number:,}' for number in known)}{more}{why})"


def _within(workload: Workload, begin: Moment | None, end: Moment | None) -> Workload:
    if begin is not None:
        workload = keep(workload, submit_times(workload) >= begin.of(workload), f"submitted before {begin.text}")
    if end is not None:
        workload = keep(workload, submit_times(workload) < end.of(workload), f"submitted from {end.text} on")
    return workload


def at_most(workload: Workload, nodes: int) -> Workload:
    """The jobs of at most `nodes` hosts, for a machine of so many."""
    return replace(keep(workload, sizes(workload) <= nodes, too_large(nodes)), nb_res=nodes)


def too_large(nodes: int) -> str:
    """Why jobs of more hosts than the machine has are left out, as `Workload.dropped` says it."""
    return f"{TOO_LARGE} {nodes} hosts"


def fill_walltimes(workload: Workload, missing: str, speed: float | None = None) -> Workload:
    """The workload with walltimes for jobs that have none: their run times, or the longest walltime of all jobs.

    Raises:
        ConfigError: if a run time is not known, or no job has a walltime that could be the longest.
    """
    limits = walltimes(workload)
    unknown = np.isinf(limits)
    if not unknown.any():
        return workload
    if missing == "runtime":
        return with_walltimes(workload, np.where(unknown, _perfect(workload, speed), limits))
    if unknown.all():
        none = "no job has a requested time, so none is the longest"
        raise ConfigError(f"{workload.path or 'the workload'}: {none}", field="missing_walltime")
    return with_walltimes(workload, np.where(unknown, limits[~unknown].max(), limits))


def with_walltimes(workload: Workload, seconds: Floats) -> Workload:
    """The same jobs with these walltimes, (J,), inf where there is none."""
    return _with(workload, "walltime", seconds)


def _perfect(workload: Workload, speed: float | None) -> Floats:
    """The run times; of jobs that compute a millionth more, since a simulator's rounding would stop some of them."""
    seconds = runtimes(workload, speed)
    profiles = workload.profiles
    if isinstance(profiles, DelayProfiles) or all(isinstance(profile, Delay) for profile in profiles.values()):
        return seconds
    computing = np.array([not isinstance(profiles[job.profile], Delay) for job in workload.jobs])
    return seconds * np.where(computing, 1 + 1e-6, 1.0)


def at_load(workload: Workload, load: float, speed: float | None = None) -> Workload:
    """The same jobs, further apart or closer together, such that their offered load is `load`.

    The time since the first submission is multiplied by one factor for all, so days get longer or shorter too.

    Args:
        workload: the jobs.
        load: offered load, as `decision.model.demand.offered_load` defines it.
        speed: flop/s of the hosts, where jobs compute.

    Raises:
        ConfigError: if all jobs come at once or take no time, or would come at once or never.
    """
    now = offered_load(workload, runtimes(workload, speed))
    if not now > 0:
        raise ConfigError(f"load: the jobs of {workload.path} come all at once or take no time; no factor changes that")
    times = submit_times(workload)
    first = times.min()
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = first + (times - first) * (now / load)
    if not 0 < np.ptp(scaled) < _LONGEST:
        raise ConfigError(f"load: {load:g} puts the jobs of {workload.path} too close together or too far apart")
    later = _with(workload, "submit_time", scaled)
    return later if later.trace is None else replace(later, trace=later.trace.without_times())


def beginning(workload: Workload, seconds: float) -> Workload:
    """The same jobs with a clock that shows 0 at `seconds`."""
    unix_start = None if workload.unix_start is None else workload.unix_start + seconds
    return replace(_with(workload, "submit_time", submit_times(workload) - seconds), unix_start=unix_start)


def _with(workload: Workload, field: str, values: Floats) -> Workload:
    """The same jobs with other values of a field, (J,)."""
    if isinstance(workload.jobs, JobColumns):
        return replace(workload, jobs=workload.jobs.replaced(**{field: values}))
    pairs = zip(workload.jobs, values.tolist(), strict=True)
    return replace(workload, jobs=tuple(replace(job, **{field: value}) for job, value in pairs))


def by_day(workload: Workload) -> Iterator[tuple[str, Workload]]:
    """Each day on which jobs are submitted: its name (see `dates.day_name`) and its jobs; 0 s is its midnight."""
    day_of = dates.days(workload)
    for day in np.unique(day_of).tolist():
        name = dates.day_name(workload, day)
        of_day = keep(workload, day_of == day, f"not of {name}")
        yield name, beginning(of_day, dates.midnight(workload, day))


# Workloads for another machine or at another load: sizes scaled, and users drawn again by whole weeks.


_WEEK = 7.0 * DAY
_MOST_USERS = 100  # times those that there are


def at_sizes(workload: Workload, hosts: int) -> Workload:
    """The same jobs for a machine of so many hosts: sizes times its hosts over those of now, rounded, at least 1."""
    if hosts < 1:
        raise ConfigError(f"scale_sizes: must be at least 1; found {hosts}", field="scale_sizes")
    before = sizes(workload)
    after = np.clip(np.floor(before * (hosts / workload.nb_res) + 0.5), 1, hosts).astype(np.int32)
    shares = f"powers of two were {powers(before)} of the sizes, and are {powers(after)}"
    note = f"sizes scaled from {workload.nb_res:,} to {hosts:,} hosts: {shares}"
    jobs: Sequence[Job]
    if isinstance(workload.jobs, JobColumns):
        jobs = workload.jobs.replaced(size=after, source=None)
    else:
        pairs = zip(workload.jobs, after.tolist(), strict=True)
        jobs = tuple(replace(job, size=size, source=None) for job, size in pairs)
    trace = None if workload.trace is None else workload.trace.without_times()
    return replace(workload, jobs=jobs, nb_res=hosts, trace=trace, notes=(*workload.notes, note))


def powers(size: NDArray[Any]) -> str:
    """The share of sizes that are powers of two, in percent."""
    whole = size.astype(np.int64)
    return f"{100 * float(((whole & (whole - 1)) == 0).mean()):.1f} %"


def at_load_by_users(workload: Workload, load: float, seed: int, speed: float | None = None) -> Workload:
    """Users drawn from those of a log, each with all of its jobs, moved by whole weeks, until the offered load is met.

    Daily and weekly cycles stay, and so do each user's sessions (Zakay and Feitelson 2013). Jobs that come after the
    log's last week come in its first one. A user may come twice; the last one is drawn where it brings the load nearer.

    Args:
        workload: jobs with users.
        load: offered load, as `decision.model.demand.offered_load` defines it.
        seed: of the draws.
        speed: flop/s of the hosts, where jobs compute.

    Raises:
        ConfigError: if jobs have no users, or come within less than two weeks.
    """
    jobs = columns_of(workload.jobs)
    users, which = np.unique(list(jobs.user), return_inverse=True)
    submit = submit_times(workload)
    first = float(submit.min())
    weeks = math.ceil((float(submit.max()) - first) / _WEEK)
    if not any(users) or len(users) < 2:
        raise ConfigError(f"{workload.path}: jobs have no users, so users cannot be drawn", field="load_by")
    if weeks < 2:
        raise ConfigError(
            f"{workload.path}: its jobs come within two weeks, too few to move users by weeks", field="load"
        )
    area = np.bincount(which, weights=sizes(workload) * runtimes(workload, speed)).astype(np.float64)
    wanted = load / offered_load(workload, runtimes(workload, speed)) * float(area.sum())
    drawn = _draw(area, wanted, np.random.default_rng(seed))
    rng = np.random.default_rng([seed, 1])
    rows = [np.flatnonzero(which == user) for user in drawn]
    moved = [(submit[of_user] - first + _WEEK * rng.integers(weeks)) % (_WEEK * weeks) + first for of_user in rows]
    return _taken(workload, jobs, rows, moved)


def _draw(area: Floats, wanted: float, rng: np.random.Generator) -> list[int]:
    """Users in a random order, again and again, until their host-seconds are as near as possible to those wanted."""
    drawn: list[int] = []
    total = 0.0
    while len(drawn) < _MOST_USERS * len(area):
        for user in rng.permutation(len(area)).tolist():
            if abs(total + area[user] - wanted) <= abs(total - wanted):
                drawn.append(user)
                total += area[user]
        if total >= wanted or wanted - total < area.min():
            return drawn
    return drawn


def _taken(workload: Workload, jobs: JobColumns, rows: list[np.ndarray], moved: list[Floats]) -> Workload:
    """The jobs of these users at these times; a user's second copy is a user of its own."""
    if not rows:
        raise ConfigError(f"{workload.path}: the load is less than that of any of its users", field="load")
    seen: dict[str, int] = {}
    names: list[str] = []
    for of_user in rows:
        user = jobs.user[int(of_user[0])]
        seen[user] = seen.get(user, 0) + 1
        names += [user if seen[user] == 1 else f"{user}-{seen[user]}"] * len(of_user)
    chosen, times = np.concatenate(rows), np.concatenate(moved)
    order = np.argsort(times, kind="stable")
    taken = jobs.take(chosen[order])
    numbers = [f"{workload.name}!{number}" for number in range(1, len(order) + 1)]
    made = taken.replaced(
        id=labelled(numbers), submit_time=times[order], user=labelled([names[at] for at in order.tolist()]), source=None
    )
    return replace(workload, jobs=made, trace=None)


# The same workload with its arrivals shaken: what a difference of seconds comes to.


SHAKE = 60.0  # seconds, at most


def shake_of(submit: Floats) -> float:
    """By up to how many seconds `shaken` moves jobs that are submitted at these times (n,), seconds.

    A minute is the package's choice: far below the time in which users react to each other or to the machine, and far
    above the seconds in which one job's end meets another's arrival. Where jobs come more often than once a minute it
    is the mean time between two, so that a short log keeps its shape.
    """
    return min(SHAKE, float(np.ptp(submit)) / max(len(submit) - 1, 1)) if len(submit) else 0.0


def shaken(workload: Workload, copy: int) -> Workload:
    """A copy of the workload whose jobs are submitted later by a uniform random time of up to `shake_of` seconds each.

    Input shaking (Tsafrir, Ouaknine and Feitelson, MASCOTS 2007): what a schedule comes to can depend on a second, and
    the copies say by how much.

    Args:
        workload: jobs in any order.
        copy: its number, which alone says how jobs are moved; 0 moves none.
    """
    if copy == 0:
        return workload
    jobs = columns_of(workload.jobs)
    moved = jobs.submit_time + np.random.default_rng([copy, 20070]).uniform(0.0, 1.0, len(jobs)) * shake_of(
        jobs.submit_time
    )
    order = np.argsort(moved, kind="stable")
    return replace(workload, jobs=jobs.take(order).replaced(submit_time=moved[order], source=None), trace=None)
