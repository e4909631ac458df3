"""Limits on what runs at a time: of arrays, licences, qualities of service and associations."""

from collections.abc import Iterable

from .accounts import Limits
from .case import Case
from .jobs import SlurmJob
from .parameters import Settings
from .text import split_list


class Buckets:
    """Limits on what runs at a time, and which of them hold a job."""

    def __init__(self, case: Case, settings: Settings) -> None:
        self.limits: list[tuple[int, ...]] = []
        self._known: dict[tuple[str, ...], int] = {}
        self._enforced = settings.enforces_limits
        self._qualities = {each.name: each for each in case.qualities}
        self._part_quality = {p.name: p.qos for p in case.partitions}
        self._associations = {(each.account, each.user): each for each in case.associations}
        self._licenses = _licenses(settings)

    def of(self, job: SlurmJob) -> list[int]:
        """The buckets of a job."""
        found: list[int | None] = []
        if job.array and job.array_limit:
            found.append(self._bucket(("array", job.array), Limits(jobs=job.array_limit)))
        if job.singleton:
            found.append(self._bucket(("singleton", job.user, job.singleton), Limits(jobs=1)))
        for name, count in _asked_licenses(job):
            if name in self._licenses:
                found += [self._bucket(("license", name), Limits(jobs=self._licenses[name]))] * count
        if self._enforced:
            found += self._of_qualities(job) + self._of_associations(job)
        return [bucket for bucket in found if bucket is not None]

    def _of_qualities(self, job: SlurmJob) -> list[int | None]:
        found = []
        for name in {job.qos, self._part_quality.get(job.partition.split(",")[0], "")} - {""}:
            quality = self._qualities.get(name)
            if quality is not None:
                found.append(self._bucket(("qos", name), quality.group))
                found.append(self._bucket(("qos", name, "user", job.user), quality.user))
                found.append(self._bucket(("qos", name, "account", job.account), quality.account))
        return found

    def _of_associations(self, job: SlurmJob) -> list[int | None]:
        found = []
        own = self._associations.get((job.account, job.user))
        if own is not None:
            found.append(self._bucket(("assoc", job.account, job.user), own.group))
            found.append(self._bucket(("each", job.account, job.user), own.each))
        account, seen = job.account, {""}
        while account not in seen:
            seen.add(account)
            above = self._associations.get((account, ""))
            if above is None:
                break
            found.append(self._bucket(("assoc", account), above.group))
            account = above.parent
        return found

    def _bucket(self, key: tuple[str, ...], limits: Limits) -> int | None:
        row = (limits.jobs, limits.nodes, limits.cpus, int(limits.memory), limits.gpus)
        if max(row) < 0:
            return None
        if key not in self._known:
            self._known[key] = len(self.limits)
            self.limits.append(row)
        return self._known[key]


def _licenses(settings: Settings) -> dict[str, int]:
    found = {}
    for part in split_list(settings.conf.get("Licenses")):
        name, _, count = part.partition(":")
        found[name] = int(count) if count.isdigit() else 1
    return found


def _asked_licenses(job: SlurmJob) -> Iterable[tuple[str, int]]:
    for part in filter(None, job.licenses.replace(";", ",").split(",")):
        name, _, count = part.partition(":")
        yield name, int(count) if count.isdigit() else 1
