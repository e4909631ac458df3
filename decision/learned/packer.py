"""Packer: list scheduling as of `ranking`, whose numbers are learned for utilization.

It answers the same questions about the same numbers: which job is next, whether hosts are kept for one that does not
fit, and which that fits is held back. Learning begins with the largest area first and EASY, which is the best of what
needs no learning; and utilization is to the end of the last job, so that what is left for last counts. Small jobs wait
for large ones, some for long: the option ``guard=auto`` bounds that.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.model.workload import Workload

from .base import Episodes, Measured, ParametricScheduler
from .ranking import RANKING_WEIGHTS, SEES, RankingPolicy, random_units, smallest_area_first
from .ranking_kernels import ORDER, RESERVE
from .registry import register
from .window import Count

_UNITS_SPREAD = 0.3


def largest_area_first() -> NDArray[np.float64]:
    """(3, P) weights: LAF with EASY; units do nothing."""
    weights = smallest_area_first()
    weights[ORDER] *= -1.0
    weights[RESERVE, 0] = 1.0
    return weights


class PackerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The schedules that packers are judged by."""

    jobs: Count = 1000  # of a sequence; no others come


class Packer(ParametricScheduler):
    """List scheduling whose order, reservations and restraint are learned for utilization to the last end."""

    name = "packer"
    summary = "list scheduling for utilization: functions that are learned answer which job is next, and which waits"
    Settings = PackerSettings
    presets = ("packer",)
    sees = {**SEES, "name": "packer"}
    weights = RANKING_WEIGHTS
    model_summary = (
        "order, reservations and restraint learned for utilization; for any number of hosts; keeps one job waiting 19 "
        "times as long as EASY on CTC, with guard=1.5x at most 1.45 times"
    )
    for_utilization = True  # gates ask for little idle room, not for short waits

    def episodes(self, settings: PackerSettings, workload: Workload) -> Episodes:
        """Sequences of jobs after which none come."""
        return Episodes(jobs=min(settings.jobs, len(workload.jobs)), online=False)

    def first_weights(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """LAF with EASY, and units that do nothing yet."""
        return largest_area_first() + random_units(rng, _UNITS_SPREAD)

    def policy(self, weights: NDArray[np.float64], name: str = "packer") -> RankingPolicy:
        """The policy that the weights make."""
        return RankingPolicy(weights, name)

    def cost(self, settings: PackerSettings, own: Measured, references: Sequence[Measured], done: float) -> float:
        """Minus the mean utilization."""
        return -float(own["packed_utilization"].mean())


register(Packer())
