"""A run's jobs as a frame, and metrics of one's own: functions of that frame and of the number of hosts."""

import math
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from decision.model.columns import Column
from decision.model.errors import ConfigError, DecisionError
from decision.model.record import FinalState, Floats, JobTable
from decision.policies.loading import find_class, in_words
from decision.policies.traits import read_spec

from . import metrics as m
from .metric_list import METRICS, OWN, Metric
from .tasks import file_digest
from .whole import LogPart
from .worth import join_parts

OwnFunction = Callable[[Any, int], float]


class JobResults(JobTable, kw_only=True):
    """A `JobTable` with what `decision.experiments.metrics` makes of it; nan where a job was rejected."""

    finish_time: Floats  # seconds
    waiting_time: Floats  # seconds, from the submission to the start
    turnaround_time: Floats  # seconds, from the submission to the end
    stretch: Floats  # turnaround time over run time, as in Batsim's ``out_jobs.csv``
    bounded_slowdown: Floats  # runtimes under 10 s count as 10 s


def job_results(jobs: JobTable) -> JobResults:
    """The jobs, with their times and slowdowns."""
    known = {name: getattr(jobs, name) for name in jobs.__struct_fields__}
    known["energy"] = np.where(jobs.energy < 0, math.nan, jobs.energy)
    return JobResults(
        **known,
        finish_time=jobs.start_time + jobs.runtime,
        waiting_time=m.waiting_times(jobs),
        turnaround_time=m.turnaround_times(jobs),
        stretch=m.slowdowns(jobs),
        bounded_slowdown=m.bounded_slowdowns(jobs),
    )


def jobs_table(jobs: JobTable) -> Any:
    """The same as a pandas DataFrame, final states by name; without pandas `JobResults`."""
    found = job_results(jobs)
    if find_spec("pandas") is None:
        return found
    import pandas

    table = msgspec.structs.asdict(found)
    columns = {name: list(column) if isinstance(column, Column) else column for name, column in table.items()}
    return pandas.DataFrame(columns | {"final_state": [FinalState(state).name for state in columns["final_state"]]})


class OwnMetric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric of one's own, as runs take it: by where it is, or the function itself."""

    name: str  # in tables: the function's
    place: str  # ``./mine.py:f`` or ``module:f``; empty where it is a function of this process
    function: Any = None  # the function, where it has no place

    def definition(self) -> list[str]:
        """What results of this metric depend on, as text."""
        file = read_spec(self.place).file if self.place else None
        return [self.name, self.place, file_digest(file) if file else str(id(self.function))]

    def of_run(self, table: JobTable, hosts: int) -> float:
        """Of all jobs that ran. Raises DecisionError if it fails or gives no number."""
        return self._of(m.only_ran(join_parts(table)), hosts)

    def of_part(self, table: JobTable, part: LogPart, hosts: int) -> tuple[float, list[float]]:
        """Of the jobs of a whole log that count, and without those of each block of time; none where it has one."""
        jobs = m.only_ran(join_parts(table))
        counted = jobs.take(part.rows(jobs.submit_time))
        if part.blocks == 1:
            return self._of(counted, hosts), []
        block = part.block_of(counted.submit_time)
        without = [self._of(counted.take(np.flatnonzero(block != each)), hosts) for each in range(part.blocks)]
        return self._of(counted, hosts), without if np.isfinite(without).all() else []

    def _of(self, jobs: JobTable, hosts: int) -> float:
        function = self.function or _loaded(self.place)
        try:
            return float(function(jobs_table(jobs), hosts))
        except DecisionError:
            raise
        except Exception as error:
            raise ConfigError(f"metric {self.name}: it failed: {in_words(error)}", field="metrics") from error


@lru_cache(maxsize=64)
def _loaded(place: str) -> OwnFunction:
    found = find_class(place, "metric", "")
    if not callable(found):
        raise ConfigError(f"metric {place}: that is no function but {found!r}", field="metrics")
    function: OwnFunction = found
    return function


def own_metric(given: str | OwnFunction) -> OwnMetric:
    """A metric of one's own, which results of this process know by its name from now on.

    The function's docstring says in a line what it is; its attributes ``unit`` (``"s"``), ``better`` (``"lower"``, the
    default, or ``"higher"``), ``least`` and ``most`` say the rest.

    Raises:
        ConfigError: if it is no function, or has the name of a metric that there is.
    """
    function = _loaded(given) if isinstance(given, str) else given
    name = getattr(function, "__name__", type(function).__name__)
    better = getattr(function, "better", "lower")
    if name in METRICS:
        raise ConfigError(f"metric {name}: there is one of this name; call the function otherwise", field="metrics")
    if not name.isidentifier():
        raise ConfigError("metrics: a lambda has no name for tables; write a function with def", field="metrics")
    if better not in ("lower", "higher"):
        raise ConfigError(f"metric {name}: better must be 'lower' or 'higher'; found {better!r}", field="metrics")
    OWN[name] = Metric(
        name,
        str(getattr(function, "unit", "")),
        "higher" if better == "higher" else "lower",
        " ".join((getattr(function, "__doc__", None) or "of your own").partition("\n\n")[0].split()).rstrip("."),
        float(getattr(function, "least", -math.inf)),
        float(getattr(function, "most", math.inf)),
    )
    if isinstance(given, str):
        file, _, attribute = given.rpartition(":")  # the same place for processes that work in another folder
        place = f"{Path(file).resolve()}:{attribute}" if file.endswith(".py") else given
        return OwnMetric(name=name, place=place)
    return OwnMetric(name=name, place="", function=given)
