"""Who had what of a run: jobs, host-time and waits of users, groups, accounts, queues and partitions.

A run's folder has them as ``groups.csv``, since Batsim's files do not say whose a job is.
"""

import csv
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from decision.files.text import read_bytes, write_files
from decision.model.columns import Labelled, columns_of
from decision.model.errors import InputError
from decision.model.record import JobTable
from decision.model.table import csv_text
from decision.model.trace import of_jobs
from decision.model.workload import Workload

from .metrics import only_ran, waiting_times

GROUPS_FILE = "groups.csv"
SHOWN_GROUPS = 10  # of a kind; the others are one
NOT_SAID = "not said"
_MOST_JOBS = 1_000_000  # with more, their ids are not kept beside their groups


class Membership(NamedTuple):
    """The groups of a kind."""

    names: Sequence[str]
    of: Mapping[str, int]  # the number of each job's group, by the job's id
    folded: bool  # whether the last name is that of all others


class GroupFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What the jobs of a group had; rejected ones do not count."""

    by: str  # "user", "group", "account", "queue", "partition"
    name: str
    jobs: float  # of several runs their mean, as all below
    host_seconds: float
    mean_wait: float  # seconds
    max_wait: float  # seconds


def memberships(workloads: Sequence[Workload], most: int = 0) -> dict[str, Membership]:
    """Whose the jobs are, by kind, where the workloads say it and there are two groups or more.

    Args:
        workloads: as they were read, with what is recorded; nothing is said of more than a million jobs.
        most: groups of a kind, those with most jobs; the others are one. All if 0.
    """
    if sum(len(each.jobs) for each in workloads) > _MOST_JOBS:
        return {}
    named: dict[str, list[tuple[Sequence[str], Sequence[str]]]] = {}  # ids and names, workload by workload
    for workload in workloads:
        for kind, names in _names(workload):
            named.setdefault(kind, []).append((columns_of(workload.jobs).id, names))
    return {
        kind: _membership(dict(chain.from_iterable(zip(ids, names, strict=True) for ids, names in parts)), most)
        for kind, parts in named.items()
        if len(set().union(*(names for _, names in parts)) - {""}) > 1
    }


def _names(workload: Workload) -> Iterable[tuple[str, Sequence[str]]]:
    jobs = columns_of(workload.jobs)
    yield "user", list(jobs.user)
    if isinstance(jobs.extra, Labelled):
        for kind in ("group", "queue"):
            yield kind, [str((fields or {}).get(kind) or "") for fields in jobs.extra]
    if workload.trace is not None:
        trace = of_jobs(workload.trace, workload.jobs)
        for kind in ("account", "partition"):
            yield kind, list(trace.texts("request", kind))


def _membership(names: Mapping[str, str], most: int) -> Membership:
    labels, codes, counts = np.unique(
        [name or NOT_SAID for name in names.values()], return_inverse=True, return_counts=True
    )
    listed = [str(label) for label in labels]
    folded = 0 < most < len(listed)
    if folded:
        order = np.argsort(-counts, kind="stable")
        place = np.full(len(listed), most)
        place[order[:most]] = np.arange(most)
        codes, listed = place[codes], [*(listed[at] for at in order[:most]), others(len(listed) - most)]
    return Membership(listed, dict(zip(names, codes.tolist(), strict=True)), folded)


def others(number: int) -> str:
    """The name of so many groups together."""
    return f"{number:,} others"


def group_figures(jobs: JobTable, members: Mapping[str, Membership]) -> list[GroupFigures]:
    """What each group had, of a kind those with most host-time first.

    Args:
        jobs: of a run.
        members: whose they are.
    """
    ran = only_ran(jobs)
    wait, found, ids = waiting_times(ran), [], list(ran.id)
    for kind, (names, of, folded) in members.items():
        code = np.array([of.get(job, -1) for job in ids], np.int64)
        known = code >= 0
        code, waits, work = code[known], wait[known], (ran.size * ran.runtime)[known]
        number = np.bincount(code, minlength=len(names))
        longest = np.zeros(len(names))
        np.maximum.at(longest, code, waits)
        total_work, total_wait = (np.bincount(code, values, len(names)) for values in (work, waits))
        rows = [
            GroupFigures(
                by=kind,
                name=names[at],
                jobs=float(number[at]),
                host_seconds=float(total_work[at]),
                mean_wait=float(total_wait[at] / number[at]),
                max_wait=float(longest[at]),
            )
            for at in np.flatnonzero(number).tolist()
        ]
        last = names[-1] if folded else ""
        found += sorted(rows, key=lambda row: (row.name == last, -row.host_seconds))
    return found


def mean_figures(runs: Sequence[Sequence[GroupFigures]]) -> list[GroupFigures]:
    """The means over runs of the same jobs, copies of a log or seeds of a policy, in the order of the first run."""
    by_key: dict[tuple[str, str], list[GroupFigures]] = {}
    for row in (row for run in runs for row in run):
        by_key.setdefault((row.by, row.name), []).append(row)
    fields = ("jobs", "host_seconds", "mean_wait", "max_wait")
    return [
        GroupFigures(
            by=by, name=name, **{field: float(np.mean([getattr(row, field) for row in rows])) for field in fields}
        )
        for (by, name), rows in by_key.items()
    ]


def folded(rows: Sequence[GroupFigures], names: Collection[str]) -> list[GroupFigures]:
    """The groups of these names, and all others of the kind as one."""
    rest = [row for row in rows if row.name not in names]
    if not rest:
        return [*rows]
    jobs = sum(row.jobs for row in rest)
    together = GroupFigures(
        by=rest[0].by,
        name=others(len(rest)),
        jobs=jobs,
        host_seconds=sum(row.host_seconds for row in rest),
        mean_wait=sum(row.jobs * row.mean_wait for row in rest) / jobs,
        max_wait=max(row.max_wait for row in rest),
    )
    return [*(row for row in rows if row.name in names), together]


def write_groups(folder: Path, jobs: JobTable, workloads: Sequence[Workload]) -> list[Path]:
    """Write ``groups.csv`` into a run's folder, where the workloads say whose the jobs are.

    Raises:
        ConfigError: if it cannot be written.
    """
    path = folder / GROUPS_FILE
    members = memberships(workloads)
    found = group_figures(jobs, members) if members else []
    if not found:
        path.unlink(missing_ok=True)
        return []
    write_files({path: [csv_text(map(msgspec.structs.asdict, found)).encode()]})
    return [path]


def read_groups(folder: Path) -> list[GroupFigures]:
    """What `write_groups` wrote; nothing where it is not there.

    Raises:
        InputError: if the file is of another kind.
    """
    path = folder / GROUPS_FILE
    if not path.is_file():
        return []
    rows: list[dict[str, Any]] = list(csv.DictReader(io.StringIO(read_bytes(path).decode(errors="replace"))))
    try:
        return msgspec.convert(rows, list[GroupFigures], strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: not the groups of a run ({error}); run it again, or remove the file") from None
