"""Who is guarded because the start that can be promised would be too late."""

import pytest
from helpers.policy_toys import Toy

from decision.policies.guard import count_late
from decision.policies.options import AUTO, PolicyConfig


def waiting(*jobs: tuple[int, float], runs: int = 3) -> Toy:
    """Jobs of so many hosts (of 4) and seconds that wait since 0 s; at 225 s, beside one that may run until 300 s."""
    toy = Toy(4, PolicyConfig(guard_times=AUTO))
    toy.submit(runs, 300.0)
    toy.decide()
    toy.carry_out()
    for size, walltime in jobs:
        toy.submit(size, walltime)
    toy.state.now = 225.0
    return toy


@pytest.mark.parametrize(
    ("most", "guarded"),
    [
        (400.0, 0),  # starts at 300 and 350 s can be promised, and 360 s is soon enough
        (380.0, 2),  # 342 s is not, for the second: and the first goes before it
        (320.0, 2),  # nor 288 s for the first
        (410.0, 0),  # of what they may wait, 225 s is less than the least share
        (500.0, 0),
        (270.0, 2),  # they have waited for five sixths of it
        (0.0, 2),  # nobody has waited yet under EASY
    ],
)
def test_a_job_is_guarded_before_its_promise_would_be_too_late(most, guarded):
    toy = waiting((4, 50.0), (4, 50.0))
    assert count_late(toy.state, toy.memory, most) == guarded


@pytest.mark.parametrize(("walltime", "guarded"), [(70.0, 0), (100.0, 2)])
def test_what_fits_beside_the_promises_of_those_before_it_is_promised_at_once(walltime, guarded):
    """It ends at 295 s, before the first starts at 300 s; or it would start when that ends, at 350 s."""
    toy = waiting((4, 50.0), (1, walltime))
    assert count_late(toy.state, toy.memory, 380.0) == guarded


def test_who_is_guarded_stays_so_and_who_cannot_be_promised_hosts_is_guarded():
    toy = waiting((4, 50.0), (4, 50.0))
    toy.memory.nb_guarded = 2
    assert count_late(toy.state, toy.memory, 1e6) == 1
    assert count_late(*waiting_for_hosts_that_left(), 400.0) == 1


def waiting_for_hosts_that_left():
    toy = waiting((4, 50.0))
    toy.state.size[1] = 5
    return toy.state, toy.memory
