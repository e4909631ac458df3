"""What Batsim 5 says otherwise than Batsim 4: of the simulation that begins, jobs, their progress, and events."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from decision import __version__
from decision.model.errors import ConfigError
from decision.model.hosts import parse_hosts
from decision.model.platform import Host, Platform
from decision.model.workload import Composed, Job, MachineEvent, Workload
from decision.protocol import messages as m

from . import batsim_words as words
from .refusals import EngineOptions
from .truth import LeafKind, LeafTask, on_hosts


def simulation_begins_message(
    platform: Platform,
    workloads: Iterable[Workload],
    lists: Mapping[str, str],
    facts: m.BatsimFacts,
    all_profiles: bool,
) -> m.SimulationBegins:
    """Batsim's first event; `lists` are the names and files of external events."""
    workloads = sorted(workloads, key=lambda workload: workload.name)
    data = m.SimulationBeginsData(
        nb_resources=len(platform.hosts) + len(platform.storage),
        nb_compute_resources=len(platform.hosts),
        nb_storage_resources=len(platform.storage),
        allow_compute_sharing=False,
        allow_storage_sharing=True,
        config=m.Config(),
        compute_resources=tuple(_resource(host) for host in platform.hosts),
        storage_resources=tuple(_resource(host) for host in platform.storage),
        workloads={workload.name: workload.path for workload in workloads},
        profiles={workload.name: _profiles(workload) if all_profiles else {} for workload in workloads},
        external_events=dict(lists),
        batsim=facts,
    )
    return m.SimulationBegins(0.0, data)


def own_facts(arguments: Sequence[str] = (), context: str = "{}") -> m.BatsimFacts:
    """What our engine says about itself as a Batsim 5."""
    return m.BatsimFacts(f"v5.0.0-rc2 (decision {__version__})", "", tuple(arguments), context)


def _resource(host: Host) -> m.Resource:
    speeds = tuple(pstate.speed for pstate in host.pstates)
    properties, zone = (dict(sorted(some.items())) for some in (host.properties, host.zone_properties))
    if not properties.get("role"):
        properties.pop("role", None)
    return m.Resource(host.id, host.name, "idle", properties, zone, host.initial_pstate, host.cores, speeds)


def _profiles(workload: Workload) -> dict[str, dict[str, Any]]:
    return {name: profile(name, workload) for name in workload.profiles}


def profile(name: str, workload: Workload) -> dict[str, Any]:
    """A profile's object, in which its parts have their full names."""
    said = words.profile_object(name, workload)
    if "seq" in said:
        said = {**said, "seq": [full(part, workload) for part in said["seq"]], "repeat": said.get("repeat", 1)}
    return said


def full(name: str, workload: Workload) -> str:
    """A profile's id; one that came from another workload has it as its name."""
    moved = "!" in name and name not in workload.profile_sources
    return name if moved else f"{workload.name}!{name}"


def job_submitted_message(time: float, job: Job, workload: Workload, options: EngineOptions) -> m.JobSubmitted:
    """A job arrives, or is acknowledged."""
    said = {**words.job_fields(job), "profile": full(job.profile, workload), "subtime": job.submit_time}
    if said.get("walltime") == 0:
        del said["walltime"]  # which Batsim says of a positive one only
    forwarded: Any = profile(job.profile, workload) if options.forward_profiles else UNSET
    return m.JobSubmitted(time, m.JobSubmittedData(job.id, m.JobDescription(**said), forwarded))


def task_progress_message(leaf: LeafTask, share: float, workload: Workload) -> m.TaskProgress:
    """How far a leaf task is, within the composed profiles around it."""
    progress = m.TaskProgress(full(leaf.profile, workload), share)
    for name, index in reversed(leaf.path):
        around = workload.profiles[name]
        parts = len(around.sequence) if isinstance(around, Composed) else 1
        at, repetition = index % parts, index // parts
        progress = m.TaskProgress(full(name, workload), UNSET, at, progress, repetition)
    return progress


def external_event_message(time: float, event: MachineEvent) -> m.ExternalEvent:
    """An external event happened, which means nothing to Batsim."""
    said = msgspec.json.decode(event.source)
    return m.ExternalEvent(time, m.ExternalEventData(said["id"], said["data"]))


def stamped(events: Iterable[m.BatsimEvent], before: float) -> tuple[m.BatsimEvent, ...]:
    """The events with Batsim 5's times: switches and external events have the time of the event before them."""
    told: list[m.BatsimEvent] = []
    for event in events:
        if isinstance(event, m.ExternalEvent | m.ResourceStateChanged):
            event = msgspec.structs.replace(event, timestamp=before)
        before = event.timestamp
        told.append(event)
    return tuple(told)


# The calls and probes that a decision process asks of Batsim 5: those with a name, and those that come again.
#
# Batsim 5 has one clock for all that is periodic: it strikes at the multiples of the shortest period, which divides all
# others, and then lets all calls and probes act whose period it is, calls first, each kind by name. A probe measures
# from its second time on. An alarm is a call of the engine under a number of ours.


class Alarm(NamedTuple):
    """When the engine is to wake us, under which number."""

    number: int
    time: float  # seconds


class _Series(msgspec.Struct):
    """A periodic call or probe."""

    period: int  # milliseconds
    begin: int  # milliseconds: it does not act at or before this
    left: float  # times; inf for ever
    probe: m.CreateProbeData | None = None
    ready: bool = False  # whether a probe has measured before


class Calls:
    """Those that are under way.

    Args:
        measure: the joules that hosts (as text) have used at a time in seconds, of each.
        refuse: makes the error of an impossible command.
    """

    def __init__(self, measure: Callable[[str, float], list[float]], refuse: Callable[[str], Exception]) -> None:
        self._measure, self._refuse = measure, refuse
        self._last = 0  # number of an alarm
        self._once: dict[int, str] = {}
        self._strokes: dict[int, int] = {}  # milliseconds, by number of the alarm
        self._calls: dict[str, _Series] = {}
        self._probes: dict[str, _Series] = {}

    @property
    def endless(self) -> bool:
        """Whether something comes again for ever."""
        return any(math.isinf(series.left) for series in (*self._calls.values(), *self._probes.values()))

    def nb_strokes(self, seconds: float, reply: Iterable[m.Event]) -> int:
        """How many there may be in a time, once the commands of a reply are carried out."""
        asked = [getattr(event.data, "periodic", None) for event in reply]  # type: ignore[attr-defined]
        periods = self._periods() + [each.milliseconds for each in asked if isinstance(each, m.Periodic)]
        return 4 + int(2 * seconds * 1000 / min(periods)) if periods else 0

    def once(self, call_id: str, time: float) -> Alarm:
        """A call at `time` seconds."""
        alarm = self._alarm(time)
        self._once[alarm.number] = call_id
        return alarm

    def repeat(self, name: str, periodic: m.Periodic, now: float, probe: m.CreateProbeData | None = None) -> None:
        """A periodic call, or a probe, from `now` seconds on; raises what `refuse` makes."""
        series, kind = (self._calls, "call") if probe is None else (self._probes, "probe")
        if name in series:
            raise self._refuse(f"there is a periodic {kind} {name!r} already; give it another name")
        period = periodic.milliseconds
        for other in self._periods():
            if max(period, other) % min(period, other):
                reason = "one must be a multiple of the other"
                raise self._refuse(f"{kind} {name!r}: its period of {period} ms and another of {other} ms: {reason}")
        times = math.inf if periodic.times is None else periodic.times
        series[name] = _Series(period, math.floor(now * 1000 + 1e-6), times, probe)

    def stop(self, name: str, probe: bool = False) -> None:
        """A call or a probe comes no more; Batsim warns of one that there is not."""
        (self._probes if probe else self._calls).pop(name, None)

    def strokes(self, begin: float, end: float, nexts: bool) -> tuple[list[Alarm], list[int]]:
        """New alarms for the clock between two times in seconds, and numbers of those that are void.

        With `nexts` also the first after `end`. It has struck for all that was to come by `begin`.
        """
        periods = self._periods()
        if not periods:
            return [], self._forget(())
        period, first, last = min(periods), math.floor(begin * 1000 + 1e-6), math.floor(end * 1000 + 1e-6)
        wanted = [n * period for n in range(first // period + 1, last // period + 1 + nexts)]
        void = self._forget(wanted) if nexts else []
        known = set(self._strokes.values())
        alarms = []
        for time in wanted:
            if time not in known:
                alarms.append(self._alarm(time / 1000))
                self._strokes[alarms[-1].number] = time
        return alarms, void

    def due(self, number: int, now: float) -> Iterator[m.BatsimEvent]:
        """What an alarm means, at `now` seconds."""
        if number in self._once:
            yield m.RequestedCall(now, m.RequestedCallData(self._once.pop(number), False))
        elif number in self._strokes:
            time = self._strokes.pop(number)
            yield from self._called(time, now)
            yield from self._probed(time, now)

    def _called(self, time: int, now: float) -> Iterator[m.BatsimEvent]:
        for name, series in self._acting(self._calls, time):
            yield m.RequestedCall(now, m.RequestedCallData(name, self._count(self._calls, name, series)))

    def _probed(self, time: int, now: float) -> Iterator[m.BatsimEvent]:
        for name, series in self._acting(self._probes, time):
            if series.ready and series.probe is not None:
                value = self._value(series.probe, now)
                self._count(self._probes, name, series)
                yield m.ProbeDataEmitted(now, m.ProbeData(name, series.probe.hosts, value))
            series.ready = True

    def _value(self, probe: m.CreateProbeData, now: float) -> float | tuple[float, ...]:
        joules = self._measure(probe.hosts, now)
        if probe.aggregation == "NoResourcesAggregation":
            return tuple(joules)
        return sum(joules) / (len(joules) if probe.aggregation == "ArithmeticMean" else 1)

    def _acting(self, which: dict[str, _Series], time: int) -> list[tuple[str, _Series]]:
        return [(n, s) for n, s in sorted(which.items()) if time % s.period == 0 and time > s.begin]

    def _count(self, which: dict[str, _Series], name: str, series: _Series) -> bool:
        """One time less; whether it was the last."""
        series.left -= 1
        if not series.left:
            del which[name]
        return not series.left

    def _periods(self) -> list[int]:
        return [series.period for series in (*self._calls.values(), *self._probes.values())]

    def _alarm(self, time: float) -> Alarm:
        self._last += 1
        return Alarm(self._last, time)

    def _forget(self, wanted: object) -> list[int]:
        """Drop the strokes that nobody waits for; their numbers."""
        void = [number for number, time in self._strokes.items() if time not in wanted]  # type: ignore[operator]
        for number in void:
            del self._strokes[number]
        return void


# Where Batsim 5 puts the executors of a job: on any number of hosts, by a strategy, by hand, or by part of a sequence.
#
# A job has as many executors as it asks for hosts, unless a mapping by hand says otherwise. It may have other hosts
# than so many, and a part of a sequence some of them only.

_FILL = "FillOneHostCoresFirst"
_BY_HAND = "CustomExecutorToHostMapping"


class _Override(msgspec.Struct):
    """What a start says of one profile."""

    profile_id: str
    host_allocation: str
    executor_placement_type: str = ""
    executor_placement: dict[str, Any] = {}


def placed_leaves(
    job: Job, leaves: tuple[LeafTask, ...], data: m.ExecuteJobData, hosts: Sequence[int], cores: Sequence[int]
) -> tuple[LeafTask, ...]:
    """The leaves of a job with one amount for each of its hosts; the same where each executor has a host for itself.

    Args:
        job: that starts.
        leaves: what it does.
        data: the start.
        hosts: the job's, ascending.
        cores: of each host of the platform.

    Raises:
        ConfigError: where that cannot be; without the job's name.
    """
    others = _overrides(data, hosts)
    strategy = "" if data.strategy is UNSET else data.strategy
    mapping = None if data.mapping is UNSET else [int(data.mapping[str(i)]) for i in range(len(data.mapping))]
    own = _places(job, strategy, mapping, [cores[host] for host in hosts])

    def place(leaf: LeafTask) -> LeafTask:
        places, chosen = own, others.get(_full(leaf.profile, job))
        if chosen is not None:
            at = [hosts.index(host) for host in parse_hosts(chosen.host_allocation)]
            said = chosen.executor_placement
            by_hand = said.get("mapping", []) if chosen.executor_placement_type == _BY_HAND else None
            local = _places(job, str(said.get("strategy", "")), by_hand, [cores[hosts[each]] for each in at])
            places = [at[each] for each in local]
        if leaf.kind is LeafKind.FLOPS_VECTOR and len(leaf.flops) != len(places):
            raise ConfigError(
                f"profile {leaf.profile!r} is for {len(leaf.flops)} executors, and {len(places)} are placed"
            )
        return leaf if places == [*range(len(hosts))] else on_hosts(leaf, places, len(hosts))

    return tuple(map(place, leaves))


def _places(job: Job, strategy: str, mapping: Sequence[int] | None, cores: Sequence[int]) -> list[int]:
    """For each executor the index of its host, of which there is one for each of `cores`."""
    if mapping is not None:
        if not all(isinstance(place, int) and 0 <= place < len(cores) for place in mapping):
            raise ConfigError(f"a mapping must name hosts 0 to {len(cores) - 1} of its allocation; found {[*mapping]}")
        return [*mapping]
    slots = [host for host, some in enumerate(cores) for _ in range(some if strategy == _FILL else 1)]
    return [slots[executor % len(slots)] for executor in range(job.size)]


def _overrides(data: m.ExecuteJobData, hosts: Sequence[int]) -> Mapping[str, _Override]:
    """By the profile's full name."""
    if data.overrides is UNSET:
        return {}
    found: dict[str, _Override] = {}
    for said in data.overrides:
        try:
            override = msgspec.convert(said, _Override)
        except msgspec.ValidationError as error:
            raise ConfigError(f"profile_allocation_override: {error}") from None
        outside = set(parse_hosts(override.host_allocation)) - {*hosts}
        if outside:
            what = f"profile {override.profile_id!r} is to run on host {min(outside)}, which the job does not have"
            raise ConfigError(f"{what}: that is not supported; give the job all its hosts")
        found[override.profile_id] = override
    return found


def _full(profile: str, job: Job) -> str:
    return profile if profile.startswith(f"{job.workload}!") else f"{job.workload}!{profile}"
