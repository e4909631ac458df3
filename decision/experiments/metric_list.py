"""The metrics by name: what each is, its unit, which way is better; and the figures of a run's summary."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from decision.model.errors import ConfigError
from decision.model.hosts import nearest
from decision.model.platform import FatTree, Flat, Platform
from decision.model.record import SHORTEST_RUNTIME, Context, FinalState, Floats, JobTable, RunRecord, lost_work
from decision.model.table import Table

from . import metrics as m
from .energy import EnergySplit, count_switches, emitted, paid, peak_power, split_energy, waste_bound
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


class Metric(NamedTuple):
    """One line of the catalogue."""

    name: str
    unit: str
    better: Literal["lower", "higher"]
    summary: str
    least: float = 0.0  # that it can be
    most: float = math.inf


_SECONDS, _JOULES = "s", "J"
_BOUNDED = f"mean bounded slowdown; runtimes under {SHORTEST_RUNTIME:g} s count as that"
METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("bounded_slowdown", "", "lower", _BOUNDED, least=1.0),
        Metric("slowdown", "", "lower", "mean slowdown, without a bound", least=1.0),
        Metric("per_processor_slowdown", "", "lower", "mean per-processor slowdown", least=1.0),
        Metric("wait", _SECONDS, "lower", "mean waiting time"),
        Metric("p95_wait", _SECONDS, "lower", "95th percentile of the waiting times"),
        Metric("p99_wait", _SECONDS, "lower", "99th percentile of the waiting times"),
        Metric("max_wait", _SECONDS, "lower", "longest waiting time"),
        Metric("late_starts", "jobs", "lower", "jobs that began after the last arrival"),
        Metric("turnaround", _SECONDS, "lower", "mean turnaround time"),
        Metric("makespan", _SECONDS, "lower", "first submission to last end (Batsim 5's makespan)"),
        Metric("end", _SECONDS, "lower", "last end since the simulation began (Batsim 3 and 4's makespan)"),
        Metric("utilization", "", "higher", "share of host time in use between first submission and last end", most=1),
        Metric(
            "arrival_utilization", "", "higher", "share of host time in use from the first to the last arrival", most=1
        ),
        Metric("queue_length", "jobs", "lower", "waiting jobs, time average"),
        Metric("job_load", "host-seconds", "lower", "size x walltime of waiting jobs, time average"),
        Metric("throughput", "jobs/h", "higher", "jobs that ran per hour"),
        Metric("fairness", "", "higher", "Jain's index of users' mean bounded slowdowns", most=1),
        Metric("hops", "hops", "lower", "mean communication-hop cost of a job, where the topology is known"),
        Metric("wait_over_walltime", "", "lower", "mean of waiting time over walltime (batsim-py's stretch)"),
        Metric("stretch", "", "lower", "mean run time of a job over its recorded one, without communication"),
        Metric("energy", _JOULES, "lower", "energy of all hosts"),
        Metric("carbon", "g", "lower", "what the energy emitted, where events say a carbon intensity"),
        Metric("cost", "", "lower", "what the energy cost, where events say a price", least=-math.inf),
        Metric("peak_power", "W", "lower", "the most that all hosts drew at a time"),
        Metric("idle_energy", _JOULES, "lower", "energy of idle hosts"),
        Metric("switching_energy", _JOULES, "lower", "energy of hosts that fall asleep or wake up"),
        Metric("energy_waste", _JOULES, "lower", "idle + switching energy"),
        Metric("waste_bound", _JOULES, "lower", "least waste of any shutdown with the same starts, known before"),
        Metric("switches", "", "lower", "hosts, or servers of several hosts, asked to change pstate"),
        Metric(
            "prediction_error", _SECONDS, "lower", "mean distance of expected from real run times, with estimate=..."
        ),
        Metric("underpredicted", "", "lower", "share of jobs that ran for longer than expected, with estimate=..."),
        Metric("corrections", "", "lower", "predictions that ran out and were corrected, with estimate=..."),
        Metric(
            "broken", "jobs", "lower", "heads of EASY's queue that began later than first promised, with estimate=..."
        ),
        Metric("rejected", "jobs", "lower", "jobs that were turned away"),
        Metric("value", "", "higher", "value of the jobs that ended, where jobs have values"),
        Metric("value_share", "", "higher", "the same as a share of the value that was submitted", most=1),
        Metric("violations", "jobs", "lower", "jobs that did not end by their deadline, where jobs have deadlines"),
        Metric("lost_work", "host-seconds", "lower", "work done in vain, of jobs that were cut, killed or begun again"),
        Metric("grid", "host-seconds", "lower", "computing beyond supply and battery, where power has a limit"),
    )
}


OWN: dict[str, Metric] = {}  # metrics of users' own by name, which `decision.experiments.own_metrics` adds


def metric_named(name: str) -> Metric:
    """The metric of a name that results have; one of a user's own may be known to another process alone."""
    return METRICS.get(name) or OWN.get(name) or Metric(name, "", "lower", "a user's own", -math.inf)


_DEFINED_IN: dict[str, object] = {
    "bounded_slowdown": m.bounded_slowdowns,
    "slowdown": m.slowdowns,
    "per_processor_slowdown": m.per_processor_slowdowns,
    "wait": m.waiting_times,
    "p95_wait": m.waiting_times,
    "p99_wait": m.waiting_times,
    "max_wait": m.waiting_times,
    "late_starts": m.late_starts,
    "turnaround": m.turnaround_times,
    "makespan": m.makespan_from_submission,
    "end": m.makespan,
    "utilization": m.utilization,
    "arrival_utilization": m.arrival_utilization,
    "queue_length": m.mean_queue_length,
    "job_load": m.mean_job_load,
    "throughput": m.throughput,
    "fairness": m.fairness,
    "hops": m.communication_hops,
    "wait_over_walltime": m.waits_over_walltime,
    "stretch": m.stretches,
    "prediction_error": m.prediction_errors,
    "underpredicted": m.underpredicted,
    "broken": m.broken_promises,
    "value": total_value,
    "value_share": value_share,
    "violations": missed_deadlines,
    "lost_work": lost_work,
    "grid": grid_time,
    "energy": EnergySplit,
    "carbon": emitted,
    "cost": paid,
    "peak_power": peak_power,
    "idle_energy": EnergySplit,
    "switching_energy": EnergySplit,
    "energy_waste": EnergySplit.waste,
    "waste_bound": waste_bound,
}


def definition(name: str) -> str:
    """A metric's definition, in `symbols`: the docstring of what computes it; empty where its summary says all."""
    return (_DEFINED_IN[name].__doc__ or "") if name in _DEFINED_IN else ""


def symbols() -> str:
    """What the letters in definitions stand for."""
    return (m.__doc__ or "").partition("\n\n")[2]


RENAMED = {  # names of the previous release, which are still taken: those of Batsim's files, and of summaries
    "mean_waiting_time": "wait",
    "p95_waiting_time": "p95_wait",
    "p99_waiting_time": "p99_wait",
    "max_waiting_time": "max_wait",
    "mean_bounded_slowdown": "bounded_slowdown",
    "waste": "energy_waste",
}


def find_metric(name: str) -> Metric:
    """The metric of this name, or of its name in the previous release, or the user's own in this process.

    Raises:
        ConfigError: if it is unknown.
    """
    name = RENAMED.get(name, name)
    found = METRICS.get(name) or OWN.get(name)
    if found is None:
        known = ", ".join(METRICS)
        raise ConfigError(f"unknown metric {name!r}{nearest(name, METRICS)} (known are {known})", field="metrics")
    return found


def measure_run(
    record: RunRecord,
    platform: Platform,
    users: Mapping[str, str],
    recorded: Mapping[str, float] | None = None,
    begin: float | None = None,
) -> dict[str, float]:
    """All metrics of a run by name; nan where they have no value.

    Args:
        record: the run.
        platform: its hosts.
        users: who submitted each job, by id; may be incomplete.
        recorded: run time that each job was recorded with, by id, in seconds; may be incomplete.
        begin: when energy begins to count, seconds, as of `split_energy`.
    """
    jobs, split = join_parts(record.jobs), split_energy(record, platform, begin)
    predicted = dict.fromkeys(("prediction_error", "underpredicted", "corrections", "broken"), math.nan)
    if record.predictions is not None:
        rows = np.flatnonzero(record.jobs.final_state != FinalState.REJECTED)
        ran, predictions = record.jobs.take(rows), record.predictions.take(rows)
        predicted = {
            "prediction_error": m.mean(m.prediction_errors(ran, predictions)),
            "underpredicted": m.underpredicted(ran, predictions),
            "corrections": float(predictions.corrections.sum()),
            "broken": m.broken_promises(ran, predictions),
        }
    return {
        **_of_jobs(record, platform, users, recorded or {}),
        "value": total_value(jobs, record.worth),
        "value_share": value_share(jobs, record.worth),
        "violations": missed_deadlines(jobs, record.worth),
        "grid": grid_time(m.only_ran(record.jobs), record.supply, record.battery),
        **predicted,
        "energy": split.total,
        "carbon": emitted(record),
        "cost": paid(record),
        "peak_power": peak_power(record),
        "idle_energy": split.idle,
        "switching_energy": split.switching,
        "energy_waste": split.waste,
        "waste_bound": waste_bound(record, platform, begin),
        "switches": count_switches(record, platform, begin),
    }


def _of_jobs(
    record: RunRecord, platform: Platform, users: Mapping[str, str], recorded: Mapping[str, float]
) -> dict[str, float]:
    submitted = join_parts(record.jobs)
    jobs = m.only_ran(submitted)
    jobs = replace(jobs, id=list(jobs.id))  # several metrics look jobs up: ids are made once
    return {
        "bounded_slowdown": m.mean(m.bounded_slowdowns(jobs)),
        "slowdown": m.mean(m.slowdowns(jobs)),
        "per_processor_slowdown": m.mean(m.per_processor_slowdowns(jobs)),
        "wait": m.mean(m.waiting_times(jobs)),
        "p95_wait": m.percentile(m.waiting_times(jobs), 95),
        "p99_wait": m.percentile(m.waiting_times(jobs), 99),
        "max_wait": m.largest(m.waiting_times(jobs)),
        "late_starts": float(m.late_starts(jobs)),
        "turnaround": m.mean(m.turnaround_times(jobs)),
        "makespan": m.makespan_from_submission(jobs),
        "end": m.makespan(jobs),
        "utilization": m.utilization(jobs, len(platform.hosts)),
        "arrival_utilization": m.arrival_utilization(jobs, len(platform.hosts)),
        "queue_length": m.mean_queue_length(jobs),
        "job_load": m.mean_job_load(jobs),
        "throughput": m.throughput(jobs),
        "fairness": m.fairness(jobs, users),
        "hops": m.mean(_hops_metric(jobs, platform)) if platform.topology and any(jobs.allocation[:1]) else math.nan,
        "wait_over_walltime": m.mean(m.waits_over_walltime(jobs)),
        "stretch": m.mean(m.stretches(jobs, recorded)),
        "lost_work": record.lost_work,
        "rejected": float(len(submitted.id) - len(jobs.id)),
    }


def _hops_metric(jobs: JobTable, platform: Platform) -> Floats:
    if isinstance(platform.topology, Flat):
        return np.asarray((jobs.size - 1.0) * platform.topology.distance(0, 1), np.float64)
    if not isinstance(platform.topology, FatTree):
        return m.communication_hops(jobs, platform.distance)
    places = np.array(platform.places) if platform.places else np.arange(len(platform.hosts))
    return m.tree_hops(jobs, platform.topology.down, places)


# What a schedule comes to: the figures of ``decision run``'s table.


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
        """The names of all figures, in the order of the table."""
        return self.__struct_fields__

    def values(self) -> tuple[float, ...]:
        """The figures, in the order of the names."""
        return tuple(getattr(self, name) for name in self.__struct_fields__)

    def items(self) -> list[tuple[str, float]]:
        """The names of all figures with their values."""
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
        return Table(caption, ("", "", ""), self._rows()).html()

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
    waits = waiting_times(ran)
    return Summary(
        jobs=len(ran.id),
        rejected=len(jobs.id) - len(ran.id),
        makespan=makespan_from_submission(ran),
        wait=mean(waits),
        p95_wait=percentile(waits, 95),
        p99_wait=percentile(waits, 99),
        max_wait=largest(waits),
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
