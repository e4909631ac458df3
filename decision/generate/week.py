"""A week of jobs for a small cluster: a plain model for demonstrations.

Arrivals follow office hours and weekends; each user has typical job sizes and run times; run times are heavy-tailed;
walltimes are round numbers that overestimate, and a few are too short. The numbers are plausible and fitted to no
log: for comparisons that matter use a recorded log or a published model.
"""

import numpy as np

from decision.model.dates import DAY
from decision.model.record import Floats, Ints
from decision.model.workload import Delay, ParallelHomogeneous, Profile, Workload

from .jobs import DAY_WEIGHTS, HOUR_WEIGHTS, times_of_area, workload_of, zipf_users

DAYS = 7

_NB_HOSTS, _NB_USERS = 16, 24
_LOAD = 0.9
_SIGMA_USER, _SIGMA_JOB = 0.8, 1.3  # spread of the logarithm of run times: between users, between a user's jobs
_LONGEST = 12 * 3600.0  # seconds


def week_workload(rng: np.random.Generator, nb_jobs: int = 1500) -> Workload:
    """Jobs with delay profiles for 16 hosts, which run nine tenths of what the hosts offer in the seven days."""
    submit = _arrivals(rng, nb_jobs)
    users = zipf_users(rng, _NB_USERS, nb_jobs)
    sizes = _sizes(rng, users, _NB_HOSTS)
    runtimes, walltimes = _times(rng, users, sizes, _LOAD * _NB_HOSTS * DAYS * DAY)
    names = [f"u{user:02d}" for user in users.tolist()]
    return workload_of(submit, sizes, runtimes, _NB_HOSTS, walltimes=walltimes, users=names)


def in_flops(workload: Workload, speed: float) -> Workload:
    """The same jobs computing instead of waiting: they take as long on hosts of `speed` flop/s, and draw power."""
    profiles: dict[str, Profile] = {
        name: ParallelHomogeneous(profile.duration * speed, 0.0, profile.exit_code)
        for name, profile in workload.profiles.items()
        if isinstance(profile, Delay)
    }
    return Workload(name=workload.name, jobs=workload.jobs, profiles=profiles, nb_res=workload.nb_res)


def _arrivals(rng: np.random.Generator, nb_jobs: int) -> Floats:
    """Submission times in whole seconds, ascending: Monday to Sunday, counted from the first job."""
    weights = np.outer(DAY_WEIGHTS, HOUR_WEIGHTS).ravel()
    hours = rng.choice(len(weights), nb_jobs, p=weights / weights.sum())
    times = np.sort(np.floor(3600 * (hours + rng.random(nb_jobs))))
    return times - times[0]


def _sizes(rng: np.random.Generator, users: Ints, nb_hosts: int) -> Ints:
    """Mostly powers of two around each user's own; one job in five any number of hosts."""
    largest = nb_hosts.bit_length() - 1
    typical = rng.integers(0, largest + 1, _NB_USERS)
    power = np.clip(typical[users] + rng.choice((-1, 0, 0, 1), len(users)), 0, largest)
    anything = rng.integers(1, nb_hosts + 1, len(users))
    return np.where(rng.random(len(users)) < 0.2, anything, 2**power)


def _times(rng: np.random.Generator, users: Ints, sizes: Ints, area: float) -> tuple[Floats, Floats]:
    """Run times and walltimes in seconds, such that jobs run for `area` host-seconds in all."""
    medians = rng.normal(0.0, _SIGMA_USER, _NB_USERS)
    shape = np.exp(medians[users] + rng.normal(0.0, _SIGMA_JOB, len(users)))
    return times_of_area(rng, shape, sizes, area, _LONGEST)
