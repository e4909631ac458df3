"""Workloads from columns, and what generated workloads without a published model share.

Working hours, users' shares of the jobs, and run times with walltimes: the numbers are plausible and fitted to no log.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from decision.model.record import Floats, Ints
from decision.model.workload import Delay, Job, Profile, Workload, Worth

_NAME = "w0"


def workload_of(
    submit: Floats,
    sizes: Ints,
    runtimes: Floats,
    nb_hosts: int,
    *,
    walltimes: Floats | None = None,
    users: Sequence[str] | None = None,
    extras: Sequence[Mapping[str, Any] | None] | None = None,
    worth: Floats | None = None,
) -> Workload:
    """Jobs numbered from 0 that take their run time on any host, with one delay profile per distinct run time.

    Args:
        submit: (J,) submission times, seconds, ascending.
        sizes: (J,) requested hosts.
        runtimes: (J,) seconds, > 0.
        nb_hosts: hosts that the jobs are meant for.
        walltimes: (J,) seconds; jobs have none if absent.
        users: (J,) names; jobs have none if absent.
        extras: (J,) further fields of each job's JSON.
        worth: (J, 4) as `decision.model.workload.Worth`; jobs have none if absent.
    """
    count = len(submit)
    width = len(str(max(count - 1, 0)))
    distinct, which = np.unique(runtimes, return_inverse=True)
    names = [f"d{runtime!r}".removesuffix(".0") for runtime in distinct.tolist()]
    columns = (
        submit.tolist(),
        sizes.tolist(),
        [math.inf] * count if walltimes is None else walltimes.tolist(),
        which.tolist(),
        users or [""] * count,
        extras or [None] * count,
        [None] * count if worth is None else [Worth(*row) for row in worth.tolist()],
    )
    jobs = tuple(
        Job(
            id=f"{_NAME}!{number:0{width}d}",
            submit_time=at,
            size=size,
            walltime=limit,
            profile=names[profile],
            user=user,
            extra=extra,
            worth=value,
        )
        for number, (at, size, limit, profile, user, extra, value) in enumerate(zip(*columns, strict=True))
    )
    profiles: dict[str, Profile] = {name: Delay(run) for name, run in zip(names, distinct.tolist(), strict=True)}
    return Workload(name=_NAME, jobs=jobs, profiles=profiles, nb_res=nb_hosts)


DAY_WEIGHTS = (1.0, 1.0, 1.0, 1.0, 0.9, 0.35, 0.3)  # how busy Monday to Sunday are
HOUR_WEIGHTS = (2, 1, 1, 1, 1, 1, 2, 4, 8, 11, 12, 11, 8, 11, 12, 12, 11, 9, 7, 5, 4, 4, 3, 3)  # from midnight

_TOO_SHORT = 0.03  # share of jobs whose walltime stops them
_SHORTEST = 5.0  # seconds
_WALLTIMES = 60.0 * np.array([5, 10, 15, 30, 60, 120, 180, 240, 360, 480, 720, 1440, 2880, 4320])  # seconds


def zipf_users(rng: np.random.Generator, nb_users: int, count: int) -> Ints:
    """(count,) users from 0: few users submit most (Zipf's law)."""
    weights = 1 / np.arange(1, nb_users + 1)
    return rng.choice(nb_users, count, p=weights / weights.sum())


def times_of_area(
    rng: np.random.Generator, shape: Floats, sizes: Ints, area: float, longest: float
) -> tuple[Floats, Floats]:
    """Run times in whole seconds and round walltimes, most of them too long, a few too short.

    Args:
        rng: where choices come from.
        shape: (J,) how long jobs run, relative to each other.
        sizes: (J,) hosts.
        area: host-seconds that the jobs run in all, until their walltimes.
        longest: the longest run time, seconds.
    """
    factor = rng.uniform(1.1, 4.0, len(shape))
    factor[rng.random(len(shape)) < _TOO_SHORT] = 0.5
    scale = area / (shape * sizes).sum()
    for _ in range(50):  # cutting run times loses area; scale again until the area is right
        runtimes = np.clip(np.rint(shape * scale), _SHORTEST, longest)
        walltimes = _WALLTIMES[np.searchsorted(_WALLTIMES, np.minimum(runtimes * factor, _WALLTIMES[-1]))]
        scale *= area / (np.minimum(runtimes, walltimes) * sizes).sum()
    return runtimes, walltimes
