"""The workload of topology-aware allocation by neural simulated annealing, for a pruned fat-tree of 1,000 nodes.

100,000 jobs with 1 to 40 nodes and run times of 10 to 1,800 s; as in the authors' published generator both are
uniform whole numbers, and a job comes 5 to 30 whole seconds after the one before, uniform too.
"""

import numpy as np

from decision.model.workload import Workload

from ..jobs import workload_of

JOBS, HOSTS = 100_000, 1000
NODES = (1, 40)
SECONDS = (10, 1800)
GAP = (5, 30)  # seconds


def topology_workload(rng: np.random.Generator, nb_jobs: int = JOBS) -> Workload:
    """Jobs without walltimes."""
    submit = np.cumsum(rng.integers(*GAP, nb_jobs, endpoint=True)).astype(np.float64)
    runtimes = rng.integers(*SECONDS, nb_jobs, endpoint=True).astype(np.float64)
    return workload_of(submit, rng.integers(*NODES, nb_jobs, endpoint=True), runtimes, HOSTS)
