"""Workloads from files to files: fetched, read, reshaped, given other profiles, and written with their origin."""

import hashlib
import math
import os
import shutil
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import msgspec
import numpy as np
from msgspec.structs import replace

from decision import __version__
from decision.files.accounting.known import KNOWN_LOGS, KnownLog
from decision.files.accounting.read import TraceOptions, recognise
from decision.files.generate.jobs import Tasks, as_tasks
from decision.files.profiles import converted_lines, workload_lines, write_workload
from decision.files.swf import swf_lines
from decision.files.text import write_files
from decision.files.workload import read_workload
from decision.model.computer import unpacked
from decision.model.dates import DAY, day_name, days, midnight
from decision.model.demand import Recorded, Use, fitted, offered_load, recorded, runtimes, sizes, submit_times, use_of
from decision.model.errors import ConfigError, InputError
from decision.model.hosts import nearest
from decision.model.record import Floats
from decision.model.reshape import Filters, by_day, dropped_text, reshape
from decision.model.workload import Workload
from decision.policies.runtimes import apply_estimates
from decision.policies.runtimes.predictors import with_estimates
from decision.policies.runtimes.walltimes import fill_missing

# What is odd in a log, proposed and not changed: flurries, empty days, changes of the machine, users of one burst.
#
# A flurry is a surge of much alike jobs of one user (Tsafrir and Feitelson 2006): here jobs of a user with gaps of
# under an hour, at least 500, at least half of all jobs that came meanwhile, four of five of one size.

_GAP = 3600.0  # seconds between jobs of a flurry, at most
_LEAST = 500  # jobs
SHARE = 0.5  # of all jobs meanwhile
ALIKE = 0.8  # of the flurry's jobs: of one size
_HOUR = 3600.0
_STEP = 0.2  # of the peak: a change of a machine's use from one month to the next
_MONTH = 30 * DAY
_BURST = 7 * DAY


class Flurry(msgspec.Struct, frozen=True, kw_only=True):
    """A surge of jobs of one user."""

    user: str
    first: str  # job
    last: str  # job
    jobs: int
    hours: float
    share_of_jobs: float  # of all jobs of the log
    share_of_host_seconds: float
    alike: float  # share of its jobs that have the commonest size
    alike_in_time: float  # share of its jobs that have the commonest run time, to a minute


class Burst(msgspec.Struct, frozen=True, kw_only=True):
    """A user whose jobs all came within a week."""

    user: str
    jobs: int
    hours: float


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A change of the peak of hosts in use from one 30 days to the next."""

    day: str
    before: int  # hosts
    after: int  # hosts


class Oddities(msgspec.Struct, frozen=True, kw_only=True):
    """What is odd in a log."""

    flurries: list[Flurry]
    days_without_jobs: list[str]
    changes: list[Step]
    over_machine: list[str]  # jobs that were given more hosts than the machine has
    bursts: list[Burst]

    def filters(self) -> list[str]:
        """The flurries as filters of the archive's language."""
        return [f"user={flurry.user} and (job>={flurry.first} and job<={flurry.last})" for flurry in self.flurries]


class _Jobs(NamedTuple):
    """Jobs in order of submission."""

    name: list[str]
    user: list[str]
    submit: Floats
    size: Floats
    run: Floats


def find_oddities(workload: Workload, speed: float | None = None) -> Oddities:
    """What is odd in a log.

    Args:
        workload: as it was read.
        speed: flop/s of the hosts, where jobs compute.

    Raises:
        ConfigError: if a run time is not known.
    """
    order = np.argsort(submit_times(workload), kind="stable")
    listed = [workload.jobs[row] for row in order.tolist()]
    jobs = _Jobs(
        [job.name for job in listed],
        [job.user for job in listed],
        submit_times(workload)[order],
        sizes(workload)[order],
        runtimes(workload, speed)[order],
    )
    busy = set(days(workload).tolist())
    given, started = sizes(workload), recorded(workload)
    if started is not None:
        given[started.rows] = np.maximum(given[started.rows], started.size)
    users, which, counts = np.unique(jobs.user, return_inverse=True, return_counts=True)
    first, last = np.full(len(users), np.inf), np.full(len(users), -np.inf)
    np.minimum.at(first, which, jobs.submit)
    np.maximum.at(last, which, jobs.submit)
    bursts = np.flatnonzero((counts >= _LEAST) & (last - first <= _BURST))
    return Oddities(
        flurries=_flurries(jobs),
        days_without_jobs=[day_name(workload, day) for day in range(min(busy), max(busy)) if day not in busy],
        changes=_changes(workload),
        over_machine=[workload.jobs[row].name for row in np.flatnonzero(given > workload.nb_res).tolist()],
        bursts=[
            Burst(user=str(users[row]), jobs=int(counts[row]), hours=float(last[row] - first[row]) / _HOUR)
            for row in bursts.tolist()
            if users[row]
        ],
    )


def _flurries(jobs: _Jobs) -> list[Flurry]:
    rows: dict[str, list[int]] = {}
    for row, user in enumerate(jobs.user):
        if user:
            rows.setdefault(user, []).append(row)
    found, area = [], jobs.size * jobs.run
    for user, of_user in rows.items():
        if len(of_user) < _LEAST:
            continue
        gaps = np.flatnonzero(np.diff(jobs.submit[of_user]) >= _GAP) + 1
        for part in np.split(np.array(of_user), gaps):
            meanwhile = int(part[-1] - part[0]) + 1
            alike = Counter(jobs.size[part].tolist()).most_common(1)[0][1] / len(part)
            if len(part) < max(_LEAST, SHARE * meanwhile) or alike < ALIKE:
                continue
            minutes = np.round(jobs.run[part] / 60.0).tolist()
            flurry = Flurry(
                user=user,
                first=jobs.name[part[0]],
                last=jobs.name[part[-1]],
                jobs=len(part),
                hours=float(jobs.submit[part[-1]] - jobs.submit[part[0]]) / _HOUR,
                share_of_jobs=len(part) / len(jobs.user),
                share_of_host_seconds=float(area[part].sum() / area.sum()),
                alike=alike,
                alike_in_time=Counter(minutes).most_common(1)[0][1] / len(part),
            )
            found.append((int(part[0]), flurry))
    return [flurry for _, flurry in sorted(found, key=lambda pair: pair[0])]


def _changes(workload: Workload) -> list[Step]:
    """Steps of the peak in use, by 30 days."""
    jobs = recorded(workload)
    if jobs is None:
        return []
    use = use_of(jobs)
    first = midnight(workload, int(days(workload).min()))
    month = np.floor((use.time - first) / _MONTH).astype(np.int64)
    peaks = {int(each): float(use.hosts[month == each].max()) for each in np.unique(month) if each >= 0}
    found = []
    for each, peak in peaks.items():
        before = peaks.get(each - 1)
        if before and abs(peak - before) > _STEP * max(peaks.values()):
            name = day_name(workload, int(days(workload).min()) + 30 * each)
            found.append(Step(day=name, before=int(before), after=int(peak)))
    return found


# Intervals in which a machine looks out of order: nothing started, jobs that fitted waited, and few were running.

_LEAST_OUTAGE = 3600.0  # seconds without a start
FEW = 0.5  # of the median of running jobs


class Outage(NamedTuple):
    """An interval, seconds of the workload."""

    begin: float
    end: float
    hosts: int  # that nothing used at the beginning


def find_outages(jobs: Recorded, machine: int) -> list[Outage]:
    """Intervals of an hour or more in which nothing started though a job that fitted waited, and few were running.

    Few are fewer than half the median over the time from the first start to the last end.
    """
    use, running = use_of(jobs), use_of(jobs._replace(size=np.ones(len(jobs.size))))
    # The median over time, each value weighted by how long it held
    order = np.argsort(running.hosts[:-1], kind="stable")
    passed = np.cumsum(np.diff(running.time)[order])
    few = FEW * float(running.hosts[:-1][order][np.searchsorted(passed, passed[-1] / 2)]) if len(passed) else 0.0
    starts = np.unique(jobs.start)
    found = []
    for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        if end - begin < _LEAST_OUTAGE:
            continue
        first, last = np.searchsorted(running.time, [begin, end], side="right") - 1
        below = np.flatnonzero(running.hosts[first:last] < few)
        if not len(below):
            continue
        quiet = max(begin, float(running.time[first + below[0]]))  # since then few run
        if end - quiet < _LEAST_OUTAGE:
            continue
        waited = jobs.size[(jobs.submit <= end - _LEAST_OUTAGE) & (jobs.start >= end)]
        free = machine - float(use.hosts[np.searchsorted(use.time, quiet, side="right") - 1])
        if len(waited) and waited.min() <= free:
            found.append(Outage(quiet, end, int(free)))
    return found


def fitted_beside(jobs: Recorded, machine: int, outages: Sequence[Outage]) -> tuple[float, float]:
    """The share of waiting next to enough free hosts, as it is, and where nothing fits during outages."""
    use = use_of(jobs)
    edges: Floats = np.array([time for each in outages for time in (each.begin, each.end)])
    if not len(edges):
        return fitted(jobs, use, machine), fitted(jobs, use, machine)
    times = np.union1d(use.time, edges)
    hosts = use.hosts[np.searchsorted(use.time, times, side="right") - 1]
    finer = Use(times, np.where(times < use.time[0], 0.0, hosts))
    closed = Use(edges, np.tile([1.0, 0.0], len(outages)))
    return fitted(jobs, use, machine), fitted(jobs, finer, machine, closed)


class Conversion(msgspec.Struct, frozen=True, kw_only=True):
    """What is converted, into what, and how."""

    sources: tuple[Path, ...]  # several only of accounting records
    target: Path
    reading: TraceOptions = TraceOptions()
    to_swf: bool = False  # write a log; otherwise Batsim's JSON
    to: str | None = None  # "4" or "5": the Batsim that the JSON is for; 4 where nothing is said
    filters: Filters = Filters()
    estimates: str | None = None  # a model that makes walltimes from run times; None keeps those of the filters
    seed: int = 0  # of that model
    missing: str = "none"  # a model as `estimates`, or as of the filters: walltimes of jobs without a requested time
    tasks: Tasks | None = None  # None keeps the profiles
    daily: bool = False  # a file per day: TARGET_2016-05-10.json
    options: str = ""  # as the user wrote them, for the description


class WrittenFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was written."""

    path: Path
    workload: Workload
    load: float | None  # offered load; nan where all jobs come at once, None where run times are not known


class Converted(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a conversion."""

    source: Workload  # as it was read
    workload: Workload
    files: list[WrittenFile]  # one, or one per day


def load_any(path: Path, time_field: int | None = None, time_zone: str | None = None) -> Workload:
    """A workload in whatever format its content has, with all that its file says.

    Args:
        path: the file.
        time_field: of SWF: the field with the requested time; the standard's if None.
        time_zone: of a log's local times; UTC if None.

    Raises:
        InputError: if the file cannot be used.
        ConfigError: if there is a `time_field` and the file is not such a log, or a `time_zone` and no local time.
    """
    return read_workload([path], options=TraceOptions(time_field=time_field, time_zone=time_zone), keep_extra=True)


def write_with_predictions(source: Path, workload: Workload, predictions: Floats, target: Path) -> None:
    """Write a workload as Batsim's JSON, with predicted run times as its jobs' estimates.

    Args:
        source: the workload's file.
        workload: the jobs.
        predictions: (J,) seconds; inf where nothing is known.
        target: the file.

    Raises:
        ConfigError: if the file is the source, or cannot be written.
    """
    if target.resolve() == source.resolve():
        raise ConfigError(f"{target}: is the source itself; choose another output file", field="target")
    write_workload(target, with_estimates(workload, predictions))


def convert(conversion: Conversion) -> Converted:
    """Convert: all files are written or none.

    Raises:
        InputError: if the source cannot be used or no job is left.
        ConfigError: if an option does not fit the source, or a file cannot be written.
    """
    if conversion.target.resolve() in {source.resolve() for source in conversion.sources}:
        raise ConfigError(f"{conversion.target}: is the source itself; choose another output file", field="target")
    source = read_workload(conversion.sources, options=conversion.reading, keep_extra=True)
    filters = conversion.filters
    if conversion.estimates is None:
        workload = fill_missing(reshape(source, filters), conversion.missing, conversion.seed, filters.speed)
    elif filters.walltime != "requested":
        raise ConfigError(
            f"the estimates {conversion.estimates!r} make the walltimes, and so do walltimes {filters.walltime!r}; "
            "give one of them",
            field="walltime",
        )
    else:
        exact = reshape(source, replace(filters, walltime="runtime"))  # so that a load counts whole run times
        rng = np.random.default_rng(conversion.seed)
        workload = apply_estimates(exact, conversion.estimates, rng, filters.speed)
    if conversion.tasks is not None:
        workload = as_tasks(workload, conversion.tasks)
    digest = " ".join(map(_sha256, conversion.sources))
    first = conversion.sources[0]
    if conversion.to is not None and conversion.options in ("--to 4", "--to 5") and recognise(first) == "json":
        lines = list(converted_lines(first.read_bytes(), conversion.to, str(first)))
        write_files({conversion.target: lines})
        load = _known_load(workload, conversion.filters.speed)
        return Converted(
            source=source, workload=workload, files=[WrittenFile(path=conversion.target, workload=workload, load=load)]
        )
    target = conversion.target
    parts = [(target, workload)]
    if conversion.daily:
        parts = [(target.with_stem(f"{target.stem}_{day}"), part) for day, part in by_day(workload)]
    written = [_written(path, part, conversion, digest) for path, part in parts]
    write_files({each.path: _lines(each.workload, conversion) for each in written})
    return Converted(source=source, workload=workload, files=written)


def write_cleaned(workload: Workload, without: str, source: Path, target: Path, speed: float | None = None) -> Workload:
    """Write a log without the jobs that a filter names, with the filter in its header as the archive has it.

    Args:
        workload: as it was read.
        without: the filter; see `decision.model.reshape`.
        source: the workload's file.
        target: the file; a log if its name ends in .swf, else Batsim's JSON.
        speed: flop/s of the hosts, where jobs compute.

    Raises:
        ConfigError: if the filter is none, or the file is the source or cannot be written.
        InputError: if no job is left.
    """
    if target.resolve() == source.resolve():
        raise ConfigError(f"{target}: is the source itself; choose another output file", field="target")
    left = reshape(workload, Filters(without=without))
    removed = len(workload.jobs) - len(left.jobs)
    parts = [
        "THIS IS A CLEANED VERSION OF THE LOG!",
        f"The filter used to produce it was {without} ({removed} jobs removed)",
        f"From {source.name} (sha256 {_sha256(source)}) by decision {__version__}",
    ]
    left = replace(left, description="\n".join([*parts, workload.description]).strip())
    to_swf = target.suffix.lower() == ".swf"
    write_files({target: swf_lines(left, runtimes(left, speed)) if to_swf else workload_lines(left)})
    return left


def write_outages(target: Path, outages: Sequence[Outage], hosts: int) -> None:
    """Write outages as Batsim's external events, which close all hosts and open them again.

    Raises:
        ConfigError: if the file cannot be written.
    """
    everyone = f"0-{hosts - 1}" if hosts > 1 else "0"
    events = [
        {"type": kind, "resources": everyone, "timestamp": time}
        for outage in outages
        for kind, time in (("machine_unavailable", outage.begin), ("machine_available", outage.end))
    ]
    write_files({target: [msgspec.json.encode(event) + b"\n" for event in events]})


def _lines(workload: Workload, conversion: Conversion) -> Iterable[bytes]:
    if conversion.to_swf:
        return swf_lines(workload, runtimes(workload, conversion.filters.speed))
    lines = workload_lines(workload)
    if conversion.to != "5":
        return lines
    return converted_lines(b"".join(lines), conversion.to, str(conversion.sources[0]))


def _written(path: Path, workload: Workload, conversion: Conversion, digest: str) -> WrittenFile:
    """The workload with a description of its origin, in front of the description of the source itself."""
    load = _known_load(workload, conversion.filters.speed)
    total = len(workload.jobs) + sum(workload.dropped.values())
    lines = [
        f"From {', '.join(source.name for source in conversion.sources)} (sha256 {digest}) by decision {__version__}, "
        + (f"options {conversion.options}." if conversion.options else "no options."),
        f"{len(workload.jobs):,} of {total:,} jobs; left out: {dropped_text(workload) or 'none'}.",
    ]
    if load is not None and math.isfinite(load):
        lines.append(f"Offered load {load:.4g} on {workload.nb_res} hosts.")
    described = replace(workload, description="\n".join([*lines, workload.description]).strip())
    return WrittenFile(path=path, workload=described, load=load)


def _known_load(workload: Workload, speed: float | None) -> float | None:
    """The offered load, None where the run times are not known."""
    try:
        return offered_load(workload, runtimes(workload, speed))
    except ConfigError:
        return None


def _sha256(path: Path) -> str:
    """Of a file; what came through a pipe cannot be read again."""
    if not path.is_file():
        return "unknown"
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# Logs of the Parallel Workloads Archive, fetched by name, checked and kept.

_SECONDS = 60.0  # without an answer
_ENDINGS = (".swf.gz", ".swf")


def find_log(name: str) -> KnownLog:
    """The log of this name. Raises ConfigError if none is known."""
    known = KNOWN_LOGS.get(name.removesuffix(".gz").removesuffix(".swf"))
    if known is None:
        raise ConfigError(f"{name}: no such log is known{nearest(name, KNOWN_LOGS)}")
    return known


def fetch_log(name: str, source: str | None = None, target: Path | None = None) -> Path:
    """Fetch a log, unpack it and check its SHA-256.

    Args:
        name: one of `KNOWN_LOGS`.
        source: a folder or a URL where NAME.swf.gz or NAME.swf is; the archive if None.
        target: the file to write; by default one in the user's cache, where a log that is there already is kept.

    Raises:
        ConfigError: if the name is unknown or a file cannot be written.
        InputError: if the log cannot be fetched, or is another one; then nothing is left behind.
    """
    log = find_log(name)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    kept = cache / "decision" / "logs" / f"{log.name}.swf"
    target = target or kept
    if source is None and kept.is_file() and _sha256(kept) == log.sha256:
        content, where = kept.read_bytes(), str(kept)
    else:
        content, where = _content(log, source)
    found = hashlib.sha256(content).hexdigest()
    if found != log.sha256:
        raise InputError(f"{where}: SHA-256 {found}, but that of {log.name} is {log.sha256}: another file; not kept")
    write_files({path: [content] for path in {target, kept} if path != Path(where)})
    return target


def _content(log: KnownLog, source: str | None) -> tuple[bytes, str]:
    """The unpacked log, and where it was."""
    import tempfile

    if source is not None and "://" not in source:
        files = [Path(source) / f"{log.name}{ending}" for ending in _ENDINGS]
        path = next((file for file in files if file.is_file()), None)
        if path is None:
            raise InputError(f"{source}: there is neither {files[0].name} nor {files[1].name}")
        return _unpacked(path), str(path)
    urls = [log.url] if source is None else [f"{source.rstrip('/')}/{log.name}{ending}" for ending in _ENDINGS]
    with tempfile.TemporaryDirectory(prefix="decision-") as folder:
        for url in urls:
            path = Path(folder) / url.rpartition("/")[2]
            try:
                with urllib.request.urlopen(url, timeout=_SECONDS) as answer, path.open("wb") as file:
                    shutil.copyfileobj(cast(BinaryIO, answer), file)
                return _unpacked(path), url
            except (urllib.error.URLError, OSError, ValueError) as error:
                reason = str(getattr(error, "reason", error))
    raise InputError(f"{urls[-1]}: cannot be fetched ({reason}); give a copy's folder or URL", field="source")


def _unpacked(path: Path) -> bytes:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return (unpacked(path) if packed else path).read_bytes()
