"""Why jobs never start in a simulation, as far as nodes and partitions say."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from .case import Case
from .conf import Settings
from .jobs import SlurmJob
from .limits import Buckets, has_features
from .nodes import Partition
from .simulate import Simulated
from .text import read_hosts

_NAMED = 5  # reasons


def never_lines(case: Case, settings: Settings, run: Simulated, numbers: Sequence[int]) -> list[str]:
    """How many of these jobs never start in a run, by reason; none where all start."""
    never = [case.jobs[n] for n in numbers if np.isnan(run.start[n])]
    partitions = {each.name: each for each in case.partitions}
    limits = Buckets(case, settings)
    reasons = Counter(_why(case, job, [partitions[name] for name in job.partition.split(",")], limits) for job in never)
    lines = [f"{count:,} of {len(numbers):,} jobs never start: {why}" for why, count in reasons.most_common(_NAMED)]
    if len(reasons) > _NAMED:
        lines.append(f"and for {len(reasons) - _NAMED} other reasons")
    return lines


def _why(case: Case, job: SlurmJob, partitions: Sequence[Partition], limits: Buckets) -> str:
    names = ",".join(each.name for each in partitions)
    if not any(each.up for each in partitions):
        return f"partition {names} is down"
    if not job.started and all(limits.refuses(job, qos) for qos in job.qos.split(",")):
        return "a limit on single jobs refuses them"
    listed = {name for each in partitions for name in each.nodes}
    nodes = [node for node in case.nodes if node.name in listed]
    excluded = set(read_hosts(job.exclude))
    # each node has its share of generic resources; one of each where the number of nodes is not fixed
    spread = job.nodes if job.nodes_max else max(job.gres.values(), default=1)
    parts, gres = max(1, spread) if job.gres_in_all else 1, job.gres.items()
    for what, left in (
        (f"the nodes of partition {names} are down (State or DownNodes of slurm.conf)", lambda node: not node.down),
        (f"no node of {names} has the features {job.features}", lambda node: has_features(node, job.features)),
        ("they exclude all nodes that they could have", lambda node: node.name not in excluded),
        (
            "no node has the generic resources that they ask for",
            lambda node: all(node.gres.get(name, 0) * parts >= count for name, count in gres),
        ),
        ("no node has the memory that they ask for", lambda node: job.memory_per_cpu or node.memory >= job.memory),
    ):
        nodes = [node for node in nodes if left(node)]
        if not nodes:
            return what
    if len(nodes) < job.nodes:
        return f"they ask for {job.nodes} nodes, and only {len(nodes)} of partition {names} may be theirs"
    if sum(node.cores * node.threads for node in nodes) < job.cpus:
        return f"they ask for {job.cpus} cpus, and the nodes of partition {names} that may be theirs have fewer"
    away = {name for window in case.windows for name in window.nodes if not window.cores}
    if all(node.name in away for node in nodes):
        return "their nodes are down or reserved"
    return "they wait for other jobs, limits or licences to the end"
