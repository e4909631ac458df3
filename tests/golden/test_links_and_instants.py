"""What a real Batsim 4.2.1 did where messages take time, and where several things happen at one instant."""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from decision.batsim.agent import Agent
from decision.engine.options import EngineOptions
from decision.engine.reference.engine import ReferenceEngine
from decision.formats import load_platform, load_workload
from decision.model.platform import Platform, Route
from decision.model.record import FinalState, RunRecord
from decision.model.workload import Workload
from decision.runs.engines import simulate_by_messages
from decision.simulation import simulate_workloads

NETWORK, INSTANTS = Path(__file__).parent / "network", Path(__file__).parent / "instants"
PLATFORMS = ["flat16_50us", "taurus_net", "fat_tree16", "torus64", "dragonfly64"]

Simulate = Callable[[Platform, Workload, str, bool], RunRecord]


def compiled(platform: Platform, workload: Workload, policy: str, energy: bool) -> RunRecord:
    return simulate_workloads(platform, [workload], policy, engine_options=EngineOptions(energy=energy))


def by_messages(platform: Platform, workload: Workload, policy: str, energy: bool) -> RunRecord:
    engine = ReferenceEngine(platform, [workload], (), EngineOptions(energy=energy))
    return simulate_by_messages(engine, Agent(policy, {}, platform=platform))


@pytest.fixture(params=[compiled, by_messages], ids=["compiled", "reference"])
def simulate(request: pytest.FixtureRequest) -> Simulate:
    return request.param


@pytest.mark.parametrize("platform", PLATFORMS)
def test_each_job_starts_when_it_did_on_a_platform_with_links(simulate: Simulate, platform: str) -> None:
    workload = load_workload(NETWORK / "workload.json")
    record = simulate(load_platform(NETWORK / f"{platform}.xml"), workload, "easy", False)
    with (NETWORK / "starts_easy.csv").open() as rows:
        wanted = {f"w0!{row['job_id']}": row[platform] for row in csv.DictReader(rows)}
    assert {job: f"{start:.6f}" for job, start in zip(record.jobs.id, record.jobs.start_time, strict=True)} == wanted


def test_hosts_are_free_for_a_policy_when_their_job_s_end_is_told(simulate: Simulate) -> None:
    platform = load_platform(INSTANTS / "untold_platform.xml")
    record = simulate(platform, load_workload(INSTANTS / "untold_workload.json"), "first-fit", False)
    with (INSTANTS / "untold_starts.csv").open() as rows:
        wanted = {
            row["job_id"]: (float(row["starting_time"]), row["allocated_resources"]) for row in csv.DictReader(rows)
        }
    found = zip(record.jobs.id, np.round(record.jobs.start_time, 6), record.jobs.allocation, strict=True)
    assert {job: (start, hosts) for job, start, hosts in found} == wanted


def test_a_task_is_a_load_from_when_time_passes(simulate: Simulate) -> None:
    platform = load_platform(INSTANTS / "energy_platform.xml", energy=True)
    record = simulate(platform, load_workload(INSTANTS / "energy_workload.json"), "fcfs", True)
    joules = dict(zip(record.jobs.id, record.jobs.energy, strict=True))
    assert joules == {"w0!a": pytest.approx(1903.69, abs=1e-6), "w0!b": pytest.approx(190.0, abs=1e-6)}


def test_long_numbers_are_read_as_rapidjson_reads_them(simulate: Simulate) -> None:
    record = simulate(load_platform("toy"), load_workload(INSTANTS / "rounding_workload.json"), "fcfs", False)
    assert record.jobs.final_state.tolist() == [FinalState.COMPLETED_WALLTIME_REACHED]


def test_a_dragonfly_s_routes_are_simgrid_s() -> None:
    routes = load_platform(NETWORK / "dragonfly64.xml").routes
    hops = np.round([route.latency / 1e-6 for route in routes[:-1]]).astype(int)
    assert np.bincount(hops).tolist() == [1, 0, 1, 14, 6, 24, 18]
    assert routes[-1] == Route(0.0, 10e9)


def test_hosts_without_links_have_no_routes() -> None:
    assert load_platform("taurus").routes == ()
