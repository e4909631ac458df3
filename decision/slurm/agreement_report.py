"""An agreement in a report: the starts that differ most, and all that is written as JSON or CSV."""

from itertools import islice
from typing import Any

import msgspec
import numpy as np

from .agree import CLOSE, Agreement
from .case import Case
from .kernels.world import BY_BACKFILL, BY_MAIN
from .simulate import Simulated
from .text import write_date
from .wait_groups import job_groups, wait_figures


class StartDifference(msgspec.Struct, frozen=True):
    """A job whose start differs."""

    job: str
    recorded: str
    simulated: str
    seconds: float
    reason: str


def start_differences(case: Case, found: Agreement, count: int = 10) -> list[StartDifference]:
    """The jobs that differ most, by more than 30 s, and in front of them the first one that does."""
    starts = np.array([case.jobs[n].start for n in found.started], float)
    apart = found.best.start[found.started] - starts
    missing = np.isnan(apart)
    order = np.argsort(-np.where(missing, np.inf, np.abs(apart)), kind="stable")
    rows = [int(k) for k in islice(order, count) if missing[k] or abs(apart[k]) > CLOSE[0][1]]
    late = [k for k in np.argsort(starts, kind="stable") if missing[k] or abs(apart[k]) > CLOSE[0][1]]
    if late:
        rows = [int(late[0]), *(k for k in rows if k != late[0])]
    return [_difference(case, found, k, float(apart[k])) for k in rows]


_WHO = {BY_MAIN: "by the main loop", BY_BACKFILL: "by backfill"}


def _difference(case: Case, found: Agreement, place: int, apart: float) -> StartDifference:
    number = int(found.started[place])
    job = case.jobs[number]
    recorded = "by backfill" if job.by_backfill else "by the main loop"
    waited = "" if job.reason in ("", "None") else f", waited for {job.reason}"
    simulated = found.best.start[number]
    return StartDifference(
        job=job.id,
        recorded=write_date(job.start),
        simulated="never" if np.isnan(simulated) else write_date(simulated),
        seconds=apart,
        reason=f"recorded {recorded}{waited}; simulated {_WHO.get(int(found.best.reason[number]), 'not started')}",
    )


def starts_lines(case: Case, run: Simulated) -> list[str]:
    """The starts of a run as CSV: job and start; jobs that never started have no line."""
    started = ((job, start) for job, start in zip(case.jobs, run.start, strict=True) if not np.isnan(start))
    return ["job,start", *(f"{job.id},{write_date(start)}" for job, start in started)]


def agreement_document(case: Case, found: Agreement) -> dict[str, Any]:
    """What ``--json`` writes; seconds."""
    runtime = np.array([case.jobs[n].runtime for n in found.started])
    groups = {}
    for name, places in job_groups(case, found.started).items():
        shown = wait_figures(found.recorded[places], runtime[places])
        model = wait_figures(found.simulated.mean(0)[places], runtime[places])
        groups[name] = {"recorded": shown._asdict(), "simulated": model._asdict()}
    means = found.means
    return {
        "jobs": len(found.started),
        "runs": len(found.simulated),
        "cycles": "given" if case.cycles else "unknown",
        "mean_wait": {**means, "interval": list(found.interval)},
        "starts_within": dict(found.close),
        "utilization": dict(zip(("recorded", "simulated"), found.utilization, strict=True)),
        "groups": groups,
        "differences": [msgspec.structs.asdict(each) for each in start_differences(case, found)],
        "verdict": found.verdict,
        "not_simulated": list(case.keys.may_matter),
        "notes": list(case.notes),
    }
