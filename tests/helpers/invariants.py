"""What holds of a `ClusterState` after each transition. Plain Python over numpy, for tests and for finding mistakes."""

import numpy as np

from decision.state.cluster import (
    COMPUTING,
    ENDED,
    IDLE,
    N_HOST_STATES,
    PSTATE_COMPUTING,
    QUEUED,
    RUNNING,
    UNAVAILABLE,
    ClusterState,
    PlatformFacts,
    nb_hosts,
    pack_hosts,
)


def violations(state: ClusterState, facts: PlatformFacts) -> list[str]:
    """What is wrong with a state, one line each; nothing where it is sound.

    It holds between transitions, once `transitions.drop_started` was called.
    """
    found = [*_counters(state), *_hosts(state, facts), *_jobs(state), *_lists(state)]
    return found + (_allocations(state) if not found else [])


def _counters(state: ClusterState) -> list[str]:
    """Counters that are not what they count."""
    recounts = {
        "free hosts": (state.nb_free, sum(int(word).bit_count() for word in state.free)),
        "jobs": (state.nb_jobs, sum(_in_state(state, kind) for kind in (QUEUED, RUNNING, ENDED))),
        "queued jobs": (state.nb_queued, _in_state(state, QUEUED)),
        "running jobs": (state.nb_running, _in_state(state, RUNNING)),
        "hosts": (nb_hosts(state), state.nb_in_state.sum()),
    }
    for kind in range(N_HOST_STATES):
        recounts[f"hosts in state {kind}"] = (state.nb_in_state[kind], (state.host_state == kind).sum())
    return [f"{what}: counted {said}, there are {real}" for what, (said, real) in recounts.items() if said != real]


def _in_state(state: ClusterState, kind: int) -> int:
    """Jobs that are queued, running or ended in whatever way."""
    return int((np.minimum(state.job_state[: state.nb_jobs], ENDED) == kind).sum())


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
        "have been as they are since a time to come": hosts[state.host_since > state.now],
    }
    return [f"hosts {list(which)}: {what}" for what, which in wrong.items() if len(which)]


def _power_is_kept(state: ClusterState, could: int) -> bool:
    """Whether as many hosts are free as power is left for, and no host is both free and without power."""
    busy = int(state.size[state.running[: state.nb_running]].sum())
    left = could if state.supply >= nb_hosts(state) else max(int(state.supply) - busy, 0)
    return state.nb_free == min(could, left) and not (state.free & state.unpowered).any()


def _jobs(state: ClusterState) -> list[str]:
    """Times are in order, and there where a job has come so far."""
    jobs = np.arange(state.nb_jobs)
    kind, submit, start, end = (getattr(state, n)[jobs] for n in ("job_state", "submit_time", "start_time", "end_time"))
    wrong = {
        "submitted in a time to come": submit > state.now,
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
    kind = state.job_state[: state.nb_jobs]
    queue, running = state.queue[: state.nb_queued], state.running[: state.nb_running]
    expected, ended = state.expected_end[: state.nb_running], state.ended[: state.nb_ended]
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
    """Running jobs have their hosts to themselves unless these are shared, and `host_job` says so."""
    owner = np.full(nb_hosts(state), -1)
    named = np.zeros(nb_hosts(state), bool)  # by a job that has it
    for job in state.running[: state.nb_running].tolist():
        begin = state.alloc_first[job]
        if begin + state.alloc_count[job] > state.nb_intervals:
            return [f"job {job}: its intervals are beyond the pool's end"]
        for i in range(begin, begin + state.alloc_count[job]):
            hosts = slice(state.interval_first[i], state.interval_last[i] + 1)
            if (owner[hosts] >= 0).any() and not state.shares:
                return [f"jobs {job} and {owner[hosts].max()} have a host in common"]
            owner[hosts] = job
            named[hosts] |= state.host_job[hosts] == job
    strange = np.flatnonzero(np.where(owner >= 0, ~named, state.host_job >= 0))
    return [f"hosts {strange.tolist()}: host_job is not whose allocation they are in"] if len(strange) else []
