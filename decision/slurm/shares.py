"""The tree of accounts and users among whom shares are divided."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import F8, I8

from .accounts import ROOT, Association
from .case import Case
from .jobs import SlurmJob
from .parameters import Settings

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
    associations = _complete(case)
    numbers = {(each.account, each.user): number for number, each in enumerate(associations)}
    parent = [-1 if number == 0 else _above(each, numbers) for number, each in enumerate(associations)]
    shares = np.array([max(0.0, each.shares) for each in associations])
    norm = np.ones(len(parent))
    for number, above in enumerate(parent):
        if above >= 0:
            total = sum(shares[k] for k, other in enumerate(parent) if other == above)
            norm[number] = shares[number] / total if total else 0.0
    usage = _usage(case, settings, associations, parent)
    leaves = [number for number, each in enumerate(associations) if each.user]
    paths = [_path(leaf, parent) for leaf in leaves]
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


def _complete(case: Case) -> list[Association]:
    """The root, and all associations with those of jobs that nobody described."""
    found = {(ROOT, ""): Association(account=ROOT)}
    found |= {(each.account, each.user): each for each in case.associations}
    for job in case.jobs:
        found.setdefault((job.account, ""), Association(account=job.account))
        found.setdefault((job.account, job.user), Association(account=job.account, user=job.user))
    return list(found.values())


def _above(each: Association, numbers: dict[tuple[str, str], int]) -> int:
    return numbers.get((each.account if each.user else each.parent, ""), 0)


def _path(leaf: int, parent: list[int]) -> list[int]:
    path = [leaf]
    while parent[path[0]] > 0 and len(path) < len(parent):
        path.insert(0, parent[path[0]])
    return path


def _usage(case: Case, settings: Settings, associations: list[Association], parent: list[int]) -> F8:
    """Usage when the log begins, summed up the tree; none where the log's own jobs explain what sshare says."""
    own = np.array([each.usage if each.user else 0.0 for each in associations])
    made = _made(case, settings, associations)
    if own.sum() > 0 and made.sum() > 0:
        apart = np.abs(own / own.sum() - made / made.sum()).sum() / 2
        if apart < _LIKE and own.sum() <= _MORE * made.sum():
            own[:] = 0.0
    total = own.copy()
    for number, value in enumerate(own):
        above = parent[number]
        while above >= 0:
            total[above] += value
            above = parent[above]
    return total


def _made(case: Case, settings: Settings, associations: list[Association]) -> Any:
    """What the log's jobs leave of their usage when it ends, by association."""
    half = settings.seconds("PriorityDecayHalfLife")
    rate = 0.5 ** (1 / half) if 0 < half < np.inf else 1.0
    end = max((job.start + job.runtime for job in case.jobs if job.started), default=0.0)
    made: dict[tuple[str, str], float] = {}
    for job in case.jobs:
        if job.started:
            key = (job.account, job.user)
            made[key] = made.get(key, 0.0) + _left(job, end, rate)
    return np.array([made.get((each.account, each.user), 0.0) if each.user else 0.0 for each in associations])


def _left(job: SlurmJob, end: float, rate: float) -> float:
    """What is left of a job's usage at `end`: each second of it has decayed since."""
    begun, ended = end - job.start, end - job.start - job.runtime
    if rate >= 1:
        return job.cpus_had * job.runtime
    return float(job.cpus_had * (rate**ended - rate**begun) / -np.log(rate))
