"""What of a configuration is not simulated, and how many jobs of the log it touches."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from .accounts import Association, Quality
from .conf import Conf
from .conf_keys import KeyCount
from .jobs import SlurmJob
from .nodes import Node, Partition
from .parameters import NO_NORMAL, Settings

_KNOWN_WORDS = {
    "PriorityFlags": {
        *NO_NORMAL,
        *("NO_NORMAL_ALL", "FAIR_TREE", "NO_FAIR_TREE", "SMALL_RELATIVE_TO_TIME", "INCR_ONLY", "ACCRUE_ALWAYS"),
    },
    "SelectTypeParameters": {
        *("CR_CORE", "CR_CORE_MEMORY", "CR_CPU", "CR_CPU_MEMORY", "CR_LLN", "CR_CORE_DEFAULT_DIST_BLOCK", "NONE"),
        *("CR_ONE_TASK_PER_CORE", "OTHER_CONS_TRES", "OTHER_CONS_RES"),
    },
    "TopologyParam": {"TOPOOPTIONAL", "NOINADDRANY", "NOCTLDINADDRANY", "NOINADDRANYCTLD", "ROUTEPART"},
    "SchedulerType": {"SCHED/BACKFILL", "SCHED/BUILTIN"},
    "SelectType": {"SELECT/LINEAR", "SELECT/CONS_TRES", "SELECT/CONS_RES"},
    "PreemptType": {"PREEMPT/NONE", "PREEMPT/PARTITION_PRIO", "PREEMPT/QOS"},
    "PriorityType": {"PRIORITY/BASIC", "PRIORITY/MULTIFACTOR"},
}
_OF_PARTITIONS = {
    **{"exclusiveuser": "ExclusiveUser", "maxcpuspernode": "MaxCPUsPerNode", "overtimelimit": "OverTimeLimit"},
    **{"selecttypeparameters": "SelectTypeParameters", "maxmempernode": "MaxMemPerNode", "reqresv": "ReqResv"},
    **{"maxmempercpu": "MaxMemPerCPU", "oversubscribe": "OverSubscribe", "shared": "Shared"},
    **{"tresbillingweights": "TRESBillingWeights"},
}
_OF_NODES = {"corespeccount": "CoreSpecCount", "memspeclimit": "MemSpecLimit", "cpuspeclist": "CpuSpecList"}
_QUIET = {"", "NO", "NONE", "N/A", "(NULL)", "0", "UNLIMITED", "EXCLUSIVE", "INFINITE"}


class Facts(NamedTuple):
    """What is known of a cluster and its log."""

    conf: Conf
    nodes: Sequence[Node]
    partitions: Sequence[Partition]
    associations: Sequence[Association]
    qualities: Sequence[Quality]
    jobs: Sequence[SlurmJob]

    def count(self, partition: str) -> int:
        """The jobs of a partition."""
        return sum(partition in job.partition.split(",") for job in self.jobs)


def with_touched(keys: KeyCount, facts: Facts) -> KeyCount:
    """The keys, where those that may matter say how many jobs they touch, as far as a log shows that.

    Added is what is not a key of its own: single words of lists, what partitions, nodes, associations and QOS set, and
    options of jobs.
    """
    several = sum(job.nodes > 1 or job.nodes_max > 1 for job in facts.jobs)
    said = [_counted(name, several if name.lower().startswith("topologyplugin=") else None) for name in keys.may_matter]
    parts = (_words(facts), _of_partitions(facts), _of_nodes(facts), _of_accounts(facts), _of_jobs(facts))
    return replace(keys, may_matter=(*said, *(line for part in parts for line in part)))


def _words(facts: Facts) -> Iterator[str]:
    """Words of a key's list that are not known."""
    for key, known in _KNOWN_WORDS.items():
        for word in facts.conf.get(key).split(","):
            if word.strip() and word.strip().upper() not in known:
                yield f"{key}={word.strip()}"
    threads = any(node.threads > 1 for node in facts.nodes)
    if threads and "CR_CPU" in facts.conf.get("SelectTypeParameters").upper() and not Settings(facts.conf).linear:
        yield "SelectTypeParameters=CR_CPU on nodes with threads: cores are allocated whole"


def _of_partitions(facts: Facts) -> Iterator[str]:
    billed = any(job.billing for job in facts.jobs)
    for entry in facts.conf.partitions:
        for key, shown in _OF_PARTITIONS.items():
            value = entry.pairs.get(key, "")
            known = value.upper() in _QUIET or (key == "tresbillingweights" and billed)
            if not known:
                yield _counted(f"{shown}={value} of partition {entry.name}", facts.count(entry.name))
    preempts = "none" not in facts.conf.get("PreemptType", "preempt/none").lower()
    for partition in facts.partitions:
        own = (partition.preempt_mode or facts.conf.get("PreemptMode")).upper()
        if "SUSPEND" in own or "GANG" in own or ("WITHIN" in own and preempts):
            yield _counted(f"PreemptMode={own} of partition {partition.name}", facts.count(partition.name))


def _of_nodes(facts: Facts) -> Iterator[str]:
    for entry in facts.conf.nodes:
        for key, shown in _OF_NODES.items():
            if entry.pairs.get(key, "0") != "0":
                yield f"{shown} of node {entry.name}"


def _of_accounts(facts: Facts) -> Iterator[str]:
    for quality in facts.qualities:
        nb_jobs = sum(job.qos == quality.name for job in facts.jobs)
        own = quality.preempt_mode.upper()
        if any(word in own for word in ("SUSPEND", "GANG", "WITHIN")):
            yield _counted(f"PreemptMode={own} of QOS {quality.name}", nb_jobs)
        for limit in quality.not_simulated:
            yield _counted(f"{limit} of QOS {quality.name}", nb_jobs)
    touched: Counter[str] = Counter()
    for each in filter(lambda each: each.not_simulated, facts.associations):
        mine = sum(job.account == each.account and each.user in ("", job.user) for job in facts.jobs)
        for limit in each.not_simulated:
            touched[limit] += mine
    for limit, nb_jobs in touched.items():
        yield _counted(f"{limit} of associations", nb_jobs)


def _of_jobs(facts: Facts) -> Iterator[str]:
    found = Counter(option for job in facts.jobs for option in job.options)
    for option, nb_jobs in sorted(found.items()):
        yield _counted(option, nb_jobs)


def _counted(name: str, nb_jobs: int | None) -> str:
    return name if nb_jobs is None else f"{name} ({nb_jobs:,} job{'' if nb_jobs == 1 else 's'})"
