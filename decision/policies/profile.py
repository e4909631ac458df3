"""Availability profile: how many hosts are free from when on, as a step function of time.

Steps lie in arrays in ascending order of time; the last one has no end. Reservations are cut out of it and
put back; planning asks for the earliest moment at which a job fits.
"""

from typing import Any

import numpy as np

from decision.compiling.bundle import F8, I4, Bundle, Int
from decision.compiling.declared import Intrinsic
from decision.compiling.jit import kernel
from decision.model.errors import InternalError
from decision.state.cluster import SLEEPING, SWITCHING_OFF, SWITCHING_ON, UNAVAILABLE
from decision.state.transitions import spare_power

from .options import Power


class Profile(Bundle):
    """Steps ``first_step .. end_step - 1``; room for S of them."""

    first_step: Int  # in use
    end_step: Int  # one past the last
    step_time: F8  # (S,) seconds: when the step begins
    step_free: I4  # (S,) hosts free from step_time[i] to step_time[i + 1]


@Intrinsic
def shift(_context: Any, array: Any, begin: Any, end: Any, by: Any) -> Any:
    """Move ``array[begin:end]`` by so many places; nothing where it is empty.

    One memmove. A loop over two arrays at once is compiled to moves of single elements, ten times slower.
    """
    from numba.core import cgutils, types
    from numba.np.arrayobj import make_array

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        begin, end, by = args[1:]
        data = make_array(kind)(context, builder, value=args[0]).data
        source = builder.gep(data, [begin])
        target = builder.gep(data, [builder.add(begin, by)])
        count = builder.sub(end, begin)
        with builder.if_then(builder.icmp_signed(">", count, count.type(0))):
            itemsize = context.get_abi_sizeof(context.get_data_type(kind.dtype))
            cgutils.raw_memmove(builder, target, source, count, itemsize)
        return context.get_dummy_value()

    return types.none(array, types.int64, types.int64, types.int64), generate


@kernel
def begin_profile(profile, now, free):
    """Forget everything: `free` hosts from `now` on."""
    profile.first_step = 0
    profile.end_step = 1
    profile.step_time[0] = now
    profile.step_free[0] = free


@kernel
def forget_before(profile, now):
    """Drop what lies before `now`; the first step then begins there."""
    first, end = profile.first_step, profile.end_step
    while first + 1 < end and profile.step_time[first + 1] <= now:
        first += 1
    profile.first_step = first
    profile.step_time[first] = now


@kernel
def step_at(profile, time):
    """Index of the step in which `time` lies; the first one for times before it."""
    low, count = profile.first_step, profile.end_step - profile.first_step
    while count > 1:  # without branches that a processor would guess wrong
        half = count >> 1
        low += half * (profile.step_time[low + half] <= time)
        count -= half
    return low


@kernel
def free_at(profile, time):
    """How many hosts are free at `time` (seconds)."""
    return profile.step_free[step_at(profile, time)]


@kernel
def add_free(profile, begin, end, hosts):
    """`hosts` more (fewer if negative) are free from `begin` to `end` (seconds; end may be inf)."""
    if begin >= end or hosts == 0:
        return
    if profile.end_step + 2 > len(profile.step_time):
        _make_room(profile)
    time, free = profile.step_time, profile.step_free
    # A step must begin where the change begins,
    low = step_at(profile, begin)
    if time[low] < begin:
        low += 1
        _insert(profile, low, begin, free[low - 1])
    high, last = low, profile.end_step
    while high < last and time[high] < end:
        free[high] += hosts
        high += 1
    # and one where it ends. Steps that have become equal are merged, so that the profile stays as short as the plan
    # allows.
    if end < np.inf:
        if high == last or time[high] > end:
            _insert(profile, high, end, free[high - 1] - hosts)
        elif free[high] == free[high - 1]:
            _remove(profile, high)
    if low > profile.first_step and free[low] == free[low - 1]:
        _remove(profile, low)


@kernel
def _insert(profile, at, time, free):
    """Add a step before the one at `at`; `add_free` has seen to room for it."""
    end = profile.end_step
    shift(profile.step_time, at, end, 1)
    shift(profile.step_free, at, end, 1)
    profile.step_time[at] = time
    profile.step_free[at] = free
    profile.end_step = end + 1


@kernel
def _remove(profile, at):
    """Merge the step at `at` into the one before it."""
    end = profile.end_step
    shift(profile.step_time, at + 1, end, -1)
    shift(profile.step_free, at + 1, end, -1)
    profile.end_step = end - 1


@kernel
def _make_room(profile):
    """Move the steps to the beginning of the arrays; there must be room for two more then."""
    # `forget_before` only moves the first index; the room before it is used again here.
    first, end = profile.first_step, profile.end_step
    shift(profile.step_time, first, end, -first)
    shift(profile.step_free, first, end, -first)
    profile.first_step = 0
    profile.end_step = end - first
    if end - first + 2 > len(profile.step_time):
        raise InternalError("the availability profile has no room for another reservation")


@kernel
def most_free(profile, begin, end):
    """The most hosts that are free at any moment from `begin` to before `end` (seconds)."""
    at = step_at(profile, begin)
    most = profile.step_free[at]
    at += 1
    while at < profile.end_step and profile.step_time[at] < end:
        most = max(most, profile.step_free[at])
        at += 1
    return most


@kernel
def least_free(profile, begin, end):
    """The fewest hosts that are free at any moment from `begin` to before `end` (seconds)."""
    at = step_at(profile, begin)
    least = profile.step_free[at]
    at += 1
    while at < profile.end_step and profile.step_time[at] < end:
        least = min(least, profile.step_free[at])
        at += 1
    return least


@kernel
def are_free(profile, hosts, begin, end):
    """Whether so many hosts are free at every moment from `begin` to before `end` (seconds)."""
    at = step_at(profile, begin)
    if profile.step_free[at] < hosts:
        return False
    at += 1
    while at < profile.end_step and profile.step_time[at] < end:
        if profile.step_free[at] < hosts:
            return False
        at += 1
    return True


@kernel
def earliest(profile, hosts, duration):
    """When (seconds) so many hosts are first free for `duration` seconds; inf where that is never."""
    time, free, end = profile.step_time, profile.step_free, profile.end_step
    at = profile.first_step
    while at < end:
        # The place is the first spell that is long enough; a spell ends at a step with too few, and none of it need be
        # tried again.
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
def earlier(profile, hosts, duration, present, begin, end):
    """When (seconds) a reservation that begins at `present` could begin instead, itself taken out of the profile.

    Only moments before `present` are looked at, and only spells of enough free hosts that touch ``begin .. end``.
    Returns `present` where there is nothing earlier.
    """
    time, free, last = profile.step_time, profile.step_free, profile.end_step
    at = step_at(profile, begin)
    # A spell may begin before the region that came free: go back to its start.
    while at > profile.first_step and free[at] >= hosts and free[at - 1] >= hosts:
        at -= 1
    end = min(end, present)
    while at < last and time[at] < end:
        if free[at] >= hosts:
            start = time[at]
            # From `present` on the job has its hosts anyway, so the spell need only reach that far.
            needed = min(start + duration, present)
            at += 1
            while at < last and time[at] < needed and free[at] >= hosts:
                at += 1
            if at == last or time[at] >= needed:
                return start
        at += 1
    return present


# What hosts there will be: free now, given back by running jobs, or woken from sleep.
#
# A host that sleeps is capacity from ``now + wake_time`` on, one that wakes from the moment it is due, one that
# is falling asleep after both. What is overdue is expected `TOLERANCE` from now.

TOLERANCE = 1e-3  # seconds: what is due within this is due now, since a peer's clock may round


@kernel
def has_sleepers(state, config):
    """Whether hosts sleep or switch that the policy can wake."""
    return (
        config.power != Power.NEVER
        and state.nb_in_state[SLEEPING] + state.nb_in_state[SWITCHING_ON] + state.nb_in_state[SWITCHING_OFF] > 0
    )


@kernel
def awake_at(state, facts, config, host):
    """When (seconds) a host that sleeps or switches can be awake; inf for any other."""
    now, activity = state.now, state.host_state[host]
    if facts.sleep_pstate[host] < 0:
        return np.inf
    if activity == SLEEPING:
        due = now + config.wake_time
    elif activity == SWITCHING_ON:
        due = state.host_since[host] + config.wake_time
    # Batsim cannot stop a host that falls asleep: it must arrive there before it wakes.
    elif activity == SWITCHING_OFF:
        due = max(now, state.host_since[host] + config.doze_time) + config.wake_time
    else:
        return np.inf
    # What is overdue is due soon, and never now: now it is known not to be there.
    return max(due, now + TOLERANCE)


@kernel
def hosts_given_back(state, job):
    """How many hosts will be free again when a running job ends: all but those that left."""
    hosts = state.size[job]
    if state.nb_in_state[UNAVAILABLE] > 0:
        begin = state.alloc_first[job]
        for i in range(begin, begin + state.alloc_count[job]):
            for host in range(state.interval_first[i], state.interval_last[i] + 1):
                hosts -= state.host_state[host] == UNAVAILABLE
    return hosts


@kernel
def booked_end(state, memory, job):
    """When (seconds) a running job's hosts are planned to be free again, whether or not it started late."""
    if len(memory.reserved) > 0 and memory.reserved[job] < np.inf:
        return memory.reserved[job] + state.expected_runtime[job]
    return state.start_time[job] + state.expected_runtime[job]


@kernel
def fill_capacity(state, facts, memory):
    """Fill the profile from what is free, runs and sleeps; no reservations."""
    now = state.now
    free = state.nb_free
    if state.supply < len(state.host_state):  # the first hosts that are given back may have no power
        free += min(spare_power(state), 0)
    begin_profile(memory, now, free)
    for i in range(state.nb_running):
        job = state.running[i]
        due = booked_end(state, memory, job)
        # A job that outlives its walltime will be killed at any moment; nothing may start on its hosts at this one.
        if due <= now:
            due = now + TOLERANCE
        add_free(memory, due, np.inf, hosts_given_back(state, job))
    if has_sleepers(state, memory):
        due, hosts = np.inf, 0
        for host in range(len(state.host_state)):
            at = awake_at(state, facts, memory, host)
            if at == np.inf:
                continue
            # Hosts that are due together are one step; they most often follow one another by id.
            if at != due:
                add_free(memory, due, np.inf, hosts)
                due, hosts = at, 0
            hosts += 1
        add_free(memory, due, np.inf, hosts)
