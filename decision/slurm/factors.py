"""The part of a job's priority that does not change while it waits: size, partition, QOS, resources, nice."""

import math
from collections.abc import Callable, Sequence

from decision.model.dates import DAY

from .case import Case
from .jobs import SlurmJob
from .nodes import Partition
from .parameters import Settings
from .text import read_tres

YEAR = 365 * DAY  # seconds that a job without limit counts as


class Factors:
    """The part of a job's priority that does not change while it waits."""

    def __init__(self, case: Case, settings: Settings) -> None:
        self._case, self._settings = case, settings
        self._flags = settings.priority_flags
        self._small = settings.text("PriorityFavorSmall").upper() == "YES"
        self._nodes, self._cpus = len(case.nodes), sum(node.cores * node.threads for node in case.nodes)
        self._jobs_factor = max(p.job_factor for p in case.partitions)
        self._weight = {
            name: settings.number(f"PriorityWeight{name}") for name in ("JobSize", "Partition", "QOS", "Assoc")
        }
        self._tres = {k.lower(): float(v) for k, v in read_tres(settings.text("PriorityWeightTRES")).items()}
        self._qualities = quality_factors(case, settings, self._size)
        self._assoc = {(each.account, each.user): each.priority for each in case.associations}
        self._most_assoc = max([1.0, *self._assoc.values()])

    def of(self, job: SlurmJob, partition: Partition) -> float:
        """The sum of a job's constant factors."""
        if not self._settings.multifactor:
            return 0.0
        part = partition.job_factor if "NO_NORMAL_PART" in self._flags else partition.job_factor / self._jobs_factor
        assoc = self._assoc.get((job.account, job.user), 0.0)
        assoc = assoc if "NO_NORMAL_ASSOC" in self._flags else assoc / self._most_assoc
        return (
            self._weight["JobSize"] * self._size(job)
            + self._weight["Partition"] * part
            + self._weight["QOS"] * self._qualities.get(job.qos, 0.0)
            + self._weight["Assoc"] * assoc
            + self._tres_part(job)
            - job.nice
        )

    def _size(self, job: SlurmJob) -> float:
        """The factor of a job's size, from 0 to 1."""
        nodes, cpus = job.nodes, job.cpus
        minutes = min(job.limit, YEAR) / 60
        if "SMALL_RELATIVE_TO_TIME" in self._flags:
            share = cpus / max(1.0, minutes) / self._cpus
        else:
            share = (nodes / self._nodes + cpus / self._cpus) / 2
        return min(1.0, max(0.0, 1 - share if self._small else share))

    def _tres_part(self, job: SlurmJob) -> float:
        total = 0.0
        amounts = {"cpu": float(job.cpus), "node": float(job.nodes), "mem": _total_memory(job)}
        amounts |= {f"gres/{name}": float(count) for name, count in job.gres.items()}
        for name, weight in self._tres.items():
            amount = amounts.get(name, 0.0)
            whole = self._whole(name)
            total += weight * (amount if "NO_NORMAL_TRES" in self._flags else amount / whole if whole else 0.0)
        return total

    def _whole(self, name: str) -> float:
        if name == "cpu":
            return float(self._cpus)
        if name == "node":
            return float(self._nodes)
        if name == "mem":
            return sum(node.memory for node in self._case.nodes)
        return float(sum(node.gres.get(name.removeprefix("gres/").split(":")[0], 0) for node in self._case.nodes))


def _total_memory(job: SlurmJob) -> float:
    return job.memory * (job.cpus if job.memory_per_cpu else job.nodes)


def quality_factors(case: Case, settings: Settings, size: Callable[[SlurmJob], float]) -> dict[str, float]:
    """Each QOS's share of the largest priority; for those that are described nowhere, from priorities in the log."""
    known = {each.name: each.priority for each in case.qualities if each.priority >= 0}
    largest = max([1.0, *known.values()])
    raw = "NO_NORMAL_QOS" in settings.priority_flags
    factors = {name: value if raw else value / largest for name, value in known.items()}
    unknown = [each.name for each in case.qualities if each.priority < 0]
    weight = Settings(settings.conf).number("PriorityWeightQOS")
    if unknown and weight > 0:
        factors |= _from_log(case, unknown, weight, settings.number("PriorityWeightJobSize"), size)
    return factors


def _from_log(
    case: Case, names: Sequence[str], weight: float, size_weight: float, size: Callable[[SlurmJob], float]
) -> dict[str, float]:
    """What the lowest priorities at submission say of a QOS: there the fair share is nearly nothing."""
    least = {}
    for name in names:
        rest = [job.priority - size_weight * size(job) + job.nice for job in case.jobs if job.qos == name]
        rest = [value for value in rest if not math.isnan(value)]
        if rest:
            least[name] = min(rest)
    lowest = min(least.values(), default=0.0)
    return {name: min(1.0, (value - lowest) / weight) for name, value in least.items()}
