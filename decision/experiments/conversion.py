"""Workloads from files to files: read, reshaped, given other profiles, and written with their origin."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace

from decision import __version__
from decision.files.accounting.read import TraceOptions, recognise
from decision.files.batsim5_json import converted_lines
from decision.files.generate.jobs import Tasks, as_tasks
from decision.files.profiles import workload_lines, write_workload
from decision.files.swf_write import swf_lines
from decision.files.text import write_files
from decision.files.workload import read_workload
from decision.model.demand import offered_load, runtimes
from decision.model.errors import ConfigError
from decision.model.record import Floats
from decision.model.reshape import Filters, by_day, dropped_text, reshape
from decision.model.workload import Workload
from decision.policies.runtimes import apply_estimates
from decision.policies.runtimes.predictors import with_estimates
from decision.policies.runtimes.walltimes import fill_missing

from .cleaning import Outage


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
    workload = _reshaped(source, conversion)
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
    written = [_written(path, part, conversion, digest) for path, part in _parts(workload, conversion)]
    write_files({each.path: _lines(each.workload, conversion) for each in written})
    return Converted(source=source, workload=workload, files=written)


def write_cleaned(workload: Workload, without: str, source: Path, target: Path, speed: float | None = None) -> Workload:
    """Write a log without the jobs that a filter names, with the filter in its header as the archive has it.

    Args:
        workload: as it was read.
        without: the filter; see `decision.model.filters`.
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


def _reshaped(workload: Workload, conversion: Conversion) -> Workload:
    filters = conversion.filters
    if conversion.estimates is None:
        return fill_missing(reshape(workload, filters), conversion.missing, conversion.seed, filters.speed)
    if filters.walltime != "requested":
        raise ConfigError(
            f"the estimates {conversion.estimates!r} make the walltimes, and so do walltimes {filters.walltime!r}; "
            "give one of them",
            field="walltime",
        )
    exact = reshape(workload, replace(filters, walltime="runtime"))  # so that a load counts whole run times
    return apply_estimates(exact, conversion.estimates, np.random.default_rng(conversion.seed), filters.speed)


def _parts(workload: Workload, conversion: Conversion) -> Iterator[tuple[Path, Workload]]:
    if not conversion.daily:
        yield conversion.target, workload
        return
    for day, part in by_day(workload):
        yield conversion.target.with_stem(f"{conversion.target.stem}_{day}"), part


def _lines(workload: Workload, conversion: Conversion) -> Iterable[bytes]:
    if conversion.to_swf:
        return swf_lines(workload, runtimes(workload, conversion.filters.speed))
    lines = workload_lines(workload)
    if conversion.to != "5":
        return lines
    return converted_lines(b"".join(lines), conversion.to, str(conversion.sources[0]))


def _written(path: Path, workload: Workload, conversion: Conversion, digest: str) -> WrittenFile:
    load = _known_load(workload, conversion.filters.speed)
    return WrittenFile(path=path, workload=_described(workload, conversion, digest, load), load=load)


def _known_load(workload: Workload, speed: float | None) -> float | None:
    """The offered load, None where the run times are not known."""
    try:
        return offered_load(workload, runtimes(workload, speed))
    except ConfigError:
        return None


def _described(workload: Workload, conversion: Conversion, digest: str, load: float | None) -> Workload:
    """The workload with a description of its origin, in front of the description of the source itself."""
    total = len(workload.jobs) + sum(workload.dropped.values())
    lines = [
        f"From {', '.join(source.name for source in conversion.sources)} (sha256 {digest}) by decision {__version__}, "
        + (f"options {conversion.options}." if conversion.options else "no options."),
        f"{len(workload.jobs):,} of {total:,} jobs; left out: {dropped_text(workload) or 'none'}.",
    ]
    if load is not None and math.isfinite(load):
        lines.append(f"Offered load {load:.4g} on {workload.nb_res} hosts.")
    return replace(workload, description="\n".join([*lines, workload.description]).strip())


def _sha256(path: Path) -> str:
    """Of a file; what came through a pipe cannot be read again."""
    if not path.is_file():
        return "unknown"
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
