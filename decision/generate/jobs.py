"""A workload from columns: what all makers of workloads end with."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decision.model.workload import Delay, Job, Profile, Workload

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NAME = "w0"


def workload_of(
    submit: Floats,
    sizes: Ints,
    runtimes: Floats,
    nb_hosts: int,
    *,
    walltimes: Floats | None = None,
    users: Sequence[str] | None = None,
    extras: Sequence[Mapping[str, Any] | None] | None = None,
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
    )
    jobs = tuple(
        Job(
            id=f"{NAME}!{number:0{width}d}",
            submit_time=at,
            size=size,
            walltime=limit,
            profile=names[profile],
            user=user,
            extra=extra,
        )
        for number, (at, size, limit, profile, user, extra) in enumerate(zip(*columns, strict=True))
    )
    profiles: dict[str, Profile] = {name: Delay(run) for name, run in zip(names, distinct.tolist(), strict=True)}
    return Workload(name=NAME, jobs=jobs, profiles=profiles, nb_res=nb_hosts)
