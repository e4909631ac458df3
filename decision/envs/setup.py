"""What an environment is made of, from the options that a user gives: trace, rules of episodes, observation."""

import inspect
import os
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from decision.engine.options import EngineOptions, check_inputs, events_in_order
from decision.engine.refusals import check_events
from decision.formats import load_platform, load_workload
from decision.formats.events import check_supply, load_events
from decision.learned.base import ChoosingScheduler, Episodes, Scheduler
from decision.learned.encoder import Encoder
from decision.learned.registry import find_observation
from decision.model.arguments import whole
from decision.model.demand import sizes
from decision.model.errors import ConfigError
from decision.model.names import nearest
from decision.model.platform import Host, Platform, PowerState
from decision.model.reshape import at_most
from decision.model.workload import POWER_SUPPLY, MachineEvent, Workload
from decision.policies.job_check import check_estimates
from decision.policies.outlook_settings import Estimator, OutlookSettings
from decision.policies.supply_settings import SupplySettings
from decision.simulation.misfits import Misfits

from .rows import Beginnings, JobStream, Rules, make_episodes

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
    outlook: OutlookSettings | None = None  # what its kernels expect of jobs; None for walltimes
    supply: SupplySettings | None = None  # what happens beyond a supply of power and after deadlines


def make_setup(
    workload: Workload | Source,
    platform: Platform | Source | None = None,
    *,
    encoder: Encoder | str = "dbf",
    jobs: int | None = -1,
    episodes: Episodes | None = None,
    events: Sequence[MachineEvent] | Source = (),
    **options: Any,
) -> Setup:
    """Read files and check options.

    Args:
        workload: the jobs, or a file of them (``.swf`` or Batsim's JSON).
        platform: the hosts, or a file of them; without it, as many equal hosts as the workload was made for.
        encoder: the name of an observation (``dbf``, ``dbf-pools``, ``rlscheduler``, ``inspector``, or that of a
            scheduler that was registered), or a finished one, which has what follows up to `base`.
        jobs: how many an episode places; None for all of the workload; by default as many as the scheduler's settings
            say.
        episodes: what begins and ends an episode, in place of what the scheduler says.
        events: a supply of power, or a file of it, for schedulers that know one (``green``).
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
    workload, platform = _read(workload, platform)
    workload = without_misfits(workload, platform)
    _check_jobs(workload, platform)
    cores = len(platform.hosts)
    if jobs is not None and jobs != -1:
        options["jobs"] = whole("jobs", jobs, 1)
    name = encoder if isinstance(encoder, str) else encoder.name
    scheduler, fixed = find_observation(name)
    settings, rest = scheduler.read_options({**scheduler.env_options, **options, **fixed})
    if isinstance(encoder, str):
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
        workload, platform, episodes, scheduler, encoder.window, events=events, supply=supply
    )
    outlook = scheduler.outlook(settings, encoder)
    if outlook is not None and outlook.estimate == Estimator.GIVEN:
        check_estimates(workload)
    return Setup(platform, trace, rules, beginnings, encoder, scheduler, settings, outlook, supply)


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
    own = [name for name, each in taken.items() if each.kind is each.KEYWORD_ONLY or each.default is not each.empty]
    known = dict.fromkeys((*scheduler.Settings.__struct_fields__, *own, *inspect.signature(make_setup).parameters))
    del known["options"]
    for name in options:
        if name not in known and not any(each.kind is each.VAR_KEYWORD for each in taken.values()):
            hint, has = nearest(name, known), ", ".join(known)
            raise ConfigError(f"an environment of {scheduler.name} has no option {name!r}{hint} (it has {has})")


def equal_hosts(hosts: int) -> Platform:
    """A platform of so many hosts of one power state."""
    pstates = (PowerState(1e9),)
    return Platform(hosts=tuple(Host(id=i, name=f"host{i:06}", pstates=pstates) for i in range(hosts)))


def _read(workload: Workload | Source, platform: Platform | Source | None) -> tuple[Workload, Platform]:
    if not isinstance(workload, Workload):
        workload = load_workload(workload)
    if platform is None:
        platform = equal_hosts(workload.nb_res)
    workload = msgspec.structs.replace(workload, trace=None)  # what really happened is not for who learns
    return workload, platform if isinstance(platform, Platform) else load_platform(platform)


def without_misfits(workload: Workload, platform: Platform) -> Workload:
    """The jobs that the engines do not reject at once because they need more hosts than there are."""
    hosts, misfits = len(platform.hosts), Misfits()
    for job in workload.jobs:
        if job.size > hosts:
            misfits.add(job.id, job.size)
    misfits.tell(hosts)
    return at_most(workload, hosts) if (sizes(workload) > hosts).any() else workload


def _check_jobs(workload: Workload, platform: Platform) -> None:
    """Refuse what no policy of these environments could start."""
    where, hosts = workload.path or f"workload {workload.name}", len(platform.hosts)
    if not workload.jobs:
        raise ConfigError(f"{where}: there are no jobs for {hosts:,} hosts; an environment needs some")
    for job in workload.jobs:
        if not 0 < job.walltime < np.inf:
            raise ConfigError(f"{where}: job {job.id} has no 'walltime', and observations need one; give it one")
