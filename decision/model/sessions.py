"""Users' sessions: what a user sent without having seen an end meanwhile, and which ends were before the next one.

Users submit when earlier jobs end, so a replay at fixed times sends jobs that nobody would have sent (Shmueli and
Feitelson 2009; Zakay and Feitelson 2014). A user's next session begins with the first job that came after own jobs
had ended since the one before; the think time is what passed since the last of these ends. Jobs of a session keep
their distances in time.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from .demand import has_users, recorded, submit_times
from .errors import ConfigError
from .record import Floats, Ints
from .workload import Workload, used_profiles


class Session(NamedTuple):
    """What a user sent after own jobs had ended."""

    jobs: list[int]  # rows of the workload, in order of submission
    offsets: list[float]  # seconds of each after the first
    after: list[int]  # rows of the jobs whose ends it came after
    follows: int  # row of the last job that the user had sent before
    think: float  # seconds from the last of these ends to the first job


class Sessions(NamedTuple):
    """The jobs of a workload by when they come."""

    fixed: Ints  # rows of the jobs that come at their own times: each user's first session, and jobs without a user
    later: Sequence[Session]  # in order of their first submission in the log


def find_sessions(workload: Workload, speed: float | None = None) -> Sessions:
    """The sessions of a log, by its recorded ends.

    Args:
        workload: with recorded starts.
        speed: flop/s of the hosts, where jobs compute.

    Raises:
        ConfigError: if no start is recorded, or no job has a user.
    """
    jobs = recorded(workload, speed)
    where = workload.path or f"workload {workload.name}"
    if jobs is None:
        raise ConfigError(f"{where}: no start of a job is recorded, so think times are not known", field="feedback")
    if not has_users(workload):
        raise ConfigError(f"{where}: jobs have no users, so there are no sessions", field="feedback")
    submit, end = submit_times(workload), np.full(len(workload.jobs), np.inf)
    end[jobs.rows] = jobs.start + jobs.run
    rows: dict[str, list[int]] = {}
    fixed: list[int] = []
    for row in np.argsort(submit, kind="stable").tolist():
        user = workload.jobs[row].user
        (rows.setdefault(user, []) if user else fixed).append(row)
    later: list[Session] = []
    for of_user in rows.values():
        first, *others = _of_user(np.array(of_user), submit, end)
        fixed += first.jobs
        later += others
    later.sort(key=lambda session: (submit[session.jobs[0]], session.jobs[0]))
    return Sessions(np.sort(np.array(fixed, np.int64)), later)


def _of_user(rows: Ints, submit: Floats, end: Floats) -> list[Session]:
    """The sessions of a user's jobs, which are in order of submission; nothing is before the first."""
    order = rows[np.argsort(end[rows], kind="stable")].tolist()
    ends, times = end[order].tolist(), submit[rows].tolist()
    sessions = [Session([], [], [], -1, 0.0)]
    seen, begin, before = 0, times[0], -1
    for row, time in zip(rows.tolist(), times, strict=True):
        now = seen
        while now < len(ends) and ends[now] <= time:
            now += 1
        if now > seen:
            sessions.append(Session([], [], order[seen:now], before, time - ends[now - 1]))
            seen, begin = now, time
        sessions[-1].jobs.append(row)
        sessions[-1].offsets.append(time - begin)
        before = row
    return sessions


def of_fixed(workload: Workload, sessions: Sessions) -> Workload:
    """The jobs that come at their own times, with what they do; what was recorded of them is left out."""
    jobs = [workload.jobs[row] for row in sessions.fixed.tolist()]
    used = used_profiles(workload.profiles, {job.profile for job in jobs})
    profiles = {name: workload.profiles[name] for name in workload.profiles if name in used}
    return replace(workload, jobs=jobs, profiles=profiles, trace=None)
