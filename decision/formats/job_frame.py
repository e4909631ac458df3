"""Jobs of a pandas DataFrame, as the result of a run has them, as a workload."""

import math
import sys
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from decision.model.column import Labelled, labelled
from decision.model.columns import DelayProfiles, JobColumns
from decision.model.errors import ConfigError
from decision.model.record import Floats
from decision.model.workload import Workload

if TYPE_CHECKING:
    from pandas import DataFrame

_NEEDED = ("submit_time", "size", "runtime")
_UNITS = {"size": ", of hosts", **dict.fromkeys(("submit_time", "runtime", "walltime"), ", in seconds")}
_LIMITS = {"submit_time": 0.0, "size": 1.0, "runtime": 0.0, "walltime": 0.0}  # what no number may be below


def is_frame(value: Any) -> "TypeGuard[DataFrame]":
    """Whether it is a pandas DataFrame; pandas is not imported for that."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.DataFrame)


def frame_workload(frame: "DataFrame", name: str = "w0") -> Workload:
    """The workload of a table with a row per job.

    Args:
        frame: columns ``submit_time``, ``runtime`` (seconds) and ``size`` (hosts); ``id``, ``walltime`` (seconds) and
            ``user`` if there are any. Without ids jobs are counted from 1; a walltime that is nan or inf is none.
            Others are left out.
        name: the workload's, the part of job ids before ``!``.

    Raises:
        ConfigError: naming the column and the row.
    """
    absent = [column for column in _NEEDED if column not in frame.columns]
    if absent:
        there = ", ".join(map(str, frame.columns)) or "none"
        raise ConfigError(f"workload: a table of jobs needs the column {absent[0]} (it has {there})", field="workload")
    if not len(frame):
        raise ConfigError("workload: the table has no jobs", field="workload")
    submit, size, runtime = (_numbers(frame, column) for column in _NEEDED)
    walltime = _numbers(frame, "walltime") if "walltime" in frame.columns else np.full(len(frame), math.inf)
    durations, which = np.unique(runtime, return_inverse=True)
    names = [f"{seconds:.17g}" for seconds in durations.tolist()]
    return Workload(
        name=name,
        jobs=JobColumns(
            id=Labelled(_ids(frame, name), np.arange(len(frame))),
            submit_time=submit,
            size=size.astype(np.int32),
            walltime=walltime,
            profile=Labelled(names, which),
            user=labelled([str(user) for user in frame["user"]] if "user" in frame.columns else [""] * len(frame)),
        ),
        profiles=DelayProfiles(names, durations),
        nb_res=int(size.max()),
    )


def _numbers(frame: "DataFrame", column: str) -> Floats:
    try:
        if frame[column].dtype.kind in "mM":  # numpy would count nanoseconds
            raise TypeError
        numbers = frame[column].to_numpy(np.float64, na_value=math.nan).copy()
    except (TypeError, ValueError):
        raise ConfigError(
            f"workload: column {column} must have numbers only{_UNITS[column]}", field="workload"
        ) from None
    if column == "walltime":
        numbers[np.isnan(numbers)] = math.inf
    wrong = ~(numbers >= _LIMITS[column]) | (np.isinf(numbers) & (column != "walltime"))
    if column in ("runtime", "walltime"):
        wrong |= numbers == 0
    if column == "size":
        wrong |= (numbers % 1 != 0) | (numbers > np.iinfo(np.int32).max)
    for row in np.flatnonzero(wrong)[:1].tolist():
        wanted = (
            "a whole number, at least 1" if column == "size" else "at least 0" if column == _NEEDED[0] else "above 0"
        )
        where = f"row {row} (counted from 0), column {column}"
        raise ConfigError(f"workload: {where}: must be {wanted}; found {numbers[row]:g}", field="workload")
    return numbers


def _ids(frame: "DataFrame", name: str) -> list[str]:
    """The jobs' ids in this workload; a workload's name that they begin with is replaced."""
    given = frame["id"] if "id" in frame.columns else range(1, len(frame) + 1)
    ids = [f"{name}!{str(each).rpartition('!')[2]}" for each in given]
    if len(set(ids)) < len(ids):
        raise ConfigError("workload: two jobs have the same id", field="workload")
    return ids
