"""What the energy of a run emitted and cost, and the most that was drawn at a time.

Energy is counted as Batsim does, from the first submission to the last end of a job. Between the rows of its energy
table power is constant.
"""

import math

import numpy as np

from decision.model.record import EnergyTable, Floats, RateTable, RunRecord

from .metrics import only_ran

_KWH = 3.6e6  # joules
_INSTANT = 1e-3  # seconds: rows that are nearer are of one instant


def emitted(record: RunRecord) -> float:
    """``integral of P(t) * c(t)``: grams, c in g per kWh; nan without energy, or where nothing says c."""
    return _rated(record, record.carbon)


def paid(record: RunRecord) -> float:
    """``integral of P(t) * c(t)``: what energy cost, c per kWh; nan without energy, or where nothing says c."""
    return _rated(record, record.price)


def _rated(record: RunRecord, table: RateTable | None) -> float:
    """Before the table's first time its first rate holds, after its last time the last."""
    jobs = only_ran(record.jobs)
    if table is None or record.energy is None or not jobs.id:
        return math.nan
    first, last = float(record.jobs.submit_time.min()), float((jobs.start_time + jobs.runtime).max())
    inside = (table.time > first) & (table.time < last)
    edges = np.concatenate([[first], table.time[inside], [last]])
    rate = table.rate[np.maximum(np.searchsorted(table.time, edges[:-1], side="right") - 1, 0)]
    return float((np.diff(_joules(record.energy, edges)) * rate).sum() / _KWH)


def peak_power(record: RunRecord) -> float:
    """``max P(t)``: watts, of all that lasted for a millisecond; nan where energy was not simulated."""
    if record.energy is None or len(record.energy.time) < 2:
        return math.nan
    time, joules = np.asarray(record.energy.time, float), np.asarray(record.energy.energy, float)
    kept = np.append(True, np.diff(time) > _INSTANT)
    at = np.flatnonzero(kept)
    ends = np.append(at[1:] - 1, len(time) - 1)  # the last row of each instant
    seconds = time[at[1:]] - time[ends[:-1]]
    return float(((joules[at[1:]] - joules[ends[:-1]]) / seconds).max()) if len(at) > 1 else math.nan


def _joules(energy: EnergyTable, times: Floats) -> Floats:
    """Joules so far at each of the times."""
    return np.interp(times, energy.time, np.asarray(energy.energy, float), left=0.0)
