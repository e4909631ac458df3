"""Availability profile: how many hosts are free from when on, as a step function of time.

Steps lie in arrays in ascending order of time; the last one lasts for ever. Reservations are cut out of it and
put back; planning asks for the earliest moment at which a job fits.
"""

import numpy as np

from decision.bundle import F8, I4, I8, Bundle
from decision.jit import kernel

FIRST, END = 0, 1  # indices into Profile.span


class Profile(Bundle):
    """Steps ``span[FIRST] .. span[END] - 1``; room for S of them."""

    span: I8  # (2,) first step in use, one past the last
    step_time: F8  # (S,) seconds: when the step begins
    step_free: I4  # (S,) hosts free from step_time[i] to step_time[i + 1]


def new_profile(nb_reservations: int) -> Profile:
    """An empty profile with room for so many reservations at once."""
    room = 2 * nb_reservations + 8
    return Profile(span=np.zeros(2, np.int64), step_time=np.zeros(room), step_free=np.zeros(room, np.int32))


@kernel
def begin_profile(profile, now, free):
    """Forget everything: `free` hosts from `now` on."""
    profile.span[FIRST] = 0
    profile.span[END] = 1
    profile.step_time[0] = now
    profile.step_free[0] = free


@kernel
def forget_before(profile, now):
    """Drop what lies before `now`; the first step then begins there."""
    first, end = profile.span[FIRST], profile.span[END]
    while first + 1 < end and profile.step_time[first + 1] <= now:
        first += 1
    profile.span[FIRST] = first
    profile.step_time[first] = now


@kernel
def step_at(profile, time):
    """Index of the step in which `time` lies; the first one for times before it."""
    low, high = profile.span[FIRST], profile.span[END]
    while high - low > 1:
        middle = (low + high) >> 1
        if profile.step_time[middle] <= time:
            low = middle
        else:
            high = middle
    return low


@kernel
def free_at(profile, time):
    """Hosts free at `time`."""
    return profile.step_free[step_at(profile, time)]


@kernel
def add_free(profile, begin, end, hosts):
    """`hosts` more (fewer if negative) are free from `begin` to `end` (seconds; end may be inf)."""
    if begin >= end or hosts == 0:
        return
    if profile.span[END] + 2 > len(profile.step_time):
        _slide(profile)
    low = _cut(profile, begin)
    high = _cut(profile, end) if end < np.inf else profile.span[END]
    for i in range(low, high):
        profile.step_free[i] += hosts
    if high < profile.span[END]:
        _join(profile, high)
    _join(profile, low)


@kernel
def _cut(profile, time):
    """Index of the step that begins at `time`, made where there is none."""
    at = step_at(profile, time)
    if profile.step_time[at] >= time:
        return at
    end = profile.span[END]
    for i in range(end, at + 1, -1):
        profile.step_time[i] = profile.step_time[i - 1]
        profile.step_free[i] = profile.step_free[i - 1]
    profile.span[END] = end + 1
    profile.step_time[at + 1] = time
    profile.step_free[at + 1] = profile.step_free[at]
    return at + 1


@kernel
def _slide(profile):
    """Move the steps to the beginning of the arrays."""
    first, end = profile.span[FIRST], profile.span[END]
    for i in range(first, end):
        profile.step_time[i - first] = profile.step_time[i]
        profile.step_free[i - first] = profile.step_free[i]
    profile.span[FIRST] = 0
    profile.span[END] = end - first


@kernel
def _join(profile, at):
    """Merge step `at` with the one before it where both have as many free hosts."""
    if at == profile.span[FIRST] or profile.step_free[at] != profile.step_free[at - 1]:
        return
    end = profile.span[END] - 1
    for i in range(at, end):
        profile.step_time[i] = profile.step_time[i + 1]
        profile.step_free[i] = profile.step_free[i + 1]
    profile.span[END] = end


@kernel
def most_free(profile, begin, end):
    """The most hosts that are free at any moment from `begin` to before `end` (seconds)."""
    at = step_at(profile, begin)
    most = profile.step_free[at]
    at += 1
    while at < profile.span[END] and profile.step_time[at] < end:
        most = max(most, profile.step_free[at])
        at += 1
    return most


@kernel
def least_free(profile, begin, end):
    """The fewest hosts that are free at any moment from `begin` to before `end` (seconds)."""
    at = step_at(profile, begin)
    least = profile.step_free[at]
    at += 1
    while at < profile.span[END] and profile.step_time[at] < end:
        least = min(least, profile.step_free[at])
        at += 1
    return least


@kernel
def earliest(profile, hosts, duration):
    """When (seconds) so many hosts are first free for `duration` seconds; inf where that is never."""
    time, free, end = profile.step_time, profile.step_free, profile.span[END]
    at = profile.span[FIRST]
    while at < end:
        if free[at] >= hosts:
            begin = time[at]
            at += 1
            while at < end and time[at] < begin + duration and free[at] >= hosts:
                at += 1
            if at == end or time[at] >= begin + duration:
                return begin
        at += 1
    return np.inf


@kernel
def earlier(profile, hosts, duration, own, begin, end):
    """When (seconds) a reservation that begins at `own` could begin instead, itself taken out of the profile.

    Only moments before `own` are looked at, and only spells of enough free hosts that touch ``begin .. end``.
    Returns `own` where there is nothing earlier.
    """
    time, free, last = profile.step_time, profile.step_free, profile.span[END]
    at = step_at(profile, begin)
    while at > profile.span[FIRST] and free[at] >= hosts and free[at - 1] >= hosts:
        at -= 1
    end = min(end, own)
    while at < last and time[at] < end:
        if free[at] >= hosts:
            start = time[at]
            needed = min(start + duration, own)
            at += 1
            while at < last and time[at] < needed and free[at] >= hosts:
                at += 1
            if at == last or time[at] >= needed:
                return start
        at += 1
    return own
