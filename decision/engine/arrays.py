"""The engine's own memory: `Truth` (what jobs really do), `Sim` (activities, mailbox, progress), `Rows` (traces).

A policy sees none of it. Indices: truth t (static jobs by workload and order of submission, then dynamic ones),
job j (number in `ClusterState`, by order of submission), host h.
"""

import numpy as np

from decision.bundle import F8, I1, I4, I8, Bundle, I4x2

# Kinds of leaf task
DELAY, FLOPS_EACH, FLOPS_TOTAL, FLOPS_VECTOR = range(4)

# Activities and mailbox messages: a code is kind + 16 * argument
SUBMIT, EXTERNAL, LEAF, PTASK, WALLTIME, CALL, SWITCH, REPLY = range(8)  # activities
HELLO, SUBMITTED, BYE, EVENTS, EVENTS_HELLO, EVENTS_BYE, COMPLETED, CALLED, SWITCHED, KILLED, COMMAND, READY = range(12)

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

# What an external event does besides being told
HOSTS_LEAVE, HOSTS_COME_BACK = 1, 2

# What `advance` returns
ASK, DONE, DEADLOCK, GROW, REFUSED, MISPLACED = range(6)

# Sim.flag: integers of the simulation
(
    ACTIVITIES,  # sleeps and tasks under way
    BRIEF,  # those that take no time, which are over when the next message arrives; they are not among the others
    TASKS,  # tasks among them
    MAIL_HEAD,  # next message to handle
    MAIL_TAIL,  # where the next one is put
    SCHED_READY,  # 1 while the decision process waits for a question
    NEXT_COMMAND,  # command that the reply sends next
    TIMED_COMMANDS,  # 1 where Sim.command_time holds, 0 where every command is for now
    SUBMITTERS,  # workloads that still submit
    EVENT_LISTS,  # event lists that still come
    REGISTRATION,  # 1 while the decision process may register jobs
    SUBMITTED_N,  # jobs submitted
    ENDED_N,  # jobs ended and told, and length of Sim.ended
    WAITERS,  # calls asked for and not yet made
    SWITCHING,  # hosts that switch
    KILLERS,  # kills under way
    ENDS_SENT,  # 1 after SIMULATION_ENDS
    LOG_N,  # length of the log
    LOG_ASKED,  # 1 after the log was given out: the next entry begins a new one
    GROUP_N,  # switch requests so far
    GROUP_INTERVALS,  # used length of group_first and group_last
    NB_SWITCHES,  # hosts asked to switch
    KILL_N,  # kill requests so far
    KILL_JOBS,  # used length of kill_job
    HOST_ROWS,
    ENERGY_ROWS,
    PSTATE_ROWS,
    ENERGY_ON,  # 1 where energy is simulated
    TRACE_ON,  # 1 where host-state rows are kept
    ACKNOWLEDGE,  # 1 where dynamic jobs are acknowledged
    FIRST_SUBMITTED,  # 1 once a job was submitted
    BAD_COMMAND,  # the command that was refused
    BAD_EVENT,  # the external event that brings a host back which is here, -1 while there is none
    N_FLAGS,
) = range(34)

# Sim.real: the clock and totals of the energy model
CLOCK, JOULES, JOULES_REST, STORAGE_WATTS, WATTS_MIN, FIRST_JOULES, LAST_JOULES, REPLY_NOW = range(8)


class Truth(Bundle):
    """What jobs do and when they come. T jobs, L leaf tasks, K workloads, M event lists, E events."""

    submit_time: F8  # (T,) seconds
    size: I4  # (T,) requested hosts
    walltime: F8  # (T,) seconds, inf where there is none
    user: I4  # (T,)
    moldable: I1  # (T,) 1 where the job may run on another number of hosts than it asked for
    leaf_first: I8  # (T,) the job's first leaf
    leaf_count: I4  # (T,)
    leaf_kind: I1  # (L,) DELAY, FLOPS_*
    leaf_amount: F8  # (L,) seconds or flop
    leaf_vector: I8  # (L,) where the amounts per executor begin in `vector`
    leaf_exit: I4  # (L,) exit code once the leaf is over; not 0 ends the job
    vector: F8  # (V,) flop per executor
    workload_end: I8  # (K,) one past the workload's last job
    event_time: F8  # (E,) seconds, ascending in each list
    event_kind: I1  # (E,) HOSTS_LEAVE, HOSTS_COME_BACK, or 0
    event_host_end: I8  # (E,) one past its last entry in event_host
    event_host: I4  # (X,)
    list_end: I8  # (M,) one past the list's last event


class Sim(Bundle):
    """The simulation's moving parts. C activities, J jobs, H hosts."""

    flag: I8  # (N_FLAGS,)
    real: F8  # (8,)
    left: F8  # (C,) what is left of an activity: seconds of a sleep, share of a task
    pace: F8  # (C,) 1 for a sleep, share per second for a task
    code: I8  # (C,) whom its end wakes
    brief: I8  # (C,) whom the end of a brief activity wakes, -1 where it was cancelled
    brief_left: F8  # (C,) seconds to it
    due: I8  # (C,) codes of what is over now, up to a -2
    asks: I1  # (C,) what each of those who wake has asked for
    place: I8  # (C,) which host it measures, or how many requests it has still to make
    mail: I8  # (power of 2,) ring of message codes
    workload_at: I8  # (K,) the workload's next job
    workload_told: I8  # (K,) one past its last job told to the server
    list_at: I8  # (M,) the list's next event
    list_told: I8  # (M,)
    log_kind: I1  # (G,)
    log_time: F8  # (G,) seconds
    log_arg: I8  # (G,) job, group, event or kill request
    log_value: F8  # (G,) joules of LOG_ENERGY
    command_time: F8  # (A,) seconds: when the reply sends each command
    truth_of: I4  # (J,) truth of a job
    leaf: I4  # (J,) present leaf, counted from 0
    began: F8  # (J,) seconds: when the job started
    over: F8  # (J,) seconds: when it ended
    leaf_time: F8  # (J,) seconds: when the leaf began
    allowed: F8  # (J,) seconds of walltime left when it began, -1 without walltime
    rate: F8  # (J,) share per second of the parallel task that runs
    exit_code: I4  # (J,)
    energy: F8  # (J,) joules on the job's hosts (before its end: minus what they had used at its start)
    kill_asked: I1  # (J,)
    progress: F8  # (J,) of the leaf that was killed
    ended: I4  # (J,) jobs in the order in which the server heard of their end
    host_joules: F8  # (H,) joules up to host_joules_at
    host_watts: F8  # (H,) watts since then
    host_joules_at: F8  # (H + S,) seconds, also of S storage hosts
    target: I4  # (H,) pstate that the host switches to
    group: I4  # (H,) request that it switches for
    group_left: I4  # (Q,) hosts of a request that still switch
    group_begin: I8  # (Q,) its intervals
    group_end: I8  # (Q,)
    group_pstate: I4  # (Q,)
    group_first: I4  # (Y,)
    group_last: I4  # (Y,)
    kill_begin: I8  # (Z,) jobs of a kill request
    kill_end: I8  # (Z,)
    kill_job: I4  # (Z,)


class Rows(Bundle):
    """Rows of Batsim's trace files."""

    host_time: F8  # (R,) seconds
    host_counts: I4x2  # (R, 6) hosts per HostState
    energy_time: F8  # (R,) seconds
    energy_joules: F8  # (R,)
    energy_rest: F8  # (R,) what of the sum did not fit into energy_joules
    energy_kind: I1  # (R,) ord of "s", "e", "p"
    energy_wattmin: F8  # (R,)
    pstate_time: F8  # (R,) seconds
    pstate_group: I8  # (R,) switch request
    pstate_value: I4  # (R,)


def new_sim(truth: Truth, nb_hosts: int, nb_storage: int, nb_jobs: int) -> Sim:
    """A simulation at time 0 of which nothing has happened."""
    workloads, lists = len(truth.workload_end), len(truth.list_end)
    room = 4 * nb_hosts + 2 * (workloads + lists) + 1024
    log = nb_jobs + len(truth.event_time) + room
    f8, i8, i4, i1 = np.float64, np.int64, np.int32, np.int8
    return Sim(
        flag=np.zeros(N_FLAGS, i8),
        real=np.zeros(8),
        **{name: np.zeros(room, f8) for name in ("left", "pace", "brief_left")},
        **{name: np.zeros(room, i8) for name in ("code", "brief")},
        due=np.full(room, -2, i8),
        asks=np.zeros(room, i1),
        place=np.zeros(room, i8),
        mail=np.zeros(_power_of_two(room + log), i8),
        workload_at=np.concatenate([[0], truth.workload_end[:-1]]).astype(i8),
        workload_told=np.zeros(workloads, i8),
        list_at=np.concatenate([[0], truth.list_end[:-1]])[:lists].astype(i8),
        list_told=np.zeros(lists, i8),
        log_kind=np.zeros(log, i1),
        log_time=np.zeros(log, f8),
        log_arg=np.zeros(log, i8),
        log_value=np.zeros(log, f8),
        command_time=np.zeros(0, f8),
        **{n: np.zeros(nb_jobs, i4) for n in ("truth_of", "leaf", "exit_code", "ended")},
        **{n: np.zeros(nb_jobs, f8) for n in ("began", "over", "leaf_time", "allowed", "rate", "energy", "progress")},
        kill_asked=np.zeros(nb_jobs, i1),
        **{n: np.zeros(nb_hosts, f8) for n in ("host_joules", "host_watts")},
        host_joules_at=np.zeros(nb_hosts + nb_storage),
        **{n: np.full(nb_hosts, -1, i4) for n in ("target", "group")},
        **{n: np.zeros(1024, i4) for n in ("group_left", "group_pstate")},
        **{n: np.zeros(1024, i8) for n in ("group_begin", "group_end")},
        **{n: np.zeros(2048 + 2 * nb_hosts, i4) for n in ("group_first", "group_last")},
        **{n: np.zeros(1024 + nb_hosts, i8) for n in ("kill_begin", "kill_end")},
        kill_job=np.zeros(1024 + nb_hosts, i4),
    )


def new_rows(nb_rows: int, energy: bool) -> Rows:
    """Empty traces."""
    energy_rows = nb_rows if energy else 0
    return Rows(
        host_time=np.zeros(nb_rows),
        host_counts=np.zeros((nb_rows, 6), np.int32),
        energy_time=np.zeros(energy_rows),
        energy_joules=np.zeros(energy_rows),
        energy_rest=np.zeros(energy_rows),
        energy_kind=np.zeros(energy_rows, np.int8),
        energy_wattmin=np.zeros(energy_rows),
        pstate_time=np.zeros(energy_rows),
        pstate_group=np.zeros(energy_rows, np.int64),
        pstate_value=np.zeros(energy_rows, np.int32),
    )


def _power_of_two(at_least: int) -> int:
    return 1 << (at_least - 1).bit_length()


_JOB_ARRAYS = (
    *("truth_of", "leaf", "began", "over", "leaf_time", "allowed", "rate", "exit_code"),
    *("energy", "kill_asked", "progress", "ended"),
)
_ACTIVITY_ARRAYS = ("left", "pace", "code", "brief", "brief_left", "due", "asks", "place")
_LOG_ARRAYS = ("log_kind", "log_time", "log_arg", "log_value")
_GROUP_ARRAYS = ("group_left", "group_begin", "group_end", "group_pstate")


def grow_sim(sim: Sim, nb_jobs: int, room: int) -> Sim:
    """The same simulation with room for `nb_jobs` jobs and `room` more activities, log entries, switches and kills."""
    flag = sim.flag
    wanted = dict.fromkeys(_JOB_ARRAYS, nb_jobs)
    wanted |= dict.fromkeys(_ACTIVITY_ARRAYS, flag[ACTIVITIES] + flag[BRIEF] + room)
    wanted |= dict.fromkeys(_LOG_ARRAYS, flag[LOG_N] + room)
    wanted |= dict.fromkeys(_GROUP_ARRAYS, flag[GROUP_N] + room)
    wanted |= dict.fromkeys(("group_first", "group_last"), flag[GROUP_INTERVALS] + room)
    wanted |= dict.fromkeys(("kill_begin", "kill_end"), flag[KILL_N] + room)
    wanted["kill_job"] = flag[KILL_JOBS] + room
    changed = _lengthen(sim, wanted)
    mail = flag[MAIL_TAIL] - flag[MAIL_HEAD] + room
    if mail > len(sim.mail):
        changed["mail"] = _unrolled(sim, _power_of_two(int(mail)))
    return sim._replace(**changed)


def _unrolled(sim: Sim, length: int) -> I8:
    """The mailbox's ring, laid out again in a longer one."""
    ring = np.zeros(length, np.int64)
    waiting = np.arange(sim.flag[MAIL_HEAD], sim.flag[MAIL_TAIL])
    ring[waiting & (length - 1)] = sim.mail[waiting & (len(sim.mail) - 1)]
    return ring


def grow_rows(rows: Rows, flag: I8, room: int) -> Rows:
    """The same traces with room for `room` more rows of each."""
    wanted = dict.fromkeys(("host_time", "host_counts"), flag[HOST_ROWS] + room)
    if flag[ENERGY_ON]:
        wanted |= {f"energy_{n}": flag[ENERGY_ROWS] + room for n in ("time", "joules", "rest", "kind", "wattmin")}
        wanted |= {f"pstate_{n}": flag[PSTATE_ROWS] + room for n in ("time", "group", "value")}
    return rows._replace(**_lengthen(rows, wanted))


def _lengthen(arrays: Bundle, wanted: dict) -> dict:
    changed = {}
    for name, length in wanted.items():
        old = getattr(arrays, name)
        if length > len(old):
            new = np.zeros((max(int(length), 2 * len(old)), *old.shape[1:]), old.dtype)
            new[: len(old)] = old
            changed[name] = new
    return changed
