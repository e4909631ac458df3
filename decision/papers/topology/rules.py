"""The simulator of Lan et al.'s published program (lzk23/hpcschedule), with its peculiarities.

The paper is "Optimization of Topology-Aware Job Allocation on a High-Performance Computing Cluster by Neural Simulated
Annealing". Its figures for FCFS and backfilling are not of the cluster and the cost that it describes, but of these:

1. There are 25 pods of 4 switches of 10 hosts, not 10 pods of 10 switches.
2. Two hosts are 1, 3 or 5 hops apart, each pair counts once, and a job's cost is rounded down
   (`decision.policies.placement.tree.program_cost`). Jobs on one host cost 1, and count in the mean.
3. FCFS and backfilling are those of `rlscheduler.rules`, from which the program's simulator comes: strict order; an
   arrival before a release of the same second; a shadow time that is computed once for each blocked job, and
   ``now + runtime < shadow``, without a rule for hosts that are left over. Run times are known.
4. A job gets the free hosts with the lowest ids.
5. Epoch e is the jobs from number 300 e on, on a cluster that is empty at first; means are rounded down.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from decision.model.errors import InputError
from decision.model.record import Ints
from decision.papers.rlscheduler.rules import JobSequence, Run, cut_sequence
from decision.policies.placement.tree import count_lowest, place_best, program_cost, square_sum

DOWN = np.array([10, 4, 25])  # hosts on a switch, switches in a pod, pods
EPOCHS, EPOCH_JOBS = 10, 300

Place = Callable[[Ints, int], Ints]  # ids of free hosts, ascending, and a number: that many of them


class Epoch(NamedTuple):
    """The means of an epoch."""

    cost: float  # thousandths of a hop
    wait: float  # seconds


def read_job_list(path: Path) -> JobSequence:
    """The authors' list, all of it: number, submission, run time and hosts of each job, in order of submission.

    Raises:
        InputError: if it cannot be read, is another one, or has too few jobs.
    """
    try:
        table = np.loadtxt(path, ndmin=2)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InputError(f"{path}: no list of jobs ({error})") from None
    if table.shape[0] < EPOCHS * EPOCH_JOBS or table.shape[1] != 4:
        raise InputError(
            f"{path}: no list of jobs; {EPOCHS * EPOCH_JOBS:,} lines of number, submission, run time and hosts are "
            f"needed, {table.shape[0]:,} of {table.shape[1]} numbers were found"
        )
    return JobSequence(table[:, 1], table[:, 2], table[:, 2], table[:, 3].astype(np.int64))


def lowest(free: Ints, size: int) -> Ints:
    """The free hosts with the lowest numbers: rule 4."""
    return free[:size]


def contiguous(free: Ints, size: int) -> Ints:
    """The lowest run of neighbours, else the lowest hosts."""
    ends = np.flatnonzero(free[size - 1 :] - free[: len(free) - size + 1] == size - 1)
    return free[ends[0] : ends[0] + size] if len(ends) else free[:size]


def best_of_tree(free: Ints, size: int) -> Ints:
    """The hosts of least cost."""
    switch = free // DOWN[0]
    taken = np.zeros(count_lowest(DOWN), np.int64)
    place_best(DOWN, np.bincount(switch, minlength=len(taken)), size, taken)
    rank = np.arange(len(free)) - np.searchsorted(switch, switch)  # among the free hosts of its switch
    return free[rank < taken[switch]]


def simulate_epoch(jobs: JobSequence, epoch: int, backfilling: bool, place: Place = lowest) -> Epoch:
    """An epoch, by the rules above but for the hosts that jobs get.

    Args:
        jobs: the whole list.
        epoch: its number, from 0 on.
        backfilling: whether other jobs may start while the first one waits.
        place: which free hosts a job gets.
    """
    own = cut_sequence(jobs, epoch * EPOCH_JOBS, EPOCH_JOBS)
    run = _PlacedRun(own, backfilling, place)
    return Epoch(float(np.mean(run.cost)), float((np.array(run.start) - own.submit).mean()))


class _PlacedRun(Run):
    def __init__(self, jobs: JobSequence, backfilling: bool, place: Place) -> None:
        hosts = int(np.prod(DOWN))
        super().__init__(jobs, "fcfs", hosts, true_waits=False)
        self.place, self.idle = place, np.ones(hosts, bool)
        self.hosts: dict[int, Ints] = {}  # of each job that runs
        self.cost = [0] * len(self.start)
        while self.fill_queue():
            self.start_first(backfilling)

    def take(self, job: int) -> None:
        super().take(job)
        hosts = self.place(np.flatnonzero(self.idle), self.size[job])
        self.idle[hosts] = False
        self.hosts[job] = hosts
        on_switch = np.bincount(hosts // DOWN[0], minlength=count_lowest(DOWN))
        self.cost[job] = program_cost(len(DOWN), self.size[job], square_sum(DOWN, on_switch))

    def give_back(self, job: int) -> None:
        super().give_back(job)
        self.idle[self.hosts.pop(job)] = True
