"""How far a run is, reported in its folder and to who asked."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from decision.simulation.simulate import Progress
from decision.state.cluster import ClusterState

from .inputs import LoadedInputs, PolicyChoice
from .status import live_status

_PACE = 0.1  # seconds between two reports of how far a run is
Show = Callable[[float, int, int], None]  # called with the simulated time in seconds, the jobs done, and all jobs


@contextmanager
def watched(folder: Path, case: LoadedInputs, choice: PolicyChoice, show: Show | None) -> Iterator[Progress]:
    """Report the run's progress in its folder and to `show`."""
    jobs = sum(len(workload.jobs) for workload in case.workloads)
    with live_status(folder, choice.policy, jobs, case.platform) as report:
        last = -_PACE

        def both(now: float, state: ClusterState | None) -> None:
            nonlocal last
            if time.monotonic() - last < _PACE:
                return
            last = time.monotonic()
            report(now, state)
            if show is not None:
                show(now, 0 if state is None else _done(state), jobs)

        yield both


def _done(state: ClusterState) -> int:
    """Jobs that are over."""
    return int(state.nb_jobs - state.nb_queued - state.nb_running)
