"""Recorded runs of Batsim 4.2.1: where they are, and their output files as a `RunRecord`."""

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from decision.model.record import EnergyTable, FinalState, HostState, HostTable, JobTable, PstateTable, RunRecord

from .golden import SESSIONS


def recorded_runs() -> list[Path]:
    """A folder per scenario."""
    return sorted(path.parent for path in SESSIONS.glob("*/platform.xml"))


def simulation_begins(folder: Path) -> dict[str, Any]:
    """The data of the first event that Batsim sent."""
    with (folder / "session.jsonl").open() as session:
        return json.loads(next(session))["message"]["events"][0]["data"]


def workload_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("workload*.json"))


def read_record(folder: Path) -> RunRecord:
    """What Batsim's own files say about the run, as our engine would have recorded it."""
    schedule = dict(zip(*rows(folder / "out_schedule.csv"), strict=True))
    with_energy = (folder / "out_consumed_energy.csv").exists()
    return RunRecord(
        nb_hosts=int(schedule["nb_computing_machines"]),
        jobs=_jobs(folder / "out_jobs.csv"),
        host_states=_host_states(folder / "out_machine_states.csv"),
        energy=_energy(folder / "out_consumed_energy.csv") if with_energy else None,
        pstates=_pstates(folder / "out_pstate_changes.csv") if with_energy else None,
        time_in_state=np.array([float(schedule[f"time_{state.name.lower()}"]) for state in HostState]),
        joules=float(schedule["consumed_joules"]),
        nb_switches=int(schedule["nb_machine_switches"]),
        nb_grouped_switches=int(schedule["nb_grouped_switches"]),
        scheduling_time=float(schedule["scheduling_time"]),
        simulation_time=float(schedule["simulation_time"]),
    )


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


def columns(path: Path) -> dict[str, list[str]]:
    header, *body = rows(path)
    return dict(zip(header, map(list, zip(*body, strict=True)), strict=True))


def _floats(cells: list[str], missing: float = math.nan) -> np.ndarray:
    return np.array([float(cell) if cell else missing for cell in cells])


def _jobs(path: Path) -> JobTable:
    table = columns(path)
    walltime = _floats(table["requested_time"])
    return JobTable(
        id=[f"{w}!{j}" for w, j in zip(table["workload_name"], table["job_id"], strict=True)],
        profile=table["profile"],
        submit_time=_floats(table["submission_time"]),
        size=_floats(table["requested_number_of_resources"]).astype(np.int64),
        walltime=np.where(walltime < 0, math.inf, walltime),
        final_state=np.array([FinalState[name] for name in table["final_state"]]),
        start_time=_floats(table["starting_time"]),
        runtime=_floats(table["execution_time"]),
        allocation=table["allocated_resources"],
        energy=_floats(table["consumed_energy"], -1.0),
        metadata=table["metadata"],
    )


def _host_states(path: Path) -> HostTable:
    body = np.array(rows(path)[1:], dtype=float)
    counts = np.hstack([body[:, 1:], np.zeros((len(body), 1))])
    return HostTable(time=body[:, 0], counts=counts.astype(np.int64))


def _energy(path: Path) -> EnergyTable:
    table = columns(path)
    return EnergyTable(
        time=_floats(table["time"]),
        energy=_floats(table["energy"]),
        event=table["event_type"],
        wattmin=_floats(table["wattmin"]),
    )


def _pstates(path: Path) -> PstateTable:
    table = columns(path)
    pstate = _floats(table["new_pstate"]).astype(np.int64)
    return PstateTable(time=_floats(table["time"]), hosts=table["machine_id"], pstate=pstate)
