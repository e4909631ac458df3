"""Our engines and a real Batsim 4.2.1: random cases whose questions and files must be equal.

Skipped where there is no ``batsim`` on the path. `DECISION_CAMPAIGN` sets how many cases of each kind are tried; few
by default. `DECISION_CAMPAIGN_FIRST` is the number of the first case that runs a policy, to go on from there.
"""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers.engine_worlds import Manners, World, worlds
from helpers.policy_cases import PLAIN, failing_world, random_events, random_platform, random_policy, random_workload
from helpers.policy_toys import platform as servers
from helpers.real_batsim import converse_with_batsim, find_batsim, run_policy_beside_batsim
from hypothesis import HealthCheck, given, settings

from decision.engine.rules import EngineOptions

CASES = int(os.environ.get("DECISION_CAMPAIGN", "8"))
FIRST = int(os.environ.get("DECISION_CAMPAIGN_FIRST", "0"))
DEATHS = ("did not complete",)  # of Batsim itself: a job is killed while it begins a task


@pytest.fixture(scope="module")
def batsim() -> str:
    return find_batsim() or pytest.skip("needs Batsim 4.2 as `batsim` on the path")


# --- Decisions full of whims -------------------------------------------------------------------------------------


@pytest.mark.parametrize("sharing", [False, True])
@pytest.mark.parametrize(("energy", "links"), [(False, False), (True, False), (False, True), (True, True)])
def test_engines_ask_what_batsim_asks(
    batsim: str, tmp_path_factory: pytest.TempPathFactory, energy: bool, links: bool, sharing: bool
) -> None:
    @given(worlds(energy=energy, links=links, sharing=sharing))
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
    platform = random_platform(rng, hosts, links=case % 4 >= 2)
    step = float(rng.choice([0.1, 0.3, 1.0, 10.0]))  # seconds, so small a number of them that much happens at once
    policy = random_policy(rng, energy)
    endless = policy.startswith(("fcfs,", "fcfs+first-fit,"))  # policies that do without walltimes
    names = ["w0"] if rng.random() < 0.7 else ["w0", "w1"]
    world = World(
        platform=platform,
        workloads=tuple(random_workload(rng, name, hosts, step, endless) for name in names),
        events=random_events(rng, hosts, step) if rng.random() < 0.3 else (),
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
        workloads=(random_workload(rng, "w0", 6, float(rng.choice([1.0, 10.0])), False),),
        events=(),
        options=EngineOptions(energy=True),
        whims=b"",
        manners=Manners(),
    )
    policy += f",allocation={packs},patience={patience}"
    assert run_policy_beside_batsim(world, policy, case, batsim, tmp_path) == []


@pytest.mark.parametrize("case", range(FIRST, FIRST + CASES))
def test_hosts_that_sleep_and_fail_do_as_on_batsim(batsim: str, tmp_path: Path, case: int) -> None:
    world, policy = failing_world(np.random.default_rng(case))
    assert run_policy_beside_batsim(world, policy, case, batsim, tmp_path) == []
