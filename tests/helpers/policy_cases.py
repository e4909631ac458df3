"""Seeded random cases for runs of policies: hosts that sleep, jobs with many ties, hosts that leave and return."""

import math

import numpy as np

from decision.engine.rules import EngineOptions
from decision.model.platform import Host, Platform, PowerState, Route, SleepState
from decision.model.workload import (
    Composed,
    Delay,
    Job,
    MachineEvent,
    ParallelHomogeneous,
    ParallelHomogeneousTotal,
    Profile,
    Workload,
)
from decision.policies.options import ALLOCATIONS, BACKFILLS, ORDER_LINES
from helpers.engine_worlds import Manners, World
from helpers.policy_toys import platform as servers

POWERS = ("never", "idle-timeout,idle_timeout=0", "idle-timeout,idle_timeout=5", "keep-awake,keep_awake=1")
PLAIN = [name for name in ORDER_LINES if name not in ("hvf", "qos", "density", "edf")]  # no job here says its worth
PLACES = [name for name in ALLOCATIONS if "tree" not in name and name != "hops"]  # these platforms have no network
SLEEPY = SleepState(pstate=1, switch_off=2, switch_on=3)
Rng = np.random.Generator


def failing_world(rng: Rng) -> tuple[World, str]:
    """Hosts that sleep and fail, over and over and at awkward times, and a policy that switches them."""
    hosts, step = int(rng.integers(1, 9)), float(rng.choice([0.1, 1.0, 10.0]))
    kind = int(rng.integers(4))
    platform = random_platform(rng, hosts, links=rng.random() < 0.2, slowest=1e-6)  # calls reach a Batsim in time
    if rng.random() < (0.6 if kind > 1 else 0.2):  # servers of several hosts
        platform = servers(hosts, sleeps=True, cores=int(rng.integers(1, 4)), wake=8 * step, doze=3 * step)
    policy = "joint" if kind == 2 else _bound_policy(rng) if kind == 3 else _power_policy(rng, step)
    world = World(
        platform=platform,
        workloads=(random_workload(rng, "w0", hosts, step, False),),
        events=_failures(rng, hosts, step),
        options=EngineOptions(energy=True),
        whims=b"",
        manners=Manners(),
    )
    return world, policy


def _power_policy(rng: Rng, step: float) -> str:
    order, backfill = rng.choice(PLAIN), rng.choice(list(BACKFILLS))
    name = order if backfill == "none" else f"{order}+{backfill}"
    timeout = f"idle-timeout,idle_timeout={round(step * int(rng.integers(0, 6)), 1)}"
    power = rng.choice([timeout, timeout, f"keep-awake,keep_awake={rng.integers(0, 4)}"])
    return f"{name},allocation={rng.choice(PLACES)},power={power}"


def _bound_policy(rng: Rng) -> str:
    order, backfill = rng.choice(PLAIN), rng.choice(["none", "first-fit", "easy"])
    name = order if backfill == "none" else f"{order}+{backfill}"
    packs, patience = rng.choice(["first-fit", "pack"]), rng.choice([0, 30])
    timeout = rng.choice([0, 5, 60])
    return f"{name},start=bound,power=idle-timeout,idle_timeout={timeout},allocation={packs},patience={patience}"


def _failures(rng: Rng, hosts: int, step: float) -> tuple[MachineEvent, ...]:
    """Hosts leave, alone or together, and return, alone or together, up to four times; in the end all are there."""
    events, now, away = [], 0.0, set[int]()
    for _ in range(int(rng.integers(1, 9))):
        now = round(now + step * int(rng.integers(0, 25)) + float(rng.choice([0.0, 0.0, 0.05])), 2)
        leaves = len(away) == 0 or (len(away) < hosts and rng.random() < 0.5)
        among = sorted(set(range(hosts)) - away if leaves else away)
        chosen = tuple(rng.permutation(among)[: int(rng.integers(1, len(among) + 1))].tolist())
        away ^= set(chosen)
        kind = "machine_unavailable" if leaves else "machine_available"
        events.append(MachineEvent(timestamp=now, type=kind, hosts=chosen))
        now = round(now + step, 2)  # at one instant hosts return before others leave
    if away:
        last = round(now + 60 * step, 2)
        events.append(MachineEvent(timestamp=last, type="machine_available", hosts=tuple(sorted(away))))
    return tuple(events)


def random_policy(rng: Rng, energy: bool) -> str:
    if rng.random() < 0.05:
        return "kamelot"
    order, backfill = rng.choice(PLAIN), rng.choice(list(BACKFILLS))
    name = order if backfill == "none" else f"{order}+{backfill}"
    power = f",power={rng.choice(POWERS)}" if energy else ""
    return f"{name},allocation={rng.choice(PLACES)}{power}"


def random_platform(rng: Rng, hosts: int, links: bool, slowest: float = 1.0) -> Platform:
    """Hosts that can sleep, equal or not, with links of a latency of at most `slowest` seconds or without."""
    wake, doze = float(rng.choice([0.5, 20.0, 151.5])), float(rng.choice([0.1, 6.0]))
    speeds = rng.choice([1.0, 2.0, 4.0], hosts) if rng.random() < 0.4 else np.ones(hosts)
    routes: tuple[Route, ...] = ()
    if links:
        kinds = [Route(min(float(rng.choice([1e-6, 5e-5, 1e-3])), slowest), 1.25e9) for _ in range(3)]
        routes = (*(kinds[int(rng.integers(3))] for _ in range(hosts)), Route(0.0, 1e10))
    return Platform(hosts=tuple(_host(i, speed, wake, doze) for i, speed in enumerate(speeds.tolist())), routes=routes)


def _host(number: int, speed: float, wake: float, doze: float) -> Host:
    pstates = (
        PowerState(speed, 95.0, 97.0, 190.738),
        PowerState(speed, 9.75, 9.75, 9.75),
        PowerState(1 / doze, 101.0, 101.0, 101.0),
        PowerState(1 / wake, 125.17, 125.17, 125.17),
    )
    return Host(id=number, name=f"node-{number:02}", pstates=pstates, sleep=(SLEEPY,), has_power=True)


def random_workload(rng: Rng, name: str, hosts: int, step: float, endless: bool) -> Workload:
    """Up to 60 jobs, many at one time; now and then one that is wider than the platform, or `endless`."""
    profiles, seconds = _profiles(rng, step)
    jobs = []
    for number in range(int(rng.choice([1, 10, 30, 60]))):
        profile = str(rng.choice(sorted(profiles)))
        walltime = seconds[profile] * float(rng.choice([0.5, 1.0, 1.0, 1.5, 3.0]))
        size = int(rng.integers(1, hosts + 1)) if rng.random() < 0.98 else hosts + 1
        made = Job(
            id=f"{name}!j{number:02}",
            submit_time=round(step * int(rng.integers(0, 40)), 1),
            size=size,
            walltime=math.inf if endless and rng.random() < 0.1 else round(max(walltime, step), 1),
            profile=profile,
        )
        jobs.append(made)
    jobs.sort(key=lambda job: job.submit_time)
    return Workload(name=name, jobs=jobs, profiles=profiles, nb_res=hosts)


def _profiles(rng: Rng, step: float) -> tuple[dict[str, Profile], dict[str, float]]:
    """Profiles, and how many seconds each takes about."""
    profiles: dict[str, Profile] = {}
    seconds: dict[str, float] = {}
    for number in range(int(rng.integers(2, 7))):
        name, amount = f"p{number}", round(step * int(rng.integers(1, 12)), 1)
        code = int(rng.choice([0, 0, 0, 1]))
        profiles[name] = [
            Delay(amount, code),
            ParallelHomogeneous(amount, 0.0, code),
            ParallelHomogeneousTotal(2 * amount, 0.0, code),
        ][int(rng.integers(3))]
        seconds[name] = amount
    for number in range(int(rng.integers(0, 3))):
        parts = [str(part) for part in rng.choice(sorted(seconds), int(rng.integers(1, 4)))]
        profiles[f"q{number}"] = made = Composed(tuple(parts), int(rng.integers(1, 3)))
        seconds[f"q{number}"] = made.repeat * sum(seconds[part] for part in parts)
    return profiles, seconds


def random_events(rng: Rng, hosts: int, step: float) -> tuple[MachineEvent, ...]:
    """Hosts that leave and return."""
    events = []
    for host in rng.permutation(hosts)[: int(rng.integers(1, 4))].tolist():
        leaves = round(step * int(rng.integers(0, 30)), 1)
        returns = round(leaves + step * int(rng.integers(1, 30)), 1)
        events.append(MachineEvent(timestamp=leaves, type="machine_unavailable", hosts=(host,)))
        events.append(MachineEvent(timestamp=returns, type="machine_available", hosts=(host,)))
    return tuple(sorted(events, key=lambda event: event.timestamp))
