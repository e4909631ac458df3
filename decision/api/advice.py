"""Which policy suits a log, as a function."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from decision.model.errors import ConfigError, a_path, amount, mapping, whole

from . import given
from .given import Source

if TYPE_CHECKING:
    from decision.experiments.advise import Advice


def advise(
    workload: Source,
    platform: Source | None = None,
    *,
    hosts: int | None = None,
    baseline: str = "easy",
    longest_wait: float = 1.5,
    weights: Mapping[str, float] | None = None,
    policies: Sequence[str] = (),
    jobs: slice | None = None,
    time_field: int | None = None,
    time_zone: str | None = None,
    shake: int = 10,
    processes: int = 1,
    folder: Source | None = None,
) -> "Advice":
    """Find the policy that suits a log, as ``decision advise`` does.

    Args:
        workload: a log's file, or a shipped workload's name.
        platform: the file of the hosts, or a shipped platform's name; if None, a flat machine.
        hosts: of the flat machine; as many as the log says if None.
        baseline: what runs now.
        longest_wait: the longest wait may be so many times the baseline's; 1 at least.
        weights: how much less ``wait`` and less ``slowdown`` count; 1 each if None: slowdown decides among policies
            whose mean waits are within 3 % times its weight over that of wait.
        policies: further ones to try.
        jobs: which jobs are used, ``slice(0, 5000)``, in order of submission; all if None.
        time_field: the field of logs that holds the requested time, counted from 1; the standard's if None.
        time_zone: of a log's local times, such as ``Europe/Berlin``; UTC if None.
        shake: copies of the log with shaken submissions.
        processes: how many run at a time.
        folder: where finished runs are kept; nowhere if None.

    Returns:
        The advice: ``policy``, ``baseline``, ``change`` (by metric: estimate and 95 % interval, -0.2 is a fifth less),
        ``rows`` (at most eight policies), ``cannot`` (what this log cannot say), ``not_simulated`` (what the log says
        besides: `what`, `jobs`, `share` of the host-seconds, `job_share`, and `text()`), ``better`` (the commands that
        simulate these), ``sentence``.

    Raises:
        ConfigError: if something cannot be read, does not fit together or makes no sense.

    Examples:
        >>> import decision as d
        >>> d.advise("toy", "toy", shake=2).baseline
        'easy'
    """
    from decision.experiments.advise import Wish, find_advice
    from decision.experiments.whole import Log
    from decision.model.computer import find_platform, find_workload

    if platform is not None and hosts is not None:
        raise ConfigError("hosts: give a platform or a number of hosts, not both", field="hosts")
    log = Log(
        workload=find_workload(workload),
        platform=None if platform is None else find_platform(platform),
        hosts=0 if hosts is None else whole("hosts", hosts, least=1),
        selection=given.as_selection(jobs, None, "requested", time_field, "runtime", time_zone),
    )
    wish = Wish(
        baseline=baseline,
        longest_wait=amount("longest_wait", longest_wait, 1.0, 1e6),
        weights=mapping("weights", weights, '{"wait": 1}') or {"wait": 1.0, "slowdown": 1.0},
        policies=(policies,) if isinstance(policies, str) else tuple(policies),
        copies=whole("shake", shake, least=1),
    )
    with tempfile.TemporaryDirectory(prefix="decision-") as temporary:
        kept = Path(temporary) if folder is None else a_path("folder", folder)
        return find_advice(log, wish, kept, processes=whole("processes", processes, least=1))
