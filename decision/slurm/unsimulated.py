"""What of a configuration is not simulated, and how many jobs of the log it touches."""

from collections.abc import Sequence

from msgspec.structs import replace

from .accounts import Quality
from .conf import Conf
from .jobs import SlurmJob
from .nodes import Partition
from .parameters import KeyCount


def with_touched(
    keys: KeyCount, conf: Conf, partitions: Sequence[Partition], qualities: Sequence[Quality], jobs: Sequence[SlurmJob]
) -> KeyCount:
    """The keys, where those that may matter say how many jobs they touch, as far as a log shows that.

    Added is what is not a key of its own: modes of preemption, grace times and usage factors of partitions and QOS.
    """
    several = sum(job.nodes > 1 or job.nodes_max > 1 for job in jobs)
    touched = {
        "topologyplugin": several,
        "topologyparam": several,
        "bf_licenses": sum(bool(job.licenses) for job in jobs),
    }
    said = [_counted(name, touched.get(name.partition("=")[0].lower())) for name in keys.may_matter]
    mode = conf.get("PreemptMode")
    for partition in partitions:
        nb_jobs = sum(partition.name in job.partition.split(",") for job in jobs)
        own = (partition.preempt_mode or mode).upper()
        if "SUSPEND" in own or "GANG" in own:
            said.append(_counted(f"PreemptMode={own} of partition {partition.name}", nb_jobs))
        if partition.grace > 0:
            said.append(_counted(f"GraceTime of partition {partition.name}", nb_jobs))
    for quality in qualities:
        nb_jobs = sum(job.qos == quality.name for job in jobs)
        own = quality.preempt_mode.upper()
        if own not in ("", "CLUSTER", mode.upper()):
            said.append(_counted(f"PreemptMode={own} of QOS {quality.name}", nb_jobs))
        if quality.grace > 0:
            said.append(_counted(f"GraceTime of QOS {quality.name}", nb_jobs))
        if quality.usage_factor != 1:
            said.append(_counted(f"UsageFactor of QOS {quality.name}", nb_jobs))
    return replace(keys, may_matter=tuple(said))


def _counted(name: str, nb_jobs: int | None) -> str:
    return name if nb_jobs is None else f"{name} ({nb_jobs:,} job{'' if nb_jobs == 1 else 's'})"
