"""What a log says of its jobs that a simulation of hosts and times leaves out."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from decision.files.accounting.assemble import sharing
from decision.model.columns import Labelled
from decision.model.demand import runtimes, sizes, submit_times
from decision.model.errors import ConfigError
from decision.model.record import Floats
from decision.model.trace import Trace, of_jobs
from decision.model.workload import Workload

_MOST_VALUES = 10  # of partitions and the like that are named
_MEANT = {
    "partitions": "jobs run on any hosts, and no partition goes first or limits a job",
    "queues": "all jobs wait in one queue, and no queue goes first",
    "qualities of service": "they give no priority and set no limits",
    "memory": "hosts have room for any job",
    "gpus": "a host is a host, with a GPU or without",
    "shared nodes": "hosts are alike, whatever node they are of, and each has one job at a time",
    "dependencies": "jobs wait for hosts alone",
}


_NOUNS = {"gpus": "GPUs"}


class Unsimulated(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a log says and that is not simulated."""

    what: str  # one of the keys of `_MEANT`
    jobs: int  # that it touches
    share: float  # of all jobs' host-seconds, 0 to 1; nan where run times are not known
    values: dict[str, int] = {}  # jobs of each partition, queue or QOS, the most first; of ten at most
    meant: str = ""  # what the simulation does instead
    job_share: float = math.nan  # of all jobs, 0 to 1

    def text(self) -> str:
        """``partitions (3,000 jobs, 97 % of the host-hours: short, long): jobs run on any hosts``, for people."""
        return f"{self.brief()}: {self.meant}"

    def brief(self) -> str:
        """The same without what the simulation does instead."""
        jobs = "" if math.isnan(self.job_share) else f", {_percent(self.job_share)} of all"
        share = jobs if math.isnan(self.share) else f"{jobs}, {_percent(self.share)} of the host-hours"
        names = f": {', '.join(self.values)}" if self.values else ""
        return f"{_NOUNS.get(self.what, self.what)} ({self.jobs:,} job{'' if self.jobs == 1 else 's'}{share}{names})"


def unsimulated(workload: Workload, speed: float | None = None) -> list[Unsimulated]:
    """What a log says that is not simulated, with the jobs that it touches, from the largest share of host-seconds.

    Touched are, of partitions, queues and qualities of service, the jobs that name one, where jobs name several; of
    memory and GPUs the jobs that asked for some; of shared nodes those that had a node together with another job at
    one time; of dependencies those that had to wait for another job. What no job says is left out: a workload without
    records has an empty list. Policies ``slurm`` read a whole case of their own, and do simulate these.

    Args:
        workload: as it was read, with its `trace`; jobs may have been left out since.
        speed: flop/s of the hosts, where jobs compute.
    """
    if not len(workload.jobs) or (workload.trace is None and not hasattr(workload.jobs, "extra")):
        return []
    trace = Trace(id=(), wait=np.full(len(workload.jobs), np.nan))
    if workload.trace is not None:
        trace = of_jobs(workload.trace, workload.jobs)
    try:
        seconds = runtimes(workload, speed)
    except ConfigError:
        seconds = np.full(len(workload.jobs), np.nan)
    work = sizes(workload) * seconds
    found = [_of_names(field, names, work) for field, names in _names(workload, trace)]
    found += [_of_rows(field, touched, work) for field, touched in _touched(workload, trace, seconds)]
    return sorted((each for each in found if each.jobs), key=lambda each: (-np.nan_to_num(each.share), -each.jobs))


def _names(workload: Workload, trace: Trace) -> list[tuple[str, Sequence[str]]]:
    extra = getattr(workload.jobs, "extra", None)
    queues: Sequence[str] = ()
    if isinstance(extra, Labelled):
        queues = Labelled([str((fields or {}).get("queue") or "") for fields in extra.labels], extra.codes)
    return [
        ("partitions", trace.texts("request", "partition")),
        ("queues", queues),
        ("qualities of service", trace.texts("request", "qos")),
    ]


def _of_names(what: str, names: Sequence[str], work: Floats) -> Unsimulated:
    """Of what jobs name: nothing where they all name the same."""
    values = Counter(name for name in names if name)
    if len(values) < 2:
        return Unsimulated(what=what, jobs=0, share=0.0)
    found = _of_rows(what, np.array([bool(name) for name in names]), work)
    return msgspec.structs.replace(found, values=dict(values.most_common(_MOST_VALUES)))


def _touched(workload: Workload, trace: Trace, seconds: Floats) -> list[tuple[str, np.ndarray]]:
    """Which jobs each of the other things touches, (J,)."""
    counts_gpus = workload.reading is not None and workload.reading.unit == "gpus"
    gpus = np.fmax(trace.number("recorded", "gpus"), trace.number("request", "gpus"))
    after = np.array([bool(text) for text in trace.texts("request", "dependency")])
    shared = None
    nodes = trace.recorded.get("nodes")
    if isinstance(nodes, Labelled):
        start = submit_times(workload) + trace.wait
        known = ~np.isnan(start) & ~np.isnan(seconds)
        rows = np.flatnonzero(known)
        shared = sharing(nodes.take(rows), start[rows], seconds[rows])
        shared = None if shared is None else np.isin(np.arange(len(start)), rows[shared])
    return [
        ("memory", trace.number("request", "memory") > 0),
        ("gpus", np.zeros(len(after), bool) if counts_gpus else gpus > 0),
        ("shared nodes", np.zeros(len(after), bool) if shared is None else shared),
        ("dependencies", after | (trace.number("request", "dependency") > 0)),
    ]


def _of_rows(what: str, touched: np.ndarray, work: Floats) -> Unsimulated:
    total = float(work.sum())
    share = float(work[touched].sum()) / total if total > 0 else math.nan
    jobs = int(touched.sum())
    return Unsimulated(
        what=what,
        jobs=jobs,
        share=share,
        meant=_MEANT[what],
        job_share=jobs / len(touched) if len(touched) else math.nan,
    )


def better_command(workload: Workload, found: Sequence[Unsimulated]) -> str:
    """The commands that simulate what is not simulated here, where it is a log of Slurm's; "" where there are none."""
    folder = Path(workload.path).parent
    if (folder / "case.json").is_file():
        return f"{folder} is a case of Slurm's scheduler with all that it had: decision slurm agree {folder}"
    if not found or workload.reading is None or workload.reading.format not in ("sacct", "sacct-json"):
        return ""
    things = ", ".join(_NOUNS.get(each.what, each.what) for each in found)
    read = f"decision slurm read --conf slurm.conf --jobs {workload.path} -o CASE"
    return f"this is a log of Slurm's, whose {things} are simulated by: {read}, then decision slurm agree CASE"


def _percent(share: float) -> str:
    return "under 1 %" if 0 < share < 0.01 else f"{100 * share:.0f} %"
