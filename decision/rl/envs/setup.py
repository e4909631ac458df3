"""What an environment is made of, from the options that a user gives: trace, rules of episodes, observation."""

import inspect
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.batsim.episodes import BatsimForEpisodes, engine_of
from decision.compiling.bundle import F8, I4, I8, Bundle
from decision.engine.kernels.arrays import DELAY, Truth
from decision.engine.rules import EngineOptions, check_events, check_inputs, events_in_order
from decision.engine.truth import Names, build_truth
from decision.files import load_platform, load_workload
from decision.files.events import check_supply, load_events
from decision.model.dates import DAY_LEAD, sequential_groups
from decision.model.demand import sizes
from decision.model.errors import ConfigError, whole
from decision.model.hosts import nearest
from decision.model.platform import Host, Platform, PowerState
from decision.model.reshape import at_most
from decision.model.workload import POWER_SUPPLY, MachineEvent, Workload
from decision.policies.checks import Misfits, check_estimates
from decision.policies.traits import Estimator, OutlookSettings, SupplySettings
from decision.rl.schedulers.base import ChoosingScheduler, Encoder, Episodes, Scheduler, find_observation

ARRIVALS = 4  # times the jobs to be placed: when so many have come, an episode is given up; memory has room for them


class JobStream(msgspec.Struct, frozen=True):
    """A workload without end: its jobs in the order of their submission, again and again.

    The trace is repeated as often as an episode can need, so that it may begin at any of the jobs. Between its last job
    and its first there is as much time as between any two of its jobs on average. Times stay those of the workload.
    """

    truth: Truth
    runtime: NDArray[np.float64]  # (R,) seconds that each job runs, nan where it does more than wait
    jobs: int  # T: rows of the workload; row t is job t % T of it
    ids: list[str]  # (T,) of the workload's jobs


class Beginnings(Bundle):
    """Where episodes may begin. B beginnings, H hosts."""

    row: I8  # (B,) first row of the trace that comes, ascending
    last: I8  # (B,) one past the last row that may come
    clock: F8  # (B,) seconds: when the episode begins
    end: F8  # (B,) seconds: when it is cut off, inf where it is not
    counted: F8  # (B,) seconds: from when on what servers waste is counted
    pstate: I4  # (H,) pstates of the hosts at the beginning
    # a random episode is of one of G groups, and then any of it
    member: I8  # (B,) indices of beginnings, by group
    group: I8  # (G + 1,) where each group begins in it


class Rules(NamedTuple):
    """What an episode is, as compiled loops take it."""

    jobs: int  # the episode ends when so many have been placed
    horizon: int  # 1: that truncates it; 0: that terminates it
    arrivals: int  # rows of the trace that may come, at most
    gives_up: int  # 1: truncated when they all have come; 0: they are the episode's jobs, and the trace stops
    steps: int  # choices at which it is truncated
    steps_end: int  # 1: it terminates then
    window: int  # jobs of the queue that are seen
    baseline_action: int  # `ChoosingScheduler.baseline_action`
    energy: int  # 1 where energy is simulated, and hosts may sleep
    opens_first: int  # `ChoosingScheduler.opens_first`
    drains: int  # 1: it terminates when nothing can happen any more; 0: that truncates it
    ends_with_jobs: int  # 1: it terminates when all of its jobs are over
    counts_value: int  # 1: the value of jobs is counted
    rejects_late: int  # 1: jobs leave that cannot end in time
    suspends_beyond: int  # 1: jobs beyond the supply of power are suspended


def make_episodes(
    workload: Workload,
    platform: Platform,
    episodes: Episodes,
    scheduler: ChoosingScheduler,
    window: int,
    events: Sequence[MachineEvent] = (),
    supply: SupplySettings | None = None,
    no_network: str = "training environments have no network",
) -> tuple[JobStream, Beginnings, Rules]:
    """The trace, long enough for the episodes, where they begin, and their rules.

    `supply` is what happens beyond the supply of power that the events are, and after deadlines; `no_network` is why
    jobs may not communicate, empty where they may.

    Raises:
        ConfigError: if the engine cannot simulate the workload, or an episode begins at a job that there is not.
    """
    truth, names = build_truth([workload], [events] if events else [], no_network)
    beginnings = _days(truth, episodes) if episodes.days is not None else _rows(truth, episodes)
    arrivals = max(int((beginnings.last - beginnings.row).max()), 1)
    jobs = len(names) if episodes.jobs is None else episodes.jobs
    choices = min(jobs, arrivals) + scheduler.choices_per_job * arrivals + 2
    rules = Rules(
        jobs=arrivals + 1 if episodes.days else jobs,
        horizon=int(episodes.horizon),
        arrivals=arrivals,
        gives_up=int(episodes.online and episodes.seconds == np.inf and episodes.days is None),
        steps=choices if episodes.steps is None else episodes.steps,
        steps_end=int(episodes.steps_end),
        window=window,
        baseline_action=scheduler.baseline_action,
        energy=int(scheduler.energy),
        opens_first=int(scheduler.opens_first),
        drains=int(episodes.days is not None),
        ends_with_jobs=int(episodes.ends_with_jobs),
        counts_value=int(supply is not None),
        rejects_late=int(supply is not None and supply.rejects_late),
        suspends_beyond=int(supply is not None and supply.suspends_beyond),
    )
    pstate = np.array([host.initial_pstate for host in platform.hosts], np.int32)
    trace = _repeated(truth, names, arrivals)
    if episodes.days is not None:  # the jobs of each day come at the times of its own clock
        submit = trace.truth.submit_time.copy()
        for day in episodes.days:
            submit[day.first : day.first + day.jobs] += DAY_LEAD - day.midnight
        trace = msgspec.structs.replace(trace, truth=trace.truth._replace(submit_time=submit))
    return trace, beginnings._replace(pstate=pstate), rules


def _rows(truth: Truth, episodes: Episodes) -> Beginnings:
    """Where episodes may begin in a workload without end; hosts are not known yet."""
    submit = truth.submit_time
    count = len(submit)
    rows = np.arange(count) if episodes.rows is None else np.array(episodes.rows, np.int64)
    if not len(rows) or rows.min() < 0 or rows.max() >= count or (np.diff(rows) <= 0).any():
        raise ConfigError(f"rows: episodes must begin at jobs from 0 to {count - 1}, each named once and in order")
    clock = submit[rows] if episodes.begins is None else np.array(episodes.begins, float)
    if clock.shape != rows.shape or (clock > submit[rows]).any():
        raise ConfigError("begins: there must be one instant for each of rows, at the job's submission or before it")
    end = clock + episodes.seconds
    jobs = count if episodes.jobs is None else episodes.jobs
    if episodes.seconds == np.inf:
        last = rows + (ARRIVALS * jobs if episodes.online else jobs)
    elif episodes.online:  # the first row that is submitted at the end or later, of a trace that begins again
        period = _period(submit)
        round_ = np.floor((end - submit[0]) / period).astype(np.int64)
        last = np.maximum(round_ * count + np.searchsorted(submit, end - round_ * period), rows)
    else:
        last = np.maximum(np.searchsorted(submit, end), rows)
    return _beginnings(rows, last, clock, end, clock, np.zeros(len(rows), np.int64))


def _days(truth: Truth, episodes: Episodes) -> Beginnings:
    """Days, each with a clock of its own; hosts are not known yet."""
    days = episodes.days or ()
    rows = np.array([day.first for day in days], np.int64)
    clock = np.zeros(len(rows))
    last = rows + np.array([day.jobs for day in days], np.int64)
    group = sequential_groups(truth.submit_time, days)
    return _beginnings(rows, last, clock, clock + episodes.seconds, clock + DAY_LEAD, group)


def _beginnings(
    row: NDArray[np.int64],
    last: NDArray[np.int64],
    clock: NDArray[np.float64],
    end: NDArray[np.float64],
    counted: NDArray[np.float64],
    group: NDArray[np.int64],
) -> Beginnings:
    sizes = np.bincount(group)
    bounds = np.concatenate(([0], np.cumsum(sizes[sizes > 0])))
    member = np.argsort(group, kind="stable")
    none = np.zeros(0, np.int32)
    return Beginnings(
        row=row, last=last, clock=clock, end=end, counted=counted, pstate=none, member=member, group=bounds
    )


def _repeated(truth: Truth, names: Names, arrivals: int) -> JobStream:
    jobs = len(names)
    row = np.arange(jobs + arrivals)
    again = {name: getattr(truth, name)[row % jobs] for name in ("size", "walltime", "user", "estimate", "profile")}
    if len(truth.worth):
        again["worth"] = truth.worth[row % jobs]
    submit = truth.submit_time[row % jobs] + _period(truth.submit_time) * (row // jobs)
    # real run times are known of jobs that do nothing but wait; what others take, only the engine says
    does = [names.leaves(job) for job in range(jobs)]
    delays = [all(leaf.kind == DELAY for leaf in leaves) for leaves in does]
    runs = [sum(leaf.amount for leaf in leaves) for leaves in does]
    runtime = np.minimum(np.where(delays, runs, np.nan), truth.walltime)
    return JobStream(
        truth=truth._replace(submit_time=submit, **again),
        runtime=runtime[row % jobs],
        jobs=jobs,
        ids=names.texts("id", np.arange(jobs)),
    )


def _period(submit_time: NDArray[np.float64]) -> float:
    """Seconds from a job to the same job in the next repetition."""
    span = float(submit_time[-1] - submit_time[0])
    return max(span + span / max(len(submit_time) - 1, 1), 1.0)


Source = str | os.PathLike[str]


class Setup(msgspec.Struct, frozen=True):
    """All that environments of one kind share."""

    platform: Platform
    trace: JobStream
    rules: Rules
    beginnings: Beginnings
    encoder: Encoder
    scheduler: ChoosingScheduler
    settings: Any  # the scheduler's
    workload: Workload  # the trace's
    outlook: OutlookSettings | None = None  # what its kernels expect of jobs; None for walltimes
    supply: SupplySettings | None = None  # what happens beyond a supply of power and after deadlines
    engine: BatsimForEpisodes | None = None  # what simulates; None for the embedded engine


def make_setup(
    workload: Workload | Source,
    platform: Platform | Source | None = None,
    *,
    encoder: Encoder | str | ChoosingScheduler = "dbf",
    jobs: int | None = -1,
    episodes: Episodes | None = None,
    events: Sequence[MachineEvent] | Source = (),
    engine: BatsimForEpisodes | str | None = None,
    batsim: str | None = None,
    batsim_args: str = "",
    image: str | None = None,
    timeout: float = 300.0,
    **options: Any,
) -> Setup:
    """Read files and check options.

    Args:
        workload: the jobs, or a file of them (``.swf`` or Batsim's JSON).
        platform: the hosts, or a file of them; without it, as many equal hosts as the workload was made for.
        encoder: the name of an observation (``dbf``, ``dbf-pools``, ``rlscheduler``, ``inspector``, or that of a
            scheduler that was registered), or a finished one, which has what follows up to `base`; or a scheduler.
        jobs: how many an episode places; None for all of the workload; by default as many as the scheduler's settings
            say.
        episodes: what begins and ends an episode, in place of what the scheduler says.
        events: a supply of power, or a file of it, for schedulers that know one (``green``).
        engine: what simulates: ``embedded``, ``batsim`` (a Batsim is started for each episode), ``docker``, or all that
            follows up to `timeout` in one.
        batsim: Batsim's executable, for ``batsim``; by default the command ``batsim``.
        batsim_args: more of its options, in one text.
        image: Batsim's image, for ``docker``.
        timeout: seconds to wait for one of its messages; 0 waits without limit.
        options: settings of the scheduler (section ``env`` of its presets), of which schedulers have some:

            - ``max_runtime``: seconds that count as 1; by default the longest walltime of the workload;
            - ``max_wait``: likewise for waiting; by default as `max_runtime` with DBF, else 12 hours;
            - ``head``, ``tail``: window slots for the first and the last jobs of the queue;
            - ``pools``: with ``dbf-pools``, how many numbers describe the cluster;
            - ``base``: with ``inspector``, the order that is inspected, ``sjf`` or ``f1``;
            - ``online``: whether jobs go on to arrive, the trace beginning again at its end; if not, only `jobs` come;
            - ``weights``: with DBF, w1, w2 and w3 of the reward, for idle cores, queue length and waiting time.

    Raises:
        ConfigError: if something cannot be read, does not fit, or makes no sense.
    """
    external = engine_of(engine, batsim, batsim_args, image, timeout)
    workload = workload if isinstance(workload, Workload) else load_workload(workload)
    platform = equal_hosts(workload.nb_res) if platform is None else platform
    platform = platform if isinstance(platform, Platform) else load_platform(platform)
    # what really happened is not for who learns; and what no policy of these environments could start is refused
    workload = without_misfits(msgspec.structs.replace(workload, trace=None), platform)
    where, cores = workload.path or f"workload {workload.name}", len(platform.hosts)
    if not workload.jobs:
        raise ConfigError(f"{where}: there are no jobs for {cores:,} hosts; an environment needs some")
    for job in workload.jobs:
        if not 0 < job.walltime < np.inf:
            raise ConfigError(f"{where}: job {job.id} has no 'walltime', and observations need one; give it one")
    if jobs is not None and jobs != -1:
        options["jobs"] = whole("jobs", jobs, 1)
    if isinstance(encoder, ChoosingScheduler):
        scheduler, fixed = encoder, next(iter(encoder.observations.values()))
    else:
        scheduler, fixed = find_observation(encoder if isinstance(encoder, str) else encoder.name)
    settings, rest = scheduler.read_options({**scheduler.env_options, **options, **fixed})
    if not isinstance(encoder, Encoder):
        _refuse_unknown(scheduler, rest)
        encoder = scheduler.make_encoder(settings, cores, [workload], **rest)
    encoder.check_platform(platform)
    if episodes is None:
        episodes = scheduler.episodes(settings, workload)
        episodes = msgspec.structs.replace(episodes, jobs=None) if jobs is None else episodes
    supply = scheduler.supply(settings)
    events = _read_events(events, workload, cores, scheduler, supply)
    check_inputs(platform, [], events, EngineOptions(energy=scheduler.energy, forward_unknown_events=bool(events)))
    check_events(events, cores)
    trace, beginnings, rules = make_episodes(
        workload,
        platform,
        episodes,
        scheduler,
        encoder.window,
        events=events,
        supply=supply,
        **({} if external is None else {"no_network": ""}),
    )
    outlook = scheduler.outlook(settings, encoder)
    if outlook is not None and outlook.estimate == Estimator.GIVEN:
        check_estimates(workload)
    return Setup(platform, trace, rules, beginnings, encoder, scheduler, settings, workload, outlook, supply, external)


def _read_events(
    events: Sequence[MachineEvent] | Source,
    workload: Workload,
    nb_hosts: int,
    scheduler: Scheduler,
    supply: SupplySettings | None,
) -> list[MachineEvent]:
    """A supply of power in order, which lasts as long as jobs come."""
    if isinstance(events, str | os.PathLike):
        events = load_events(events, supply=True)
    events = events_in_order(events)
    if events and supply is None:
        raise ConfigError(f"environments of {scheduler.name} know no supply of power; leave the events out")
    for event in events:
        if event.type != POWER_SUPPLY:
            raise ConfigError(f"environments know events of type {POWER_SUPPLY}, and none of type {event.type}")
    check_supply(events, nb_hosts, [workload])
    return events


def _refuse_unknown(scheduler: ChoosingScheduler, options: Mapping[str, Any]) -> None:
    """Refuse options that neither the scheduler's settings nor its encoder have."""
    taken = inspect.signature(scheduler.make_encoder).parameters
    of_encoder = [name for name, p in taken.items() if p.kind is p.KEYWORD_ONLY or p.default is not p.empty]
    known = dict.fromkeys(
        (*scheduler.Settings.__struct_fields__, *of_encoder, *inspect.signature(make_setup).parameters)
    )
    del known["options"]
    for name in options:
        if name not in known and not any(p.kind is p.VAR_KEYWORD for p in taken.values()):
            hint, has = nearest(name, known), ", ".join(known)
            raise ConfigError(f"an environment of {scheduler.name} has no option {name!r}{hint} (it has {has})")


def equal_hosts(hosts: int) -> Platform:
    """A platform of so many hosts of one power state."""
    pstates = (PowerState(1e9),)
    return Platform(hosts=tuple(Host(id=i, name=f"host{i:06}", pstates=pstates) for i in range(hosts)))


def without_misfits(workload: Workload, platform: Platform) -> Workload:
    """The jobs that the engines do not reject at once because they need more hosts than there are."""
    hosts, misfits = len(platform.hosts), Misfits()
    for job in workload.jobs:
        if job.size > hosts:
            misfits.add(job.id, job.size)
    misfits.tell(hosts)
    return at_most(workload, hosts) if (sizes(workload) > hosts).any() else workload
