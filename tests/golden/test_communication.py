"""Jobs that communicate take as long as in a real Batsim 4.2.1, and use as much energy."""

import csv
from pathlib import Path

import pytest

from decision.batsim.agent import Agent
from decision.engine.reference.engine import ReferenceEngine
from decision.engine.rules import EngineOptions
from decision.experiments.run import simulate_by_messages
from decision.files import load_platform, load_workload, write_platform
from decision.files.generate.platforms import fat_tree, networked
from decision.model.platform import Link, Platform, PowerState
from decision.model.record import FinalState, RunRecord
from decision.simulation import simulate_workloads

HERE = Path(__file__).parent / "communication"
SECONDS = 1e-6  # Batsim writes six decimals
JOULES = 1e-4  # of thousands


def compiled(platform: Platform, workload: Path, energy: bool, policy: str) -> RunRecord:
    options = EngineOptions(energy=energy)
    return simulate_workloads(platform, [load_workload(workload)], policy, engine_options=options)


def by_messages(platform: Platform, workload: Path, energy: bool, policy: str) -> RunRecord:
    engine = ReferenceEngine(platform, [load_workload(workload)], (), EngineOptions(energy=energy))
    return simulate_by_messages(engine, Agent(policy, {}, platform=platform))


def check(record: RunRecord, recorded: Path, energy: bool) -> None:
    with recorded.open() as rows:
        wanted = {f"w0!{row['job_id']}": row for row in csv.DictReader(rows)}
    jobs = record.jobs
    assert set(jobs.id) == set(wanted)
    for at, name in enumerate(jobs.id):
        row = wanted[name]
        assert jobs.allocation[at] == row["allocated_resources"], name
        assert FinalState(jobs.final_state[at]).name == row["final_state"], name
        assert jobs.start_time[at] == pytest.approx(float(row["starting_time"]), abs=SECONDS), name
        assert jobs.runtime[at] == pytest.approx(float(row["execution_time"]), abs=SECONDS), name
        if energy:
            assert jobs.energy[at] == pytest.approx(float(row["consumed_energy"]), abs=JOULES), name


@pytest.mark.parametrize("simulate", [compiled, by_messages])
@pytest.mark.parametrize("name", ["fat_tree16", "flat_backbone", "cables", "pooled"])
def test_jobs_that_communicate_take_as_long_as_in_batsim(simulate, name: str) -> None:
    own = HERE / f"{name}.xml"
    platform = load_platform(own if own.exists() else name, energy=True)
    check(simulate(platform, HERE / f"{name}.json", True, "easy"), HERE / f"{name}.csv", True)


@pytest.mark.parametrize("case", ["full_1.0_random", "full_1.0_first-fit", "taper_1.0_random", "taper_0.5_first-fit"])
def test_jobs_on_the_shipped_fat_tree_take_as_long_as_in_batsim(tmp_path: Path, case: str) -> None:
    tree, ratio, allocation = case.split("_")
    path = "fat_tree1000" if tree == "full" else tmp_path / "taper.xml"
    if tree == "taper":
        links = [Link(12.5e9 / share, 1e-6) for share in (1, 4, 8)]
        write_platform(path, networked(fat_tree(20, 10, links), (PowerState(141.24e9),)))
    policy = f"easy,allocation={allocation}"
    record = compiled(load_platform(path), HERE / f"workload_{ratio}.json", False, policy)
    check(record, HERE / f"{case}.csv", False)
