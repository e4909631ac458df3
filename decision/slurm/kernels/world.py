"""All that the scheduler knows: the cluster, its parameters, the jobs, and the state that changes."""

from decision.compiling.bundle import F8, I8, U8, Bundle, I8x2, U8x2

# SlurmWorld.parameters
LINEAR = 0  # whether jobs get whole nodes
BUILTIN = 1  # whether there is no backfill
MULTIFACTOR = 2
FIFO = 3  # whether the queue is a plain list
HAS_MEMORY = 4  # whether memory is allocated
LLN = 5  # whether the least loaded nodes come first
SCHED_INTERVAL = 6  # seconds
SCHED_DELAY = 7  # seconds
DEPTH = 8  # jobs
PART_DEPTH = 9  # jobs, 0: all
SCHED_START = 10  # jobs, 0: all
DEFER = 11
LIMIT_STOP = 12
BF_INTERVAL = 13  # bf_*, seconds
BF_WINDOW = 14  # seconds
BF_RESOLUTION = 15  # seconds
MAX_TEST = 16
MAX_USER = 17
MAX_PART = 18
MAX_ASSOC = 19
MAX_USER_PART = 20
MAX_START = 21
MAX_ARRAY = 22
MIN_AGE = 23  # seconds
MIN_PRIO = 24
PART_RESERVE = 25
ONE_RESERVATION = 26
WINDOW_SCALE = 27  # seconds
COMPLETING = 28  # seconds
CALC_PERIOD = 29  # seconds
FAIR_TREE = 30
AGES = 31  # whether jobs age and shares count
MAX_AGE = 32  # seconds
PREEMPTS = 33  # 0: no, 1: by partition, 2: by QOS
YOUNGEST = 34
INCREASE_ONLY = 35
ACCRUE_ALWAYS = 36
CONTINUE = 37
CYCLES_GIVEN = 38  # whether the times of cycles are given
BUSY_NODES = 39  # whether planned jobs prefer nodes in use
TABLE_SIZE = 40  # slots that a cycle of backfill may use
RUNNING_RESERVE = 41  # whether exclusive jobs that run take slots
COMPLETE_WAIT = 42  # seconds
BY_SWITCHES = 43  # whether switches choose nodes: 0: no, 1: always, 2: for jobs that ask for few
NB_PARAMETERS = 44

# SlurmWorld.weights
AGE_WEIGHT = 0
SHARE_WEIGHT = 1
DECAY = 2  # of usage, per second
DAMPENING = 3
TEST_COST = 4  # seconds per job
CYCLE_COST = 5  # seconds
CYCLE_LIMIT = 6  # seconds
YIELD_AFTER = 7  # seconds
YIELD_SLEEP = 8  # seconds
NB_WORLD_WEIGHTS = 9

# SlurmWorld.status
UNKNOWN = 0  # not submitted yet
PENDING_JOB = 1
RUNNING_JOB = 2
COMPLETING_JOB = 3
DONE_JOB = 4
CANCELLED_JOB = 5

# SlurmWorld.timers
NOW = 0
LAST_MAIN = 1
LAST_FULL = 2
ASKED = 3  # whether something asked for a main loop
GO = 4  # whether a main loop runs at once
CHANGED = 5  # whether anything changed since the last cycle
NEXT_CALC = 6
NEXT_CYCLE = 7  # of `cycles`
NEXT_WINDOW = 8  # of `window_times`
UNSORTED = 9
NB_PENDING = 10
NB_RUNNING = 11
NB_COMPLETING = 12
NB_STARTED = 13  # entries of `started`
NB_KILLED = 14  # entries of `killed`
NB_TESTED = 15  # jobs tested by backfill
NB_CYCLES = 16
NB_SUBMITTED = 17
NB_SLOTS = 18
NB_RECORDS = 19  # slots ever used by the cycle
ROOM_ROW = 20  # of `room_from`, the one of the entry that is tested
RUNNING_STAMP = 21  # how often `by_end` was made
NB_TIMERS = 22

# who started a job: SlurmWorld.reason
BY_NOBODY = 0
BY_MAIN = 1
BY_BACKFILL = 2

# SlurmWorld.need_kind
AFTER = 0
AFTER_ANY = 1
AFTER_OK = 2
AFTER_NOT_OK = 3

FAR = 1 << 40  # seconds: never


class SlurmWorld(Bundle):
    """N nodes, W words of 64 nodes, G kinds of generic resources, P partitions, J jobs, E entries of the queue, ...

    A job has an entry for each of its partitions, one behind the other.
    """

    parameters: I8
    weights: F8
    # nodes
    node_cores: I8  # (N,)
    node_memory: I8  # (N,) megabytes
    node_gres: I8x2  # (N, G)
    node_weight: I8  # (N,)
    weight_steps: I8  # (K,) ascending
    node_step: I8  # (N,) from 0 on: the nodes of the first steps are tried by themselves first
    last_step: I8  # (1,)
    largest_node: I8  # (1,) cores
    node_switch: I8  # (N,) its leaf switch, -1 for none
    # switches, in the order of their file
    switch_level: I8  # (S,) 0: a leaf
    switch_above: I8  # (S,) -1 for none
    switch_apart: I8x2  # (S, S) links between two, FAR where there is no way
    # partitions
    part_mask: U8x2  # (P, W)
    part_tier: I8  # (P,)
    part_lln: I8  # (P,)
    part_gives_way: I8  # (P,) 0: its jobs are never preempted, 1: requeued, 2: cancelled
    part_grace: I8  # (P,) seconds that they have left then
    # qualities
    quality_gives_way: I8  # (Q,) as of partitions, which of them counts is PREEMPTS
    quality_grace: I8  # (Q,) seconds
    quality_preempts: I8x2  # (Q, Q)
    quality_order: I8  # (Q,) priority
    # jobs, by submission
    submit: I8  # (J,) seconds; of a requeued job its last one
    begin: I8  # (J,) seconds: not before
    runtime: I8  # (J,) seconds, of each run
    limit: I8  # (J,) seconds
    cancel: I8  # (J,) seconds: when it is cancelled while it waits
    recorded: I8  # (J,) seconds: a start that is given, -1 where none is
    nodes_min: I8
    nodes_max: I8  # N where as many as it takes
    cores: I8  # that it asks for
    per_task: I8  # cores of a task
    in_tasks: I8  # whether a node's room counts in whole tasks: so it is with memory per core, or tasks per node
    per_node: I8  # cores on a node at most
    memory: I8  # megabytes, per core or per node
    memory_per_core: I8
    gres: I8x2  # (J, G) per node
    exclusive: I8
    held: I8
    user: I8
    association: I8  # leaf, -1 where unknown
    quality: I8
    array: I8  # number of its array, -1
    array_limited: I8  # whether its first limit is that of its array
    billing: F8
    exempt: I8  # seconds for which a job runs before it may be preempted
    runs_once: I8  # whether it is cancelled where others are requeued
    succeeded: I8  # whether its recorded run did
    entry_begin: I8  # (J + 1,)
    need_begin: I8  # (J + 1,) of those that it waits for
    need_job: I8  # (D,)
    need_kind: I8
    need_delay: I8
    need_any: I8  # (J,)
    needs_named: I8  # (J,) whether it asks for as many nodes by name as it needs
    must_have: I8  # (J,) row of `masks`: nodes that it asks for by name; -1
    max_switches: I8  # (J,) leaf switches that it wants at most, 0: any number
    switch_wait: I8  # (J,) seconds for which it waits for them
    bucket_begin: I8  # (J + 1,) of the limits that hold it
    job_bucket: I8  # (...,)
    bucket_checks: I8  # (...,) bits of the fields of its bucket's limit that hold the job; 32: of a licence
    bucket_amount: I8  # (...,) as how many jobs it counts for its bucket's limit on jobs
    licence_total: I8  # (L,) licences that a cycle of backfill plans; none where bf_licenses does not say so
    job_licences: I8x2  # (J, L)
    # entries
    entry_job: I8  # (E,)
    entry_part: I8
    entry_mask: I8  # row of `masks`
    entry_kind: I8  # the same for entries that ask for the same
    masks: U8x2  # (M, W)
    entry_base: F8  # priority without age and share
    # limits: -1 where there is none; jobs, nodes, cores, megabytes, gpus
    bucket_limit: I8x2  # (B, 5)
    bucket_used: I8x2  # (B, 5)
    # shares
    share_parent: I8  # (A,) -1 for the root
    share_norm: F8  # (A,) of its siblings' shares
    share_path: I8x2  # (L, D) from below the root to each leaf, -1 behind it
    leaf: I8  # (L,) in (A,)
    usage: F8  # (A,)
    level_share: F8  # (A,)
    factor: F8  # (A,) fair-share factor of leaves
    # state
    timers: I8
    next_backfill: F8  # (1,) seconds
    cycles: I8  # (C,) seconds, ascending
    window_times: I8  # (X,) ascending: when a node goes or comes back
    window_node: I8
    window_step: I8  # +1: goes, -1: comes back
    window_reservation: I8  # -1: none
    reservation: I8  # (J,) -1: none
    away: I8  # (N,) windows that hold a node
    reserved_by: I8  # (N,) the reservation that holds a node now, -1
    status: I8  # (J,)
    start: I8  # (J,) seconds, of the last run
    end: I8  # (J,) seconds: when it ends really; FAR where only others know
    expected_end: I8  # (J,)
    grace_end: I8  # (J,) seconds: until when a job runs that must give way; FAR
    eligible: I8  # (J,) seconds: since when; FAR before
    charged: I8  # (J,) seconds until which its usage is counted
    reason: I8  # (J,)
    part_of: I8  # (J,) the partition in which it runs
    first_start: I8  # (J,)
    requeues: I8  # (J,)
    priority: I8  # (E,)
    free_cores: I8  # (N,)
    free_memory: I8  # (N,)
    free_gres: I8x2  # (N, G)
    nb_jobs: I8  # (N,) jobs that hold a part of a node
    nb_completing: I8  # (N,) of them those that complete
    alloc_begin: I8  # (J,)
    alloc_count: I8  # (J,)
    alloc_node: I8  # (pool,)
    alloc_cores: I8  # (pool,)
    pending: I8  # (E,) entries in order of submission
    queue: I8  # (E,) the same in order of priority
    running: I8  # (J,)
    completing: I8  # (J,) jobs
    free_at: I8  # (J,) seconds: when a completing job's nodes are free
    started: I8  # (J,) since the last step
    killed: I8  # (J,) since the last step
    # scratch
    capacity: I8  # (N,) cores that a job can have on each node
    spots: I8  # (N,) nodes that have room, ascending
    room_left: I8  # (N,) of their capacity
    chosen: I8  # (N,)
    chosen_cores: I8  # (N,)
    wanted: I8  # (4,) what a job still needs while nodes are chosen by switches
    switch_nodes: I8  # (S,) nodes with room
    switch_cores: I8  # (S,)
    switch_named: I8  # (S,) nodes that the job names
    switch_weight: I8  # (S,) lowest of its nodes
    switch_used: I8  # (S,)
    switch_far: I8  # (S,) links to all switches used
    trial_cores: I8  # (N,) free after some jobs' ends
    trial_memory: I8
    trial_gres: I8x2
    trial_jobs: I8
    by_end: I8  # (J,) running jobs by expected end
    ends: I8  # (J,) seconds, their expected ends
    held_begin: I8  # (J + 1,) what they hold
    held_node: I8  # (pool,)
    held_cores: I8  # (pool,)
    held_memory: I8  # (pool,) megabytes
    room_kind: I8  # (K,) the kind of entries that a row is of, -1
    room_stamp: I8  # (K,) RUNNING_STAMP when it was made
    room_from: I8x2  # (K, N) seconds from which a node has the room that a job needs of it
    room_order: I8x2  # (K, N) nodes that have it some time, by time
    nb_roomy: I8  # (K,) how many there are
    seen_user: I8  # (U,)
    seen_part: I8  # (P,)
    seen_assoc: I8  # (A,)
    seen_user_part: I8x2  # (U, P)
    seen_array: I8  # (arrays,)
    rejected: I8  # (arrays,) 1 + the partition in which a task was just left waiting
    estimated: I8  # (J,) whether the cycle found a start for one of its entries
    kept_part: I8  # (P,) reservations
    failed: I8  # (P,)
    candidates: I8  # (J,) jobs that may give way
    slot_begin: I8  # (S,)
    slot_end: I8
    slot_mask: U8x2  # (S, W)
    slot_licences: I8x2  # (S, L) that no plan takes
    open: U8  # (W,) nodes open to the main loop
    free_now: U8  # (W,)
    usable: U8  # (W,)
