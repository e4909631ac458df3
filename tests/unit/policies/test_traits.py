"""What a policy needs and does is known of it, whatever it is made of, and whatever is around it."""

import pytest
from helpers.policy_toys import platform

from decision.model.errors import ConfigError
from decision.model.workload import Delay, Job, Workload
from decision.policies import find_policy
from decision.policies.traits import Traits, traits_of
from decision.simulation import simulate_workloads


class Mine:
    suspends = True

    def reset(self, platform, seed) -> None:
        """Nothing to forget."""

    def decide(self, cluster, plan) -> None:
        """Nothing."""


def test_a_class_says_by_attributes_what_differs_from_the_rest() -> None:
    assert traits_of(Mine()) == Traits("Mine", suspends=True)
    assert traits_of(find_policy("kamelot")).switches_hosts is None  # it does not say
    assert traits_of(find_policy("easy,power=idle-timeout,start=bound")) == Traits(
        "easy", needs_walltime=True, switches_hosts=True, books_hosts=True
    )


@pytest.mark.parametrize("option", ["guard=60", "estimate=last2", "late=keep", "estimate=last2,guard=60,late=keep"])
def test_what_is_around_a_policy_keeps_what_that_one_needs(option) -> None:
    inner, outer = (
        traits_of(find_policy("hvf,power=idle-timeout")),
        traits_of(find_policy(f"hvf,power=idle-timeout,{option}")),
    )
    added = {"needs_walltime": "guard" in option, "needs_users": "last2" in option}
    assert outer == inner._replace(**added)


@pytest.mark.parametrize("option", ["", ",estimate=last2", ",late=keep"])
def test_jobs_without_a_value_are_refused_whatever_is_around(option) -> None:
    jobs = [Job(id="w0!0", submit_time=0.0, size=1, walltime=30.0, profile="p")]
    work = Workload(name="w0", jobs=jobs, profiles={"p": Delay(duration=20.0)}, nb_res=4)
    with pytest.raises(ConfigError, match="job w0!0 has no 'value', and policy hvf needs one"):
        simulate_workloads(platform(4), [work], f"hvf{option}")
