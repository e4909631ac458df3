"""The questions that a log does not answer, and why."""

from typing import Any

import numpy as np

from decision.model.column import Labelled
from decision.model.trace import Trace, of_jobs
from decision.model.workload import Workload


def named_users(workload: Workload) -> set[str]:
    """The users that jobs name."""
    column = getattr(workload.jobs, "user", None)
    names = set(column.used()) if isinstance(column, Labelled) else {job.user for job in workload.jobs}
    return names - {""}


def unanswered_questions(workload: Workload) -> dict[str, str]:
    """The questions that a log does not answer, and why."""
    reading, trace = workload.reading, workload.trace
    empty = Trace(id=(), wait=np.array([]))
    trace = empty if trace is None else of_jobs(trace, workload.jobs)
    why: dict[str, str] = {}
    if not len(trace.wait) or np.isnan(trace.wait).all():
        why["recorded"] = "no waiting time or start is known of any job, so what really happened is not known"
    if reading is not None and not reading.requested:
        why["estimates"] = "no job has a requested time, so backfilling with the users' estimates cannot be tried"
    users = named_users(workload)
    if len(users) < 2:
        said = "every job has the same user" if users else "no job names its user"
        why["users"] = f"{said}, so fairness, fair share and users' habits cannot be studied"
    if not any(trace.texts("recorded", "nodes")):
        why["topology"] = "no job says on which nodes it ran, so placement and sharing cannot be compared"
    for question, fields, what in (
        ("memory", (("recorded", "memory"), ("request", "memory")), "memory"),
        ("gpus", (("recorded", "gpus"), ("request", "gpus")), "GPUs"),
        ("partitions", (("request", "partition"), ("extra", "queue")), "partitions or queues"),
        ("dependencies", (("request", "dependency"),), "dependencies"),
    ):
        if reason := _no_data(workload, trace, fields, what):
            why[question] = reason
    if workload.unix_start is None:
        why["dates"] = "the log does not say when it began, so hours and weekdays are counted from its first second"
    return why


def _no_data(workload: Workload, trace: Trace, fields: tuple[tuple[str, str], ...], what: str) -> str:
    """Why fields say nothing of the jobs: they are empty or the same everywhere; "" where they say something."""
    constant = False
    for part, name in fields:
        values = _values(workload, trace, part, name)
        known = values - {"", None}
        partly = len(values) > len(known) > 0
        if len(known) > 1 or (known and what in ("memory", "GPUs")) or (partly and what == "dependencies"):
            return ""
        constant |= bool(known)
    said = f"the field of {what} is the same for every job" if constant else f"no job says anything of {what}"
    return f"{said}, so it is not data"


def _values(workload: Workload, trace: Trace, part: str, name: str) -> set[Any]:
    """Some values of a field: two numbers at most, None where it is not known."""
    if part == "extra":
        extra = getattr(workload.jobs, "extra", None)
        said = extra.used() if isinstance(extra, Labelled) else (job.extra for job in workload.jobs)
        return {(fields or {}).get(name) for fields in said}
    field = getattr(trace, part).get(name)
    if isinstance(field, np.ndarray):
        known = ~np.isnan(field)
        return {*np.unique(field[known])[:2].tolist(), *([] if known.all() else [None])}
    return set(field.used()) if isinstance(field, Labelled) else set()
