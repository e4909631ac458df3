"""Which columns of a table of jobs say what: those of known data sets, and a user's mapping."""

import os
import tomllib
from collections.abc import Sequence

import msgspec

from decision.formats.files import read_bytes
from decision.model.errors import InputError

SECONDS_OF_UNITS = {"s": 1.0, "ms": 1e-3, "min": 60.0}  # seconds; ``iso`` is a date and time
_SIZES = ("nodes", "cores", "gpus")


class TableMapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which columns of a table say what; "" where none does.

    `times` is the unit of submissions, starts, waits, ends and run times, and `walltimes` that of walltimes.
    """

    submit: str
    wait: str = ""
    start: str = ""
    run: str = ""
    end: str = ""
    size: str
    unit: str = "nodes"
    walltime: str = ""
    user: str = ""
    id: str = ""
    state: str = ""
    partition: str = ""
    times: str = "s"
    spans: str = ""  # unit of waits and run times, where it is another
    walltimes: str = "s"
    zone: str = ""  # of dates that say none


_SLURM = {"start": "start_time", "end": "end_time", "times": "iso", "id": "job_id", "state": "job_state"}
_KNOWN: tuple[tuple[str, frozenset[str], TableMapping], ...] = tuple(
    (name, frozenset(signature.split()), TableMapping(**said))
    for name, signature, said in (
        (
            "f-data",
            "jid adt sdt edt nnumr",
            {
                **{"submit": "adt", "start": "sdt", "end": "edt", "size": "nnumr", "walltime": "elpl", "user": "usr"},
                **{"id": "jid", "state": "exit state", "times": "iso", "zone": "Asia/Tokyo"},
            },
        ),
        (
            "pm100",
            "job_id submit_time start_time end_time num_nodes_alloc derived_ec",
            {
                **_SLURM,
                **{"submit": "submit_time", "size": "num_nodes_alloc", "walltime": "time_limit", "walltimes": "min"},
                **{"user": "user_id", "partition": "partition"},
            },
        ),
        (
            "adastra",
            "job_id submit_time start_time end_time num_nodes_alloc time_limit",
            {
                **_SLURM,
                **{"submit": "submit_time", "size": "num_nodes_alloc", "walltime": "time_limit", "user": "user_id"},
            },
        ),
        (
            "lassen",
            "job_submit_time begin_time end_time num_nodes",
            {
                **{"submit": "job_submit_time", "start": "begin_time", "end": "end_time", "size": "num_nodes"},
                **{"walltime": "time_limit", "user": "hashed_user_id", "times": "iso"},
            },
        ),
        (
            "djc",
            "QUEUED_TIMESTAMP START_TIMESTAMP END_TIMESTAMP NODES_USED",
            {
                **{"submit": "QUEUED_TIMESTAMP", "start": "START_TIMESTAMP", "end": "END_TIMESTAMP"},
                **{"size": "NODES_USED", "walltime": "WALLTIME_SECONDS", "user": "USERNAME_GENID", "times": "iso"},
                **{"id": "JOB_NAME"},
            },
        ),
        (
            "helios",
            "job_id gpu_num node_num submit_time duration vc",
            {
                **{"submit": "submit_time", "start": "start_time", "run": "duration", "size": "gpu_num"},
                **{"unit": "gpus", "user": "user", "id": "job_id", "state": "state", "partition": "vc"},
                **{"times": "iso", "spans": "s", "zone": "Asia/Shanghai"},
            },
        ),
        (
            "opendc",
            "id submission_time duration cpu_count",
            {
                **{"submit": "submission_time", "run": "duration", "size": "cpu_count", "unit": "cores"},
                **{"times": "ms", "id": "id"},
            },
        ),
        *(
            (
                "lumos",
                f"submit_time wait_time run_time {size}",
                {
                    **{"submit": "submit_time", "wait": "wait_time", "run": "run_time", "size": size, "unit": unit},
                    "user": "user",
                },
            )
            for size, unit in (("node_num", "nodes"), ("nodes", "nodes"), ("gpu_num", "gpus"), ("cores", "cores"))
        ),
    )
)


def known_table(names: Sequence[str]) -> tuple[str, TableMapping] | None:
    """The data set whose columns these are, and what they say; None of none."""
    found = ((name, said) for name, signature, said in _KNOWN if signature <= set(names))
    return next(found, None)


def read_mapping(path: str | os.PathLike[str]) -> TableMapping:
    """A mapping of columns from a TOML file. Raises InputError."""
    try:
        said = tomllib.loads(read_bytes(path).decode("utf-8"))
        mapping = msgspec.convert(said, TableMapping)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise InputError(f"{path}: not a mapping of columns ({error}); the guide has an example") from None
    if mapping.unit not in _SIZES:
        raise InputError(f"{path}: unit {mapping.unit!r}: must be nodes, cores or gpus")
    for name, unit in (("times", mapping.times), ("spans", mapping.spans or "s"), ("walltimes", mapping.walltimes)):
        if unit not in (*SECONDS_OF_UNITS, "iso"):
            raise InputError(f"{path}: {name} {unit!r}: must be s, ms, min or iso")
    if not (mapping.run or mapping.end) or not (mapping.wait or mapping.start or mapping.run):
        raise InputError(f"{path}: name a column for run, or for start and end")
    return mapping


def unknown_columns(path: str | os.PathLike[str], names: Sequence[str]) -> InputError:
    """The error of a table whose columns are not known: what they are, and a mapping to fill in."""
    shown = "\n".join(f'{name} = ""' for name in ("submit", "wait", "run", "size", "walltime", "user", "id"))
    listed = ", ".join(names[:100])
    return InputError(
        f"{path}: a table of unknown columns: {listed}\n"
        f"write which of them say what into a TOML file, and give that as the mapping of columns:\n{shown}\n"
        'unit = "nodes"  # or cores, gpus: what size counts\ntimes = "s"  # or ms, min, iso',
        field="columns",
    )
