"""Which jobs an episode placed, and how long each had waited."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from decision.policies.plan import START
from decision.state.cluster import N_JOBS

from .tally import PLACED, World


class PlacedJobs(NamedTuple):
    """The n jobs that an episode placed, in the order of their submission."""

    size: NDArray[np.int32]  # (n,) requested hosts
    walltime: NDArray[np.float64]  # (n,) seconds
    wait: NDArray[np.float64]  # (n,) seconds from submission to start


def placed_jobs(world: World) -> PlacedJobs:
    """Of an environment whose episode is over and no other has begun."""
    state, plan, planned = world.state, world.plan, world.plan.count[0]
    start = state.start_time[: state.count[N_JOBS]].copy()
    last = plan.job[:planned][plan.kind[:planned] == START]  # is not carried out any more, and may be of more jobs
    start[last[: world.episode.number[PLACED] - np.isfinite(start).sum()]] = state.now[0]
    placed = np.flatnonzero(np.isfinite(start))
    return PlacedJobs(state.size[placed], state.walltime[placed], start[placed] - state.submit_time[placed])
