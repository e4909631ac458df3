"""Which of the free hosts a job gets. Allocation never decides whether or when a job starts.

`contiguous` and `best-fit` look for one run of neighbouring hosts, the lowest or the shortest that is long enough;
where there is none they take the lowest free hosts, as first-fit does (best-effort contiguity in the words of
Lucarelli et al., Contiguity and locality in backfilling scheduling, CCGrid 2015). Forced contiguity was rejected: a
reservation that counts hosts could not be kept.

`pack` fills the server that has the fewest free hosts first: hosts with the same property ``server`` are one machine,
which can sleep only when all of them are idle. Where each host is a server of its own it is as first-fit.

`tree` and `slurm-tree` look at the switches that connect the hosts (`decision.policies.placement.tree`). They change
when a job starts no more than the others do, as long as the run times of jobs do not depend on their hosts. `tree` may
be given prices of free hosts, which say what they are worth to jobs that come later
(`decision.policies.placement.windows`). `hops` takes hosts that are few hops apart on any network
(`choose_near`), which on trees `tree` does better.
"""

import numpy as np
from numpy.typing import NDArray

from decision.compiling.jit import kernel
from decision.compiling.small_kernels import first_word, next_word, uniform
from decision.model.errors import ConfigError, InternalError, PolicyError
from decision.model.platform import Platform
from decision.policies.placement.tree import count_lowest, place_as_slurm, place_best, place_priced
from decision.policies.placement.windows import fill_worth
from decision.state.bitmap import count_hosts, has_host, insert_interval, next_in, next_out, remove_interval
from decision.state.cluster import count_hops
from decision.state.plan_arrays import START, add, add_interval

from .options import Allocation

_TOO_FEW = "the policy starts a job on more hosts than are free"


@kernel
def plan_start(plan, state, facts, config, job):
    """Plan to start `job` on some of the plan's free hosts, which must be enough; without a look at a tree."""
    action, size = add(plan, START, job), state.size[job]
    if config.allocation == Allocation.SCATTERED:
        # A uniform choice, Knuth's selection sampling (algorithm S): each free host is taken with the chance of being
        # one of those still wanted; one pass, no list of hosts.
        word, left = first_word(config.seed, job), count_hosts(plan.free)
        if left < size:
            raise PolicyError(_TOO_FEW)
        host = next_in(plan.free, 0)
        while size > 0:
            if uniform(word) * left < size:
                _take(plan, action, host, host)
                size -= 1
            word = next_word(word)
            left -= 1
            host = next_in(plan.free, host + 1)
        return
    if config.allocation == Allocation.PACK:
        picked = np.zeros(len(plan.free), np.uint64)
        pick_fullest(facts, plan.free, size, picked)
        host = next_in(picked, 0)
        while host < len(facts.server):
            _take(plan, action, host, host)
            host = next_in(picked, host + 1)
        return
    # Runs of neighbours are a preference: where there is none the job starts all the same, on the lowest hosts.
    first = -1
    if config.allocation == Allocation.CONTIGUOUS or config.allocation == Allocation.BEST_FIT:
        first = _find_run(plan.free, size, config.allocation == Allocation.BEST_FIT)
    if first >= 0:
        _take(plan, action, first, first + size - 1)
    else:
        take_lowest(plan, action, size)


@kernel
def _take(plan, action, first, last):
    add_interval(plan, action, first, last)
    remove_interval(plan.free, first, last)


@kernel
def take_lowest(plan, action, size):
    """Give the action the lowest free hosts. Raises PolicyError where the plan has fewer: a loop must have an end."""
    host, end = 0, len(plan.free) << 6
    while size > 0:
        # By intervals and not by hosts: a job on a thousand hosts is most often a few of them.
        first = next_in(plan.free, host)
        if first == end:
            raise PolicyError(_TOO_FEW)
        host = min(next_out(plan.free, first), first + size)
        _take(plan, action, first, host - 1)
        size -= host - first


@kernel
def _find_run(free, size, shortest):
    """First host of the lowest (or the shortest) run of at least `size` free hosts; -1 where there is none."""
    end = len(free) << 6
    best, best_length = -1, end + 1
    first = next_in(free, 0)
    while first < end:
        after = next_out(free, first)
        if size <= after - first < best_length:
            best, best_length = first, after - first
            # No run is shorter than what fits exactly; and the lowest one is found first.
            if not shortest or best_length == size:
                return best
        first = next_in(free, after)
    return best


@kernel
def take_on_tree(plan, state, facts, action, prices, exact):
    """Give the plan's last action the hosts of least cost, or those that Slurm takes; of each switch the lowest.

    The switches' order settles ties. Where no tree is known all hosts are alike.
    """
    size = state.size[plan.job[action]]
    if len(facts.down) == 0:
        take_lowest(plan, action, size)
        return
    switches = count_lowest(facts.down)
    # How many hosts of each lowest switch, not which: hosts of one switch are alike to every cost.
    free, taken = np.zeros(switches, np.int64), np.zeros(switches, np.int64)
    end = len(facts.switch)
    host = next_in(plan.free, 0)
    while host < end:
        free[facts.switch[host]] += 1
        host = next_in(plan.free, host + 1)
    # Slurm's rule, the least cost, or the least cost with prices: each fills `taken`.
    if not exact:
        place_as_slurm(facts.down, free, size, taken)
    elif prices.size == 0:
        place_best(facts.down, free, size, taken)
    else:
        walltime = state.walltime[plan.job[action]]
        left = _seconds_left(plan, state, action)
        begin, worth = fill_worth(facts.down, facts.switch, left, size, walltime, prices)
        place_priced(facts.down, free, size, begin, worth, taken)
    host = next_in(plan.free, 0)
    # From counts back to hosts: of each switch the lowest.
    while size > 0:
        if host >= end:
            raise PolicyError(_TOO_FEW)
        if taken[facts.switch[host]] > 0:
            taken[facts.switch[host]] -= 1
            _take(plan, action, host, host)
            size -= 1
        host = next_in(plan.free, host + 1)


@kernel
def take_near(plan, state, facts, action):
    """Give the plan's last action free hosts that are few hops apart; where no network is known, the lowest."""
    size = state.size[plan.job[action]]
    if len(facts.network) == 0 or size == 1:
        take_lowest(plan, action, size)
        return
    free = np.empty(count_hosts(plan.free), np.int64)
    host = -1
    for i in range(len(free)):
        host = next_in(plan.free, host + 1)
        free[i] = host
    chosen = np.zeros(len(free), np.bool_)
    choose_near(facts.network, facts.place[free], size, chosen)
    # One interval for each host: those that are near one another need not be neighbours by id.
    for host in free[chosen]:
        _take(plan, action, host, host)


@kernel
def pick_fullest(facts, free, size, picked):
    """Put `size` of the free hosts into the bitmap: those of the server with the fewest of them first, then by id."""
    hosts = np.zeros(len(facts.server_begin) - 1, np.int64)  # free ones by server
    host = next_in(free, 0)
    while host < len(facts.server):
        hosts[facts.server[host]] += 1
        host = next_in(free, host + 1)
    while size > 0:
        # The server with the fewest free hosts is filled up, so that others stay idle as a whole and can sleep.
        fullest = -1
        for server in range(len(hosts)):
            if hosts[server] > 0 and (fullest < 0 or hosts[server] < hosts[fullest]):
                fullest = server
        if fullest < 0:
            raise PolicyError(_TOO_FEW)
        for i in range(facts.server_begin[fullest], facts.server_begin[fullest + 1]):
            if size > 0 and has_host(free, facts.server_host[i]):
                insert_interval(picked, facts.server_host[i], facts.server_host[i])
                size -= 1
        hosts[fullest] = 0


@kernel
def _seconds_left(plan, state, action):
    """(H,) until each host comes free at the latest, inf where nobody knows, -1 for one that is free.

    Jobs that the plan starts before this action have begun.
    """
    now, left = state.now, np.empty(len(state.host_job))
    for host in range(len(left)):
        job = state.host_job[host]
        left[host] = max(state.start_time[job] + state.walltime[job] - now, 0.0) if job >= 0 else np.inf
    # The state does not know of the starts of this plan yet, but the price of a host does depend on them.
    for before in range(action):
        if plan.kind[before] == START:
            for at in range(plan.begin[before], plan.end[before]):
                left[plan.first[at] : plan.last[at] + 1] = state.walltime[plan.job[before]]
    host = next_in(plan.free, 0)
    while host < len(left):
        left[host] = -1.0
        host = next_in(plan.free, host + 1)
    return left


def check_tree(who: str, platform: Platform) -> None:
    """Refuse a platform whose hosts no tree of switches connects.

    Args:
        who: wants one; begins the message.
        platform: the hosts.

    Raises:
        ConfigError: naming the platform's topology.
    """
    if platform.down:
        return
    given = platform.path or "the platform"
    if platform.topology is None:
        raise ConfigError(f"{who} needs a fat-tree, and the topology of {given} is unknown", field="platform")
    kind = type(platform.topology).__name__.lower()
    raise ConfigError(f"{who} needs a fat-tree, and {given} is a {kind}; allocation=hops takes it", field="platform")


def check_topology(who: str, platform: Platform) -> None:
    """Refuse a platform whose network is unknown. Raises ConfigError; arguments are those of `check_tree`."""
    if platform.topology is None:
        given = platform.path or "the platform"
        raise ConfigError(f"{who} needs a network, and the topology of {given} is unknown", field="platform")


def check_prices(who: str, prices: NDArray[np.float64], platform: Platform) -> None:
    """Refuse prices that are for trees of other levels than the platform's. Raises ConfigError."""
    if prices.size and len(prices) != len(platform.down) - 1:
        given = f"{platform.path or 'the platform'} has {len(platform.down)}"
        raise ConfigError(f"{who} is for trees of {len(prices) + 1} levels, and {given}", field="platform")


# Free hosts that are few hops apart.
#
# `choose_near` is the heuristic of Krumke, Marathe, Noltemeier, Radhakrishnan, Ravi and Rosenkrantz, "Compact location
# problems" (Theoretical Computer Science 181, 1997), which Bender et al. use on grids ("Communication-aware processor
# allocation for supercomputers", Algorithmica 50, 2008): for each free host the nearest free ones are tried, and those
# win whose hops to it are fewest in sum. Hops are a metric, so all pairs of n such hosts are at most 2 - 2 / n times as
# many hops apart as those of the best n.
#
# On trees `decision.policies.placement.tree` has the best hosts exactly. On a torus and on a dragonfly nobody knows how
# to find them in a reasonable time.


@kernel
def choose_near(network, places, size, chosen):
    """Write which of the free hosts a job gets.

    Args:
        network: `network_codes` the platform.
        places: (F,) of the free hosts; ties go to those that come first.
        size: hosts of the job, at most F.
        chosen: (F,) bool, receives the choice.
    """
    # Hops by how many hosts are so far: counting takes one pass for a centre, sorting would take more.
    longest = 0  # hops: no way is longer than twice that from the first one
    for place in places:
        longest = max(longest, 2 * count_hops(network, places[0], place))
    number = np.zeros(longest + 1, np.int64)  # of free hosts, by hops
    if size > len(places):
        raise InternalError("a job is to be placed on more hosts than are free")
    best, least, radius, at_radius = 0, np.int64(2**62), 0, 0
    for centre in range(len(places)):
        number[:] = 0
        for place in places:
            number[count_hops(network, places[centre], place)] += 1
        # The nearest `size` hosts of this centre, ring by ring.
        hops, left, total = 0, size - number[0], 0
        while left > 0:
            hops += 1
            total += hops * min(number[hops], left)
            left -= number[hops]
        if total < least:
            best, least, radius, at_radius = centre, total, hops, left + number[hops]
    # All within the radius, and of those at its edge as many as are needed, the first ones.
    for i in range(len(places)):
        hops = count_hops(network, places[best], places[i])
        chosen[i] = hops < radius or (hops == radius and at_radius > 0)
        at_radius -= hops == radius
