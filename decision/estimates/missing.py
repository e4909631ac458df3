"""Walltimes for jobs that asked for none: the run time, the longest, or what a model of users makes of the run time."""

import numpy as np

from decision.model.demand import runtimes, walltimes
from decision.model.errors import ConfigError
from decision.model.reshape import MISSING, fill_walltimes, with_walltimes
from decision.model.workload import Workload

from .models import ESTIMATES, Model, read_model


def fill_missing(workload: Workload, missing: str, seed: int = 0, speed: float | None = None) -> Workload:
    """The workload with walltimes for jobs that have none.

    Args:
        workload: the jobs.
        missing: ``none`` leaves them without; ``runtime``, ``longest``, or a model as `read_model` takes it.
        seed: of the model.
        speed: flop/s of the hosts, where jobs compute.

    Raises:
        ConfigError: if the model is unknown, a run time is not known, or no job has a walltime to be the longest.
    """
    if missing == "none":
        return workload
    if missing in MISSING:
        return fill_walltimes(workload, missing, speed)
    model, limits = _model(missing), walltimes(workload)
    unknown = np.isinf(limits)
    limits[unknown] = model(runtimes(workload, speed)[unknown], np.random.default_rng(seed))
    return with_walltimes(workload, limits)


def _model(missing: str) -> Model:
    try:
        return read_model(missing)
    except ConfigError as error:
        wanted = f"write {', '.join(MISSING)}, or a model: {ESTIMATES}"
        raise ConfigError(f"missing walltimes {missing!r}: {wanted}", field="missing_walltime") from error


def missing_text(workload: Workload, missing: str) -> str:
    """How many jobs of a log have no requested time, and what takes its place; "" where all have one.

    Args:
        workload: as it was read.
        missing: as of `fill_missing`.
    """
    reading, jobs = workload.reading, len(workload.jobs)
    if reading is None or reading.format == "json" or not (without := int(np.isinf(walltimes(workload)).sum())):
        return ""
    place = {
        "none": "they have no walltime",
        "runtime": "their run time takes its place (perfect estimates)",
        "longest": "the longest walltime takes its place",
    }.get(missing, f"the model {missing} takes its place")
    return f"{without:,} of {jobs:,} jobs ({100 * without / jobs:.0f} %) have no requested time: {place}"
