"""Running jobs that give their hosts to a waiting one that is worth more.

A job that waits and does not fit takes the hosts of running jobs that are worth less than it, by value or by value per
host-second left: those worth least first, and no more than it needs. They are suspended in one decision, and it starts
in the next, at the same instant, before all others: Batsim starts no job on the hosts of one that was killed in the
same reply. Venkataswamy, Grigsby, Grimshaw and Qi, Launchpad (JSSPP 2024), suspend one job for one other; here are as
many as it takes.
"""

import numpy as np

from decision.compiling.jit import kernel
from decision.state.cluster import QUEUED
from decision.state.plan_arrays import SUSPEND, add
from decision.state.transitions import spare_power

from .options import Backfill, Suspend
from .order import density_of


@kernel
def suspend_for_others(state, memory, plan, length):
    """Suspend running jobs for those of ``memory.sorted``, which has this length, that are worth more.

    False where there is none to suspend: then those that others were suspended for are first in ``memory.sorted``.
    """
    running = state.running[: state.nb_running]
    if state.suspended[running].any():
        return True  # their hosts are not free yet, and they are somebody's
    # Else a job that ranks before them could take the hosts that others were suspended for, and so on for ever.
    _put_heirs_first(state, memory, length)
    # A supply of power may be shorter than the hosts that are free.
    free, heirs = min(np.int64(state.nb_free), spare_power(state)), 0
    goes = np.zeros(len(running), np.bool_)
    for i in range(length):
        job = memory.sorted[i]
        if state.size[job] > free:
            gained = _choose_victims(state, memory, running, goes, job, state.size[job] - free)
            if gained == 0 and memory.backfill == Backfill.NONE:
                break
            if gained == 0:
                continue
            free += gained
            memory.heirs[heirs] = job
            heirs += 1
        free -= state.size[job]
    for i in range(len(running)):
        if goes[i]:
            add(plan, SUSPEND, running[i])
    memory.nb_heirs = heirs
    return heirs > 0


@kernel
def _put_heirs_first(state, memory, length):
    """The jobs that others were suspended for come first in ``memory.sorted``, in their order."""
    heirs, at = memory.nb_heirs, 0
    for i in range(heirs):
        job = memory.heirs[i]
        if state.job_state[job] != QUEUED:
            continue
        place = at
        while memory.sorted[place] != job and place < length - 1:
            place += 1
        while place > at:
            memory.sorted[place] = memory.sorted[place - 1]
            place -= 1
        memory.sorted[at] = job
        at += 1
    memory.nb_heirs = 0


@kernel
def _choose_victims(state, config, running, goes, job, wanted):
    """Let running jobs go that are worth less than `job`, least first, for `wanted` hosts; returns how many they have.

    0, and none goes, where all of them have too few. In the end those stay that were not needed, worth most first.
    """
    limit, gained = _worth_of(state, config, job), 0
    chosen, picked = np.zeros(len(running), np.int64), 0
    # Greedy: the least worth first, until there are enough hosts.
    while gained < wanted:
        least = _least_of(state, config, running, goes, limit)
        if least < 0:
            break
        goes[least] = True
        gained += state.size[running[least]]
        chosen[picked] = least
        picked += 1
    # A late, wide victim may make earlier ones needless: spare those again, the most worth first.
    enough = gained >= wanted
    for i in range(picked - 1, -1, -1):
        hosts = state.size[running[chosen[i]]]
        if not enough or gained - hosts >= wanted:
            goes[chosen[i]] = False
            gained -= hosts
    return gained


@kernel
def _least_of(state, config, running, goes, limit):
    """Index of the running job that is worth least and below `limit`, the last one of equals; -1 where none is."""
    least, lowest = -1, limit
    for i in range(len(running)):
        if not goes[i]:
            worth = _worth_of(state, config, running[i])
            if worth < lowest or (least >= 0 and worth == lowest and running[i] > running[least]):
                least, lowest = i, worth
    return least


@kernel
def _worth_of(state, config, job):
    """What a job counts in a suspension."""
    if config.suspend == Suspend.VALUE:
        return state.value[job]
    return density_of(state, job, 0.0 if state.job_state[job] == QUEUED else state.now - state.start_time[job])
