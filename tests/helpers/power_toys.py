"""Small workloads on hosts that sleep, and what a run says of them."""

from decision.model.record import RunRecord
from decision.model.workload import Delay, Job, Workload


def workload(*jobs: tuple[float, int, float, float]) -> Workload:
    """From (submission, hosts, walltime, runtime) per job, times in seconds."""
    made = [Job(id=f"w0!{i}", submit_time=s, size=n, walltime=w, profile=f"{r}") for i, (s, n, w, r) in enumerate(jobs)]
    return Workload(name="w0", jobs=made, profiles={f"{r}": Delay(duration=r) for *_, r in jobs}, nb_res=4)


def starts(record: RunRecord) -> list[float]:
    return [start for _, start in sorted(zip(record.jobs.id, record.jobs.start_time.tolist(), strict=True))]


def switches(record: RunRecord) -> list[tuple[float, str, int]]:
    """Time, hosts and pstate of each request (-1: to wake, -2: to sleep), the initial ones left out."""
    rows = zip(record.pstates.time.tolist(), record.pstates.hosts, record.pstates.pstate.tolist(), strict=True)
    return [row for row in rows if row[2] < 0]
