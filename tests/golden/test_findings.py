"""Small cases that once differed from what Batsim 4.2.1 did."""

import csv
from pathlib import Path

from decision.engine.options import EngineOptions
from decision.formats import load_platform, load_workload
from decision.simulation import simulate_workloads

HERE = Path(__file__).parent


def test_a_cap_holds_before_the_first_question():
    """Hosts beyond the cap are not free at 0 s, so that others are kept awake, and j002 starts at 11 s, not at 20 s."""
    folder = HERE / "constant_cap_power"
    platform, work = load_platform(folder / "platform.xml"), load_workload(folder / "workload.json")
    options = {"power": "keep-awake", "keep_awake": "3", "cap": "1984.5"}
    record = simulate_workloads(platform, [work], "f2+easy", options, engine_options=EngineOptions(energy=True))
    recorded = list(csv.DictReader((folder / "jobs_batsim.csv").open()))
    assert record.jobs.start_time.tolist() == [float(row["starting_time"]) for row in recorded]
