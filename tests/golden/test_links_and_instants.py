"""What a real Batsim 4.2.1 did where messages take time, and where several things happen at one instant."""

import csv
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from decision.batsim.agent import Agent
from decision.engine.batsim4 import EmbeddedEngine
from decision.engine.reference.engine import ReferenceEngine
from decision.engine.rules import EngineOptions
from decision.experiments.run import simulate_by_messages
from decision.files import load_platform, load_workload
from decision.files.outputs_write import energy_rows
from decision.model.platform import Host, Platform, PowerState, Route
from decision.model.record import FinalState, RunRecord
from decision.model.workload import Job, ParallelHomogeneous, Workload
from decision.protocol import messages as m
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


def test_rows_of_the_energy_trace_stand_as_batsim_s_on_mixed_hosts(simulate: Simulate) -> None:
    platform = load_platform(INSTANTS / "mixed_platform.xml", energy=True)
    policy = "saf+easy,start=bound,power=idle-timeout,idle_timeout=0,allocation=pack"
    record = simulate(platform, load_workload(INSTANTS / "mixed_workload.json"), policy, True)
    assert record.energy is not None
    found = list(csv.reader(energy_rows(record.energy, slice(0, len(record.energy.time)))))
    with (INSTANTS / "mixed_energy.csv").open() as rows:
        _, *wanted = csv.reader(rows)
    assert [[time, *rest] for time, _, *rest in found] == [[time, *rest] for time, _, *rest in wanted]
    assert [float(row[1]) for row in found] == pytest.approx([float(row[1]) for row in wanted], abs=2e-6)


@pytest.mark.parametrize(
    ("hosts", "killed", "order"),
    [
        (2, ("a",), ["a ends", "kill", "b ends"]),
        (3, ("a",), ["kill", "a ends", "b ends"]),
        (5, ("a",), ["kill", "a ends", "b ends"]),
        (2, ("a", "b"), ["a ends", "b ends", "kill"]),
        (3, ("a", "b"), ["a ends", "b ends", "kill"]),
        (5, ("a", "b"), ["b ends", "kill", "a ends"]),
    ],
)
@pytest.mark.parametrize("engine", [EmbeddedEngine, ReferenceEngine])
def test_a_kill_at_a_job_s_end_is_told_when_it_was(engine: type, hosts: int, killed: Sequence[str], order: list[str]):
    """Job a ends as the kill arrives. It measures one host a round before it says so, and the killer takes rounds."""
    host = (PowerState(2.0, 10.0, 20.0, 100.0),)
    platform = Platform(
        hosts=tuple(Host(id=i, name=f"node-{i}", pstates=host, has_power=True) for i in range(hosts)),
        routes=(*(Route(1e-6, 1.25e10) for _ in range(hosts)), Route(0.0, 1e10)),
    )
    jobs = [Job(id=f"w0!{name}", submit_time=0.0, size=1, walltime=math.inf, profile="p") for name in "ab"]
    workload = Workload(name="w0", jobs=jobs, profiles={"p": ParallelHomogeneous(1.0, 0.0)}, nb_res=hosts)
    batsim = engine(platform, [workload], (), EngineOptions(energy=True))
    batsim.ask()
    batsim.answer(m.Message(0.0, ()))
    start_a = m.ExecuteJob(1.0, m.ExecuteJobData("w0!a", "1"))
    start_b = m.ExecuteJob(1.25, m.ExecuteJobData("w0!b", "0"))
    kill = m.KillJob(1.5, m.KillJobData(tuple(f"w0!{name}" for name in killed)))
    batsim.ask()
    batsim.answer(m.Message(4.0, (start_a, start_b, kill)))
    told = [event for event in batsim.ask().events if not isinstance(event, m.Notify)]
    found = ["kill" if isinstance(event, m.JobKilled) else f"{event.data.job_id[-1]} ends" for event in told]
    assert found == order


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
