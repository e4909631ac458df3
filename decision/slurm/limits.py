"""Limits on what runs at a time: of arrays, licences, qualities of service and associations."""

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .accounts import Association, Limits, Quality
from .case import Case
from .conf import Settings
from .jobs import SlurmJob
from .nodes import Node, Partition
from .text import is_nothing, read_hosts, split_list

_FIELDS = len(Limits.__struct_fields__)
_ALL = (1 << _FIELDS) - 1
_JOBS = 1
_MOST = 10**9  # licences of a name


class Member(NamedTuple):
    """That a job counts for a limit, and which of its fields hold the job."""

    bucket: int
    checks: int  # bits, in the order of `Limits`


class Buckets:
    """Limits on what runs at a time, and which of them hold a job.

    Of a kind of limit that several set, the first one holds: the QOS of the partition, the job's QOS, the association
    with all accounts above it. A job counts for all of them.
    """

    def __init__(self, case: Case, settings: Settings) -> None:
        self.limits: list[tuple[int, ...]] = []
        self._known: dict[tuple[str, ...], int] = {}
        self._enforced = settings.enforces_limits
        self._qualities = {each.name: each for each in case.qualities}
        self._part_quality = {p.name: p.qos for p in case.partitions}
        self._associations = {(each.account, each.user): each for each in case.associations}

    def of(self, job: SlurmJob, qos: str) -> list[Member]:
        """The buckets of a job under one of its QOS."""
        # sbatch(1), %N: the limit of an array is the first bucket of its tasks, where kernels look for it
        found: list[Member] = []
        if job.array and job.array_limit:
            found += self._members(("array", job.array), Limits(jobs=job.array_limit))
        if job.singleton:
            found += self._members(("singleton", job.user, job.singleton), Limits(jobs=1))
        if not self._enforced:
            return found
        # Slurm's page on resource limits: a limit of a QOS is not looked at in associations, by field (acct_policy.c)
        group = user = account = _ALL
        for quality in self._qualities_of(job, qos):
            found += self._members(("qos", quality.name), quality.group, group)
            found += self._members(("qos", quality.name, "user", job.user), quality.user, user)
            found += self._members(("qos", quality.name, "account", job.account), quality.account, account)
            group, user = group & ~_set_fields(quality.group), user & ~_set_fields(quality.user)
            account &= ~_set_fields(quality.account)
        association = self._associations.get((job.account, job.user))
        if association is not None:
            found += self._members(("assoc", job.account, job.user), association.group, group)
            found += self._members(("each", job.account, job.user), association.each, user & account & _JOBS)
        # the accounts above it; a circle of them in an edited file would not end
        name, seen = job.account, {""}
        while name not in seen and (name, "") in self._associations:
            above = self._associations[name, ""]
            found += self._members(("assoc", name), above.group, group)
            seen.add(name)
            name = above.parent
        return found

    def refuses(self, job: SlurmJob, qos: str) -> bool:
        """Whether a limit on a single job keeps it waiting for ever under one of its QOS."""
        association = self._associations.get((job.account, job.user))
        limits: list[Quality | Association] = []
        if self._enforced:
            limits += [*self._qualities_of(job, qos), *([association] if association is not None else [])]
        # sacctmgr(1), DenyOnLimit: such a QOS refuses a job at its submission, but a log has only jobs that were taken
        wall = next((each.max_wall for each in limits if math.isfinite(each.max_wall)), math.inf)
        nodes = next((each.job_nodes for each in limits if each.job_nodes >= 0), job.nodes)
        cpus = next((each.job_cpus for each in limits if each.job_cpus >= 0), job.cpus)
        return (math.isfinite(job.limit) and job.limit > wall) or job.nodes > nodes or job.cpus > cpus

    def _qualities_of(self, job: SlurmJob, qos: str) -> list[Quality]:
        """The QOS of the job's partition, and this one of its own, in the order in which they hold it."""
        # the same page: those of the partition's QOS go before those of the job's
        names = [self._part_quality.get(job.partition.split(",")[0], ""), qos]
        return [self._qualities[name] for name in dict.fromkeys(names) if name in self._qualities]

    def _members(self, key: tuple[str, ...], limits: Limits, checks: int = _ALL) -> list[Member]:
        """The one membership in a bucket; none where there is no limit."""
        row = (limits.jobs, limits.nodes, limits.cpus, int(limits.memory), limits.gpus)
        if max(row) < 0:
            return []
        if key not in self._known:
            self._known[key] = len(self.limits)
            self.limits.append(row)
        return [Member(self._known[key], checks)]


def _set_fields(limits: Limits) -> int:
    values = (limits.jobs, limits.nodes, limits.cpus, limits.memory, limits.gpus)
    return sum(1 << bit for bit, value in enumerate(values) if value >= 0)


def licenses_of(settings: Settings) -> dict[str, int]:
    """How many licences of each name there are."""
    found = {}
    for part in split_list(settings.conf.get("Licenses")):
        name, _, count = part.partition(":")
        found[name] = _count(count)
    return found


def _count(text: str) -> int:
    return min(int(text), _MOST) if text.isdigit() else 1


def asked_licenses(job: SlurmJob) -> Iterable[tuple[str, int]]:
    """The licences that a job asks for, and how many of each; where it writes a:2|b:1 any of them will do."""
    for part in filter(None, re.split("[,;|]", job.licenses)):
        name, _, count = part.replace("=", ":").partition(":")
        yield name, _count(count)


# The nodes that jobs may have.


def bitmap(nodes: Iterable[int], words: int) -> NDArray[np.uint64]:
    """A set of nodes as bits, (W,)."""
    bits = np.zeros(words * 64, np.uint8)
    bits[list(nodes)] = 1
    return np.packbits(bits, bitorder="little").view(np.uint64)


def nb_words(case: Case) -> int:
    """Words of a set of nodes."""
    return (len(case.nodes) + 63) // 64


class Masks:
    """The nodes that jobs may have, each set once."""

    def __init__(self, case: Case, limits: Buckets) -> None:
        self._limits = limits
        self._reserved: dict[str, set[str]] = {}
        for window in case.windows:
            if window.reservation:
                self._reserved.setdefault(window.reservation, set()).update(window.nodes)
        self._types = {name for node in case.nodes for name in node.gres if ":" in name}
        self._nodes, self._words = case.nodes, nb_words(case)
        self._known: dict[tuple[str, ...], int] = {}
        self.rows: list[NDArray[np.uint64]] = []

    def of(self, job: SlurmJob, partition: Partition, qos: str) -> int:
        """The number of the set of a job in a partition under one of its QOS."""
        # gres with a type (gpu:v100) keeps a job to nodes that have this type; one that no node has was found by Slurm
        typed = ",".join(sorted(name for name in job.gres if name in self._types))
        refused = not job.started and (not partition.takes(job.limit, job.nodes) or self._limits.refuses(job, qos))
        names = (job.reservation, partition.name, job.features, job.exclude, typed)
        key = (*names, "refused" if refused else "")
        if key in self._known:
            return self._known[key]
        members = set() if refused else set(partition.nodes) - set(read_hosts(job.exclude))
        if job.reservation in self._reserved:
            members &= self._reserved[job.reservation]
        allowed = [
            number
            for number, node in enumerate(self._nodes)
            if node.name in members
            and not node.down
            and has_features(node, job.features)
            and all(kind in node.gres for kind in filter(None, typed.split(",")))
        ]
        return self._number(key, allowed)

    def named(self, job: SlurmJob) -> int:
        """The number of the set of nodes that a job asks for by name; -1 where it names none."""
        names = read_hosts(job.nodelist)[: job.nodes_max or None]
        if not names:
            return -1
        numbers = [number for number, node in enumerate(self._nodes) if node.name in set(names)]
        return self._number(("named", ",".join(names)), numbers)

    def _number(self, key: tuple[str, ...], nodes: Iterable[int]) -> int:
        """The number of a set, which is kept where its key is new."""
        if key not in self._known:
            self._known[key] = len(self.rows)
            self.rows.append(bitmap(nodes, self._words))
        return self._known[key]


def has_features(node: Node, wanted: str) -> bool:
    """Whether a node has the features of ``--constraint``: ``a&b``, ``a|b``, ``[a|b]``; counts are not looked at."""
    if is_nothing(wanted):
        return True
    # sbatch(1), --constraint: brackets ask that all nodes match the same choice, which is not simulated
    plain = wanted.replace("[", "").replace("]", "").replace("(", "").replace(")", "").replace(",", "&")
    return any(
        all(part.split("*")[0].strip() in node.features for part in choice.split("&")) for choice in plain.split("|")
    )
