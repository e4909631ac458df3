"""What a setting is to be good at, over all jobs or over a group of them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import F8
from decision.model.errors import ConfigError
from decision.model.names import nearest

from .case import Case
from .engine_inputs import engine_size
from .wait_groups import SHORTEST, job_groups

GOALS = ("mean-wait", "p95-wait", "slowdown", "utilization")
_KINDS = ("partition", "qos", "account", "size", "user")


class Goal(NamedTuple):
    """A figure of a group of jobs; less is better, but for utilization."""

    text: str
    figure: str
    places: NDArray[np.int64]  # of the compared jobs
    sign: float  # +1 where less is better

    def of(self, wait: F8, runtime: F8, area: F8) -> float:
        """The figure of jobs with these waits.

        Args:
            wait: (K,) seconds.
            runtime: (K,) seconds.
            area: (K,) hosts x seconds that each job takes, for the utilization.
        """
        wait, runtime, area = wait[self.places], runtime[self.places], area[self.places]
        if self.figure == "mean-wait":
            return float(wait.mean())
        if self.figure == "p95-wait":
            return float(np.quantile(wait, 0.95))
        if self.figure == "slowdown":
            return float(np.maximum(1, (wait + runtime) / np.maximum(runtime, SHORTEST)).mean())
        return float(area.sum() / max(1.0, (wait + runtime).max()))

    def per_job(self, wait: F8, runtime: F8) -> F8:
        """What each job contributes to a mean; of the others an approximation by waits, for the interval."""
        wait, runtime = wait[self.places], runtime[self.places]
        if self.figure == "slowdown":
            return np.maximum(1, (wait + runtime) / np.maximum(runtime, SHORTEST))
        return wait


def read_goal(text: str, case: Case, numbers: Sequence[int], field: str = "goal") -> Goal:
    """A goal from ``mean-wait`` or ``partition=debug:mean-wait``.

    Raises:
        ConfigError: naming the figure or group that there is not.
    """
    group, _, figure = text.rpartition(":")
    if figure not in GOALS:
        raise ConfigError(f"there is no goal {figure!r}{nearest(figure, GOALS)}; it is {', '.join(GOALS)}", field=field)
    return Goal(text, figure, _members(group, case, numbers, field), -1.0 if figure == "utilization" else 1.0)


def _members(group: str, case: Case, numbers: Sequence[int], field: str) -> NDArray[np.int64]:
    if not group:
        return np.arange(len(numbers))
    kind, _, name = group.partition("=")
    if kind not in _KINDS:
        raise ConfigError(f"{group!r} is not a group of jobs; write it as {_KINDS[0]}=NAME", field=field)
    groups: Mapping[str, Any] = job_groups(case, numbers)
    if kind != "size":
        found = np.flatnonzero([getattr(case.jobs[n], kind) == name for n in numbers])
    else:
        found = groups.get(group, np.zeros(0, np.int64))
    if not len(found):
        raise ConfigError(f"no job that started is of {group}", field=field)
    return found


class Guard(NamedTuple):
    """What must not get worse by more than a share."""

    goal: Goal
    share: float


def read_goal_guard(text: str, case: Case, numbers: Sequence[int]) -> Guard:
    """A guard from ``partition=debug:mean-wait:5%``. Raises ConfigError."""
    goal, _, share = text.rpartition(":")
    try:
        value = float(share.removesuffix("%")) / 100
        if not 0 <= value < math.inf:
            raise ValueError(share)
    except ValueError:
        raise ConfigError(f"{text!r}: write it as partition=debug:mean-wait:5%", field="not_worse") from None
    return Guard(read_goal(goal, case, numbers, "not_worse"), value)


def areas(case: Case, numbers: Sequence[int]) -> F8:
    """Hosts x seconds of each job."""
    return np.array([engine_size(case, case.jobs[n]) * case.jobs[n].runtime for n in numbers])
