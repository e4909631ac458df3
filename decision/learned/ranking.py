"""Ranking: list scheduling whose three questions are answered by functions that are learned.

At each decision all waiting jobs are ranked and looked at from the highest. One that fits starts, unless it is held
back. For the first that does not fit and is found worth it, hosts are kept, as EASY keeps them for the first of the
queue: jobs behind it that would still run by then, on hosts that it needs, are as a rule held back.

So there are three questions to a job: how high it ranks (ORDER), whether hosts are kept for it (RESERVE), and whether
it is held back though it fits (HOLD; never on an idle cluster, nor where all that wait could start: no job waits on a
machine that is nearly idle). Each is answered by a function of the same numbers, a linear one and a few units
a / (1 + |a|) (softsign); RESERVE and HOLD say yes above 0. Any order by size and runtime with EASY or first-fit is
among them. Learning begins with `first_guess`: `smallest_area_first`, and the rule that a job which would leave few
hosts free for long waits until few others come.
"""

from collections.abc import Sequence
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.model.workload import Workload
from decision.policies.prepared import CompiledPolicy
from decision.state.cluster import ClusterState, nb_hosts

from .base import Episodes, Measured, ParametricScheduler
from .ranking_kernels import (
    HOLD,
    NB_RANK_UNIT,
    NB_RANK_UNITS,
    ORDER,
    RANK_LINEAR,
    RESERVE,
    RankingMemory,
    RankNumber,
    decide_by_rank,
    new_ranking_memory,
)
from .registry import register
from .window import Count

RANKING_WEIGHTS = (3, RANK_LINEAR + NB_RANK_UNITS * NB_RANK_UNIT)  # shape of all of them
SEES: dict[str, str | int | float] = {"name": "ranking", "version": 2}  # for checkpoints
# The version is raised whenever a number changes its meaning


def smallest_area_first() -> NDArray[np.float64]:
    """(3, P) weights: SAF, indifferent about keeping hosts, strict about those that are kept; units do nothing."""
    weights = np.zeros(RANKING_WEIGHTS)
    # as the numbers are scaled: minus the area's logarithm
    weights[ORDER, [1 + RankNumber.RUNTIME, 1 + RankNumber.SIZE]] = -5.0, -3.0
    weights[HOLD, [0, 1 + RankNumber.OVERRUN]] = -1.0, 20.0
    return weights


def first_guess() -> NDArray[np.float64]:
    """(3, P) weights: SAF, but what would block hosts for longer than the last few jobs took to come is held back.

    Jobs that run for hours had better begin when few jobs come.
    """
    weights = smallest_area_first()
    weights[HOLD, [0, 1 + RankNumber.CALM, 1 + RankNumber.BLOCKED]] = 0.0, -4.0, 4.0
    return weights


def random_units(rng: np.random.Generator, spread: float) -> NDArray[np.float64]:
    """(3, P) weights of units that see something and do nothing yet; the linear parts are 0."""
    weights = np.zeros(RANKING_WEIGHTS)
    weights[:, RANK_LINEAR:] = spread * rng.standard_normal((3, NB_RANK_UNITS * NB_RANK_UNIT))
    weights[:, RANK_LINEAR + NB_RANK_UNIT - 1 :: NB_RANK_UNIT] = 0.0
    return weights


class RankingPolicy(CompiledPolicy):
    """Schedules by ranking.

    Args:
        weights: (3, P), as `RANKING_WEIGHTS` has the shape: of ORDER, RESERVE and HOLD.
        name: for messages.
    """

    needs_walltime = True
    entry = decide_by_rank

    def __init__(self, weights: NDArray[np.float64], name: str = "ranking") -> None:
        self.weights, self.name = weights, name

    def memory_for(self, state: ClusterState, memory: RankingMemory | None = None) -> RankingMemory:
        """Nothing is remembered from one decision to the next."""
        large = memory is not None and len(memory.key) >= len(state.size)
        if memory is not None and large and len(memory.ends) >= len(state.running) + nb_hosts(state):
            return memory
        return new_ranking_memory(state, self.weights)

    def __repr__(self) -> str:
        return f"<policy {self.name}>"


# --- The record ----------------------------------------------------------------------------------------------------

_BOTH = 0.25  # of either ratio in what is minimised, besides the larger one
_UNITS_SPREAD = 0.3
_EASY, _FIRST_FIT = range(2)  # references

Weight = Annotated[float, msgspec.Meta(ge=0)]


class RankingSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The schedules that rankings are judged by."""

    jobs: Count = 1000  # of a sequence; no others come
    slowdown_first: Weight = 1.5  # weight of the bounded slowdown, the waiting time's being 1, in the first generation
    slowdown_last: Weight = 0.85  # and in the last, linear between


class Ranking(ParametricScheduler):
    """List scheduling whose order, reservations and restraint are learned.

    What is minimised is mostly the larger of two ratios to SAF's: waiting time, and bounded slowdown times a weight.
    """

    name = "ranking"
    summary = "list scheduling: functions that are learned answer which job is next, and which is held back"
    Settings = RankingSettings
    presets = ("ranking",)
    sees = {"name": "ranking", "version": 2}  # raised whenever a number changes its meaning
    weights = RANKING_WEIGHTS
    model_summary = (
        "learned order, reservations and restraint; keeps one job waiting 83 times as long as EASY on CTC, with "
        "guard=1.5x at most 1.58 times"
    )

    def episodes(self, settings: RankingSettings, workload: Workload) -> Episodes:
        """Sequences of jobs after which none come."""
        return Episodes(jobs=settings.jobs, online=False)

    def first_weights(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """SAF with restraint, and units that do nothing yet."""
        return first_guess() + random_units(rng, _UNITS_SPREAD)

    def policy(self, weights: NDArray[np.float64], name: str = "ranking") -> RankingPolicy:
        """The policy that the weights make."""
        return RankingPolicy(weights, name)

    def references(self) -> list[NDArray[np.float64]]:
        """SAF with EASY and with first-fit: a reservation is always made, or never."""
        references = [smallest_area_first(), smallest_area_first()]
        references[_EASY][RESERVE, 0], references[_FIRST_FIT][RESERVE, 0] = 1.0, -1.0
        return references

    def cost(self, settings: RankingSettings, own: Measured, references: Sequence[Measured], done: float) -> float:
        """Mostly the larger of its waiting time and weighted slowdown over the best of SAF's.

        SAF waits least with first-fit, and has the least slowdown with EASY. A sequence counts by the square root of
        what it costs SAF: else the few worst would be all that counts.
        """
        wait = _ratio(own["waiting_time"], references[_FIRST_FIT]["waiting_time"])
        slowdown = _ratio(own["bounded_slowdown"], references[_EASY]["bounded_slowdown"])
        slowdown *= (1 - done) * settings.slowdown_first + done * settings.slowdown_last
        return max(wait, slowdown) + _BOTH * (wait + slowdown)


def _ratio(own: NDArray[np.float64], reference: NDArray[np.float64]) -> float:
    """A mean of their ratios; a second is added to both, so that where nothing waits nothing is infinite."""
    own, reference = own + 1, reference + 1
    return float((own / np.sqrt(reference)).sum() / np.sqrt(reference).sum())


register(Ranking())
