"""Schedules small enough to compute their metrics by hand."""

import datetime
import math

import numpy as np

from decision.files.outputs_read import RunFacts
from decision.files.text import InputFacts
from decision.model.record import FinalState, JobTable


def job_table(*rows: tuple[float, int, float, float, str]) -> JobTable:
    """Jobs from (submission, hosts, start, runtime, allocation); a start of nan is a rejected job."""
    submit, size, start, runtime, allocation = zip(*rows, strict=True) if rows else ((),) * 5
    start_time = np.array(start, float)
    ran = ~np.isnan(start_time)
    return JobTable(
        id=[f"w0!{i}" for i in range(len(rows))],
        profile=["p"] * len(rows),
        submit_time=np.array(submit, float),
        size=np.array(size, np.int64),
        walltime=np.full(len(rows), math.inf),
        final_state=np.where(ran, int(FinalState.COMPLETED_SUCCESSFULLY), int(FinalState.REJECTED)),
        start_time=start_time,
        runtime=np.array(runtime, float),
        allocation=list(allocation),
        energy=np.full(len(rows), -1.0),
        metadata=[""] * len(rows),
    )


# Three jobs on four hosts, one of them very short, and one that is turned away
THREE = job_table(
    (10.0, 2, 10.0, 100.0, "0-1"),
    (20.0, 4, 110.0, 50.0, "0-3"),
    (30.0, 1, 30.0, 1.0, "3"),
    (40.0, 8, math.nan, math.nan, ""),
)


def run_facts(**changes) -> RunFacts:
    """What a run.json says of a run that has just begun."""
    values = {
        "decision": "0",
        "policy": "easy",
        "engine": "embedded",
        "platform": InputFacts(name="toy.xml", sha256="0" * 64),
        "workloads": (InputFacts(name="toy.json", sha256="1" * 64),),
        "host": "here",
        "process": 7,
        "begin": datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
    }
    return RunFacts(**(values | changes))
