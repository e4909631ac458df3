"""The availability profile is a step function, whatever is reserved and given back."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decision.model.errors import InternalError
from decision.policies.profile import (
    Profile,
    add_free,
    are_free,
    begin_profile,
    earlier,
    earliest,
    forget_before,
    free_at,
    least_free,
    most_free,
)

HOSTS = 8


def steps(profile) -> list[tuple[float, int]]:
    used = slice(profile.first_step, profile.end_step)
    return list(zip(profile.step_time[used].tolist(), profile.step_free[used].tolist(), strict=True))


def fresh(room: int = 40):
    room = 2 * room + 8
    profile = Profile(step_time=np.zeros(room), step_free=np.zeros(room, np.int32))
    begin_profile(profile, 0.0, HOSTS)
    return profile


def test_a_reservation_makes_two_steps_and_giving_it_back_none():
    profile = fresh()
    add_free(profile, 2.0, 5.0, -3)
    assert steps(profile) == [(0.0, 8), (2.0, 5), (5.0, 8)]
    add_free(profile, 2.0, 5.0, 3)
    assert steps(profile) == [(0.0, 8)]


def test_a_reservation_without_end_has_no_second_step():
    profile = fresh()
    add_free(profile, 2.0, math.inf, -8)
    assert steps(profile) == [(0.0, 8), (2.0, 0)]
    assert earliest(profile, 1, 2.0) == 0.0
    assert earliest(profile, 1, 2.5) == math.inf


def test_a_job_fits_where_enough_hosts_are_free_for_all_of_its_walltime():
    profile = fresh()
    add_free(profile, 0.0, 4.0, -6)
    add_free(profile, 5.0, 9.0, -6)
    assert earliest(profile, 2, 100.0) == 0.0
    assert earliest(profile, 3, 1.0) == 4.0
    assert earliest(profile, 3, 1.5) == 9.0
    assert earliest(profile, 9, 1.0) == math.inf


def test_a_reservation_moves_into_a_hole_or_up_to_its_own_place():
    profile = fresh()
    add_free(profile, 0.0, 10.0, -8)
    add_free(profile, 10.0, 13.0, -4)  # the reservation in question
    assert earlier(profile, 4, 3.0, 10.0, 0.0, 10.0) == 10.0
    add_free(profile, 8.0, 10.0, 4)
    assert earlier(profile, 4, 3.0, 10.0, 8.0, 10.0) == 8.0
    add_free(profile, 1.0, 3.0, 4)
    assert earlier(profile, 4, 3.0, 10.0, 1.0, 3.0) == 10.0
    assert earlier(profile, 4, 2.0, 10.0, 1.0, 3.0) == 1.0


def test_forgetting_the_past_leaves_the_future_alone():
    profile = fresh()
    add_free(profile, 2.0, 5.0, -3)
    forget_before(profile, 3.0)
    assert steps(profile) == [(3.0, 5), (5.0, 8)]
    forget_before(profile, 5.0)
    assert steps(profile) == [(5.0, 8)]


def test_forgotten_steps_make_room_for_new_ones():
    profile = fresh(room=2)
    for i in range(200):
        now = float(i)
        forget_before(profile, now)
        add_free(profile, now + 1.0, now + 2.5, -1)
    assert free_at(profile, 200.25) == HOSTS - 2
    assert profile.end_step <= len(profile.step_time)


def test_a_full_profile_takes_no_further_reservation_and_writes_nothing_beyond_its_arrays():
    longer, room = fresh(40), 12
    profile = longer._replace(step_time=longer.step_time[:room], step_free=longer.step_free[:room])
    longer.step_time[room:], longer.step_free[room:] = -1.0, -1
    with pytest.raises(InternalError, match="no room for another reservation"):
        for i in range(40):
            add_free(profile, 3.0 * i + 1.0, 3.0 * i + 2.0, -1)
    assert room - 2 < profile.end_step <= room
    assert (longer.step_time[room:] == -1.0).all()
    assert (longer.step_free[room:] == -1).all()


class Naive:
    """Free hosts at each quarter of a second from 0 to 60, and for ever after."""

    def __init__(self) -> None:
        self.free = np.full(241, HOSTS)

    def index(self, time: float) -> int:
        return 241 if math.isinf(time) else round(time * 4)

    def add(self, begin: float, end: float, hosts: int) -> None:
        self.free[self.index(begin) : self.index(end)] += hosts

    def earliest(self, now: float, hosts: int, duration: float) -> float:
        padded = np.append(self.free, np.full(0 if math.isinf(duration) else round(duration * 4), self.free[-1]))
        for at in range(self.index(now), 241):
            window = padded[at:] if math.isinf(duration) else padded[at : at + round(duration * 4)]
            if (window >= hosts).all():
                return at / 4
        return math.inf


QUARTERS = st.integers(0, 239).map(lambda n: n / 4)
CHANGES = st.lists(st.tuples(QUARTERS, st.integers(1, 80).map(lambda n: n / 4) | st.just(math.inf), st.integers(1, 4)))


def clip(end: float) -> float:
    return end if end <= 60.0 else math.inf


@given(CHANGES, QUARTERS, st.integers(1, HOSTS), st.integers(1, 40).map(lambda n: n / 4) | st.just(math.inf))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_the_profile_is_what_counting_every_moment_gives(changes, now, hosts, duration):
    profile, naive = fresh(60), Naive()
    for i, (begin, length, by) in enumerate(changes):
        hosts_added = by if i % 3 == 2 else -by
        add_free(profile, begin, clip(begin + length), hosts_added)
        naive.add(begin, clip(begin + length), hosts_added)
    assert all(free_at(profile, i / 4) == naive.free[i] for i in range(240))
    free = [hosts for _, hosts in steps(profile)]
    assert all(a != b for a, b in itertools.pairwise(free)), "neighbouring steps differ"
    forget_before(profile, now)
    assert earliest(profile, hosts, duration) == naive.earliest(now, hosts, duration)
    first, last = naive.index(now), min(naive.index(now) + 20, 240)
    assert most_free(profile, now, last / 4) == naive.free[first : max(last, first + 1)].max()
    assert least_free(profile, now, last / 4) == naive.free[first : max(last, first + 1)].min()
    assert are_free(profile, hosts, now, last / 4) == (naive.free[first : max(last, first + 1)].min() >= hosts)


@pytest.mark.parametrize("hosts", [1, -1])
def test_nothing_changes_for_no_time(hosts):
    profile = fresh()
    add_free(profile, 3.0, 3.0, hosts)
    assert steps(profile) == [(0.0, 8)]
