"""The tree of accounts and users among whom shares are divided."""

import math
from collections.abc import Callable
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import F8, I8
from decision.model.dates import DAY

from .accounts import ROOT, Association
from .case import Case
from .conf import Settings
from .jobs import SlurmJob
from .nodes import Partition
from .text import read_tres

# sshare is asked when the log is made: usage that the log's own jobs left would count twice
_LIKE = 0.15  # largest difference of two distributions that are taken for one
_MORE = 1.1  # usage that a log explains is not larger than this times its own


class ShareTree(NamedTuple):
    """Nodes of the tree; the root is the first."""

    parent: I8  # (A,) -1 for the root
    norm: F8  # (A,) of the shares of its siblings and itself
    usage: F8  # (A,) billing x seconds
    path: NDArray[np.int64]  # (L, D) from below the root to each leaf, -1 behind it
    leaf: I8  # (L,)
    numbers: dict[tuple[str, str], int]

    def leaf_of(self, account: str, user: str) -> int:
        """The node of a user in an account, -1 where it is unknown."""
        return self.numbers.get((account, user), -1)


def make_tree(case: Case, settings: Settings) -> ShareTree:
    """The tree of a case; users of whom only jobs speak have one share in their account."""
    # the root, and all associations with those of jobs that nobody described
    known = {(ROOT, ""): Association(account=ROOT)}
    known |= {(each.account, each.user): each for each in case.associations}
    for job in case.jobs:
        known.setdefault((job.account, ""), Association(account=job.account))
        known.setdefault((job.account, job.user), Association(account=job.account, user=job.user))
    associations = list(known.values())
    numbers = {(each.account, each.user): number for number, each in enumerate(associations)}
    # the account of a user, the parent of an account; the root has none
    homes = [numbers.get((each.account if each.user else each.parent, ""), 0) for each in associations]
    parent = [-1, *homes[1:]]
    shares = np.array([max(0.0, each.shares) for each in associations])
    norm = np.ones(len(parent))
    # priority/multifactor: shares are divided among siblings
    for number, above in enumerate(parent):
        if above >= 0:
            total = sum(shares[k] for k, other in enumerate(parent) if other == above)
            norm[number] = shares[number] / total if total else 0.0
    usage = _usage(case, settings, associations, parent)
    leaves = [number for number, each in enumerate(associations) if each.user]
    paths = []
    for leaf in leaves:
        path = [leaf]
        # a circle of parents in an edited file would not end
        while parent[path[0]] > 0 and len(path) < len(parent):
            path.insert(0, parent[path[0]])
        paths.append(path)
    depth = max((len(path) for path in paths), default=1)
    padded = [[*path, *[-1] * (depth - len(path))] for path in paths]
    return ShareTree(
        parent=np.array(parent, np.int64),
        norm=norm,
        usage=usage,
        path=np.array(padded, np.int64).reshape(len(leaves), depth),
        leaf=np.array(leaves, np.int64),
        numbers=numbers,
    )


def _usage(case: Case, settings: Settings, associations: list[Association], parent: list[int]) -> F8:
    """Usage when the log begins, summed up the tree; none where the log's own jobs explain what sshare says."""
    recorded = np.array([each.usage if each.user else 0.0 for each in associations])
    # what the log's jobs leave of their usage when it ends
    half = settings.seconds("PriorityDecayHalfLife")
    rate = 0.5 ** (1 / half) if 0 < half < np.inf else 1.0
    end = max((job.start + job.runtime for job in case.jobs if job.started), default=0.0)
    left_of: dict[tuple[str, str], float] = {}
    for job in case.jobs:
        if job.started:
            key, left = (job.account, job.user), job.cpus_had * job.runtime
            if rate < 1:
                # each second of the job has decayed since: the integral of rate**t over its run
                since_end, since_start = end - job.start - job.runtime, end - job.start
                left = float(job.cpus_had * (rate**since_end - rate**since_start) / -np.log(rate))
            left_of[key] = left_of.get(key, 0.0) + left
    made = np.array([left_of.get((each.account, each.user), 0.0) if each.user else 0.0 for each in associations])
    if recorded.sum() > 0 and made.sum() > 0:
        apart = np.abs(recorded / recorded.sum() - made / made.sum()).sum() / 2
        if apart < _LIKE and recorded.sum() <= _MORE * made.sum():
            recorded[:] = 0.0
    total = recorded.copy()
    for number, value in enumerate(recorded):
        above = parent[number]
        while above >= 0:
            total[above] += value
            above = parent[above]
    return total


# The part of a job's priority that does not change while it waits: size, partition, QOS, resources, nice.

YEAR = 365 * DAY  # seconds that a job without limit counts as


class Factors:
    """The part of a job's priority that does not change while it waits."""

    def __init__(self, case: Case, settings: Settings) -> None:
        self._case, self._settings = case, settings
        self._flags = settings.priority_flags
        self._small = settings.text("PriorityFavorSmall").upper() == "YES"
        self._node = {node.name: node for node in case.nodes}
        self._nodes, self._cpus = len(case.nodes), sum(node.cores * node.threads for node in case.nodes)
        self._jobs_factor = max(p.job_factor for p in case.partitions)
        self._weight = {
            name: settings.number(f"PriorityWeight{name}") for name in ("JobSize", "Partition", "QOS", "Assoc")
        }
        self._tres = {k.lower(): float(v) for k, v in read_tres(settings.text("PriorityWeightTRES")).items()}
        self._qualities = quality_factors(case, settings, self._size)
        self._assoc = {(each.account, each.user): each.priority for each in case.associations}
        self._most_assoc = max([1.0, *self._assoc.values()])

    def of(self, job: SlurmJob, partition: Partition, qos: str) -> float:
        """The sum of a job's constant factors under one of its QOS."""
        if not self._settings.multifactor:
            return 0.0
        # slurm.conf(5), PriorityFlags=NO_NORMAL_...: the number itself, not its share of the largest one
        part = partition.job_factor if "NO_NORMAL_PART" in self._flags else partition.job_factor / self._jobs_factor
        assoc = self._assoc.get((job.account, job.user), 0.0)
        assoc = assoc if "NO_NORMAL_ASSOC" in self._flags else assoc / self._most_assoc
        # as at the submission, when ReqTRES is written: with the default where the job asks for no memory
        memory = job.memory_in_all or job.memory * (job.cpus if job.memory_per_cpu else job.nodes)
        amounts = {"cpu": float(job.cpus), "node": float(job.nodes), "mem": max(0.0, memory)}
        amounts |= {f"gres/{name}": float(count) for name, count in job.gres.items()}
        resources = 0.0
        for name, weight in self._tres.items():
            # _get_tres_factors: of what the partition has
            whole = 1.0 if "NO_NORMAL_TRES" in self._flags else self._whole(name, partition)
            resources += weight * amounts.get(name, 0.0) / whole if whole else 0.0
        return (
            # slurm.conf(5), PriorityWeight...: age and fair share are added in kernels, because they change
            self._weight["JobSize"] * self._size(job)
            + self._weight["Partition"] * part
            + self._weight["QOS"] * self._qualities.get(qos, 0.0)
            + self._weight["Assoc"] * assoc
            + resources
            - job.nice
        )

    def per_cpu(self, job: SlurmJob) -> float:
        """What each cpu that a job is found to take beyond those that it asked for adds to its priority."""
        if not self._settings.multifactor:
            return 0.0
        larger = msgspec.structs.replace(job, cpus=job.cpus + 1)
        return self._weight["JobSize"] * (self._size(larger) - self._size(job))

    def _size(self, job: SlurmJob) -> float:
        """The factor of a job's size, from 0 to 1."""
        nodes, cpus = job.nodes, job.cpus
        minutes = min(job.limit, YEAR) / 60
        # slurm.conf(5): cpus by the time limit in minutes, over all cpus; else the mean of both shares
        if "SMALL_RELATIVE_TO_TIME" in self._flags:
            share = cpus / max(1.0, minutes) / self._cpus
        else:
            share = (nodes / self._nodes + cpus / self._cpus) / 2
        return min(1.0, max(0.0, 1 - share if self._small else share))

    def _whole(self, name: str, partition: Partition) -> float:
        nodes = [self._node[each] for each in partition.nodes]
        if name == "cpu":
            return float(sum(node.cores * node.threads for node in nodes))
        if name == "node":
            return float(len(nodes))
        if name == "mem":
            return sum(node.memory for node in nodes)
        return float(sum(node.gres.get(name.removeprefix("gres/").split(":")[0], 0) for node in nodes))


def quality_factors(case: Case, settings: Settings, size: Callable[[SlurmJob], float]) -> dict[str, float]:
    """Each QOS's share of the largest priority; for those that are described nowhere, from priorities in the log."""
    known = {each.name: each.priority for each in case.qualities if each.priority >= 0}
    largest = max([1.0, *known.values()])
    raw = "NO_NORMAL_QOS" in settings.priority_flags
    factors = {name: value if raw else value / largest for name, value in known.items()}
    unknown = [each.name for each in case.qualities if each.priority < 0]
    weight = Settings(settings.conf).number("PriorityWeightQOS")
    if unknown and weight > 0:
        # a job of a user with much usage has nearly no fair share, so that the lowest priority is the QOS and the size
        size_weight, least = settings.number("PriorityWeightJobSize"), {}
        for name in unknown:
            rest = [job.priority - size_weight * size(job) + job.nice for job in case.jobs if job.qos == name]
            rest = [value for value in rest if not math.isnan(value)]
            if rest:
                least[name] = min(rest)
        lowest = min(least.values(), default=0.0)
        factors |= {name: min(1.0, (value - lowest) / weight) for name, value in least.items()}
    return factors
