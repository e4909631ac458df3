"""What a composed policy remembers from call to call, and what has changed since it last decided."""

from typing import Any

import numpy as np

from decision.compiling.bundle import F8, I4, I8, F8x2, Float, Int, bundle_at
from decision.compiling.entry import Interface
from decision.compiling.jit import kernel
from decision.state.cluster import ClusterState, PlatformFacts, nb_hosts
from decision.state.plan_arrays import PlanArrays

from .booking import Booking, new_booking
from .guard_memory import Shadow, Watch, grown_shadow, new_shadow, new_watch
from .options import Backfill, Order, PolicyConfig, StartHosts
from .profile import Profile

FREED_ROOM = 64  # bits of a word
_LEVELS = 32  # powers of two up to the largest size of a job


class Memory(Profile, Shadow, Watch, Booking):
    """What a composed policy is and remembers from call to call, its availability profile included.

    Arrays that its slots do not use are empty.
    """

    # its config
    order: Int  # Order
    backfill: Int  # Backfill
    allocation: Int  # Allocation
    power: Int  # Power
    seed: Int
    keep_awake: Int  # hosts
    start: Int  # StartHosts
    promises: Int  # 1 to remember when EASY first promises each head to start
    backfill_order: Int  # the Order of the jobs that EASY looks at behind its head; -1: that of the queue
    suspend: Int  # Suspend
    age_weight: Float
    size_weight: Float
    max_age: Float  # seconds at which age counts in full
    idle_timeout: Float  # seconds
    wake_time: Float  # seconds to wake a host
    doze_time: Float  # seconds to put a host to sleep
    guard: Float  # seconds after which a waiting job is guarded; below 0 as AUTO
    patience: Float  # seconds that a job waits before a server is woken for it
    # how far it is
    nb_ordered: Int  # jobs numbered below this have been put into `sorted`
    nb_sorted: Int  # length of sorted
    nb_considered: Int  # jobs numbered below this have been put into `candidates`
    nb_candidates: Int  # length of candidates
    nb_guarded: Int  # jobs numbered below this are guarded, if they wait
    nb_known: Int  # jobs numbered below this have a reservation, if they are of those that get one
    nb_heirs: Int  # length of heirs
    nb_freed: Int  # freed regions
    serial: Int  # of the last change to the freed regions
    troubled: Int  # 1: the last reservations were made while the profile was in doubt
    kept: Int  # 1: the profile was kept up to date by the last decision, for guarded jobs
    # as it was after the last plan was carried out
    seen_jobs: Int  # jobs submitted
    seen_running: Int  # jobs that ran
    seen_over: Int  # jobs that neither waited nor ran any more
    seen_free: Int  # free hosts
    seen_changes: Int = -1  # changes of capacity that no job caused
    seen_revisions: Int  # of what is expected
    head: Int = -1  # the job that blocked the queue then, -1 for none
    extra: Int  # hosts that its reservation left over
    head_start: Float  # seconds: when its reservation begins
    # times
    next_start: Float = np.inf  # seconds: no reservation begins earlier
    next_call: Float = np.inf  # seconds: when the policy will be called on its own request, inf if it will not
    last_now: Float  # seconds: time of the last decision
    guarded_after: Float  # seconds: a job that has waited for so long is guarded in any case
    # addresses of entries of `SLOT`, of what few policies do, compiled for those alone; 0 where the policy does not
    network_slot: Int  # gives an action hosts by the network that connects them
    booked_slot: Int  # jobs book hosts before they start
    suspension_slot: Int  # suspends jobs for others
    prices: F8x2  # (L - 1, N_FEATURES) hops: weights of `placement.windows`; empty where hosts have no price
    chosen: I4  # (H,) jobs to start now
    release_time: F8  # (2H + 1,) seconds, ascending: when hosts come free besides the ends of running jobs
    release_hosts: I4  # (2H + 1,) how many
    sorted: I4  # (J,) waiting jobs in order; not with FCFS, unless jobs are suspended
    spare: I4  # (J,) scratch
    key: F8  # (J,) rank of each job, the lowest first
    heirs: I4  # (H,) jobs that others were suspended for, which start next
    candidates: I4  # (J,) waiting jobs in the order for backfilling, where that is another
    candidate_key: F8  # (J,) rank of each job in it
    promised: F8  # (J,) seconds: when each job was to start when it first was the head of an EASY queue, nan for others
    reserved: F8  # (J,) seconds: when each job's reservation begins, inf before it has one
    examined: I8  # (J,) serial at which a job's reservation was last known to be as early as possible
    freed_begin: F8  # (FREED_ROOM,) seconds: regions of the profile in which hosts came free
    freed_end: F8  # (FREED_ROOM,) seconds
    freed_most: I4  # (FREED_ROOM,) the most free hosts in it then
    freed_serial: I8  # (FREED_ROOM,) when that was
    spell_length: F8x2  # (FREED_ROOM, _LEVELS) seconds: the longest spell of 2 ** level free hosts that touches it
    spell_end: F8x2  # (FREED_ROOM, _LEVELS) seconds: the latest end of such a spell, -1 where not yet measured


memory_at = bundle_at(Memory)

SLOT = Interface(float, ClusterState, PlatformFacts, Memory, PlanArrays, int)  # the number: see each
call_slot = SLOT.caller()


@kernel
def note_decision(state, memory, chosen):
    """Remember the state as it will be once the plan is carried out, which starts the first so many chosen jobs."""
    memory.seen_jobs = state.nb_jobs
    memory.seen_running = state.nb_running + chosen
    memory.seen_over = state.nb_jobs - state.nb_queued - state.nb_running
    memory.seen_changes = state.nb_capacity_changes
    memory.seen_revisions = state.revisions[0]


@kernel
def ends_since(state, memory):
    """How many jobs have ended since the last decision; -1 where more happened than arrivals, its starts, and ends.

    A job that is expected to end at another time is more.
    """
    ended = state.nb_jobs - state.nb_queued - state.nb_running - memory.seen_over
    as_planned = (
        state.nb_running + ended == memory.seen_running
        and state.nb_capacity_changes == memory.seen_changes
        and state.revisions[0] == memory.seen_revisions
    )
    return ended if as_planned else -1


def new_memory(state: ClusterState, config: PolicyConfig) -> Memory:
    """An empty memory with room for every job and host of `state`."""
    hosts = nb_hosts(state)
    memory = Memory(
        **config._asdict(),
        prices=np.zeros((0, 0)),
        chosen=np.zeros(hosts, np.int32),
        release_time=np.zeros(2 * hosts + 1),
        release_hosts=np.zeros(2 * hosts + 1, np.int32),
        sorted=np.zeros(0, np.int32),
        spare=np.zeros(0, np.int32),
        key=np.zeros(0),
        heirs=np.zeros(hosts if config.suspend else 0, np.int32),
        candidates=np.zeros(0, np.int32),
        candidate_key=np.zeros(0),
        step_time=np.zeros(0),
        step_free=np.zeros(0, np.int32),
        promised=np.zeros(0),
        reserved=np.zeros(0),
        examined=np.zeros(0, np.int64),
        freed_begin=np.zeros(FREED_ROOM),
        freed_end=np.zeros(FREED_ROOM),
        freed_most=np.zeros(FREED_ROOM, np.int32),
        freed_serial=np.zeros(FREED_ROOM, np.int64),
        spell_length=np.zeros((FREED_ROOM, _LEVELS)),
        spell_end=np.zeros((FREED_ROOM, _LEVELS)),
        **new_shadow(hosts),
        **new_watch(),
        **new_booking(hosts if config.start == StartHosts.BOOKED else 0),
    )
    return grown_memory(memory, state, config)


def grown_memory(memory: Memory, state: ClusterState, config: PolicyConfig) -> Memory:
    """The same memory with room for every job of `state`: the same arrays where they are long enough."""
    jobs, hosts = len(state.size), nb_hosts(state)
    changed: dict[str, Any] = {}
    if (config.order != Order.FCFS or config.suspend) and len(memory.key) < jobs:
        changed |= {name: _longer(getattr(memory, name), jobs, 0) for name in ("sorted", "spare", "key")}
    if config.backfill_order >= 0 and len(memory.candidates) < jobs:
        changed |= {name: _longer(getattr(memory, name), jobs, 0) for name in ("candidates", "spare", "candidate_key")}
    if config.guard < 0:
        changed |= grown_shadow(memory, jobs)
    if _reserves(config) and len(memory.reserved) < jobs:
        changed["reserved"] = _longer(memory.reserved, jobs, np.inf)
        changed["examined"] = _longer(memory.examined, jobs, 0)
    if config.promises and len(memory.promised) < jobs:
        changed["promised"] = _longer(memory.promised, jobs, np.nan)
    steps = _room_for_steps(config, jobs, hosts)
    if len(memory.step_time) < steps:
        changed["step_time"] = _longer(memory.step_time, steps, 0)
        changed["step_free"] = _longer(memory.step_free, steps, 0)
    return memory._replace(**changed) if changed else memory


def _reserves(config: PolicyConfig) -> bool:
    """Whether jobs can have reservations that are remembered."""
    return config.backfill == Backfill.CONSERVATIVE or config.guard < np.inf


def _room_for_steps(config: PolicyConfig, jobs: int, hosts: int) -> int:
    """Each job that waits or runs and each sleeping host makes two steps at most.

    With a power slot every waiting job can have a reservation, whatever the backfilling: as many short jobs as fit
    behind one another into the time that a host takes to wake.
    """
    if _reserves(config) or config.power:
        return 2 * (jobs + 2 * hosts) + 8
    return 0


def _longer(array: np.ndarray, length: int, fill: float) -> np.ndarray:
    longer = np.full(length, fill, array.dtype)
    longer[: len(array)] = array
    return longer
