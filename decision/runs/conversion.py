"""Workloads from files to files: read, reshaped, given other profiles, and written with their origin."""

import hashlib
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from msgspec.structs import replace

from decision import __version__
from decision.estimates import apply_estimates
from decision.estimates.history import History, in_submission_order, with_estimates
from decision.formats import load_json, load_oar, load_swf
from decision.formats.files import write_files
from decision.formats.swf import REQUESTED_TIME
from decision.formats.swf_write import swf_lines
from decision.formats.workload5 import converted_lines
from decision.formats.workload_write import workload_lines, write_workload
from decision.generate.tasks import Tasks, as_tasks
from decision.model.demand import offered_load, runtimes
from decision.model.errors import ConfigError
from decision.model.record import Floats
from decision.model.reshape import Filters, by_day, dropped_text, reshape
from decision.model.workload import Workload

from .inputs import check_time_field, is_swf

Source = Literal["swf", "oar", "json"]


class Conversion(msgspec.Struct, frozen=True, kw_only=True):
    """What is converted, into what, and how."""

    source: Path
    format: Source
    target: Path
    to_swf: bool = False  # write a log; otherwise Batsim's JSON
    to: str | None = None  # "4" or "5": the Batsim that the JSON is for; 4 where nothing is said
    filters: Filters = Filters()
    estimates: str | None = None  # a model that makes walltimes from run times; None keeps those of the filters
    seed: int = 0  # of that model
    time_field: int | None = None  # of a log: the field with the requested time; the standard's if None
    tasks: Tasks | None = None  # None keeps the profiles
    daily: bool = False  # a file per day: TARGET_2016-05-10.json
    options: str = ""  # as the user wrote them, for the description


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was written."""

    path: Path
    workload: Workload
    load: float | None  # offered load; nan where all jobs come at once, None where run times are not known


class Converted(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a conversion."""

    workload: Workload
    files: list[Written]  # one, or one per day


def load_any(path: Path, time_field: int | None = None) -> Workload:
    """A workload in the format that its name says: a log (.swf), an OAR export (.csv), or Batsim's JSON.

    Args:
        path: the file.
        time_field: of a log: the field with the requested time; the standard's if None.

    Raises:
        InputError: if the file cannot be used.
        ConfigError: if there is a `time_field` and the file is not a log.
    """
    check_time_field([path], time_field)
    formats: dict[str, Source] = {".swf": "swf", ".csv": "oar"}
    return _read(path, formats.get(path.suffix.lower(), "json"), time_field)


def _read(path: Path, source: Source, time_field: int | None) -> Workload:
    if source == "swf":
        return load_swf(path, time_field=time_field or REQUESTED_TIME)
    return load_oar(path) if source == "oar" else load_json(path, keep_extra=True)


def write_with_predictions(
    source: Path, time_field: int | None, history: History, predictions: Floats, target: Path
) -> None:
    """Write a workload as Batsim's JSON, with predicted run times as its jobs' estimates.

    Args:
        source: the workload, as `load_any` reads it.
        time_field: as there.
        history: of its jobs, which are those of a log in the log's order.
        predictions: (J,) seconds, in the history's order; inf where nothing is known.
        target: the file.

    Raises:
        ConfigError: if the file is the source, or cannot be written.
    """
    if target.resolve() == source.resolve():
        raise ConfigError(f"{target}: is the source itself; choose another output file", field="target")
    workload = load_any(source, time_field)
    order = in_submission_order(history) if is_swf(source) else slice(None)
    write_workload(target, with_estimates(workload, predictions[order]))


def convert(conversion: Conversion) -> Converted:
    """Convert: all files are written or none.

    Raises:
        InputError: if the source cannot be used or no job is left.
        ConfigError: if an option does not fit the source, or a file cannot be written.
    """
    if conversion.target.resolve() == conversion.source.resolve():
        raise ConfigError(f"{conversion.target}: is the source itself; choose another output file", field="target")
    workload = _reshaped(_read(conversion.source, conversion.format, conversion.time_field), conversion)
    if conversion.tasks is not None:
        workload = as_tasks(workload, conversion.tasks)
    digest = _sha256(conversion.source)
    if conversion.to is not None and conversion.options in ("--to 4", "--to 5") and conversion.format == "json":
        lines = list(converted_lines(conversion.source.read_bytes(), conversion.to, str(conversion.source)))
        write_files({conversion.target: lines})
        load = _known_load(workload, conversion.filters.speed)
        return Converted(workload=workload, files=[Written(path=conversion.target, workload=workload, load=load)])
    written = [_written(path, part, conversion, digest) for path, part in _parts(workload, conversion)]
    write_files({each.path: _lines(each.workload, conversion) for each in written})
    return Converted(workload=workload, files=written)


def _reshaped(workload: Workload, conversion: Conversion) -> Workload:
    filters = conversion.filters
    if conversion.estimates is None:
        return reshape(workload, filters)
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
    return converted_lines(b"".join(lines), conversion.to, str(conversion.source))


def _written(path: Path, workload: Workload, conversion: Conversion, digest: str) -> Written:
    load = _known_load(workload, conversion.filters.speed)
    return Written(path=path, workload=_described(workload, conversion, digest, load), load=load)


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
        f"From {conversion.source.name} (sha256 {digest}) by decision {__version__}, "
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
