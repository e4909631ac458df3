"""Random worlds for two engines: platforms, workloads, external events, options, and a decision process full of whims.

Times, amounts and speeds are small and mostly powers of two, so that much happens at one instant.
"""

import math
import random
from dataclasses import dataclass
from typing import Any

import msgspec
from hypothesis import strategies as st

import decision.protocol.messages as p
from decision.engine.rules import EngineOptions
from decision.model.hosts import format_hosts, parse_hosts
from decision.model.platform import FatTree, Flat, Host, Link, Platform, PowerState, Route, SleepState
from decision.model.workload import (
    Composed,
    Delay,
    Job,
    MachineEvent,
    Parallel,
    ParallelHomogeneous,
    ParallelHomogeneousTotal,
    Profile,
    Workload,
)

# --- Platforms -----------------------------------------------------------------------------------------------

QUICK, SLOW = PowerState(2.0, 10.0, 20.0, 100.0), PowerState(1.0, 8.0, 10.0, 40.0)
ASLEEP, OFF, ON = PowerState(0.01, 1.0, 1.0, 1.0), PowerState(0.5, 30.0, 30.0, 30.0), PowerState(1.0, 60.0, 60.0, 60.0)
DEEPLY, OFF_DEEPLY, ON_DEEPLY = PowerState(0.01, 0.5, 0.5, 0.5), PowerState(0.25, 25.0, 25.0, 25.0), ON
THIRD = PowerState(3.0, 11.0, 13.0, 57.0)
SLEEPY = SleepState(2, 3, 4)
SLEEPIER = SleepState(5, 6, 7)
MODELS: list[tuple[tuple[PowerState, ...], tuple[SleepState, ...]]] = [
    ((QUICK, SLOW, ASLEEP, OFF, ON), (SLEEPY,)),
    ((SLOW, QUICK, ASLEEP, OFF, ON, DEEPLY, OFF_DEEPLY, ON_DEEPLY), (SLEEPY, SLEEPIER)),
    ((QUICK, SLOW), ()),
    ((THIRD, SLOW, ASLEEP, ON, ON), (SLEEPY,)),
]


ROUTES = st.builds(Route, st.sampled_from([1e-6, 5e-5, 0.0, 0.25]), st.sampled_from([1.25e10, 1.25e9, math.inf]))


@st.composite
def platforms(draw: st.DrawFn, asleep: bool, links: bool) -> Platform:
    """One to six hosts of one or several models; rarely 66, which do not fit into one word of a bitmap."""
    models = draw(st.lists(st.sampled_from(MODELS), min_size=1, max_size=2))
    count = draw(st.sampled_from([4, 1, 2, 3, 4, 5, 6, 66]))
    hosts = tuple(_host(number, *models[number % len(models)], draw, asleep) for number in range(count))
    storage = (Host(id=count, name="disk", pstates=(QUICK,), has_power=True),) if draw(st.booleans()) else ()
    routes = ()
    if links:  # the master's own messages always take time where any do, as in SimGrid
        kinds = draw(st.lists(ROUTES, min_size=1, max_size=3))
        routes = (*(kinds[number % len(kinds)] for number in range(count)), Route(0.0, 1e10))
    return Platform(hosts=hosts, storage=storage, routes=routes)


def _host(
    number: int, pstates: tuple[PowerState, ...], sleep: tuple[SleepState, ...], draw: st.DrawFn, asleep: bool
) -> Host:
    initial = draw(st.sampled_from([0, 0, 0, 1, 2] if asleep else [0, 1])) if number < 4 else 0
    initial = min(initial, len(pstates) - 1)
    name = f"node-{number:02}"
    return Host(id=number, name=name, pstates=pstates, sleep=sleep, initial_pstate=initial, has_power=True)


@st.composite
def connected(draw: st.DrawFn, platform: Platform) -> Platform:
    """The platform with a network of few bytes per second, its hosts somewhere in it."""
    hosts = len(platform.hosts)
    seconds = draw(st.sampled_from([0.0, 1e-6, 0.25]))
    links = st.builds(Link, st.sampled_from([1.0, 2.0, 4.0]), st.just(seconds))
    if draw(st.booleans()):
        return msgspec.structs.replace(platform, topology=Flat(hosts, draw(links), draw(st.none() | links)))
    few = st.integers(1, 3)
    down = [draw(few)]
    while math.prod(down) < hosts:
        down.append(draw(few) + 1)
    numbers = st.lists(few, min_size=len(down), max_size=len(down)).map(tuple)
    equal = (draw(links),) * len(down)
    cables = draw(st.lists(links, min_size=len(down), max_size=len(down)).map(tuple) | st.just(equal))
    tree = FatTree(tuple(down), draw(numbers), draw(numbers), cables, draw(st.booleans()))
    places = draw(st.permutations(range(tree.nb_hosts)))[:hosts]
    return msgspec.structs.replace(platform, topology=tree, places=tuple(places))


# --- Workloads -----------------------------------------------------------------------------------------------

BYTES = (0.0, 1.0, 2.0, 0.5, 3.0)
AMOUNTS = (1.0, 2.0, 0.0, 4.0, 8.0, 3.0)
CODES = st.sampled_from([0, 0, 0, 0, 1, -1])
WALLTIMES = st.sampled_from([math.inf, math.inf, 2.0, 1.0, 4.0, 4.5, 8.0, 20.0, 1 / 3])


@st.composite
def tasks(draw: st.DrawFn, width: int, brief: bool, sends: bool) -> Profile:
    """A profile without parts for a job of `width` hosts; perhaps a task with nothing to do (`brief`), or one that
    communicates (`sends`)."""
    sent = st.sampled_from(BYTES) if sends else st.just(0.0)
    amounts = st.sampled_from(AMOUNTS)
    amount = draw(amounts.filter(bool) if not brief else amounts)
    kind = draw(st.integers(0, 3))
    code = draw(CODES)
    if kind == 0:
        return Delay(draw(st.sampled_from([2.0, 0.5, 1.0, 4.0, 7.0, 1 / 3])), code)
    if kind == 1:
        return ParallelHomogeneous(amount, draw(sent), code)
    if kind == 2:
        return ParallelHomogeneousTotal(amount, draw(sent), code)
    flops = (amount, *draw(st.lists(amounts, min_size=width - 1, max_size=width - 1)))
    some = draw(st.lists(sent, min_size=1, max_size=7))
    return Parallel(flops, tuple(some[at % len(some)] for at in range(width**2)), code)


@st.composite
def profile_sets(draw: st.DrawFn, width: int, brief: bool, sends: bool) -> dict[str, Profile]:
    """Some profiles for jobs of `width` hosts; parts of a composed one may be composed."""
    plain = draw(st.lists(tasks(width, brief, sends), min_size=1, max_size=4))
    profiles: dict[str, Profile] = {f"p{width}-{number}": profile for number, profile in enumerate(plain)}
    for number in range(draw(st.integers(0, 2))):
        parts = draw(st.lists(st.sampled_from(sorted(profiles)), min_size=1, max_size=3))
        profiles[f"c{width}-{number}"] = Composed(tuple(parts), draw(st.integers(1, 2)), draw(CODES))
    return profiles


@st.composite
def workloads(draw: st.DrawFn, name: str, nb_hosts: int, jobs: int, brief: bool, sends: bool = False) -> Workload:
    """Up to `jobs` jobs of one or two widths."""
    widths = draw(st.lists(st.integers(1, nb_hosts), min_size=1, max_size=2, unique=True))
    sets = {width: draw(profile_sets(width, brief, sends)) for width in widths}
    profiles = {key: profile for own in sets.values() for key, profile in own.items()}
    made = []
    for number in range(draw(st.integers(0, jobs))):
        width = draw(st.sampled_from(widths))
        job = Job(
            id=f"{name}!{number}",
            submit_time=draw(st.integers(0, 16)) / 2,
            size=width,
            walltime=draw(WALLTIMES),
            profile=draw(st.sampled_from(sorted(sets[width]))),
            user=draw(st.sampled_from(["", "ann", "bob"])),
        )
        made.append(job)
    return Workload(name=name, jobs=tuple(made), profiles=profiles, nb_res=nb_hosts)


@st.composite
def external_events(draw: st.DrawFn, nb_hosts: int) -> tuple[MachineEvent, ...]:
    """Hosts leave and return in turn; and now and then something that is only forwarded."""
    events, away, time = [], set[int](), 0.0
    for _ in range(draw(st.integers(0, 6))):
        time += draw(st.integers(0, 4)) / 2
        kind = draw(st.sampled_from(["machine_unavailable", "machine_available", "weather"]))
        from_where = away if kind == "machine_available" else set(range(min(nb_hosts, 6))) - away
        hosts: tuple[int, ...] = ()
        if kind == "weather":
            source = msgspec.json.encode({"type": kind, "timestamp": time, "rain": 1})
            events.append(MachineEvent(timestamp=time, type=kind, source=source))
        elif from_where:
            hosts = tuple(draw(st.lists(st.sampled_from(sorted(from_where)), min_size=1, unique=True)))
            away ^= set(hosts)
            events.append(MachineEvent(timestamp=time, type=kind, hosts=hosts))
            time += 0.5 if kind == "machine_unavailable" else 0.0  # at one instant hosts return before others leave
    return tuple(events)


# --- Worlds --------------------------------------------------------------------------------------------------


@dataclass
class World:
    """What both engines are made of, and what the decision process draws its whims from."""

    platform: Platform
    workloads: tuple[Workload, ...]
    events: tuple[MachineEvent, ...]
    options: EngineOptions
    whims: bytes
    manners: "Manners"


def whims() -> st.SearchStrategy[bytes]:
    """Numbers to choose by. Hypothesis itself would make few of them, and most of these 0."""
    return st.builds(lambda count, seed: random.Random(seed).randbytes(count), st.integers(0, 400), st.integers(0, 999))


class Manners(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision process does beyond starting jobs: how often in a hundred chances."""

    late: int = 0  # commands later than the question
    lazy: int = 0  # a job is left waiting
    reject: int = 0
    kill: int = 0
    call: int = 0
    switch: int = 0  # pstates
    register: int = 0  # dynamic jobs
    elsewhere: int = 0  # jobs outside of the simulation
    query: int = 0
    label: int = 0  # metadata
    map: int = 0  # executors onto hosts
    share: int = 0  # a job starts on hosts that others may have, where that is enabled
    mischief: int = 0  # what may be impossible


def _rates(names: tuple[str, ...]) -> st.SearchStrategy[Manners]:
    return st.builds(Manners, **{name: st.sampled_from([0, 20, 60]) for name in names})


CALM = ("late", "lazy", "reject", "kill", "call", "switch", "query", "label", "map")
ALL = (*CALM, "register", "elsewhere")


@st.composite
def worlds(
    draw: st.DrawFn,
    energy: bool = False,
    brief: bool = True,
    switching: bool = True,
    mischief: bool = False,
    links: bool = False,
    network: bool = False,
    sharing: bool = False,
) -> World:
    """Worlds with or without energy, tasks with nothing to do, changes of pstate, impossible commands, links, a
    network for jobs that communicate, and hosts of several cores that jobs share."""
    platform = draw(platforms(switching, links))
    if sharing:
        cores = draw(st.lists(st.sampled_from([1, 1, 2, 3, 4]), min_size=1, max_size=3))
        hosts = tuple(msgspec.structs.replace(h, cores=cores[h.id % len(cores)]) for h in platform.hosts)
        platform = msgspec.structs.replace(platform, hosts=hosts)
    if network:
        platform = draw(connected(platform))
    hosts, number = len(platform.hosts), draw(st.sampled_from([1, 1, 1, 2, 3]))
    works = tuple(draw(workloads(f"w{k}", hosts, 8, brief, sends=network)) for k in range(number))
    dynamic = draw(st.booleans())
    options = EngineOptions(
        energy=energy,
        dynamic_jobs=dynamic,
        acknowledge_dynamic_jobs=dynamic and draw(st.booleans()),
        profile_reuse=dynamic and draw(st.booleans()),
        forward_profiles=draw(st.booleans()),
        forward_unknown_events=True,
        trace=draw(st.sampled_from([True, True, True, False])),
    )
    manners = draw(_rates(ALL if switching else tuple(name for name in ALL if name not in ("switch", "query"))))
    if sharing:
        options = msgspec.structs.replace(options, compute_sharing=True)
        manners = msgspec.structs.replace(manners, share=draw(st.sampled_from([30, 60, 90])))
    if mischief:
        manners = msgspec.structs.replace(manners, mischief=draw(st.sampled_from([5, 30, 80])))
    events = draw(external_events(hosts)) if draw(st.booleans()) else ()
    return World(platform, works, events, options, draw(whims()), manners)


# --- The decision process ------------------------------------------------------------------------------------


class Choices:
    """Choices by numbers that were made before; the first option once they are used up, so that runs come to an end."""

    def __init__(self, numbers: bytes) -> None:
        self._numbers = iter(numbers)
        self.over = False

    def below(self, end: int) -> int:
        number = next(self._numbers, None)
        self.over = number is None
        return (number or 0) % end

    def chance(self, percent: int) -> bool:
        return percent > 0 and self.below(100) >= 100 - percent

    def one_of(self, options: Any) -> Any:
        return options[self.below(len(options))]

    def some_of(self, options: Any, count: int) -> list[Any]:
        left = list(options)
        return [left.pop(self.below(len(left))) for _ in range(count)]


@dataclass
class Known:
    """A job as the decision process knows it."""

    id: str
    size: int


class Capricious:
    """A decision process that answers as it likes, and nothing impossible as far as it can know."""

    def __init__(self, world: World) -> None:
        self.world, self.ask, self.manners = world, Choices(world.whims), world.manners
        self.hosts = world.platform.hosts
        self.pstate = [host.initial_pstate for host in self.hosts]
        self.switching: set[int] = set()
        self.computing: dict[str, list[int]] = {}  # job to its hosts
        self.away: set[int] = set()
        self.queue: dict[str, Known] = {}
        self.running: dict[str, Known] = {}
        self.elsewhere: list[str] = []
        self.registering = world.options.dynamic_jobs
        self.registered = 0
        self.known: list[str] = []  # jobs that it has heard of or registered

    def reply(self, question: p.Message) -> p.Message:
        """Answer a question."""
        for event in question.events:
            self._learn(event)
        self.time = question.now
        if any(isinstance(event, p.SimulationEnds) for event in question.events):
            return p.Message(self.time, ())
        commands = []
        for data in self._decide():
            if self.ask.chance(self.manners.late):
                self.time += self.ask.one_of([0.5, 0.25, 1.0, 1 / 3, 1e-7])
            commands.append(COMMANDS[type(data)](self.time, data))
        if self.ask.chance(self.manners.late):
            self.time += self.ask.one_of([0.5, 1.0, 2.0])
        return p.Message(self.time, tuple(commands))

    # --- What it hears ------------------------------------------------------------------------------------

    def _learn(self, event: Any) -> None:
        data = event.data
        match event:
            case p.JobSubmitted():
                if data.job_id not in self.known:
                    self._meet(data.job_id, data.job.res)
            case p.JobCompleted():
                self.running.pop(data.job_id, None)
                self.computing.pop(data.job_id, None)
            case p.ResourceStateChanged():
                for host in parse_hosts(data.resources):
                    self.pstate[host] = int(data.state)
                    self.switching.discard(host)
            case p.Notify() if data.type.startswith("event_machine"):
                hosts = set(parse_hosts(data.resources))
                self.away = self.away | hosts if data.type.endswith("unavailable") else self.away - hosts

    def _meet(self, job_id: str, size: int) -> None:
        self.queue[job_id] = Known(job_id, size)
        self.known.append(job_id)

    def _free(self) -> list[int]:
        return [h for h in range(len(self.hosts)) if self._idle(h) and self._computes(h)]

    def _idle(self, host: int) -> bool:
        return host not in self.busy and host not in self.away

    @property
    def busy(self) -> set[int]:
        """Hosts that compute or switch."""
        return self.switching.union(*self.computing.values())

    def _computes(self, host: int) -> bool:
        return not self.world.options.energy or self.hosts[host].is_computing_pstate(self.pstate[host])

    # --- What it does -------------------------------------------------------------------------------------

    def _decide(self) -> Any:
        ask, manners = self.ask, self.manners
        if ask.chance(manners.mischief):
            yield self._mischief()
        if self.registering:
            yield from self._register()
        if self.world.options.energy:
            yield from self._switch()
            if ask.chance(manners.query):
                yield p.QueryData(p.Requests(consumed_energy=p.NoData()))
        yield from self._end_elsewhere()
        for job in list(self.queue.values()):
            yield from self._deal_with(job)
        if self.running and ask.chance(manners.kill):
            yield self._kill()
        if ask.chance(manners.call):
            yield p.CallMeLaterData(self.time + ask.one_of([1.0, 0.5, 2.0, 1e-6, 1 / 3]))

    def _deal_with(self, job: Known) -> Any:
        ask, manners, free = self.ask, self.manners, self._free()
        if self.world.options.compute_sharing and ask.chance(manners.share):
            busy = self.busy - self.switching - self.away
            free = sorted({*free, *(host for host in busy if self._computes(host))})
        if ask.chance(manners.label):
            yield p.SetJobMetadataData(job.id, f"label {self.time:g}")
        if ask.chance(manners.reject) or self._is_stuck(job):
            del self.queue[job.id]
            yield ask.one_of([p.RejectJobData(job.id), p.ChangeJobStateData(job.id, "REJECTED")])
        elif ask.chance(manners.elsewhere):
            del self.queue[job.id]
            self.elsewhere.append(job.id)
            yield p.ChangeJobStateData(job.id, "RUNNING")
        elif len(free) >= job.size and not ask.chance(manners.lazy):
            yield self._start(job, free)

    def _is_stuck(self, job: Known) -> bool:
        """Whether nothing would ever happen if this job went on waiting, as far as the whims go."""
        return self.ask.over and not self.running and not self.busy and len(self._free()) < job.size

    def _start(self, job: Known, free: list[int]) -> p.ExecuteJobData:
        del self.queue[job.id]
        self.running[job.id] = job
        mapped = self.ask.chance(self.manners.map)
        hosts = self.ask.some_of(free, self.ask.below(job.size) + 1 if mapped else job.size)
        self.computing[job.id] = hosts
        if not mapped:
            return p.ExecuteJobData(job.id, format_hosts(hosts))
        mapping = {str(executor): str(self.ask.below(len(hosts))) for executor in range(job.size)}
        return p.ExecuteJobData(job.id, format_hosts(hosts), mapping)

    def _kill(self) -> p.KillJobData:
        known = sorted(self.running)
        return p.KillJobData(tuple(self.ask.some_of(known, self.ask.below(len(known)) + 1)))

    def _end_elsewhere(self) -> Any:
        states = ["COMPLETED_SUCCESSFULLY", "COMPLETED_FAILED", "COMPLETED_KILLED", "COMPLETED_WALLTIME_REACHED"]
        for job in list(self.elsewhere):
            if self.ask.over or self.ask.chance(30):
                self.elsewhere.remove(job)
                yield p.ChangeJobStateData(job, self.ask.one_of(states))
        if self.elsewhere:
            yield p.CallMeLaterData(self.time + 1.5)

    def _switch(self) -> Any:
        asleep = [h for h in range(len(self.hosts)) if self._idle(h) and not self._computes(h)]
        if asleep and (self.queue or self.ask.chance(self.manners.switch)):
            yield self._set_pstate(asleep, 0)
        free = self._free()
        if free and self.ask.chance(self.manners.switch):
            chosen = self.ask.some_of(free, self.ask.below(len(free)) + 1)
            known = [q for q in self._pstates(chosen) if q not in self.hosts[chosen[0]].virtual_pstates]
            yield self._set_pstate(chosen, self.ask.one_of(known))
        computing = sorted(self.busy - self.switching)
        if computing and self.ask.chance(self.manners.switch):
            yield self._set_pstate(self.ask.some_of(computing, self.ask.below(len(computing)) + 1), self.ask.below(2))

    def _pstates(self, hosts: list[int]) -> range:
        """Pstates that all of them have."""
        return range(min(len(self.hosts[host].pstates) for host in hosts))

    def _set_pstate(self, hosts: list[int], pstate: int) -> p.SetResourceStateData:
        for host in hosts:
            if self._idle(host):
                self.switching.add(host)
        return p.SetResourceStateData(format_hosts(hosts), str(pstate))

    def _register(self) -> Any:
        ask = self.ask
        if ask.over:
            self.registering = False
            yield p.NotifyData(type="registration_finished")
        elif ask.chance(self.manners.register):
            self.registered += 1
            name = f"dyn{self.registered}"
            work = ask.one_of(["w0", "other"])
            yield p.RegisterProfileData(work, name, ask.one_of(DYNAMIC_PROFILES))
            for copy in range(ask.below(2) + 1):
                yield self._register_job(f"{work}!{name}-{copy}", name)

    def _register_job(self, job_id: str, profile: str) -> p.RegisterJobData:
        size = self.ask.below(min(len(self.hosts), 3)) + 1
        if self.ask.chance(50) or not self.world.options.acknowledge_dynamic_jobs:
            self._meet(job_id, size)
        fields = {"id": job_id, "res": size, "subtime": self.time, "profile": profile}
        walltime = self.ask.one_of([-1, 1, 2, 4.5])
        return p.RegisterJobData(job_id, p.JobDescription(**fields, walltime=walltime))

    def _mischief(self) -> Any:
        """Something that is possible only by luck."""
        ask, known = self.ask, [*self.known, "w0!nobody", "w9!0"]
        job = ask.one_of(known)
        hosts = format_hosts(ask.some_of(range(len(self.hosts)), ask.below(len(self.hosts)) + 1))
        strange = [
            p.ExecuteJobData(job, hosts),
            p.ExecuteJobData(job, hosts, {"0": "0", "1": str(ask.below(3))}),
            p.ExecuteJobData(job, ask.one_of(["", "99", "3-1", "x"])),
            p.RejectJobData(job),
            p.KillJobData((job, *ask.some_of(known, 1))),
            p.KillJobData(()),
            p.ChangeJobStateData(job, ask.one_of(["RUNNING", "COMPLETED_KILLED", "REJECTED", "NONSENSE"])),
            p.SetJobMetadataData(job, ask.one_of(["fine", 'not "fine"'])),
            p.SetResourceStateData(hosts, ask.one_of(["0", "1", "2", "3", "9", "-1", "x"])),
            p.SetResourceStateData(ask.one_of(["", "99"]), "0"),
            p.CallMeLaterData(self.time - ask.one_of([0.0, 1.0])),
            p.ToJobMsgData(job, "hello"),
            p.QueryData(p.Requests()),
            p.QueryData(p.Requests(consumed_energy=p.NoData())),
            p.NotifyData(type=ask.one_of(["registration_finished", "continue_registration", "nonsense"])),
            p.RegisterProfileData("w0", ask.one_of(["dyn1", "new"]), ask.one_of([*DYNAMIC_PROFILES, {"type": "no"}])),
            p.RegisterJobData(job, p.JobDescription(id=job, res=ask.below(3), subtime=0, profile="dyn1")),
            p.RegisterJobData("w0!x", p.JobDescription(id="x", res=1, subtime=0, profile="none", walltime=-2)),
        ]
        return ask.one_of(strange)


DYNAMIC_PROFILES = [
    {"type": "delay", "delay": 1.5},
    {"type": "parallel_homogeneous", "cpu": 2.0, "com": 0},
    {"type": "parallel_homogeneous_total", "cpu": 4.0, "com": 0},
    {"type": "delay", "delay": 0.5, "ret": 3},
]

COMMANDS: dict[type, type] = {
    p.CallMeLaterData: p.CallMeLater,
    p.ChangeJobStateData: p.ChangeJobState,
    p.ExecuteJobData: p.ExecuteJob,
    p.KillJobData: p.KillJob,
    p.NotifyData: p.Notify,
    p.QueryData: p.Query,
    p.RegisterJobData: p.RegisterJob,
    p.RegisterProfileData: p.RegisterProfile,
    p.RejectJobData: p.RejectJob,
    p.SetJobMetadataData: p.SetJobMetadata,
    p.SetResourceStateData: p.SetResourceState,
    p.ToJobMsgData: p.ToJobMsg,
}
