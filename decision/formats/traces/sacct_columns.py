"""What the texts of sacct's columns say: times, sizes, limits and memory as numbers."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import compress
from typing import Any

import numpy as np

from decision.model.record import Floats

from .account import Account
from .records import Columns, usable
from .values import Clock, gpus_of, megabytes, seconds_of, tres, whole_count

_COUNTS = (("nodes", ("allocnodes", "nnodes"), "node"), ("cores", ("alloccpus", "ncpus"), "cpu"))
Texts = Mapping[str, Sequence[str]]  # columns by name, in small letters

_JOB = re.compile(r"\d+([_+](\d+|\[.*\]))?")
_NO_LIMIT = frozenset(("UNLIMITED", "Partition_Limit", "", "INVALID"))
_NO_NODES = frozenset(("None assigned", "None", "N/A"))
UNFINISHED = ("RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "PENDING", "REQUEUED")


def job_columns_of(lines: np.ndarray, text: Texts, account: Account, clock: Clock) -> Iterator[Columns]:
    """Columns of numbers from columns of texts, of the records that ran."""
    lines, text = _without_steps(lines, text, account)
    if not len(lines):
        return
    ids = _ids(text)
    times = {name: clock.read(text[name]) for name in ("submit", "start", "end") if name in text}
    run, bad_run = _run(text, len(lines))
    state = [each.partition(" ")[0].rstrip("+") for each in text.get("state", [""] * len(lines))]
    bad = bad_run | ~np.array(list(map(str.isdecimal, ids)))
    bad[bad] = [bad_run[at] or _JOB.fullmatch(ids[at]) is None for at in np.flatnonzero(bad).tolist()]
    for _, wrong in times.values():
        bad |= wrong
    account.leave_out("malformed", lines[bad].tolist())
    good = (~bad).tolist()
    columns = {
        "line": lines,
        "id": ids,
        "part_of": [job.partition("+")[0] if "+" in job else "" for job in ids],
        "state": state,
        **_when({name: seconds for name, (seconds, _) in times.items()}, run, text, state, clock),
        **_sizes(text, len(lines)),
        **_asked(text),
    }
    if bad.any():
        columns = {name: list(compress(column, good)) for name, column in columns.items()}
    if any(good):
        yield from usable(columns, account)


def _ids(text: Texts) -> Sequence[str]:
    return text.get("jobid") or text["jobidraw"]


def _without_steps(lines: np.ndarray, text: Texts, account: Account) -> tuple[np.ndarray, Texts]:
    """The lines of jobs; those of their steps are left out."""
    step = np.array(["." in job for job in _ids(text)])
    account.leave_out("step", lines[step].tolist())
    if not step.any():
        return lines, text
    keep = (~step).tolist()
    return lines[keep], {name: list(compress(column, keep)) for name, column in text.items()}


def _run(text: Texts, count: int) -> tuple[Floats, np.ndarray]:
    """Elapsed, (n,) seconds, nan where it is not said, and where it is not a time."""
    elapsed = text.get("elapsedraw") or text.get("elapsed")
    if elapsed is None:
        return np.full(count, np.nan), np.zeros(count, bool)
    run = _each(elapsed, seconds_of)
    return run, np.isnan(run) & np.array([each not in ("", "Unknown") for each in elapsed])


def _each(texts: Sequence[str], read: Any) -> Floats:
    """What `read` makes of each text, (n,); of equal texts once."""
    known = {text: read(text) for text in set(texts)}
    return np.array([known[text] for text in texts], np.float64)


def _when(times: dict[str, Floats], run: Floats, text: Texts, state: Sequence[str], clock: Clock) -> dict[str, Floats]:
    """Submission, start, end and run time; where the clock goes back, Elapsed decides."""
    submit, start, end = times["submit"], times["start"], times.get("end")
    suspended = _each(text["suspended"], seconds_of) if "suspended" in text else np.full(len(run), np.nan)
    later = clock.fold(start)
    with np.errstate(invalid="ignore"):
        if end is not None:
            run = np.where(np.isnan(run), end - start, run)
            elapsed = run + np.nan_to_num(suspended)
            off = np.abs(end - start - elapsed)
            nearer = (off > 1) & (np.abs(end + clock.fold(end) - (start + later) - elapsed) < off)
            start = np.where((later > 0) & (nearer | (start < submit)), start + later, start)
        unassigned = np.array([each in _NO_NODES for each in text["nodelist"]]) if "nodelist" in text else False
        going = np.array([each in UNFINISHED for each in state])
        ended = start + run if end is None else np.where(np.isnan(end), np.nan, start + run)
        start = np.where(unassigned & ~(run > 0), np.nan, start)
    return {"submit": submit, "start": start, "end": np.where(going, np.nan, ended), "run": run, "suspended": suspended}


def _sizes(text: Texts, count: int) -> dict[str, Floats]:
    """Allocated nodes, cores and GPUs."""
    nothing = np.full(count, np.nan)
    allocated = text.get("alloctres")
    sizes = {}
    for name, columns, resource in _COUNTS:
        said = next((_each(text[column], whole_count) for column in columns if column in text), nothing)
        listed = nothing if allocated is None else _each(allocated, partial(_count, resource))
        sizes[name] = np.where(said >= 1, said, listed)
    gpus = nothing if allocated is None else _each(allocated, lambda each: gpus_of(tres(each)))
    return {**sizes, "gpus": gpus}


def _count(resource: str, text: str) -> float:
    return whole_count(tres(text).get(resource, ""))


def _asked(text: Texts) -> dict[str, Any]:
    """What was asked for, and names; sacct's nodes where there are some."""
    columns: dict[str, Any] = {
        name: text[name] for name in ("user", "account", "group", "partition", "qos", "dependency") if name in text
    }
    if "timelimitraw" in text:
        columns["walltime"] = 60.0 * _each(text["timelimitraw"], lambda each: whole_count(each))
    elif "timelimit" in text:
        columns["walltime"] = _each(text["timelimit"], lambda each: math.nan if each in _NO_LIMIT else seconds_of(each))
    if "reqmem" in text:
        columns["asked_memory"] = _memory(text)
    if "nodelist" in text:
        columns["node_list"] = ["" if each in _NO_NODES else each for each in text["nodelist"]]
    return columns


def _memory(text: Texts) -> Floats:
    """Memory that was asked for in all, (n,) MB: ReqMem may be that of a core (``c``) or of a node (``n``)."""
    amounts = _each(text["reqmem"], megabytes)
    for end, columns in (("c", ("ncpus", "alloccpus")), ("n", ("nnodes", "allocnodes"))):
        of_each = np.array([each.endswith(end) for each in text["reqmem"]])
        counts = next((_each(text[column], whole_count) for column in columns if column in text), None)
        if counts is not None:
            amounts = np.where(of_each, amounts * counts, amounts)
    return amounts
