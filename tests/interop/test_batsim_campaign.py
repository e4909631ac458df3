"""Our engines and a real Batsim 4.2.1: random cases whose questions and files must be equal.

Skipped where there is no ``batsim`` on the path. `DECISION_CAMPAIGN` sets how many cases of each kind are tried; few
by default. `DECISION_CAMPAIGN_FIRST` is the number of the first case that runs a policy, to go on from there.
"""

import math
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers.engine_worlds import Manners, World, worlds
from helpers.policy_toys import platform as servers
from helpers.real_batsim import converse_with_batsim, find_batsim, run_policy_beside_batsim
from hypothesis import HealthCheck, given, settings

from decision.engine.options import EngineOptions
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
from decision.policies.catalogue import ALLOCATIONS, BACKFILLS, ORDERS

CASES = int(os.environ.get("DECISION_CAMPAIGN", "8"))
FIRST = int(os.environ.get("DECISION_CAMPAIGN_FIRST", "0"))
DEATHS = ("did not complete",)  # of Batsim itself: a job is killed while it begins a task
POWERS = ("never", "idle-timeout,idle_timeout=0", "idle-timeout,idle_timeout=5", "keep-awake,keep_awake=1")
PLAIN = [name for name in ORDERS if name not in ("hvf", "qos", "density", "edf")]  # jobs here do not say their worth
PLACES = [name for name in ALLOCATIONS if "tree" not in name]  # a tree of switches is none of these platforms
SLEEPY = SleepState(pstate=1, switch_off=2, switch_on=3)
Rng = np.random.Generator


@pytest.fixture(scope="module")
def batsim() -> str:
    return find_batsim() or pytest.skip("needs Batsim 4.2 as `batsim` on the path")


# --- Decisions full of whims -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("energy", "links"), [(False, False), (True, False), (False, True), (True, True)])
def test_engines_ask_what_batsim_asks(
    batsim: str, tmp_path_factory: pytest.TempPathFactory, energy: bool, links: bool
) -> None:
    @given(worlds(energy=energy, links=links))
    @settings(max_examples=CASES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    def converse(world: World) -> None:
        folder = tmp_path_factory.mktemp("world")
        differences = converse_with_batsim(world, batsim, folder)
        shutil.rmtree(folder)
        assert [line for line in differences if not any(death in line for death in DEATHS)] == []

    converse()


# --- Policies ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", range(FIRST, FIRST + CASES))
def test_a_policy_runs_as_on_batsim(batsim: str, tmp_path: Path, case: int) -> None:
    rng = np.random.default_rng(case)
    energy, hosts = case % 2 == 1, int(rng.integers(1, 13))
    platform = _platform(rng, hosts, links=case % 4 >= 2)
    step = float(rng.choice([0.1, 0.3, 1.0, 10.0]))  # seconds, so small a number of them that much happens at once
    policy = _policy(rng, energy)
    endless = policy.startswith(("fcfs,", "fcfs+first-fit,"))  # policies that do without walltimes
    names = ["w0"] if rng.random() < 0.7 else ["w0", "w1"]
    world = World(
        platform=platform,
        workloads=tuple(_workload(rng, name, hosts, step, endless) for name in names),
        events=_events(rng, hosts, step) if rng.random() < 0.3 else (),
        options=EngineOptions(energy=energy),
        whims=b"",
        manners=Manners(),
    )
    assert run_policy_beside_batsim(world, policy, case, batsim, tmp_path) == []


@pytest.mark.parametrize("case", range(FIRST, FIRST + CASES))
def test_bound_starts_run_as_on_batsim(batsim: str, tmp_path: Path, case: int) -> None:
    rng = np.random.default_rng(case)
    order, backfill = rng.choice(PLAIN), rng.choice(["none", "first-fit", "easy"])
    packs, patience = rng.choice(["first-fit", "pack"]), rng.choice([0, 30])
    policy = f"{order}+{backfill},start=bound,power=idle-timeout,idle_timeout={rng.choice([0, 5, 60])}"
    world = World(
        platform=servers(6, sleeps=True, cores=int(rng.integers(2, 4))),
        workloads=(_workload(rng, "w0", 6, float(rng.choice([1.0, 10.0])), False),),
        events=(),
        options=EngineOptions(energy=True),
        whims=b"",
        manners=Manners(),
    )
    policy += f",allocation={packs},patience={patience}"
    assert run_policy_beside_batsim(world, policy, case, batsim, tmp_path) == []


def _policy(rng: Rng, energy: bool) -> str:
    if rng.random() < 0.05:
        return "kamelot"
    order, backfill = rng.choice(PLAIN), rng.choice(list(BACKFILLS))
    name = order if backfill == "none" else f"{order}+{backfill}"
    power = f",power={rng.choice(POWERS)}" if energy else ""
    return f"{name},allocation={rng.choice(PLACES)}{power}"


def _platform(rng: Rng, hosts: int, links: bool) -> Platform:
    """Hosts that can sleep, equal or not, with links or without."""
    wake, doze = float(rng.choice([0.5, 20.0, 151.5])), float(rng.choice([0.1, 6.0]))
    speeds = rng.choice([1.0, 2.0, 4.0], hosts) if rng.random() < 0.4 else np.ones(hosts)
    routes: tuple[Route, ...] = ()
    if links:
        kinds = [Route(float(rng.choice([1e-6, 5e-5, 1e-3])), 1.25e9) for _ in range(3)]
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


def _workload(rng: Rng, name: str, hosts: int, step: float, endless: bool) -> Workload:
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


def _events(rng: Rng, hosts: int, step: float) -> tuple[MachineEvent, ...]:
    """Hosts that leave and return."""
    events = []
    for host in rng.permutation(hosts)[: int(rng.integers(1, 4))].tolist():
        leaves = round(step * int(rng.integers(0, 30)), 1)
        returns = round(leaves + step * int(rng.integers(1, 30)), 1)
        events.append(MachineEvent(timestamp=leaves, type="machine_unavailable", hosts=(host,)))
        events.append(MachineEvent(timestamp=returns, type="machine_available", hosts=(host,)))
    return tuple(sorted(events, key=lambda event: event.timestamp))
