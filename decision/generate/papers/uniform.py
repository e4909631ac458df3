"""Two workloads of uniform draws: a green datacenter, and topology-aware allocation on a fat-tree.

Launchpad (Venkataswamy, Grigsby, Grimshaw and Qi) is the green datacenter.

Jobs arrive as a Poisson process at a rate in percent of what the resources can do (120 % in the paper), need a number
of resources and of time steps, are worth something, and come with a quality of service (QoS) in percent: a job must
be finished before its duration divided by that share has passed since its submission.

The paper names these fields and the rate; it does not publish distributions. Here resources, steps and values per
resource and step are uniform whole numbers, the QoS is one of six percentages, and a step lasts a minute. Jobs
arrive at the beginning of a step.

Topology-aware allocation by neural simulated annealing is for a pruned fat-tree of 1,000 nodes: 100,000 jobs with 1 to
40 nodes and run times of 10 to 1,800 s. As in the authors' published generator both are uniform whole numbers, and a
job comes 5 to 30 whole seconds after the one before, uniform too.
"""

import msgspec
import numpy as np

from decision.model.workload import Workload

from ..jobs import workload_of

_QOS = (50, 60, 70, 80, 90, 100)  # percent


class GreenModel(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of the model."""

    hosts: int = 10  # resources of the datacenter
    rate: float = 1.2  # host-seconds that arrive per host-second that there is
    most_hosts: int = 5  # of a job
    most_steps: int = 10  # of a job
    most_value: int = 10  # of a job, per resource and step
    step: float = 60.0  # seconds
    price_by_qos: bool = False  # whether the value per host and step grows with the QoS; else it is drawn


def green_workload(rng: np.random.Generator, nb_jobs: int, model: GreenModel) -> Workload:
    """Jobs with `value`, `qos` (percent), `deadline` and `expected` (seconds): the run time, a step below the walltime.

    Batsim stops a job that is not shorter than its walltime, so an exact one would stop all of them.
    """
    sizes = rng.integers(1, model.most_hosts + 1, nb_jobs)
    steps = rng.integers(1, model.most_steps + 1, nb_jobs)
    prices = rng.integers(1, model.most_value + 1, nb_jobs).astype(np.float64)
    qos = rng.choice(_QOS, nb_jobs)
    if model.price_by_qos:  # from 1 for the least to most_value for the highest
        prices = 1 + (model.most_value - 1) * (qos - _QOS[0]) / (_QOS[-1] - _QOS[0])
    values = sizes * steps * prices
    mean_area = (1 + model.most_hosts) / 2 * (1 + model.most_steps) / 2  # host-steps
    gaps = rng.exponential(mean_area / (model.rate * model.hosts), nb_jobs)  # steps
    submit = (np.floor(np.cumsum(gaps)) * model.step).astype(np.float64)
    runtimes = (steps * model.step).astype(np.float64)
    deadlines = submit + runtimes / (qos / 100)
    worth = np.column_stack([values, qos, deadlines, runtimes])
    return workload_of(submit, sizes, runtimes, model.hosts, walltimes=runtimes + model.step, worth=worth)


_FAT_TREE_JOBS, _FAT_TREE_HOSTS = 100_000, 1000
_NODES = (1, 40)
_SECONDS = (10, 1800)
_GAP = (5, 30)  # seconds


def topology_workload(rng: np.random.Generator, nb_jobs: int = _FAT_TREE_JOBS) -> Workload:
    """Jobs without walltimes."""
    submit = np.cumsum(rng.integers(*_GAP, nb_jobs, endpoint=True)).astype(np.float64)
    runtimes = rng.integers(*_SECONDS, nb_jobs, endpoint=True).astype(np.float64)
    return workload_of(submit, rng.integers(*_NODES, nb_jobs, endpoint=True), runtimes, _FAT_TREE_HOSTS)
