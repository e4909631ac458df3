"""The cluster as arrays: `PlatformFacts`, which never change, and `ClusterState`: jobs, queue, hosts, allocations.

Kernels know kinds and states as plain integers; the enums of `decision.model.record` have the same values for people.
"""

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import F8, I1, I4, I8, U8, Bundle, F8x2, Float, I1x2, I4x2, Int
from decision.compiling.jit import kernel
from decision.model.platform import Dragonfly, FatTree, Flat, Host, Platform, Topology, Torus
from decision.model.record import FinalState, HostState

# Pstates of a host
PSTATE_NONE, PSTATE_COMPUTING, PSTATE_SLEEP, PSTATE_VIRTUAL = -1, 0, 1, 2


class PlatformFacts(Bundle):
    """What is known of the hosts and never changes. H hosts, P pstates at most."""

    speed: F8x2  # (H, P) flop/s; nan where unknown (Batsim does not send speeds)
    idle: F8x2  # (H, P) watts without load
    epsilon: F8x2  # (H, P) watts at the least load
    full: F8x2  # (H, P) watts where one core is used
    pstate_kind: I1x2  # (H, P) PSTATE_*
    switch_off: I4x2  # (H, P) virtual pstate of falling asleep into this sleep pstate, -1 elsewhere
    switch_on: I4x2  # (H, P) virtual pstate of waking from this sleep pstate, -1 elsewhere
    sleep_pstate: I4  # (H,) the host's first sleep pstate, -1 where it cannot sleep
    off_time: F8  # (H,) seconds to fall asleep into sleep_pstate; nan where unknown
    on_time: F8  # (H,) seconds to wake from sleep_pstate; nan where unknown
    # servers: hosts that are one machine, and are switched together; S of them, by their lowest host
    server: I4  # (H,) number of the host's server
    server_begin: I4  # (S + 1,) where each server's hosts begin in server_host
    server_host: I4  # (H,) hosts by server, ascending in each
    server_name: I1  # names in UTF-8, each ended by a 0; none of hosts that are servers of their own
    # the tree of switches that connects the hosts; empty where what connects them is none, or is unknown
    down: I8  # (L,) devices below each switch of a level, from the hosts up
    switch: I4  # (H,) each host's lowest switch, numbered from left to right
    # any network that is known
    network: I8  # its kind and sizes (`network_codes`); empty where it is unknown
    place: I4  # (H,) each host's place in it
    cores: I4  # (H,)


def platform_facts(platform: Platform, energy: bool) -> tuple[PlatformFacts, I4]:
    """The compute hosts' facts as arrays, and their initial pstates (H,).

    Without `energy` no host sleeps, whatever its pstates: Batsim reads `sleep_pstates` with energy only.
    """
    hosts = platform.hosts
    shape = (len(hosts), max(len(h.pstates) for h in hosts))
    facts = PlatformFacts(
        speed=np.full(shape, np.nan),
        idle=np.zeros(shape),
        epsilon=np.zeros(shape),
        full=np.zeros(shape),
        cores=np.array([host.cores for host in hosts], np.int32),
        pstate_kind=np.full(shape, PSTATE_NONE, np.int8),
        switch_off=np.full(shape, -1, np.int32),
        switch_on=np.full(shape, -1, np.int32),
        sleep_pstate=np.full(len(hosts), -1, np.int32),
        off_time=np.full(len(hosts), np.nan),
        on_time=np.full(len(hosts), np.nan),
        **_servers(platform.servers),
        down=np.array(platform.down, np.int64),
        switch=platform.switch_of().astype(np.int32) if platform.down else np.zeros(0, np.int32),
        network=network_codes(platform.topology),
        place=np.array(platform.places or range(len(hosts)), np.int32),
    )
    # Most hosts of a cluster are alike, and a row is filled once for all of them.
    alike: dict[Any, list[int]] = {}
    for i, host in enumerate(hosts):
        alike.setdefault((host.pstates, host.sleep), []).append(i)
    for rows in alike.values():
        first = hosts[rows[0]]
        _fill_pstates(facts, rows, first)
        if energy:
            _fill_sleep(facts, rows, first)
    return facts, np.array([h.initial_pstate for h in hosts], np.int32)


def _servers(names: tuple[str, ...]) -> dict[str, NDArray]:
    """The servers of hosts, given the name of each host's server by id."""
    number: dict[str | int, int] = {}
    server = np.array([number.setdefault(name or host, len(number)) for host, name in enumerate(names)], np.int32)
    begin = np.concatenate(([0], np.cumsum(np.bincount(server))))
    text = "".join(f"{name if isinstance(name, str) else ''}\0" for name in number).encode(errors="replace")
    return {
        "server": server,
        "server_begin": begin.astype(np.int32),
        "server_host": np.argsort(server, kind="stable").astype(np.int32),
        "server_name": np.frombuffer(text, np.int8).copy(),
    }


def server_name(facts: PlatformFacts, server: int) -> str:
    """The name of the server of this number; empty where it is a host of its own."""
    return facts.server_name.tobytes().split(b"\0")[server].decode()


def _fill_pstates(facts: PlatformFacts, rows: list[int], host: Host) -> None:
    """Fill the rows of hosts that are all like `host`."""
    for p, power in enumerate(host.pstates):
        facts.speed[rows, p] = power.speed
        facts.idle[rows, p] = power.idle
        facts.epsilon[rows, p] = power.epsilon
        facts.full[rows, p] = power.full
        facts.pstate_kind[rows, p] = PSTATE_COMPUTING


def _fill_sleep(facts: PlatformFacts, rows: list[int], host: Host) -> None:
    for sleep in host.sleep:
        facts.pstate_kind[rows, sleep.pstate] = PSTATE_SLEEP
        facts.pstate_kind[rows, sleep.switch_off] = PSTATE_VIRTUAL
        facts.pstate_kind[rows, sleep.switch_on] = PSTATE_VIRTUAL
        facts.switch_off[rows, sleep.pstate] = sleep.switch_off
        facts.switch_on[rows, sleep.pstate] = sleep.switch_on
    if host.sleep:
        first = host.sleep[0]
        facts.sleep_pstate[rows] = first.pstate
        facts.off_time[rows] = 1.0 / facts.speed[rows, first.switch_off]
        facts.on_time[rows] = 1.0 / facts.speed[rows, first.switch_on]


SLEEPING, SWITCHING_ON, SWITCHING_OFF, IDLE, COMPUTING, UNAVAILABLE = (int(s) for s in HostState)
N_HOST_STATES = len(HostState)


class JobState(IntEnum):
    """What a job is doing. From ENDED on, a job is over: ENDED + FinalState."""

    QUEUED = 0
    RUNNING = 1
    ENDED = 2


QUEUED, RUNNING, ENDED = (int(s) for s in JobState)
REJECTED = ENDED + int(FinalState.REJECTED)

FAILED = 2  # in ClusterState.suspended

FORECAST = 64  # steps of a forecast of supply that are kept
# Intervals of allocations that stay in memory, 32 MB of them; more do only where somebody may still ask for them.
INTERVALS = 1 << 22


class ClusterState(Bundle):
    """All that a scheduler may know, at one instant. J jobs and H hosts of capacity; W = ceil(H / 64).

    Policies read it and never write it; `decision.state.transitions` are its only writers. A policy with an `estimate`
    sees the same arrays but for `expected_runtime`, `running`, `expected_end` and `revisions`, which are those of its
    outlook (`decision.policies.wrappers.prediction`).
    """

    now: Float  # seconds
    nb_jobs: Int  # submitted so far; also the number that the next one gets
    # jobs, by number: the order of submission
    submit_time: F8  # (J,) seconds
    walltime: F8  # (J,) seconds, inf where the job has none
    expected_runtime: F8  # (J,) seconds that policies expect it to run: the same array as `walltime`, but in an outlook
    estimate: F8  # (J,) seconds that the job itself says it will run (its field `estimate`), 0 where it does not
    value: F8  # (J,) what the job is worth once it has ended, 0 where it says nothing
    qos: F8  # (J,) percent, 0 where it says nothing
    deadline: F8  # (J,) seconds, 0 where it has none
    expected: F8  # (J,) seconds that its owner expects it to run, 0 where it says nothing: its walltime
    size: I4  # (J,) requested hosts
    user: I4  # (J,) number of the user, -1 where unknown
    job_state: I1  # (J,) QUEUED, RUNNING, or ENDED + FinalState
    suspended: I1  # (J,) 1 once the job was asked to give its hosts up, 2 once a host of it failed; what is left of it
    # is another job
    nth_rest: I4  # (J,) 0 for a job as it was submitted, k for the k-th rest of one, left by its suspension
    origin: I4  # (J,) number of the job that was submitted, whose rest it is, where nth_rest is not 0
    start_time: F8  # (J,) seconds, nan from the submission to the start
    end_time: F8  # (J,) seconds, nan from the submission to the end
    alloc_first: I8  # (J,) index of the job's first interval, -1 before the start, below once it was put aside
    alloc_count: I4  # (J,) number of its intervals
    # allocations, kept for the whole run or until somebody puts them aside
    nb_intervals: Int
    interval_first: I4  # (P,) first host of an interval
    interval_last: I4  # (P,) last host of it
    # who waits and who runs
    nb_queued: Int
    nb_running: Int
    nb_ended: Int
    queue: I4  # (J,) numbers of the jobs that wait, in order of submission; queue[:nb_queued]
    running: I4  # (R,) numbers of the jobs that run, by expected end; R >= H, as some may run elsewhere or share
    expected_end: F8  # (R,) seconds, ascending: start + expected_runtime of running[i]; inf without walltime
    revisions: I8  # (1,) how often the expected run time of a running job has changed: only outlooks do that
    ended: I4  # (R,) numbers of the jobs that ended since the last decision
    # hosts
    nb_free: Int  # hosts that can be given a job now (bits set in free)
    nb_in_state: I8  # (N_HOST_STATES,) hosts in each HostState
    nb_capacity_changes: Int  # so far, that no job caused
    host_state: I1  # (H,) HostState
    host_return: I1  # (H,) HostState that a host will have once it is back; of hosts that are unavailable only
    host_job: I4  # (H,) number of the job that runs there, of one of them where jobs share hosts, -1
    host_since: F8  # (H,) seconds: when host_state last changed
    pstate: I4  # (H,) present pstate
    free: U8  # (W,) bit h % 64 of word h // 64: host h can be given a job now
    # power
    supply: Int  # hosts that may compute at a time; all of them where power is not limited
    unpowered: U8  # (W,) hosts that could be given a job, were there power for them
    nb_forecast: Int  # steps that are known
    forecast: I4  # (FORECAST,) hosts that are expected to have power, by step from the next on
    shares: Int  # 1 where several jobs may compute on one host


def nb_hosts(state: ClusterState) -> int:
    """Number of compute hosts, whatever they are doing."""
    return len(state.host_state)


def new_state(facts: PlatformFacts, initial_pstate: I4, nb_jobs: int = 1024, shares: bool = False) -> ClusterState:
    """An idle cluster at time 0 with room for `nb_jobs` jobs, all of which may run where hosts are shared (`shares`);
    hosts in a pstate that computes are free."""
    hosts = len(initial_pstate)
    together = max(hosts, nb_jobs) if shares else hosts  # jobs that may run
    computing = facts.pstate_kind[np.arange(hosts), initial_pstate] == PSTATE_COMPUTING
    intervals = min(2 * nb_jobs, INTERVALS) + 2 * hosts
    in_state = np.zeros(N_HOST_STATES, np.int64)
    in_state[IDLE] = hosts
    walltime = np.zeros(nb_jobs)
    # Columns by job are zeros until `transitions.submit` writes a row: pages that nobody wrote take no memory.
    return ClusterState(
        submit_time=np.zeros(nb_jobs),
        walltime=walltime,
        expected_runtime=walltime,
        estimate=np.zeros(nb_jobs),
        **{name: np.zeros(nb_jobs) for name in ("value", "qos", "deadline", "expected")},
        size=np.zeros(nb_jobs, np.int32),
        user=np.zeros(nb_jobs, np.int32),
        job_state=np.zeros(nb_jobs, np.int8),
        suspended=np.zeros(nb_jobs, np.int8),
        nth_rest=np.zeros(nb_jobs, np.int32),
        origin=np.zeros(nb_jobs, np.int32),
        start_time=np.zeros(nb_jobs),
        end_time=np.zeros(nb_jobs),
        alloc_first=np.zeros(nb_jobs, np.int64),
        alloc_count=np.zeros(nb_jobs, np.int32),
        interval_first=np.zeros(intervals, np.int32),
        interval_last=np.zeros(intervals, np.int32),
        queue=np.zeros(nb_jobs, np.int32),
        running=np.zeros(together, np.int32),
        expected_end=np.zeros(together),
        revisions=np.zeros(1, np.int64),
        ended=np.zeros(together, np.int32),
        shares=shares,
        nb_free=int(computing.sum()),
        nb_in_state=in_state,
        host_state=np.full(hosts, IDLE, np.int8),
        host_return=np.full(hosts, IDLE, np.int8),
        host_job=np.full(hosts, -1, np.int32),
        host_since=np.zeros(hosts),
        pstate=initial_pstate.copy(),
        free=pack_hosts(computing),
        supply=hosts,
        unpowered=np.zeros((hosts + 63) // 64, np.uint64),
        forecast=np.zeros(FORECAST, np.int32),
    )


def pack_hosts(chosen: NDArray[np.bool_]) -> U8:
    """A bitmap of hosts (W,) from one truth value per host (H,)."""
    words = np.zeros((len(chosen) + 63) // 64 * 64, np.uint8)
    words[: len(chosen)] = chosen
    return np.packbits(words, bitorder="little").view(np.uint64)


_BY_JOB = (
    *("submit_time", "walltime", "estimate", "value", "qos", "deadline", "expected", "size", "user", "job_state"),
    *("suspended", "nth_rest", "origin", "start_time", "end_time", "alloc_first"),
)


def with_room(state: ClusterState, nb_jobs: int, nb_intervals: int, nb_running: int = 0) -> ClusterState:
    """The same state with room for at least so many jobs, intervals, and jobs that run and end between two decisions:
    the same arrays where they are long enough."""
    changed = {}
    if state.shares:  # all may run
        nb_running = max(nb_running, nb_jobs)
    if nb_jobs > len(state.size):
        room = max(nb_jobs, 2 * len(state.size))
        for name in (*_BY_JOB, "alloc_count", "queue"):
            changed[name] = _longer(getattr(state, name), room)
        # One array for both, as `new_state` has it: what a policy expects is the walltime, until a prediction of its
        # own says otherwise.
        changed["expected_runtime"] = changed["walltime"]
    if nb_intervals > len(state.interval_first):
        room = max(nb_intervals, 2 * len(state.interval_first))
        for name in ("interval_first", "interval_last"):
            changed[name] = _longer(getattr(state, name), room)
    if nb_running > len(state.running):
        room = max(nb_running, 2 * len(state.running))
        for name in ("running", "expected_end", "ended"):
            changed[name] = _longer(getattr(state, name), room)
    return state._replace(**changed) if changed else state


def _longer(array: NDArray, length: int) -> NDArray:
    longer = np.zeros(length, array.dtype)
    longer[: len(array)] = array
    return longer


# Hops between hosts of any known network, in kernels.

_TREE, _TORUS, _DRAGONFLY = range(3)


def network_codes(topology: Topology | None) -> NDArray[np.int64]:
    """What kernels know of a network: its kind, then its sizes; empty where the network is unknown."""
    match topology:
        case FatTree(down=down):
            return np.array([_TREE, *down])
        case Flat(nb_hosts=hosts):
            return np.array([_TREE, hosts])
        case Torus(dims=dims):
            return np.array([_TORUS, *dims])
        case Dragonfly(chassis=chassis, routers=routers, nodes=nodes):
            return np.array([_DRAGONFLY, chassis, routers, nodes])
    return np.zeros(0, np.int64)


@kernel
def count_hops(network, a, b):
    """Hops between two places of a network (`network_codes`), as `Topology.distance`; a backbone counts for nothing."""
    if network[0] == _DRAGONFLY:
        return _across_groups(network[1], network[2], network[3], a, b)
    hops = 0
    for level in range(1, len(network)):
        size = network[level]
        if network[0] == _TREE:
            if a == b:
                return hops
            hops += 2
        else:
            offset = abs(a % size - b % size)
            hops += min(offset, size - offset)
        a, b = a // size, b // size
    return hops


@kernel
def _across_groups(chassis, routers, nodes, a, b):
    if a == b:
        return 0
    a, b = a // nodes, b // nodes
    # As SimGrid's dragonfly: to another group leads one router, that of the group's own number, in the first chassis.
    router, to_router = a % routers, b % routers
    at, to = a // routers % chassis, b // routers % chassis
    group, to_group = a // routers // chassis, b // routers // chassis
    if group == to_group:
        return 2 + (router != to_router) + (at != to)
    return 3 + (router != to_group) + (at != 0) + (to_router != group) + (to != 0)
