"""Runs: made, read again, and trials of a policy; and when waiting jobs start."""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decision.model.errors import ConfigError, a_path, amount, flag, mapping, whole
from decision.model.platform import Platform
from decision.model.workload import MachineEvent, Workload

from . import given
from .given import Source
from .results import SimulationResult

if TYPE_CHECKING:
    from pandas import DataFrame

    from decision.model.reshape import Walltimes
    from decision.policies import Policy

_LONGEST_DECISION = 1e9  # seconds


def simulate(
    platform: Platform | Source,
    workload: "Workload | DataFrame | Source | Sequence[Workload | DataFrame | Source]",
    policy: "str | Policy",
    options: Mapping[str, Any] | None = None,
    *,
    energy: bool = False,
    events: Iterable[MachineEvent] | Source = (),
    jobs: slice | None = None,
    nodes: int | None = None,
    walltime: "Walltimes" = "requested",
    missing_walltime: str = "none",
    time_field: int | None = None,
    time_zone: str | None = None,
    seed: int = 0,
) -> SimulationResult:
    """Run a policy over a workload on the embedded engine.

    Args:
        platform: the hosts, a SimGrid XML file, or a shipped platform's name (``"taurus"``).
        workload: the jobs, a file of Batsim's (``.json``) or a log (``.swf``), a shipped workload's name, or a
            DataFrame with columns ``submit_time``, ``size``, ``runtime`` and, if they are known, ``walltime``, ``id``
            and ``user``; or several of these.
        policy: a name that ``decision policies`` lists, ``"module:Class"``, ``"./file.py:Class"``, a checkpoint's file;
            ``"pybatsim:module:Class"``; or the policy itself, any object with `Policy`'s two methods.
        options: options of a named policy.
        energy: simulate power states and energy; a platform that is given as an object must have been loaded with it.
        events: what happens to the platform from outside, or the file of it.
        jobs: which jobs of each workload are used, ``slice(0, 5000)``, in order of submission; all if None.
        nodes: larger jobs are left out.
        walltime: ``requested``, ``runtime`` (perfect estimates) or ``none``.
        missing_walltime: of a log's jobs without a requested time: ``none``, ``runtime``, ``longest`` or a model.
        time_field: the field of logs that holds the requested time, counted from 1; the standard's if None.
        time_zone: of a log's local times, such as ``Europe/Berlin``; UTC if None.
        seed: of a policy that draws at random.

    Raises:
        ConfigError: if something cannot be read, does not fit together or makes no sense.
        PolicyError: if the policy decides something impossible, or nothing while jobs wait.

    Examples:
        >>> import decision as d
        >>> d.simulate("toy", "toy", "easy").summary().makespan
        8.0
        >>> import pandas
        >>> table = pandas.DataFrame({"submit_time": [0, 1], "size": [4, 1], "runtime": [60, 5]})
        >>> d.simulate("toy", table, "fcfs").jobs.waiting_time.tolist()
        [0.0, 59.0]
    """
    from decision.experiments.inputs import Inputs, LoadedInputs
    from decision.experiments.run import run_inputs

    energy = flag("energy", energy)
    choice = given.read_choice(policy, options, seed)
    selection = given.as_selection(jobs, nodes, walltime, time_field, missing_walltime, time_zone)
    hosts = given.read_platform(platform, energy)
    case = LoadedInputs(
        inputs=Inputs(platform=Path(hosts.path), workloads=(), energy=energy),
        platform=hosts,
        workloads=given.as_workloads(workload, selection, hosts),
        events=given.as_events(events),
    )
    title = f"{choice.policy} on {Path(hosts.path).stem}" if hosts.path else choice.policy
    return SimulationResult(run_inputs(case, choice), hosts, title)


def read_run(folder: Source, platform: Platform | Source | None = None) -> SimulationResult:
    """Read what a run has written: ``decision run``, `SimulationResult.write` or Batsim itself.

    Args:
        folder: of the run, or the prefix of its files (``out/out``).
        platform: the hosts that it ran on; with them and their energy the summary has what idle hosts wasted.

    Raises:
        InputError: if there is no run, it has not finished, or a file is damaged.

    Examples:
        >>> import decision as d
        >>> d.simulate("toy", "toy", "easy").write("out")
        >>> d.read_run("out").summary().makespan
        8.0
    """
    from decision.files.outputs_read import read_facts
    from decision.files.outputs_read import read_run_record as read

    place = a_path("folder", folder)
    record, facts = read(place), read_facts(place if place.is_dir() else place.parent)
    if facts is not None and facts.window_gap is not None:
        record.window_gap = facts.window_gap
    hosts = None if platform is None else given.read_platform(platform, record.energy is not None)
    if hosts is not None and len(hosts.hosts) != record.nb_hosts:
        there = f"the run had {record.nb_hosts:,} hosts, and this platform has {len(hosts.hosts):,}"
        raise ConfigError(f"platform: {there}", field="platform")
    title = str(place) if facts is None else f"{facts.name} on {Path(facts.platform.name).stem}"
    return SimulationResult(record, hosts, title)


def check_policy(
    policy: "str | type[Policy] | Policy", options: Mapping[str, Any] | None = None, *, decide_limit: float = 5.0
) -> list[str]:
    """Test whether a policy follows the rules of every policy, on small workloads.

    Args:
        policy: its name as of `simulate`, its class, or an object, of which copies are tried.
        options: options of a named policy.
        decide_limit: seconds that a policy in Python may take for a decision; 0 means no limit.

    Returns:
        One line for each rule that it breaks, with the first trial that found it; none if it keeps them all.

    Raises:
        ConfigError: if there is no such policy, or it cannot be made.

    Examples:
        >>> import decision as d
        >>> class Idle:
        ...     def reset(self, platform, seed): pass
        ...     def decide(self, cluster, plan): pass
        >>> d.check_policy(Idle)[0]
        'one job: t=1 s: nothing can happen any more: w0!0 wait; start or reject them, or ask to be called later'
    """
    from decision.policies import find_policy
    from decision.policies.registry import make_policy
    from decision.simulation import try_policy as check

    decide_limit = amount("decide_limit", decide_limit, 0, _LONGEST_DECISION)
    if isinstance(policy, str):
        settings = mapping("options", options, given.OPTIONS_EXAMPLE)
        return check(lambda: find_policy(policy, settings), decide_limit)
    if isinstance(policy, type):
        settings = mapping("options", options, given.OPTIONS_EXAMPLE)
        return check(lambda: make_policy(policy.__name__, policy, settings), decide_limit)
    given.as_options(options, [policy])
    return check(lambda: deepcopy(policy), decide_limit)


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
