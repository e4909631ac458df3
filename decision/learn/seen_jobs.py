"""Whether a learned policy is judged on jobs that it was learned from."""

import re
from pathlib import Path

from msgspec.structs import replace

from decision.formats.input_facts import file_facts
from decision.model.dates import on_days
from decision.model.workload import Workload
from decision.schedulers.deepscheduling import day_range

from . import find_checkpoint
from .checkpoint import read_manifest


def seen_jobs(policy: str, workload: Workload) -> int:
    """How many of a workload's jobs a policy was learned from: those of the same number in the same file.

    A checkpoint of an older version does not say which jobs it was learned from; it counts as learned from all.

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
    if file_facts(path).sha256 not in {facts.sha256 for facts in manifest.workloads}:
        return 0
    if manifest.selection is None:
        return len(workload.jobs)
    # which jobs there are does not depend on their walltimes
    learned = replace(manifest.selection, walltime="requested", missing="none").read(path, workload.name)
    if days := getattr(manifest.config.env, "days", ()):
        learned = on_days(learned, day_range(days))
    return len({job.id for job in learned.jobs} & {job.id for job in workload.jobs})
