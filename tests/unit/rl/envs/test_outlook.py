"""Environments expect of jobs what policies with the same options expect."""

import msgspec
import numpy as np
import pytest
from helpers.outlook_reference import HOSTS, made

from decision.model.errors import ConfigError
from decision.policies.wrappers.prediction import EstimatedPolicy
from decision.rl.envs import equal_hosts, evaluate, make_setup
from decision.rl.schedulers import ChoosingPolicy


def roll(observations, masks):
    """Any valid action, by what is seen."""
    valid = [np.flatnonzero(mask) for mask in masks]
    sums = (observations.astype(float).sum(1) * 1e6).astype(np.int64)
    return np.array([own[total % len(own)] for own, total in zip(valid, sums.tolist(), strict=True)])


@pytest.mark.parametrize(
    "options",
    [
        {"estimate": "last2", "correction": "increments"},
        {"estimate": "given", "correction": "doubling"},
        {"estimate": "quantiles"},
        {},
    ],
)
def test_an_environment_sees_jobs_as_a_policy_with_its_outlook(options) -> None:
    work, placed = made(5, 100), ([], [])
    setup = make_setup(work, equal_hosts(HOSTS), encoder="rlscheduler", jobs=100, **options)
    choosing = ChoosingPolicy(setup.encoder, lambda seen, mask: int(roll(seen[None], mask[None])[0]))
    policy = choosing if setup.outlook is None else EstimatedPolicy(choosing, setup.outlook)
    for first in (0, 0, 7):  # nothing is left of an episode in the next one
        for who, jobs in zip((roll, policy), placed, strict=True):
            evaluate(who, setup, first=[first], placed=jobs)
    for own, other in zip(*placed, strict=True):
        assert [column.tolist() for column in own] == [column.tolist() for column in other]
    assert placed[0][0].wait.tolist() == placed[0][1].wait.tolist()


def test_estimates_that_jobs_do_not_say_are_refused() -> None:
    work = made(5, 10)
    silent = msgspec.structs.replace(work.jobs[0], estimate=float("nan"))
    work = msgspec.structs.replace(work, jobs=(silent, *work.jobs[1:]))
    with pytest.raises(ConfigError, match=r"job w0!0 has no 'estimate'.*decision workload predict"):
        make_setup(work, equal_hosts(HOSTS), encoder="rlscheduler", estimate="given")
