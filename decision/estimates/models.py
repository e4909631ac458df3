"""Walltimes for workloads that have none: exact, a factor too long, or as real users choose them."""

import math
from collections.abc import Callable

import msgspec
import numpy as np

from decision.model.demand import runtimes
from decision.model.errors import ConfigError
from decision.model.record import Floats
from decision.model.workload import Workload

from .modal import modal_estimates

Model = Callable[[Floats, np.random.Generator], Floats]

ESTIMATES = "exact, factor:F, tsafrir or tsafrir:LONGEST"


def apply_estimates(workload: Workload, model: str, rng: np.random.Generator, speed: float | None = None) -> Workload:
    """The workload with walltimes from a model of estimates.

    Args:
        workload: jobs whose run times are known (see `decision.model.demand.runtimes`).
        model: ``exact``, the run time (Batsim then reports that the walltime was reached); ``factor:F``, F times the
            run time; ``tsafrir``, modal estimates (Tsafrir, Etsion and Feitelson 2005), with ``tsafrir:LONGEST`` for
            the longest allowed in seconds.
        rng: where choices come from.
        speed: flop/s of the hosts, where jobs compute.

    Raises:
        ConfigError: if the model is unknown, a job's run time is unknown, or is above the longest estimate.
    """
    walltimes = read_model(model)(runtimes(workload, speed), rng).tolist()
    jobs = tuple(
        msgspec.structs.replace(job, walltime=walltime, source=None)
        for job, walltime in zip(workload.jobs, walltimes, strict=True)
    )
    return msgspec.structs.replace(workload, jobs=jobs)


def read_model(text: str) -> Model:
    """The model of estimates that a text names: a function from run times (J,) in seconds to walltimes (J,).

    Raises:
        ConfigError: if it is unknown.
    """
    name, colon, value = text.partition(":")
    if text == "exact":
        return lambda times, rng: times.copy()
    if name == "factor" and colon:
        factor = _number(text, value, least=1.0)
        return lambda times, rng: factor * times
    if name == "tsafrir":
        longest = _number(text, value, least=3600.0) if colon else None
        return lambda times, rng: modal_estimates(times, rng, longest)
    raise ConfigError(f"the estimates {text!r}: write {ESTIMATES}", field="estimates")


def _number(text: str, value: str, least: float) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not least <= number < math.inf:
        reason = f"must have a number of at least {least:g} after the colon"
        raise ConfigError(f"the estimates {text!r}: {reason}", field="estimates")
    return number
