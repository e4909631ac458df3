"""Whether a learned policy is judged on jobs that it was learned from."""

import re
from pathlib import Path

from msgspec.structs import replace

from decision.formats.input_facts import file_facts
from decision.learned.deepscheduling import day_range
from decision.model.dates import on_days
from decision.model.workload import Workload

from . import find_checkpoint
from .checkpoint import Manifest, read_manifest


def seen_jobs(policy: str, workload: Workload) -> int:
    """How many of a workload's jobs a policy is known to be learned from: those of the same number in the same file.

    Days that are made like a cluster's count as seen, all of them, where days like that cluster's were learned from. A
    checkpoint of an older version does not say which jobs of its files it was learned from: `seen_text` says that.

    Args:
        policy: as ``--policy`` takes it; 0 for one that is not learned.
        workload: as it was read from its file.

    Raises:
        InputError: if the checkpoint or the file cannot be used.
    """
    checkpoint = find_checkpoint(re.split("[:,]", policy)[0])
    path = Path(workload.path)
    if checkpoint is None or not path.is_file():
        return 0
    manifest = read_manifest(checkpoint)
    if _like(manifest, workload):
        return len(workload.jobs)
    if file_facts(path).sha256 not in {facts.sha256 for facts in manifest.workloads}:
        return 0
    if manifest.selection is None:
        return 0
    # which jobs there are does not depend on their walltimes
    learned = replace(manifest.selection, walltime="requested", missing="none").read(path, workload.name)
    if days := getattr(manifest.config.env, "days", ()):
        learned = on_days(learned, day_range(days))
    return len({job.id for job in learned.jobs} & {job.id for job in workload.jobs})


def seen_text(policy: str, workload: Workload) -> str:
    """What is to be said of a policy that is, or may be, judged on jobs that it was learned from; "" of others.

    Raises:
        InputError: if the checkpoint or the file cannot be used.
    """
    checkpoint, path = find_checkpoint(re.split("[:,]", policy)[0]), Path(workload.path)
    if checkpoint is None or not path.is_file():
        return ""
    manifest = read_manifest(checkpoint)
    if name := _like(manifest, workload):
        return f"{policy} was learned from days that are made like those of {name}, as {path} is"
    if seen := seen_jobs(policy, workload):
        jobs = "1 job" if len(workload.jobs) == 1 else f"{len(workload.jobs):,} jobs"
        return f"{policy} was learned from {seen:,} of the {jobs} of {path}"
    if manifest.selection is None and file_facts(path).sha256 in {facts.sha256 for facts in manifest.workloads}:
        return f"{policy} was learned from jobs of {path}; its checkpoint does not say which"
    return ""


def _like(manifest: Manifest, workload: Workload) -> str:
    """The cluster like whose days those of the workload are made, if the policy was learned from such; or ""."""
    names = getattr(manifest.config.env, "like", ())
    return next((name for name in names if f"grid5000-like {name} " in f"{workload.description} "), "")
