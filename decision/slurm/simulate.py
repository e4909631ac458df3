"""One run of the model over a log."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from decision.compiling.bundle import F8, I8
from decision.model.errors import InternalError

from .build import build_world
from .case import Case
from .initial_state import zero_of
from .kernels import replay
from .parameters import Settings

_AFTER = 400 * 86_400  # seconds after the last submission at which a run ends in any case


class Simulated(NamedTuple):
    """What became of the jobs, in the order of the case."""

    start: F8  # (J,) seconds since 1970 of the last run, nan where a job never ran
    submit: F8  # (J,) seconds since 1970, of the last run
    reason: I8  # (J,) who started it
    requeues: I8  # (J,)
    tested: int  # jobs tested by backfill
    cycles: int

    @property
    def wait(self) -> F8:
        """(J,) seconds."""
        return self.start - self.submit


def simulate_case(
    case: Case, settings: Settings, cycles: Sequence[int] = (), priorities: F8 | None = None
) -> Simulated:
    """Run the log with its recorded run times.

    Args:
        case: the cluster and its jobs.
        settings: the parameters.
        cycles: seconds since 1970 at which backfill begins; none: as bf_interval says.
        priorities: (J,) that the jobs have instead of computed ones.
    """
    world = build_world(case, settings, cycles)
    if priorities is not None:
        world.entry_base[:] = priorities[world.entry_job]
        world.ages = 0
    begin = zero_of(case)
    last = max(job.submitted for job in case.jobs) - begin
    replay.run_log(world, last + _AFTER)
    counters = (number for name, number in world.arrays().items() if name.startswith("nb_") and not number.ndim)
    if min(counters) < 0:
        raise InternalError("a counter of the model of Slurm is negative")
    return Simulated(
        start=np.where(world.start >= 0, world.start + float(begin), np.nan),
        submit=(world.submit + begin).astype(np.float64),
        reason=world.reason.copy(),
        requeues=world.requeues.copy(),
        tested=int(world.nb_tested),
        cycles=int(world.nb_cycles),
    )
