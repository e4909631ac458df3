"""What a schedule comes to: the figures of ``decision run``'s table."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from decision.model.html_rows import rows_html
from decision.model.names import nearest
from decision.model.record import Context, JobTable

from .metric_list import RENAMED
from .metrics import (
    SECONDS_IN_HOUR,
    arrival_utilization,
    bounded_slowdowns,
    largest,
    late_starts,
    makespan_from_submission,
    mean,
    only_ran,
    percentile,
    utilization,
    waiting_times,
)
from .worth import grid_time, join_parts, missed_deadlines, total_value, value_share


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a schedule comes to, also as a mapping: ``summary["wait"]``, ``dict(summary)``.

    Names are those of metrics, as ``decision compare --metric`` takes them; the names of the previous release, those
    of Batsim's files, still work.
    """

    jobs: int  # that ran
    rejected: int
    makespan: float  # seconds, from the first submission to the last end
    wait: float  # seconds, mean
    p95_wait: float  # seconds
    p99_wait: float  # seconds
    max_wait: float  # seconds
    bounded_slowdown: float  # mean
    late_starts: int  # jobs that began after the last arrival
    utilization: float  # in [0, 1]
    arrival_utilization: float  # in [0, 1], until the last arrival
    energy: float  # joules, nan where it was not simulated
    energy_waste: float  # joules of idle hosts and switches, nan where energy was not simulated or is not asked for
    waste_bound: float  # joules: the least of any shutdown with the same starts; nan likewise
    carbon: float  # g that the energy emitted; nan where it was not simulated, or nothing says what energy emits
    cost: float  # of the energy; nan likewise
    window_gap: float  # hops of windows above a lower bound, as a share; nan where the policy knows none
    value: float  # of the jobs that ended successfully; nan where no job has one
    value_share: float  # in [0, 1], of all that was submitted; nan likewise
    violations: float  # jobs that did not end by their deadline; nan where no job has one
    lost_work: float  # host-seconds that were done in vain; nan where that is not known
    grid: float  # host-seconds beyond the supply of power; nan without one

    def __getattr__(self, name: str) -> float:
        if name in RENAMED:
            return float(getattr(self, RENAMED[name]))
        raise AttributeError(f"a summary has no {name!r}{nearest(name, self.__struct_fields__)}")

    def keys(self) -> tuple[str, ...]:
        """The names."""
        return self.__struct_fields__

    def values(self) -> tuple[float, ...]:
        """The figures, in the order of the names."""
        return tuple(getattr(self, name) for name in self.__struct_fields__)

    def items(self) -> list[tuple[str, float]]:
        """Names and figures."""
        return list(zip(self.keys(), self.values(), strict=True))

    def get(self, name: str, default: Any = None) -> Any:
        """A figure by its name, `default` where there is no such name."""
        try:
            return self[name]
        except KeyError:
            return default

    def __getitem__(self, name: str) -> float:
        name = RENAMED.get(name, name)
        if name not in self.__struct_fields__:
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.__struct_fields__)

    def __len__(self) -> int:
        return len(self.__struct_fields__)

    def __contains__(self, name: object) -> bool:
        return name in self.__struct_fields__ or name in RENAMED

    def with_old_names(self) -> dict[str, float]:
        """The figures by their names, then those that had another name in the previous release by that one, too."""
        return {**dict(self), **{old: self[new] for old, new in RENAMED.items()}}

    def as_html(self, caption: str = "") -> str:
        """The table in HTML, as a notebook shows it."""
        return rows_html(self._rows(), caption=caption)

    def _repr_html_(self) -> str:
        return self.as_html()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.jobs:,} jobs, makespan {self.makespan:,.0f} s>"

    def _rows(self) -> list[tuple[str, str, str]]:
        """Label, number and unit of what the run has."""
        rows = []
        for name, (label, unit, scale, digits) in _PRINTED.items():
            value = getattr(self, name) * scale
            if not math.isnan(value):
                rows.append((label, f"{value:,.{digits}f}", unit))
        return rows

    def __str__(self) -> str:
        """A table of what the run has, with units."""
        rows = self._rows()
        words, numbers = (max(len(row[column]) for row in rows) for column in (0, 1))
        return "\n".join(f"{label:<{words}}  {value:>{numbers}} {unit}".rstrip() for label, value, unit in rows)


Mapping.register(Summary)

_PRINTED = {  # a field's label, unit, scale and decimals
    "jobs": ("jobs", "", 1, 0),
    "rejected": ("rejected", "", 1, 0),
    "makespan": ("makespan", "s", 1, 2),
    "wait": ("mean waiting time", "s", 1, 2),
    "p95_wait": ("95th percentile of waiting times", "s", 1, 2),
    "p99_wait": ("99th percentile of waiting times", "s", 1, 2),
    "max_wait": ("longest waiting time", "s", 1, 2),
    "bounded_slowdown": ("mean bounded slowdown", "", 1, 2),
    "late_starts": ("starts after the last arrival", "", 1, 0),
    "utilization": ("utilization", "%", 100, 1),
    "arrival_utilization": ("utilization until the last arrival", "%", 100, 1),
    "energy": ("energy", "MJ", 1e-6, 2),
    "energy_waste": ("energy waste", "MJ", 1e-6, 2),
    "waste_bound": ("least waste with these starts", "MJ", 1e-6, 2),
    "carbon": ("carbon", "kg", 1e-3, 2),
    "cost": ("cost of energy", "", 1, 2),
    "window_gap": ("gap of windows", "%", 100, 2),
    "value": ("value", "", 1, 2),
    "value_share": ("value, of submitted", "%", 100, 1),
    "violations": ("deadlines missed", "", 1, 0),
    "lost_work": ("lost work", "host-hours", 1 / SECONDS_IN_HOUR, 2),
    "grid": ("grid power", "host-hours", 1 / SECONDS_IN_HOUR, 2),
}


def summarise(
    jobs: JobTable,
    nb_hosts: int,
    joules: float = math.nan,
    window_gap: float = math.nan,
    known: Context | None = None,
    waste: tuple[float, float] = (math.nan, math.nan),
    rated: tuple[float, float] = (math.nan, math.nan),
    lost_work: float = math.nan,
) -> Summary:
    """The metrics of ``decision run``'s table on `nb_hosts` compute hosts; nan where no job ran."""
    pieces, jobs = only_ran(jobs), join_parts(jobs)
    ran, known = only_ran(jobs), known or Context()
    return Summary(
        jobs=len(ran.id),
        rejected=len(jobs.id) - len(ran.id),
        makespan=makespan_from_submission(ran),
        wait=mean(waiting_times(ran)),
        p95_wait=percentile(waiting_times(ran), 95),
        p99_wait=percentile(waiting_times(ran), 99),
        max_wait=largest(waiting_times(ran)),
        bounded_slowdown=mean(bounded_slowdowns(ran)),
        late_starts=late_starts(ran),
        utilization=utilization(ran, nb_hosts),
        arrival_utilization=arrival_utilization(ran, nb_hosts),
        energy=joules,
        energy_waste=waste[0],
        waste_bound=waste[1],
        carbon=rated[0],
        cost=rated[1],
        window_gap=window_gap,
        value=total_value(jobs, known.worth),
        value_share=value_share(jobs, known.worth),
        violations=missed_deadlines(jobs, known.worth),
        lost_work=lost_work,
        grid=grid_time(pieces, known.supply, known.battery),
    )
