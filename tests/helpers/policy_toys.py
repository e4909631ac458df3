"""A cluster that policies can be tried on without any engine: transitions in a loop of plain Python."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from decision.model.platform import Host, Platform, PowerState, SleepState
from decision.policies.composed import decide_composed, slots_of
from decision.policies.memory import grown_memory, new_memory
from decision.policies.options import PolicyConfig
from decision.state import plan_arrays as p
from decision.state import transitions
from decision.state.cluster import new_state, platform_facts, with_room
from helpers.reference_policies import Job, Running


@dataclass(frozen=True)
class Given:
    """A workload: jobs and how long they really take, and hosts that leave and return while they are idle."""

    jobs: Sequence[Job]
    runtimes: Sequence[float]  # seconds
    hosts: int
    away: Sequence[tuple[float, int, bool]] = ()  # time in seconds, host, whether it returns
    split: bool = False  # whether each end and each arrival is a message of its own


def given(hosts: int, *jobs: tuple[float, int, float, float]) -> Given:
    """From (submission, hosts, walltime, runtime) per job, times in seconds."""
    made = [Job(i, float(submit), size, float(walltime)) for i, (submit, size, walltime, _) in enumerate(jobs)]
    return Given(made, [float(job[3]) for job in jobs], hosts)


def platform(hosts: int, sleeps: bool = False, wake: float = 20.0, doze: float = 5.0, cores: int = 0) -> Platform:
    """Equal hosts; those that sleep take `doze` seconds to fall asleep and `wake` to wake.

    With `cores` so many hosts each are one server: s0, s1, ...
    """
    power = [PowerState(speed=s, idle=w, epsilon=w, full=w) for s, w in ((1e9, 95), (1e9, 9), (1 / doze, 100))]
    power.append(PowerState(speed=1 / wake, idle=125, epsilon=125, full=125))
    sleep = (SleepState(pstate=1, switch_off=2, switch_on=3),) if sleeps else ()
    pstates = tuple(power) if sleeps else (power[0],)
    servers = [{"server": f"s{i // cores}"} if cores else {} for i in range(hosts)]
    return Platform(
        hosts=tuple(
            Host(id=i, name=f"h{i:05}", pstates=pstates, sleep=sleep, has_power=True, properties=servers[i])
            for i in range(hosts)
        )
    )


class Toy:
    """The arrays of a cluster and of a composed policy."""

    def __init__(self, hosts: int, config: PolicyConfig, sleeps: bool = False, jobs: int = 64, cores: int = 0) -> None:
        self.facts, pstates = platform_facts(platform(hosts, sleeps, cores=cores), sleeps)
        self.state = with_room(new_state(self.facts, pstates, jobs), jobs, 64 * jobs + hosts)
        self.config = PolicyConfig(*(type(d)(value) for d, value in zip(PolicyConfig(), config, strict=True)))
        self.memory = new_memory(self.state, self.config)._replace(**slots_of(self.config))
        self.plan = p.new_plan(self.state)

    def grow(self, jobs: int) -> None:
        """Make room for so many jobs in everything."""
        self.state = with_room(self.state, jobs, 4 * jobs)
        self.memory = grown_memory(self.memory, self.state, self.config)
        self.plan = p.new_plan(self.state)

    def submit(self, size: int, walltime: float = math.inf) -> int:
        return int(transitions.submit(self.state, size, walltime, -1))

    def end(self, job: int) -> None:
        transitions.end(self.state, self.facts, job, 0)

    def decide(self) -> list[int]:
        """One decision; the jobs that it starts."""
        given = self.state, self.facts, self.memory, self.plan
        decide_composed.from_python(*(bundle.address for bundle in given))
        return [job for job, _ in self.starts()]

    def starts(self) -> list[tuple[int, list[int]]]:
        """Jobs that the plan starts, and their hosts."""
        return [(job, hosts) for kind, job, hosts in self.actions() if kind == p.START]

    def actions(self) -> Iterator[tuple[int, int, list[int]]]:
        """Kind, job and hosts of each action of the plan."""
        plan = self.plan
        for at in range(plan.nb_actions):
            intervals = range(plan.begin[at], plan.end[at])
            hosts = [host for i in intervals for host in range(plan.first[i], plan.last[i] + 1)]
            yield int(plan.kind[at]), int(plan.job[at]), hosts

    def carry_out(self) -> None:
        """Do what the plan says about jobs, at once; the next instant begins."""
        plan = self.plan
        for at in range(plan.nb_actions):
            if plan.kind[at] == p.START:
                transitions.start(self.state, plan.job[at], plan.first, plan.last, plan.begin[at], plan.end[at])
        transitions.drop_started(self.state)
        self.state.nb_ended = 0

    @property
    def queue(self) -> list[int]:
        return self.state.queue[: self.state.nb_queued].tolist()


@dataclass
class Instant:
    """What a rule of the reference sees, and what it is to decide."""

    now: float
    queue: list[Job]
    running: list[Running]
    free: int
    toy: Toy = field(repr=False)
    starts: list[int] = field(default_factory=list)


def run(work: Given, config: PolicyConfig, look: Callable[[Instant], None] | None = None) -> np.ndarray:
    """Simulate; `look` is called after each decision and before it is carried out. Returns start times (n,)."""
    return run_toy(work, Toy(work.hosts, config, jobs=max(len(work.jobs), 1)), look)


def run_toy(work: Given, toy: Toy, look: Callable[[Instant], None] | None = None) -> np.ndarray:
    """As `run`, on a toy that was just made."""
    queue: list[Job] = []
    running: list[Running] = []
    calls: list[float] = []
    for now, ended, submitted, moved in _messages(work, running, calls):
        toy.state.now = now
        for number in ended:
            toy.end(number)
            running[:] = [r for r in running if r.job.number != number]
        for host, returns in moved:
            (transitions.come_back if returns else transitions.leave)(toy.state, toy.facts, host)
        for job in submitted:
            toy.submit(job.size, job.walltime)
            queue.append(job)
        free = int(np.bitwise_count(toy.state.free).sum())
        instant = Instant(now, list(queue), list(running), free, toy, toy.decide())
        if look:
            look(instant)
        planned = slice(toy.plan.nb_actions)
        calls += [float(t) for t in toy.plan.time[planned][toy.plan.kind[planned] == p.CALL_AT]]
        toy.carry_out()
        running += [Running(work.jobs[number], now) for number in instant.starts]
        queue = [job for job in queue if job.number not in instant.starts]
    return toy.state.start_time[: len(work.jobs)].copy()


def _messages(
    work: Given, running: list[Running], calls: list[float]
) -> Iterator[tuple[float, list[int], list[Job], list]]:
    """Time, ends, arrivals and moves of hosts of each message, ends first."""
    arrivals = list(work.jobs)
    moves = list(work.away)
    while arrivals or running or moves or calls:
        ends = sorted((r.start_time + work.runtimes[r.job.number], r.job.number) for r in running)
        now = min([j.submit_time for j in arrivals[:1]] + [t for t, *_ in moves[:1]] + [t for t, _ in ends[:1]] + calls)
        ended = [number for time, number in ends if time == now]
        submitted = [job for job in arrivals if job.submit_time == now]
        moved = [(host, returns) for time, host, returns in moves if time == now]
        if work.split:
            ended = ended[:1]
            submitted = [] if ended else submitted[:1]
            moved = [] if ended or submitted else moved
        calls[:] = [time for time in calls if time > now]
        arrivals = arrivals[len(submitted) :]
        moves = moves[len(moved) :]
        yield now, ended, submitted, moved
