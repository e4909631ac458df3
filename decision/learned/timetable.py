"""Timetable: which jobs get the hosts of each step to come, by value, deadline and what power is expected.

A job is worth something only if it ends in time, and it may be suspended and go on later. So at each decision all jobs,
those that run and those that wait, are laid into a timetable of the steps of the forecast, from the highest score on:
each needs as many steps before its deadline as it still runs, in which there is power for its hosts, and takes the last
ones that there are; one that finds too few is left out. A second score is the logarithm of what a host-second of a job
is worth now: it is higher for jobs that are in the timetable, and for those of them that need the present step. Those
run that are worth most together (a knapsack, solved exactly, of the jobs with the highest scores). Jobs that run and
are not among them are suspended where others need their hosts, which start in the next decision, at the same instant.

The first score is linear in a few numbers of a job, the second has a few units a / (1 + |a|) (softsign) more; how far
forecasts are trusted is learned, too. Learning begins with the value per host-second left as both: `first_weights`.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.model.workload import Workload
from decision.policies.prepared import CompiledPolicy
from decision.state.cluster import ClusterState, nb_hosts

from .base import Episodes, Measured, ParametricScheduler, jobs_in_a_row
from .registry import register
from .timetable_kernels import (
    MOST_TABLE_JOBS,
    NB_TABLE_SEEN,
    NB_TABLE_UNIT,
    NB_TABLE_UNITS,
    NB_TABLE_WEIGHTS,
    TABLE_STEPS,
    TableNumber,
    TableWeight,
    TimetableMemory,
    decide_by_timetable,
)
from .window import Count

# --- The record ----------------------------------------------------------------------------------------------------


class TimetablePolicy(CompiledPolicy):
    """Schedules by a timetable.

    Args:
        weights: (NB_TABLE_WEIGHTS,)
        name: for messages.
    """

    entry = decide_by_timetable
    suspends = True
    needs_value = True

    def __init__(self, weights: NDArray[np.float64], name: str = "timetable") -> None:
        self.weights, self.name = np.ascontiguousarray(weights, np.float64), name

    def memory_for(self, state: ClusterState, memory: TimetableMemory | None = None) -> TimetableMemory:
        """`memory` with room for every job of `state`."""
        jobs = len(state.size)
        if memory is not None and len(memory.key) >= jobs:
            return memory
        return TimetableMemory(
            weights=self.weights,
            since=-np.inf if memory is None else memory.since,
            power=np.zeros(TABLE_STEPS),
            seen=np.zeros(NB_TABLE_SEEN),
            jobs=np.zeros(jobs, np.int32),
            spare=np.zeros(jobs, np.int32),
            key=np.zeros(jobs),
            second=np.zeros(jobs),
            chosen=np.zeros(jobs, np.int64),
            worth=np.zeros(nb_hosts(state) + 1),
            taken=np.zeros((MOST_TABLE_JOBS, nb_hosts(state) + 1), np.int8),
        )


class TimetableSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The schedules that timetables are judged by."""

    jobs: Count = 200  # of a sequence, under the supply of power of its time


class Timetable(ParametricScheduler):
    """Jobs laid into the steps to come by learned scores; what is minimised is minus the share of value."""

    name = "timetable"
    summary = "jobs laid into the steps to come by learned scores, and suspended, as power comes and goes"
    paper = "Venkataswamy et al. 2024"
    Settings = TimetableSettings
    presets = ("timetable",)
    curves = ("value_share", "suspensions", "utilization")
    validated = ("value_share", "violated_share")
    observation = "green"  # in whose environments schedules are made, and measured
    sees = {"name": "timetable", "version": 1}  # raised whenever a number changes its meaning
    weights = (NB_TABLE_WEIGHTS,)
    model_summary = "learned timetable of starts and suspensions under a supply of power; for jobs with values"

    def episodes(self, settings: TimetableSettings, workload: Workload) -> Episodes:
        """As many jobs in a row, from any at which so many are left."""
        return jobs_in_a_row(settings.jobs, workload)

    def first_weights(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """By the value per host-second left; units see something and do nothing yet."""
        weights = np.zeros(NB_TABLE_WEIGHTS)
        weights[TableWeight.UNITS :] = rng.standard_normal(NB_TABLE_UNITS * NB_TABLE_UNIT)
        weights[TableWeight.UNITS + NB_TABLE_UNIT - 1 :: NB_TABLE_UNIT] = 0.0
        weights[[TableNumber.DENSITY, TableWeight.SECOND + TableNumber.DENSITY]] = 1.0
        return weights

    def policy(self, weights: NDArray[np.float64], name: str = "timetable") -> TimetablePolicy:
        """The policy that the weights make."""
        return TimetablePolicy(weights, name)

    def cost(self, settings: TimetableSettings, own: Measured, references: Sequence[Measured], done: float) -> float:
        """Minus the mean share of value."""
        return -float(own["value_share"].mean())


register(Timetable())
