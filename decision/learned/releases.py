"""When hosts come free, by lists of the jobs that run: their ends (seconds, ascending), and their hosts."""

import numpy as np

from decision.compiling.jit import kernel


@kernel
def smallest_waiting(state):
    """Hosts of the smallest waiting job; more than there are, if none waits."""
    smallest = len(state.host_state) + 1
    for i in range(state.nb_queued):
        smallest = min(smallest, state.size[state.queue[i]])
    return smallest


@kernel
def enough_at(ends, sizes, running, free, size):
    """When so many hosts are free at the latest, if nothing else starts; -inf if they are, inf if never."""
    begin = -np.inf
    for i in range(running):
        if free >= size:
            break
        free += sizes[i]
        begin = ends[i]
    return begin if free >= size else np.inf


@kernel
def free_hosts_at(ends, sizes, running, free, time):
    """How many hosts are free at a time, if nothing else starts."""
    for i in range(running):
        if ends[i] > time:
            break
        free += sizes[i]
    return free
