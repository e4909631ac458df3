"""What OAR wrote about its runs: read, made a workload where none fits, and measured."""

import csv
import math
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from decision.formats import load_workload
from decision.model.errors import InputError
from decision.model.hosts import format_hosts, parse_hosts
from decision.model.record import FinalState, Floats, JobTable
from decision.model.workload import Delay, Job, Profile, Workload

NB_HOSTS = 32
_PROMPT = 5.0  # seconds: a start so soon after the last thing that it waited for was caused by it


class RecordedCase(NamedTuple):
    """A seed: what OAR did, and its jobs as a workload."""

    seed: int
    real: JobTable  # in order of submission; seconds since the first submission
    workload: Workload
    rebuilt: bool  # from the record, because the workload's file has other jobs


class Delays(NamedTuple):
    """What OAR takes that Batsim's model has no time for, in seconds."""

    reaction: float = 0.0  # from an event to the starts that it causes
    launch: float = 0.0  # by which a job takes longer than its profile


def read_recorded_case(data: Path, seed: int) -> RecordedCase:
    """One seed's record and workload. Raises InputError."""
    real = read_record(data / f"oar_gantt_seed{seed}.csv")
    workload = load_workload(data / f"delay_seed{seed}.json")
    same = [(job.size, job.walltime) for job in workload.jobs] == list(zip(real.size, real.walltime, strict=True))
    return RecordedCase(seed, real, workload if same else _rebuild(real), not same)


def read_record(path: Path) -> JobTable:
    """What OAR did, in order of submission, in seconds since the first.

    Raises:
        InputError: if the file cannot be read or is not such a record.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = sorted(csv.DictReader(file), key=lambda row: int(row["job_id"]))
        if not rows:
            raise ValueError("it has no jobs")
        return _record(rows)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); give the folder that it is in", field="data"
        ) from None
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(f"{path}: not a record of OAR ({type(error).__name__}: {error})") from None


def _record(rows: list[dict[str, str]]) -> JobTable:
    submit, start, stop = (_column(rows, name) for name in ("submission_time", "start_time", "stop_time"))
    return JobTable(
        id=[f"w0!{i}" for i in range(len(rows))],
        profile=[f"p{i}" for i in range(len(rows))],
        submit_time=submit - submit[0],
        size=_column(rows, "resource_count").astype(np.int64),
        walltime=_column(rows, "walltime"),
        final_state=np.full(len(rows), FinalState.COMPLETED_SUCCESSFULLY, np.int64),
        start_time=start - submit[0],
        runtime=stop - start,
        allocation=[format_hosts(int(host) - 1 for host in row["resources"].split()) for row in rows],
        energy=np.full(len(rows), -1.0),
        metadata=[""] * len(rows),
    )


def _column(rows: list[dict[str, str]], name: str) -> Floats:
    return np.array([float(row[name]) for row in rows])


def _rebuild(real: JobTable) -> Workload:
    columns = zip(real.id, real.submit_time, real.size, real.walltime, real.profile, strict=True)
    jobs = [
        Job(id=name, submit_time=float(submit), size=int(size), walltime=float(walltime), profile=profile)
        for name, submit, size, walltime, profile in columns
    ]
    profiles: dict[str, Profile] = {
        name: Delay(float(runtime)) for name, runtime in zip(real.profile, real.runtime, strict=True)
    }
    return Workload(name="w0", jobs=jobs, profiles=profiles, nb_res=NB_HOSTS)


def measure_delays(cases: Iterable[RecordedCase]) -> Delays:
    """OAR's delays, from records: mean of the starts that something caused at once, median of the jobs' overrun."""
    reactions, launches = [], []
    for case in cases:
        lags = case.real.start_time - _ready(case.real)
        reactions.append(lags[lags <= _PROMPT])
        launches.append(case.real.runtime - [_duration(case.workload, job) for job in case.workload.jobs])
    return Delays(float(np.concatenate(reactions).mean()), float(np.median(np.concatenate(launches))))


def _ready(real: JobTable) -> Floats:
    """For each job when it was submitted and its hosts were free, seconds."""
    free = np.zeros(NB_HOSTS)
    ready = real.submit_time.copy()
    for job in np.argsort(real.start_time, kind="stable"):
        hosts = parse_hosts(real.allocation[job])
        ready[job] = max(ready[job], free[hosts].max())
        free[hosts] = real.start_time[job] + real.runtime[job]
    return ready


def _duration(workload: Workload, job: Job) -> float:
    profile = workload.profiles[job.profile]
    return profile.duration if isinstance(profile, Delay) else math.nan
