"""What really happened in logs, beside what EASY would have done with the same jobs.

Naively compared, EASY seems to wait 1.1 to 25 times less than what was recorded. That is not the policy: in recorded
schedules most of the waiting is beside enough free hosts, for reasons that a log does not hold.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from decision.analysis.recorded import RECORDED, agreement, recorded_jobs
from decision.envs import equal_hosts
from decision.estimates.missing import fill_missing
from decision.formats import load_workload
from decision.model.record import RunRecord
from decision.model.usage import Recorded, fitted, use_of
from decision.simulation import simulate_workloads

from ..findings import Findings, ResultTable

POLICY = "easy"
_COLUMNS = (
    *("log", "jobs", "recorded wait, s", "EASY's, s", "ratio", "rank", "within 60 s"),
    *("fitted, recorded", "fitted, EASY", "over", "peak of hosts"),
)
_NOTES = (
    f"{RECORDED}: what the log says; EASY: FCFS with EASY backfilling on the same jobs, the machine as in the log. "
    "rank: correlation of the waits' ranks (Spearman). fitted: share of all waiting during which the schedule left "
    "enough hosts free for the waiting job. over: share of the time with more than the machine in use. Where fitted "
    "of the record is high, the simulation leaves out what made jobs wait beside free hosts, and says nothing of the "
    "policy."
)


def reproduce_recorded(
    logs: Sequence[Path], missing: str = "none", progress: Callable[[int, int], None] = lambda done, of: None
) -> Findings:
    """A row for each log.

    Args:
        logs: with recorded starts.
        missing: walltimes of jobs without a requested time; see `decision.estimates.missing`.
        progress: called with the logs done, and all.

    Raises:
        InputError: if a log cannot be read.
        ConfigError: if no start is recorded in one.
    """
    rows = []
    for done, path in enumerate(logs):
        progress(done, len(logs))
        rows.append(_row(path, missing))
    progress(len(logs), len(logs))
    return Findings((ResultTable("Recorded schedules and EASY's", _COLUMNS, rows),), _NOTES)


def _row(path: Path, missing: str) -> tuple[str, ...]:
    workload = fill_missing(load_workload(path), missing)
    jobs, hosts = recorded_jobs(workload), workload.nb_res
    use = use_of(jobs)
    record = simulate_workloads(equal_hosts(hosts), [workload], POLICY)
    near, own = agreement(record, workload), _scheduled(record)
    real = float((jobs.start - jobs.submit).mean())
    simulated = float((own.start - own.submit).mean())
    return (
        path.name.partition(".")[0],
        f"{len(workload.jobs):,}",
        f"{real:,.0f}",
        f"{simulated:,.0f}",
        f"{real / simulated:.1f}" if simulated else "-",
        f"{near['recorded_rank']:.2f}" if "recorded_rank" in near else "-",
        f"{100 * near['recorded_close']:.0f} %",
        f"{fitted(jobs, use, hosts):.2f}",
        f"{fitted(own, use_of(own), hosts):.2f}",
        f"{100 * use.over(hosts):.1f} %",
        f"{use.hosts.max():,.0f} of {hosts:,}",
    )


def _scheduled(record: RunRecord) -> Recorded:
    """A simulated schedule, as if it had been recorded."""
    ran = np.flatnonzero(np.isfinite(record.jobs.start_time))
    jobs = record.jobs.take(ran)
    return Recorded(ran, jobs.submit_time, jobs.start_time, jobs.runtime, jobs.size.astype(np.float64))
