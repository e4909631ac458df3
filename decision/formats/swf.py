"""Logs in the Standard Workload Format 2.2 (Feitelson's Parallel Workloads Archive).

One line per job, 18 numbers, -1 where unknown; header comments start with ``;``. Logs are records of real
machines and have odd lines; those that no simulation could use are left out, counted by reason in
`Workload.dropped`.
"""

import math
import os
import re
from collections import Counter
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from decision.model.errors import ConfigError, InputError
from decision.model.workload import Delay, Job, Workload

from .files import read_bytes

Walltimes = Literal["requested", "runtime", "none"]
Table = NDArray[np.float64]

_FIELDS = 18
_ID, _SUBMIT, _RUN, _ALLOCATED, _REQUESTED, _TIME, _STATUS, _USER = 0, 1, 3, 4, 7, 8, 10, 11
_PARTIAL = (2, 3, 4)  # status of the parts of a job that was checkpointed; the job has a line of its own


def load_swf(
    path: str | os.PathLike[str],
    *,
    jobs: slice | None = None,
    nodes: int | None = None,
    walltime: Walltimes = "requested",
    shift: bool = False,
    name: str = "w0",
) -> Workload:
    """Read a log: one job per usable line, one delay profile per distinct run time.

    A job's size is the number of processors requested, or allocated where that is unknown. A job that ran for
    longer than its walltime is stopped at its walltime, as Batsim does.

    Args:
        path: the log.
        jobs: which of the usable jobs to keep, counted in order of submission; all if absent.
        nodes: hosts of the platform; by default the header's MaxProcs or MaxNodes, or else the largest job.
        walltime: ``requested`` is the requested time, or the run time where unknown; ``runtime`` is the run time
            (perfect estimates); ``none`` leaves jobs without.
        shift: let the first job kept come at 0 s.
        name: the workload's name, the part of job ids before ``!``.

    Raises:
        InputError: if the file cannot be read or no job is left.
        ConfigError: if an option is out of range.
    """
    _check_options(nodes, walltime, jobs)
    data = read_bytes(path)
    table, malformed = _parse(data)
    nodes = nodes or _header_nodes(data)
    kept, dropped = _sift(table, nodes)
    kept = kept[np.argsort(kept[:, _SUBMIT], kind="stable")][jobs or slice(None)]
    dropped.update({f"not {_FIELDS} numbers": malformed} if malformed else {})
    if not len(kept):
        raise InputError(f"{path}: no usable job{_why(dropped)}; choose other lines or another log")
    if shift:
        kept[:, _SUBMIT] -= kept[0, _SUBMIT]
    return _workload(kept, str(path), name, nodes or int(_sizes(kept).max()), walltime, dropped)


def _check_options(nodes: int | None, walltime: str, jobs: slice | None) -> None:
    if nodes is not None and nodes < 1:
        raise ConfigError(f"nodes: must be at least 1; found {nodes}")
    if walltime not in ("requested", "runtime", "none"):
        raise ConfigError(f"walltime: must be requested, runtime or none; found {walltime!r}")
    if jobs is not None and jobs.step not in (None, 1):
        raise ConfigError(f"jobs: must be a range a:b without a step; found a step of {jobs.step}")


def _why(dropped: Counter[str]) -> str:
    reasons = ", ".join(f"{count} {reason}" for reason, count in dropped.items())
    return f" (left out: {reasons})" if reasons else ""


def _parse(data: bytes) -> tuple[Table, int]:
    """All lines of numbers as a table of 18 columns, and how many lines are not that."""
    lines = [line for line in data.splitlines() if line.strip() and not line.lstrip().startswith(b";")]
    try:
        return _table(lines), 0
    except ValueError:
        good = [line for line in lines if _is_row(line)]
        return _table(good), len(lines) - len(good)


def _table(lines: list[bytes]) -> Table:
    tokens = b" ".join(lines).split()
    if len(tokens) != _FIELDS * len(lines):
        raise ValueError("ragged")
    return np.fromiter(map(float, tokens), np.float64, len(tokens)).reshape(-1, _FIELDS)


def _is_row(line: bytes) -> bool:
    try:
        return len([float(token) for token in line.split()]) == _FIELDS
    except ValueError:
        return False


def _header_nodes(data: bytes) -> int | None:
    """The machine's size as the header comments say, or None."""
    for key in (b"MaxProcs", b"MaxNodes"):
        found = re.search(rb"^\s*;\s*" + key + rb":\s*(\d+)", data, re.MULTILINE)
        if found and int(found[1]) > 0:
            return int(found[1])
    return None


def _sizes(table: Table) -> Table:
    requested = table[:, _REQUESTED]
    return np.where(requested > 0, requested, table[:, _ALLOCATED])


def _sift(table: Table, nodes: int | None) -> tuple[Table, Counter[str]]:
    """The usable lines, and how many others there are, each under the first reason that holds."""
    size = _sizes(table)
    reasons = {
        "with a field that is no finite number": ~np.isfinite(table).all(axis=1),
        "parts of a checkpointed job (status 2, 3 or 4)": np.isin(table[:, _STATUS], _PARTIAL),
        "with a negative submission time": table[:, _SUBMIT] < 0,
        "with an unknown or zero run time": table[:, _RUN] <= 0,
        "with an unknown or zero size": size < 1,
        "with a fractional size or job number": (size % 1 != 0) | (table[:, _ID] % 1 != 0),
    }
    if nodes is not None:
        reasons[f"larger than {nodes} hosts"] = size > nodes
    usable = np.ones(len(table), bool)
    dropped: Counter[str] = Counter()
    for reason, bad in reasons.items():
        _drop(usable, usable & bad, reason, dropped)
    _drop(usable, _repeated(table[:, _ID], usable), "with a job number seen before", dropped)
    return table[usable], dropped


def _repeated(ids: Table, usable: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which usable lines repeat the job number of an earlier usable line."""
    rows = np.flatnonzero(usable)
    _, first = np.unique(ids[rows], return_index=True)
    repeated = usable.copy()
    repeated[rows[first]] = False
    return repeated


def _drop(usable: NDArray[np.bool_], bad: NDArray[np.bool_], reason: str, dropped: Counter[str]) -> None:
    if bad.any():
        dropped[reason] = int(bad.sum())
        usable &= ~bad


def _workload(kept: Table, path: str, name: str, nodes: int, walltime: str, dropped: Counter[str]) -> Workload:
    runtimes, which = np.unique(kept[:, _RUN], return_inverse=True)
    names = [f"delay{runtime:.17g}" for runtime in runtimes.tolist()]
    jobs = tuple(
        Job(
            id=f"{name}!{number:.0f}",
            submit_time=submit,
            size=int(size),
            walltime=limit,
            profile=names[profile],
            user=f"{user:.0f}" if user >= 0 else "",
        )
        for number, submit, size, limit, profile, user in zip(
            kept[:, _ID].tolist(),
            kept[:, _SUBMIT].tolist(),
            _sizes(kept).tolist(),
            _walltimes(kept, walltime).tolist(),
            which.tolist(),
            kept[:, _USER].tolist(),
            strict=True,
        )
    )
    profiles = {key: Delay(runtime) for key, runtime in zip(names, runtimes.tolist(), strict=True)}
    return Workload(name=name, jobs=jobs, profiles=profiles, nb_res=nodes, path=path, dropped=dict(dropped))


def _walltimes(table: Table, policy: str) -> Table:
    if policy == "none":
        return np.full(len(table), math.inf)
    if policy == "runtime":
        return table[:, _RUN]
    return np.where(table[:, _TIME] > 0, table[:, _TIME], table[:, _RUN])
