"""Walltimes for workloads that have none: exact, a factor too long, or as real users choose them."""

import math
from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.model.errors import ConfigError
from decision.model.workload import Delay, Workload

from .modal import modal_estimates

Floats = NDArray[np.float64]
Model = Callable[[Floats, np.random.Generator], Floats]

ESTIMATES = "exact, factor:F, tsafrir or tsafrir:LONGEST"


def apply_estimates(workload: Workload, model: str, rng: np.random.Generator) -> Workload:
    """The workload with walltimes from a model of estimates.

    Args:
        workload: jobs with delay profiles, whose run times are known.
        model: ``exact``, the run time; ``factor:F``, F times the run time; ``tsafrir``, modal estimates (Tsafrir,
            Etsion and Feitelson 2005), with ``tsafrir:LONGEST`` for the longest allowed in seconds.
        rng: where choices come from.

    Raises:
        ConfigError: if there is no such model, a job's run time is unknown, or is above the longest estimate.
    """
    runtimes = np.array([_runtime(workload, job.profile) for job in workload.jobs])
    walltimes = read_model(model)(runtimes, rng).tolist()
    jobs = tuple(
        msgspec.structs.replace(job, walltime=walltime, source=None)
        for job, walltime in zip(workload.jobs, walltimes, strict=True)
    )
    return msgspec.structs.replace(workload, jobs=jobs)


def read_model(text: str) -> Model:
    """The model of estimates that a text names: a function from run times (J,) in seconds to walltimes (J,).

    Raises:
        ConfigError: if there is none.
    """
    name, colon, value = text.partition(":")
    if text == "exact":
        return lambda runtimes, rng: runtimes.copy()
    if name == "factor" and colon:
        factor = _number(text, value, least=1.0)
        return lambda runtimes, rng: factor * runtimes
    if name == "tsafrir":
        longest = _number(text, value, least=3600.0) if colon else None
        return lambda runtimes, rng: modal_estimates(runtimes, rng, longest)
    raise ConfigError(f"--estimates {text}: write {ESTIMATES}")


def _number(text: str, value: str, least: float) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not least <= number < math.inf:
        raise ConfigError(f"--estimates {text}: must have a number of at least {least:g} after the colon")
    return number


def _runtime(workload: Workload, name: str) -> float:
    profile = workload.profiles[name]
    if not isinstance(profile, Delay):
        raise ConfigError(f"profile {name!r}: estimates need run times, which only delay profiles have")
    return profile.duration
