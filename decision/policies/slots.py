"""What a composed policy is to the kernels: codes of its slots, its numbers, and the memory it keeps between calls."""

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from decision.bundle import F8, I4, I8, F8x2
from decision.state.cluster import ClusterState, nb_hosts
from decision.state.profile import Profile


class Order(IntEnum):
    """In which order jobs are looked at; ties are broken by arrival."""

    FCFS = 0
    LCFS = 1
    SJF = 2
    LJF = 3
    SAF = 4
    LAF = 5
    SQF = 6
    LQF = 7
    F1 = 8
    F2 = 9
    F3 = 10
    F4 = 11
    RANDOM = 12
    # from here on ranks change with time
    WFP3 = 13
    UNICEP = 14
    MULTIFACTOR = 15


class Backfill(IntEnum):
    """What happens behind a job that does not fit."""

    NONE = 0
    FIRST_FIT = 1
    EASY = 2
    CONSERVATIVE = 3


class Allocation(IntEnum):
    """Which of the free hosts a job gets; never whether it gets them."""

    FIRST_FIT = 0
    CONTIGUOUS = 1
    BEST_FIT = 2
    RANDOM = 3


class Power(IntEnum):
    """When idle hosts are put to sleep."""

    NEVER = 0
    IDLE_TIMEOUT = 1
    KEEP_AWAKE = 2


# Plain integers for the kernels
FCFS, LCFS, SJF, LJF, SAF, LAF, SQF, LQF, F1, F2, F3, F4, RANDOM, WFP3, UNICEP, MULTIFACTOR = (int(o) for o in Order)
NONE, FIRST_FIT, EASY, CONSERVATIVE = (int(b) for b in Backfill)
LOWEST, CONTIGUOUS, BEST_FIT, SCATTERED = (int(a) for a in Allocation)
NEVER, IDLE_TIMEOUT, KEEP_AWAKE = (int(p) for p in Power)


class PolicyConfig(NamedTuple):
    """A composed policy as numbers."""

    order: int = FCFS
    backfill: int = NONE
    allocation: int = LOWEST
    power: int = NEVER
    seed: int = 0
    age_weight: float = 1000.0
    size_weight: float = 1000.0
    max_age: float = 7 * 86400.0  # seconds at which age counts in full
    idle_timeout: float = 300.0  # seconds
    keep_awake: int = 0  # hosts
    wake_time: float = 0.0  # seconds to wake a host
    doze_time: float = 0.0  # seconds to put a host to sleep


# Memory.counts
ORDERED = 0  # jobs numbered below this have been put into `sorted`
N_SORTED = 1  # length of sorted
LAST_JOBS = 2  # counters of the state after the last plan was carried out
LAST_RUNNING = 3
LAST_OVER = 4
LAST_FREE = 5
LAST_SWITCHES = 6
HEAD = 7  # the job that blocked the queue then, -1 for none
EXTRA = 8  # hosts that its reservation left over
TROUBLED = 9  # the last reservations were made while the profile was in doubt
SERIAL = 10  # of the last change to the freed regions
N_FREED = 11  # freed regions
N_COUNTS = 12

# Memory.times
SHADOW = 0  # seconds: when the head's reservation begins
NEXT_START = 1  # seconds: no reservation begins earlier
CALL = 2  # seconds: when the policy will be called on its own request, inf if it will not
LAST_NOW = 3  # seconds: time of the last decision
N_TIMES = 4

FREED_ROOM = 64  # bits of a word
LEVELS = 32  # powers of two up to the largest size of a job


class Memory(Profile):
    """What a composed policy remembers from call to call, its availability profile included.

    Arrays that its slots do not use are empty.
    """

    counts: I8  # (N_COUNTS,)
    times: F8  # (N_TIMES,)
    chosen: I4  # (H,) jobs to start now
    release_time: F8  # (2H + 1,) seconds, ascending: when hosts come free besides the ends of running jobs
    release_hosts: I4  # (2H + 1,) how many
    sorted: I4  # (J,) waiting jobs in order; not with FCFS
    spare: I4  # (J,) scratch
    key: F8  # (J,) rank of each job, the lowest first
    reserved: F8  # (J,) seconds: when each job's reservation begins, inf before it has one
    examined: I8  # (J,) serial at which a job's reservation was last known to be as early as possible
    freed_begin: F8  # (FREED_ROOM,) seconds: regions of the profile in which hosts came free
    freed_end: F8  # (FREED_ROOM,) seconds
    freed_most: I4  # (FREED_ROOM,) the most free hosts in it then
    freed_serial: I8  # (FREED_ROOM,) when that was
    spell_length: F8x2  # (FREED_ROOM, LEVELS) seconds: the longest spell of 2 ** level free hosts that touches it
    spell_end: F8x2  # (FREED_ROOM, LEVELS) seconds: the latest end of such a spell, -1 where not yet measured


def new_memory(state: ClusterState, config: PolicyConfig) -> Memory:
    """An empty memory with room for every job and host of `state`."""
    hosts = nb_hosts(state)
    times = np.zeros(N_TIMES)
    times[[NEXT_START, CALL]] = np.inf
    counts = np.zeros(N_COUNTS, np.int64)
    counts[[HEAD, LAST_SWITCHES]] = -1
    memory = Memory(
        counts=counts,
        times=times,
        chosen=np.zeros(hosts, np.int32),
        release_time=np.zeros(2 * hosts + 1),
        release_hosts=np.zeros(2 * hosts + 1, np.int32),
        sorted=np.zeros(0, np.int32),
        spare=np.zeros(0, np.int32),
        key=np.zeros(0),
        span=np.zeros(2, np.int64),
        step_time=np.zeros(0),
        step_free=np.zeros(0, np.int32),
        reserved=np.zeros(0),
        examined=np.zeros(0, np.int64),
        freed_begin=np.zeros(FREED_ROOM),
        freed_end=np.zeros(FREED_ROOM),
        freed_most=np.zeros(FREED_ROOM, np.int32),
        freed_serial=np.zeros(FREED_ROOM, np.int64),
        spell_length=np.zeros((FREED_ROOM, LEVELS)),
        spell_end=np.zeros((FREED_ROOM, LEVELS)),
    )
    return with_room(memory, state, config)


def with_room(memory: Memory, state: ClusterState, config: PolicyConfig) -> Memory:
    """The same memory with room for every job of `state`: the same arrays where they are long enough."""
    jobs, hosts = len(state.size), nb_hosts(state)
    changed: dict[str, Any] = {}
    if config.order != Order.FCFS and len(memory.key) < jobs:
        changed |= {name: _longer(getattr(memory, name), jobs, 0) for name in ("sorted", "spare", "key")}
    if config.backfill == Backfill.CONSERVATIVE and len(memory.reserved) < jobs:
        changed["reserved"] = _longer(memory.reserved, jobs, np.inf)
        changed["examined"] = _longer(memory.examined, jobs, 0)
    steps = _room_for_steps(config, jobs, hosts)
    if len(memory.step_time) < steps:
        changed["step_time"] = _longer(memory.step_time, steps, 0)
        changed["step_free"] = _longer(memory.step_free, steps, 0)
    return memory._replace(**changed) if changed else memory


def _room_for_steps(config: PolicyConfig, jobs: int, hosts: int) -> int:
    """Each reservation, running job and sleeping host makes two steps at most."""
    if config.backfill == Backfill.CONSERVATIVE:
        return 2 * (jobs + 2 * hosts) + 8
    return 8 * hosts + 8 if config.power else 0


def _longer(array: np.ndarray, length: int, fill: float) -> np.ndarray:
    longer = np.full(length, fill, array.dtype)
    longer[: len(array)] = array
    return longer
