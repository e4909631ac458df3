"""The inputs of recorded runs read as Batsim 4.2.1 read them."""

import json
from pathlib import Path

import pytest
from helpers.golden import SCHEDULES
from helpers.recorded_runs import recorded_runs, simulation_begins, workload_files

from decision.files import load_events, load_platform, load_workload

RUNS = recorded_runs()
ids = [run.name for run in RUNS]


@pytest.mark.parametrize("run", RUNS, ids=ids)
def test_hosts_are_those_that_batsim_announced(run: Path) -> None:
    announced = simulation_begins(run)["compute_resources"]
    hosts = load_platform(run / "platform.xml", energy="-E" in (run / "command.txt").read_text().split()).hosts
    ours = [
        {"id": h.id, "name": h.name, "properties": dict(h.properties), "zone_properties": dict(h.zone_properties)}
        for h in hosts
    ]
    assert ours == [{key: value for key, value in host.items() if key != "state"} for host in announced]


@pytest.mark.parametrize("run", RUNS, ids=ids)
def test_profiles_are_those_that_batsim_announced(run: Path) -> None:
    announced = simulation_begins(run)["profiles"]
    for number, path in enumerate(workload_files(run)):
        workload = load_workload(path, f"w{number}", keep_source=True)
        ours = {name: json.loads(source) for name, source in workload.profile_sources.items()}
        assert {k: ours[k] for k in announced[f"w{number}"]} == announced[f"w{number}"]
        # Batsim drops profiles that no job runs, and so do we, but for what their file says.
        assert ours.keys() >= workload.profiles.keys() == announced[f"w{number}"].keys()


@pytest.mark.parametrize("run", RUNS, ids=ids)
def test_jobs_are_forwarded_as_batsim_forwarded_them(run: Path) -> None:
    workloads = [load_workload(path, f"w{i}", keep_source=True) for i, path in enumerate(workload_files(run))]
    sources = {job.id: json.loads(job.source or b"") for workload in workloads for job in workload.jobs}
    submitted = 0
    for line in (run / "session.jsonl").read_text().splitlines():
        for event in json.loads(line)["message"]["events"]:
            if event["type"] == "JOB_SUBMITTED" and event["data"]["job_id"] in sources:
                assert sources[event["data"]["job_id"]] == event["data"]["job"]
                submitted += 1
    assert submitted == len(sources)


def test_external_events_are_those_of_the_file() -> None:
    run = next(run for run in RUNS if run.name == "external_events")
    events = load_events(run / "events.txt")
    assert [(e.timestamp, e.type, e.hosts) for e in events] == [
        (30.0, "machine_unavailable", (5, 6, 7)),
        (300.0, "machine_available", (5, 6)),
        (500.0, "machine_available", (7,)),
    ]


@pytest.mark.parametrize(("hosts", "jobs"), [(32, 300), (128, 400)])
def test_inputs_of_batsched_load(hosts: int, jobs: int) -> None:
    case = SCHEDULES / f"seed1_{hosts}hosts_{jobs}jobs"
    assert len(load_platform(case / "platform.xml").hosts) == hosts
    assert len(load_workload(case / "workload.json").jobs) == jobs
