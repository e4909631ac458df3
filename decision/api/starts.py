"""When waiting jobs start, as a function."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from decision.model.errors import ConfigError, amount, flag, whole
from decision.model.platform import Platform
from decision.model.workload import Workload

from . import given
from .given import Source

if TYPE_CHECKING:
    from pandas import DataFrame

    from decision.policies import Policy

_LATEST = 1e15  # seconds


def starts(
    platform: Platform | Source,
    workload: "Workload | DataFrame | Source",
    policy: "str | Policy",
    options: Mapping[str, Any] | None = None,
    *,
    at: float,
    recorded: bool = False,
    quantiles: Sequence[float] = (0.1, 0.5, 0.9),
    before: float | None = None,
    futures: int = 200,
    moments: int = 40,
    jobs: slice | None = None,
    time_field: int | None = None,
    missing_walltime: str = "none",
    seed: int = 0,
) -> "DataFrame":
    """Say when the jobs that wait at a moment will start, as ``decision starts`` does.

    What is in the log after the moment is not looked at.

    Args:
        platform: the hosts, a SimGrid XML file, or a shipped platform's name.
        workload: the log, as `simulate` takes one.
        policy: as of `simulate`.
        options: options of a named policy.
        at: seconds since the log began: the moment.
        recorded: take what ran and waited then from the log's recorded starts; else it is as the policy has it.
        quantiles: shares of the cases in which a job has started by then, between 0 and 1.
        before: seconds since the log began: the time that chances are asked for.
        futures: how many are simulated.
        moments: earlier moments of the log whose forecasts calibrate these; 0 for none.
        jobs: which jobs of the log are used, in order of submission; all if None.
        time_field: the field of logs that holds the requested time, counted from 1; the standard's if None.
        missing_walltime: of a log's jobs without a requested time, as of `simulate`.
        seed: of all that is drawn.

    Returns:
        A row for each job that waits: ``id``, ``waited`` (s), ``size``, ``limit`` (s), a column for each quantile
        (``q50``: seconds after the moment, inf for never), ``chance``, ``held_by`` and ``unknown``, what the forecast
        does not know of it. Nothing else of the answer: that is in ``attrs["notes"]``.

    Raises:
        ConfigError: if something cannot be read, does not fit together or makes no sense, or pandas is not installed.

    Examples:
        >>> import decision as d
        >>> d.starts("toy", "toy", "fcfs", at=1.0, moments=0)[["id", "waited"]].values.tolist()
        [['w0!2', 1.0], ['w0!3', 1.0], ['w0!4', 0.0], ['w0!5', 0.0]]
    """
    from decision.forecasts.log import log_starts
    from decision.policies import find_policy

    try:
        import pandas  # noqa: F401
    except ImportError:
        raise ConfigError("a frame needs pandas: pip install 'batsim-decision[analysis]'") from None
    selection = given.as_selection(jobs, None, "requested", time_field, missing_walltime, None)
    hosts = given.read_platform(platform, energy=False)
    every = given.as_workloads(workload, selection, hosts)
    if len(every) != 1:
        raise ConfigError("workload: one log, not several", field="workload")
    made = find_policy(policy, given.as_options(options, [policy])) if isinstance(policy, str) else policy
    found = log_starts(
        hosts,
        every[0],
        made,
        amount("at", at, 0.0, _LATEST),
        as_recorded=flag("recorded", recorded),
        quantiles=tuple(quantiles),
        before=before,
        futures=whole("futures", futures, least=2),
        moments=whole("moments", moments, least=0),
        seed=seed,
    )
    frame = found.frame()
    frame.attrs["notes"] = list(found.notes)
    return frame
