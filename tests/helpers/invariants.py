"""What holds of a `ClusterState` after each transition. Plain Python over numpy, for tests and for finding mistakes."""

import numpy as np

from decision.state.cluster import (
    COMPUTING,
    ENDED,
    IDLE,
    N_ENDED,
    N_FREE,
    N_HOST_STATES,
    N_IN_STATE,
    N_INTERVALS,
    N_JOBS,
    N_QUEUED,
    N_RUNNING,
    QUEUED,
    RUNNING,
    UNAVAILABLE,
    ClusterState,
    nb_hosts,
    pack_hosts,
)
from decision.state.platform_facts import PSTATE_COMPUTING, PlatformFacts


def violations(state: ClusterState, facts: PlatformFacts) -> list[str]:
    """What is wrong with a state, one line each; nothing where it is sound.

    It holds between transitions, once `transitions.drop_started` was called.
    """
    found = [*_counters(state), *_hosts(state, facts), *_jobs(state), *_lists(state)]
    return found + (_allocations(state) if not found else [])


def _counters(state: ClusterState) -> list[str]:
    """Counters that are not what they count."""
    count, hosts = state.count, nb_hosts(state)
    recounts = {
        "free hosts": (count[N_FREE], sum(int(word).bit_count() for word in state.free)),
        "jobs": (count[N_JOBS], sum(_in_state(state, kind) for kind in (QUEUED, RUNNING, ENDED))),
        "queued jobs": (count[N_QUEUED], _in_state(state, QUEUED)),
        "running jobs": (count[N_RUNNING], _in_state(state, RUNNING)),
        "hosts": (hosts, count[N_IN_STATE : N_IN_STATE + N_HOST_STATES].sum()),
    }
    for kind in range(N_HOST_STATES):
        recounts[f"hosts in state {kind}"] = (count[N_IN_STATE + kind], (state.host_state == kind).sum())
    return [f"{what}: counted {said}, there are {real}" for what, (said, real) in recounts.items() if said != real]


def _in_state(state: ClusterState, kind: int) -> int:
    """Jobs that are queued, running or ended in whatever way."""
    return int((np.minimum(state.job_state[: state.count[N_JOBS]], ENDED) == kind).sum())


def _hosts(state: ClusterState, facts: PlatformFacts) -> list[str]:
    """The free bitmap is what the hosts say, and so are host states and jobs."""
    hosts = np.arange(nb_hosts(state))
    computes = facts.pstate_kind[hosts, state.pstate] == PSTATE_COMPUTING
    has_job = state.host_job >= 0
    free = (state.host_state == IDLE) & ~has_job & computes
    back = np.where(state.host_state == UNAVAILABLE, state.host_return, state.host_state)
    wrong = {
        "free bitmap does not match": [] if (pack_hosts(free) == state.free | state.unpowered).all() else hosts[free],
        "are free without power": [] if _power_is_kept(state, int(free.sum())) else hosts[free],
        "have a job but do not compute, or will not once they are back": hosts[has_job & (back != COMPUTING)],
        "compute without a job, or will once they are back": hosts[~has_job & (back == COMPUTING)],
        "have been as they are since a time to come": hosts[state.host_since > state.now[0]],
    }
    return [f"hosts {list(which)}: {what}" for what, which in wrong.items() if len(which)]


def _power_is_kept(state: ClusterState, could: int) -> bool:
    """Whether as many hosts are free as power is left for, and no host is both free and without power."""
    busy = int(state.size[state.running[: state.count[N_RUNNING]]].sum())
    left = could if state.supply[0] >= nb_hosts(state) else max(int(state.supply[0]) - busy, 0)
    return state.count[N_FREE] == min(could, left) and not (state.free & state.unpowered).any()


def _jobs(state: ClusterState) -> list[str]:
    """Times are in order, and there where a job has come so far."""
    jobs = np.arange(state.count[N_JOBS])
    kind, submit, start, end = (getattr(state, n)[jobs] for n in ("job_state", "submit_time", "start_time", "end_time"))
    wrong = {
        "submitted in a time to come": submit > state.now[0],
        "started before they were submitted": start < submit,
        "ended before they were submitted": end < submit,
        "ended before they started": end < start,
        "wait but have started": (kind == QUEUED) & ~np.isnan(start),
        "run but have not started": (kind == RUNNING) & np.isnan(start),
        "are not over but have ended": (kind < ENDED) & ~np.isnan(end),
        "are over but have not ended": (kind >= ENDED) & np.isnan(end),
    }
    return [f"jobs {jobs[mask].tolist()}: {what}" for what, mask in wrong.items() if mask.any()]


def _lists(state: ClusterState) -> list[str]:
    """The queue, the running list and the list of recent ends name the right jobs in the right order."""
    kind = state.job_state[: state.count[N_JOBS]]
    queue, running = state.queue[: state.count[N_QUEUED]], state.running[: state.count[N_RUNNING]]
    expected, ended = state.expected_end[: state.count[N_RUNNING]], state.ended[: state.count[N_ENDED]]
    checks = {
        "queue is not the queued jobs in order of submission": np.array_equal(queue, np.flatnonzero(kind == QUEUED)),
        "running is not the running jobs": np.array_equal(np.sort(running), np.flatnonzero(kind == RUNNING)),
        "running is not by expected end": bool((expected[1:] >= expected[:-1]).all()),
        "expected_end is not start and walltime": np.array_equal(
            expected, state.start_time[running] + state.walltime[running]
        ),
        "ended names a job twice": len(set(ended.tolist())) == len(ended),
        "ended names a job that is not over": bool((kind[ended] >= ENDED).all()),
    }
    return [what for what, holds in checks.items() if not holds]


def _allocations(state: ClusterState) -> list[str]:
    """Running jobs have their hosts to themselves, and `host_job` says so."""
    owner = np.full(nb_hosts(state), -1)
    for job in state.running[: state.count[N_RUNNING]].tolist():
        begin = state.alloc_first[job]
        if begin + state.alloc_count[job] > state.count[N_INTERVALS]:
            return [f"job {job}: its intervals are beyond the pool's end"]
        for i in range(begin, begin + state.alloc_count[job]):
            hosts = slice(state.interval_first[i], state.interval_last[i] + 1)
            if (owner[hosts] >= 0).any():
                return [f"jobs {job} and {owner[hosts].max()} have a host in common"]
            owner[hosts] = job
    strange = np.flatnonzero(owner != state.host_job)
    return [f"hosts {strange.tolist()}: host_job is not whose allocation they are in"] if len(strange) else []
