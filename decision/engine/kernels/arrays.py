"""The engine's own memory: `Truth` (what jobs really do), `Sim` (activities, mailbox, progress), `Rows` (traces).

A policy sees none of it. Indices: truth t (static jobs by workload and order of submission, then dynamic ones),
job j (number in `ClusterState`, by order of submission), host h.

Every kernel of the engine takes a `World` first, which has all bundles of one simulation: pointers only, so that
passing it on costs nothing. (A separate argument for each bundle was as fast, and 27 orders of them were in use.)
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from decision.compiling.bundle import F8, I1, I4, I8, Bundle, F8x2, Float, I4x2, Int
from decision.compiling.jit import kernel
from decision.model.platform import Route
from decision.model.record import HostState
from decision.state.cluster import ClusterState, PlatformFacts
from decision.state.plan_arrays import PlanArrays

from .links import NO_NETWORK

# Kinds of leaf task
DELAY, FLOPS_EACH, FLOPS_TOTAL, FLOPS_VECTOR, FLOPS_EXECUTORS = range(5)

# Activities by what their end is. A code is one of them, or of the messages, and what it is about: see `pack`
(
    SUBMITTER_WAKES,  # workload
    EVENT_LIST_WAKES,  # event list
    DELAY_ENDS,  # job: its leaf is over
    TASK_ENDS,  # job: its leaf is over
    WALLTIME_ENDS,  # job
    CALL_IS_DUE,
    SWITCH_ENDS,  # host
    REPLY_WAKES,  # message that the reply sends then
    LATENCY_ENDS,  # message on its way to the server: its byte follows
    MESSAGE_ARRIVES,  # message that the server takes now, and whose sender goes on
    OVERRUN_ENDS,  # job that is over: its task computes until the server hears of it
    FLOW_BEGINS,  # job: its task communicates once the latency is over
) = range(12)

# Messages in the server's mailbox
(
    MSG_HELLO,  # workload: its submitter is there
    MSG_SUBMITTED,  # workload: jobs that are due
    MSG_BYE,  # workload: it has no more jobs
    MSG_EVENTS,  # event list: events that are due
    MSG_EVENTS_HELLO,  # event list
    MSG_EVENTS_BYE,  # event list
    MSG_COMPLETED,  # job
    MSG_CALL,
    MSG_SWITCHED,  # host
    MSG_KILLED,  # kill request
    MSG_COMMAND,  # action of the plan
    MSG_READY,  # the reply has sent all of its commands
) = range(12)

CANCELLED = -1  # in place of the code of an activity that must wake nobody

# What the log says happened, for the next question
(
    LOG_BEGINS,
    LOG_SUBMITTED,
    LOG_COMPLETED,
    LOG_KILLED,
    LOG_CHANGED,
    LOG_CALLED,
    LOG_NO_MORE_JOBS,
    LOG_NO_MORE_EVENTS,
    LOG_EVENT,
    LOG_ENERGY,
    LOG_ENDS,
) = range(11)

# What an external event does in addition to being reported
HOSTS_LEAVE, HOSTS_COME_BACK, SUPPLY_CHANGES = 1, 2, 3

# What `advance` returns; and, after them, why a loop of decisions stops that calls it
ASK, DONE, DEADLOCK, GROW, BAD_COMMAND = range(5)
PAUSED = 5  # it has made as many decisions as it was to make
UNCARRIED = 6  # there is no room for the plan: let arrays grow, then carry it out
STOPPED = 7  # the policy failed, or its plan cannot be carried out

# Sim.kill_state of a job
NOT_KILLED, KILL_ASKED, KILL_DONE = range(3)


@kernel
def pack(kind, arg):
    """The code of an activity or message: what it is, and its job, host, workload, ..., >= 0."""
    # Four bits for the kind: there are 12 activities and 12 messages. What is left has room for a code itself, as that
    # of a message on its way has.
    return kind + 16 * arg


@kernel
def code_kind(code):
    """What a code is: an activity, or a message."""
    return code & 15


@kernel
def code_arg(code):
    """What a code is about."""
    return code >> 4


class Truth(Bundle):
    """What jobs do and when they come. T jobs, P profiles, L leaf tasks, K workloads, M event lists, E events."""

    submit_time: F8  # (T,) seconds
    size: I4  # (T,) requested hosts
    walltime: F8  # (T,) seconds, inf where there is none
    user: I4  # (T,)
    estimate: F8  # (T,) seconds that the job itself says it will run, to the microsecond; 0 where it does not
    worth: (
        F8x2  # (T, 4) value, qos, deadline and expected as in the state, to six decimals; (0, 4) where no job says any
    )
    profile: I4  # (T,) the job's profile
    moldable: I1  # (P,) 1 where a job of it may run on another number of hosts than it asked for
    leaf_first: I8  # (P,) the profile's first leaf
    leaf_count: I4  # (P,)
    leaf_kind: I1  # (L,) DELAY, FLOPS_*
    leaf_amount: F8  # (L,) seconds or flop
    leaf_vector: I8  # (L,) where the amounts per host begin in `vector`, and after them those of FLOPS_EXECUTORS
    leaf_exit: I4  # (L,) exit code once the leaf is over; not 0 ends the job
    leaf_bytes: F8  # (L,) bytes per pair of hosts, in all with FLOPS_TOTAL, the largest with FLOPS_VECTOR
    leaf_matrix: I8  # (L,) where its bytes from each host to each other begin in `matrix`
    vector: F8  # (V,) flop per host; then how many executors, and of each its host, counted in the job, and its flop
    matrix: F8  # (B,) bytes from host to host; then of FLOPS_EXECUTORS the most from one executor to another
    workload_end: I8  # (K,) one past the workload's last job
    event_time: F8  # (E,) seconds, ascending in each list
    event_kind: I1  # (E,) HOSTS_LEAVE, HOSTS_COME_BACK, SUPPLY_CHANGES, or 0
    event_host_end: I8  # (E,) one past its last entry in event_host
    event_host: I4  # (X,) hosts; of SUPPLY_CHANGES how many have power, and how many will have by step
    list_end: I8  # (M,) one past the list's last event


class Sim(Bundle):
    """The simulation's moving parts. C activities, J jobs, H hosts; R = H + 1, or 0 where messages take no time."""

    network: Int  # address of the `links.LinkState`: a seventh pointer in `World` would slow every run by 3 %
    flows: Int  # address of the root `network.flows`, 0 where no job communicates
    root: Int  # address of `server.engine`, for loops that are compiled apart from it
    # the clock and totals of the energy model
    now: Float  # seconds
    total_joules: Float  # of all hosts, when a row of the energy trace was last written
    total_rest: Float  # what of that did not fit into the sum
    watts_min: Float  # of all hosts, at the least load
    first_joules: Float = -1.0  # at the first submission; -1 before, as Batsim has it
    last_joules: Float = -1.0  # at the last end of a job, -1 before
    reply_now: Float  # seconds: the reply's own time
    restart: Float  # seconds that what is left of a suspended job takes before it goes on
    changed_away_at: Float  # seconds: when the host of changed_away came back
    checkpoint_every: Float  # seconds between two checkpoints of a job that runs; 0 where there are none
    # counters, positions and switches that are 0 or 1
    nb_activities: Int  # sleeps and tasks under way
    nb_instant: Int  # those that take no time and end when the next message arrives; they are not among the others
    nb_tasks: Int  # tasks among the activities
    nb_actors: Int  # actors that are awake: length of actor
    mail_head: Int  # next message to handle
    mail_tail: Int  # where the next one is put
    in_transit: Int  # 1 while a message is on its way to the server
    decision_waits: Int  # 1 while the decision process waits for a question
    next_command: Int  # command that the reply sends next
    timed_commands: Int  # 1 where command_time holds, 0 where every command is for now
    nb_submitters: Int  # workloads that still submit
    nb_event_lists: Int  # event lists that still come
    registration_open: Int  # 1 while the decision process may register jobs
    nb_submitted: Int  # jobs submitted
    nb_finished: Int  # jobs whose end the server has heard of, and length of finished
    nb_calls: Int  # calls asked for and not yet made
    nb_switching: Int  # hosts that switch
    nb_killers: Int  # kills under way
    nb_loading: Int  # length of loading
    ends_sent: Int  # 1 after SIMULATION_ENDS
    nb_logged: Int  # length of the log
    log_sent: Int  # 1 after the log became a question: the next entry begins a new one
    nb_switches: Int  # switch requests so far
    nb_switch_intervals: Int  # used length of switch_first and switch_last
    nb_switched_hosts: Int  # hosts asked to switch
    nb_kills: Int  # kill requests so far
    nb_kill_jobs: Int  # used length of kill_job
    nb_host_rows: Int
    nb_energy_rows: Int
    nb_pstate_rows: Int
    energy_on: Int  # 1 where energy is simulated
    switches_on: Int  # 1 where hosts may change their pstate
    calls_in_ms: Int  # 1 where calls are at whole milliseconds, and those for a time that has passed are due at once
    trace_on: Int  # 1 where host-state rows are kept
    acknowledges: Int  # 1 where dynamic jobs are acknowledged
    policy_watches: Int  # 1 where a policy reads the state: ends and switches show when the server tells of them
    first_submitted: Int  # 1 once a job was submitted
    refused_command: Int  # the command that is impossible
    rates_changed: Int  # 1 where flows began or ended, or a host changed its speed, since rates were last set
    nb_late_mail: Int  # messages at the mailbox's end that were put there after the reply, were it not still to come
    nb_suspending: Int  # jobs that the policy suspends and that have not ended yet
    nb_unregistered: Int  # rests of suspended jobs that are in the state, but not registered yet
    changed_away: Int  # 1 + the first host that came back and had fallen asleep or woken while it was away; 0 for none
    changes_once: Int  # 1 where hosts that change their speed make one row of the energy trace, not one after it, too
    nb_rests: Int  # rests of suspended jobs so far
    # Activities under way, in the order in which they began: SimGrid ends those of one instant in that order.
    left: F8  # (C,) what is left of an activity: seconds of a sleep, share of a task
    pace: F8  # (C,) 1 for a sleep, share per second for a task
    code: I8  # (C,) whom its end wakes
    # Those that take no time: the clock stands while one is there.
    instant: I8  # (C,) whom the end of an instant activity wakes, or CANCELLED
    instant_left: F8  # (C,) seconds to it
    # Who is awake in this instant (`rounds`).
    actor: I8  # (C,) who is awake: the codes of activities that are over now, or CANCELLED
    request: I1  # (C,) what each of them has asked SimGrid's kernel for
    request_arg: I8  # (C,) which host it measures, or how many requests it has still to make
    # The server's mailbox. Its length is a power of two, so that a position in the ring takes one `&` and no division.
    mail: I8  # (power of 2,) ring of message codes
    # Submitters of jobs, one for each workload, and of external events, one for each list.
    workload_at: I8  # (K,) the workload's next job
    workload_sent: I8  # (K,) one past its last job that the server knows
    workload_clock: F8  # (K,) seconds: when its submitter last woke
    list_at: I8  # (M,) the list's next event
    list_sent: I8  # (M,) one past its last event that the server knows
    list_clock: F8  # (M,) seconds: when who submits its events last woke
    # What the next question says, in the order in which the server heard of it.
    log_kind: I1  # (G,)
    log_time: F8  # (G,) seconds
    log_arg: I8  # (G,) job, switch request, event or kill request
    log_value: F8  # (G,) joules of LOG_ENERGY
    command_time: F8  # (A,) seconds: when the reply sends each command
    # Jobs, by their number in the state.
    truth_of: I4  # (J,) truth of a job
    leaf: I4  # (J,) present leaf, counted from 0
    start_time: F8  # (J,) seconds, not rounded as the state's
    end_time: F8  # (J,) seconds
    leaf_start: F8  # (J,) seconds: when the leaf began
    walltime_left: F8  # (J,) seconds of walltime when the leaf began, -1 without walltime
    rate: F8  # (J,) share per second of the parallel task that runs
    exit_code: I4  # (J,)
    over: I1  # (J,) 1 + FinalState once it has ended, whether or not the server knows; 0 before
    energy: F8  # (J,) joules on the job's hosts (before its end: minus what they had used at its start)
    kill_state: I1  # (J,) NOT_KILLED, KILL_ASKED, KILL_DONE
    progress: F8  # (J,) of the leaf that was killed
    rest: F8  # (J,) seconds that a job takes which is what was left of another; 0 for what profiles say
    # Batsim writes its jobs file in this order.
    finished: I4  # (J,) jobs in the order in which the server heard of their end
    # Ways of messages to the server, and then hosts as they are: the state has them as the policy knows them.
    route_latency: F8  # (R,) seconds, of messages from each host and from the master
    route_rate: F8  # (R,) share per second of a message's byte after that
    host_state: I1  # (H,) HostState, as it is
    host_since: F8  # (H,) seconds: when it last changed
    in_state: I8  # (6,) hosts in each HostState
    time_in_state: F8  # (6,) host-seconds in each HostState up to each host's last change; IDLE is what is left of all
    loading: I4  # (J,) jobs whose tasks began since time last passed: their hosts are loaded when it does
    # Energy: a host's joules are brought up to date when its load or pstate changes, or somebody asks, as SimGrid does.
    host_joules: F8  # (H + S,) joules up to host_joules_at, also of S storage hosts
    host_watts: F8  # (H + S,) watts since then
    first_watts: F8  # (H + S,) those of pstate 0, in which a host is taken to be before it is first measured; then -1
    host_joules_at: F8  # (H + S,) seconds
    # Requests to switch hosts, each with its hosts as intervals: their last host makes the answer.
    target: I4  # (H,) pstate that the host switches to
    switch: I4  # (H,) request that it switches for
    switch_left: I4  # (Q,) hosts of a request that still switch
    switch_begin: I8  # (Q,) its intervals
    switch_end: I8  # (Q,)
    switch_pstate: I4  # (Q,)
    switch_first: I4  # (Y,)
    switch_last: I4  # (Y,)
    # Requests to kill jobs.
    kill_begin: I8  # (Z,) jobs of a kill request
    kill_end: I8  # (Z,)
    kill_job: I4  # (Z,)
    # Of Batsim 5 alone: behind what each run needs, which a few fields more before it would slow by a hundredth.
    probed: I4  # (H,) hosts that probes measure at `stroke`, in order
    stays_computing: Int  # 1 where a host that has computed counts as computing until it switches
    stroke: Int  # number of the call that is the stroke of Batsim 5's periodic clock that is awaited
    next_stroke: Int  # number of the one after it, at next_stroke_time
    nb_probed: Int  # length of probed
    next_stroke_time: Float  # seconds: of the stroke after the awaited one of Batsim 5's periodic clock; 0 for none


class Rows(Bundle):
    """Rows of Batsim's trace files."""

    host_time: F8  # (R,) seconds; earlier rows are in `decision.engine.compiled`
    host_counts: I4x2  # (6, R) hosts per HostState; what was never anything but 0 takes no memory
    energy_time: F8  # (R,) seconds
    energy_joules: F8  # (R,)
    energy_rest: F8  # (R,) what of the sum did not fit into energy_joules
    energy_kind: I1  # (R,) ord of "s", "e", "p"
    energy_wattmin: F8  # (R,)
    pstate_time: F8  # (R,) seconds
    pstate_switch: I8  # (R,) switch request
    pstate_value: I4  # (R,)


class World(NamedTuple):
    """All that one simulation is, and the plan that is being carried out."""

    state: ClusterState
    facts: PlatformFacts
    truth: Truth
    sim: Sim
    rows: Rows
    plan: PlanArrays


WORLD = (ClusterState, PlatformFacts, Truth, Sim, Rows, PlanArrays)  # as arguments of an interface


def addresses(world: World) -> tuple[int, ...]:
    """The arguments of such an interface for calls from Python."""
    return tuple(bundle.address for bundle in world)


def new_sim(truth: Truth, nb_hosts: int, nb_storage: int, nb_jobs: int, routes: Sequence[Route] = ()) -> Sim:
    """A simulation at time 0 of which nothing has happened; `routes` are the platform's."""
    workloads, lists = len(truth.workload_end), len(truth.list_end)
    # A guess: one that is too low costs some calls of `grow_sim`, one that is too high costs memory.
    room = 4 * nb_hosts + 2 * (workloads + lists) + 1024
    log = nb_jobs + len(truth.event_time) + room
    f8, i8, i4, i1 = np.float64, np.int64, np.int32, np.int8
    return Sim(
        network=NO_NETWORK.address,
        **{name: np.zeros(room, f8) for name in ("left", "pace", "instant_left")},
        **{name: np.zeros(room, i8) for name in ("code", "instant")},
        actor=np.zeros(room, i8),
        request=np.zeros(room, i1),
        request_arg=np.zeros(room, i8),
        mail=np.zeros(_power_of_two(room + log), i8),
        workload_at=np.concatenate([[0], truth.workload_end[:-1]]).astype(i8),
        workload_sent=np.zeros(workloads, i8),
        workload_clock=np.zeros(workloads),
        list_at=np.concatenate([[0], truth.list_end[:-1]])[:lists].astype(i8),
        list_sent=np.zeros(lists, i8),
        list_clock=np.zeros(lists),
        log_kind=np.zeros(log, i1),
        log_time=np.zeros(log, f8),
        log_arg=np.zeros(log, i8),
        log_value=np.zeros(log, f8),
        command_time=np.zeros(0, f8),
        **{n: np.zeros(nb_jobs, i4) for n in ("truth_of", "leaf", "exit_code", "finished", "loading")},
        **{
            n: np.zeros(nb_jobs, f8)
            for n in ("start_time", "end_time", "leaf_start", "walltime_left", "rate", "energy", "progress", "rest")
        },
        **{n: np.zeros(nb_jobs, i1) for n in ("kill_state", "over")},
        route_latency=np.array([route.latency for route in routes]),
        route_rate=np.array([route.byte_rate for route in routes]),
        host_state=np.full(nb_hosts, HostState.IDLE, i1),
        host_since=np.zeros(nb_hosts),
        in_state=np.where(np.arange(len(HostState)) == HostState.IDLE, nb_hosts, 0).astype(i8),
        time_in_state=np.zeros(len(HostState)),
        **{n: np.zeros(nb_hosts + nb_storage, f8) for n in ("host_joules", "host_watts", "host_joules_at")},
        probed=np.zeros(nb_hosts, i4),
        first_watts=np.full(nb_hosts + nb_storage, -1.0),
        **{n: np.full(nb_hosts, -1, i4) for n in ("target", "switch")},
        **{n: np.zeros(1024, i4) for n in ("switch_left", "switch_pstate")},
        **{n: np.zeros(1024, i8) for n in ("switch_begin", "switch_end")},
        **{n: np.zeros(2048 + 2 * nb_hosts, i4) for n in ("switch_first", "switch_last")},
        **{n: np.zeros(1024 + nb_hosts, i8) for n in ("kill_begin", "kill_end")},
        kill_job=np.zeros(1024 + nb_hosts, i4),
    )


def new_rows(host_rows: int, energy_rows: int) -> Rows:
    """Empty traces with room for so many rows of hosts, of energy and of pstates."""
    return Rows(
        host_time=np.zeros(host_rows),
        host_counts=np.zeros((6, host_rows), np.int32),
        energy_time=np.zeros(energy_rows),
        energy_joules=np.zeros(energy_rows),
        energy_rest=np.zeros(energy_rows),
        energy_kind=np.zeros(energy_rows, np.int8),
        energy_wattmin=np.zeros(energy_rows),
        pstate_time=np.zeros(energy_rows),
        pstate_switch=np.zeros(energy_rows, np.int64),
        pstate_value=np.zeros(energy_rows, np.int32),
    )


def _power_of_two(at_least: int) -> int:
    return 1 << (at_least - 1).bit_length()


# Which arrays of `Sim` become longer together.
_JOB_ARRAYS = (
    *("truth_of", "leaf", "start_time", "end_time", "leaf_start", "walltime_left", "rate", "exit_code"),
    *("over", "energy", "kill_state", "progress", "rest", "finished", "loading"),
)
_ACTIVITY_ARRAYS = ("left", "pace", "code", "instant", "instant_left", "actor", "request", "request_arg")
_LOG_ARRAYS = ("log_kind", "log_time", "log_arg", "log_value")
_SWITCH_ARRAYS = ("switch_left", "switch_begin", "switch_end", "switch_pstate")


def grow_sim(sim: Sim, nb_jobs: int, room: int, at_once: int = 0) -> Sim:
    """The same simulation with room for `nb_jobs` jobs, `room` more activities, switches and kills, and so many log
    entries and `at_once` more."""
    wanted = dict.fromkeys(_JOB_ARRAYS, nb_jobs)
    wanted |= dict.fromkeys(_ACTIVITY_ARRAYS, sim.nb_activities + sim.nb_instant + room)
    wanted |= dict.fromkeys(_SWITCH_ARRAYS, sim.nb_switches + room)
    wanted |= dict.fromkeys(("switch_first", "switch_last"), sim.nb_switch_intervals + room)
    wanted |= dict.fromkeys(("kill_begin", "kill_end"), sim.nb_kills + room)
    wanted["kill_job"] = sim.nb_kill_jobs + room
    changed = _lengthen(sim, wanted)
    # A log that became a question is empty for what comes next.
    logged = 0 if sim.log_sent else sim.nb_logged
    changed |= _lengthen(sim, dict.fromkeys(_LOG_ARRAYS, logged + room + at_once), logged)
    mail = sim.mail_tail - sim.mail_head + room
    if mail > len(sim.mail):
        # The mailbox's ring, laid out again in a longer one.
        ring, waiting = np.zeros(_power_of_two(int(mail)), np.int64), np.arange(sim.mail_head, sim.mail_tail)
        ring[waiting & (len(ring) - 1)] = sim.mail[waiting & (len(sim.mail) - 1)]
        changed["mail"] = ring
    return sim._replace(**changed)


def grow_rows(rows: Rows, sim: Sim, room: int) -> Rows:
    """The same traces with room for `room` more rows of each."""
    wanted = dict.fromkeys(("host_time", "host_counts"), sim.nb_host_rows + room)
    if sim.energy_on:
        wanted |= {f"energy_{n}": sim.nb_energy_rows + room for n in ("time", "joules", "rest", "kind", "wattmin")}
    if sim.switches_on:
        wanted |= {f"pstate_{n}": sim.nb_pstate_rows + room for n in ("time", "switch", "value")}
    return rows._replace(**_lengthen(rows, wanted))


def _lengthen(arrays: Bundle, wanted: dict, used: int | None = None) -> dict:
    """Longer arrays in place of those that are shorter than wanted; only `used` entries of them count, or all."""
    changed = {}
    for name, length in wanted.items():
        old = getattr(arrays, name)
        if length > old.shape[-1]:
            # At least twice as long, so that a run of n things copies each of them about twice.
            new = np.zeros((*old.shape[:-1], max(int(length), 2 * old.shape[-1])), old.dtype)
            kept = old[..., :used]
            new[..., : kept.shape[-1]] = kept
            changed[name] = new
    return changed
