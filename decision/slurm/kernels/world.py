"""All that the scheduler knows: the cluster, its parameters, the jobs, and the state that changes."""

from decision.compiling.bundle import F8, I8, U8, Bundle, Float, I8x2, Int, U8x2

# SlurmWorld.status
UNKNOWN = 0  # not submitted yet
PENDING_JOB = 1
RUNNING_JOB = 2
COMPLETING_JOB = 3
DONE_JOB = 4
CANCELLED_JOB = 5

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
ALL_OF_NODE = -1  # SlurmWorld.memory: all memory of each of its nodes


class SlurmWorld(Bundle):
    """N nodes, W words of 64 nodes, G kinds of generic resources, P partitions, J jobs, E entries of the queue, ...

    A job has an entry for each of its partitions, one behind the other.
    """

    # parameters; 1 or 0 where they are said to be so or not
    linear: Int  # whether jobs get whole nodes
    builtin: Int  # whether there is no backfill
    multifactor: Int
    fifo: Int  # whether the queue is a plain list
    has_memory: Int  # whether memory is allocated
    lln: Int  # whether the least loaded nodes come first
    sched_interval: Int  # seconds
    batch_sched_delay: Int  # seconds
    default_queue_depth: Int  # jobs
    partition_job_depth: Int  # jobs, 0: all
    sched_max_job_start: Int  # jobs, 0: all
    defer: Int
    assoc_limit_stop: Int
    bf_interval: Int  # seconds
    bf_window: Int  # seconds
    bf_resolution: Int  # seconds
    bf_max_job_test: Int
    bf_max_job_user: Int
    bf_max_job_part: Int
    bf_max_job_assoc: Int
    bf_max_job_user_part: Int
    bf_max_job_start: Int
    bf_max_job_array_resv: Int
    bf_min_age_reserve: Int  # seconds
    bf_min_prio_reserve: Int
    bf_job_part_count_reserve: Int
    bf_one_resv_per_job: Int
    bf_window_linear: Int  # seconds
    completing_time: Int  # seconds
    calc_period: Int  # seconds
    fair_tree: Int
    ages: Int  # whether jobs age and shares count
    max_age: Int  # seconds
    preempts_by: Int  # 0: no, 1: by partition, 2: by QOS
    preempt_youngest_first: Int
    preempt_pause: Int  # seconds for which a job that preempted others preempts no more
    increase_only: Int
    accrue_always: Int
    bf_continue: Int
    cycles_given: Int  # whether the times of cycles are given
    bf_busy_nodes: Int  # whether planned jobs prefer nodes in use
    table_size: Int  # slots that a cycle of backfill may use
    bf_running_job_reserve: Int  # whether exclusive jobs that run take slots
    leaves_out: Int  # whether a cycle leaves out at once who can neither start now nor be planned; for forecasts
    complete_wait: Int  # seconds
    by_switches: Int  # whether switches choose nodes: 0: no, 1: always, 2: for jobs that ask for few
    # rules that differ by Slurm's version, 1 where they hold: `slurm.versions` says since when
    completing_last: Int
    requeued_anew: Int
    requeue_order: Int  # which of jobs that were preempted together is back first: 0 by number, others at random
    ends_up: Int
    tests_from_plan: Int
    ends_on_chosen: Int
    drops_one: Int
    switch_cpus: Int
    near_leaf: Int
    first_node: Int
    age_weight: Float
    share_weight: Float
    decay: Float  # of usage, per second
    dampening: Float
    test_cost: Float  # seconds per job
    cycle_cost: Float  # seconds
    cycle_limit: Float  # seconds
    yield_after: Float  # seconds
    yield_sleep: Float  # seconds
    # nodes; where they differ in threads, "cores" are cpus everywhere
    node_cores: I8  # (N,)
    node_unit: I8  # (N,) 1, or else the cpus of a core, which a job gets as a whole
    node_memory: I8  # (N,) megabytes
    node_gres: I8x2  # (N, G)
    node_weight: I8  # (N,)
    node_step: I8  # (N,) from 0 on: the nodes of the first steps are tried by themselves first
    last_step: Int
    largest_node: Int  # cores
    threads: Int  # of a core
    nodes_owned: Int  # whether any job shares nodes with jobs of its own user only
    node_switch: I8x2  # (T, N) its leaf switch in each topology, -1 for none
    # switches, in the order of their file
    switch_level: I8  # (S,) 0: a leaf
    switch_above: I8  # (S,) -1 for none
    switch_apart: I8x2  # (S, S) links between two, FAR where there is no way
    # partitions
    part_mask: U8x2  # (P, W)
    part_tier: I8  # (P,)
    part_lln: I8  # (P,)
    part_tree: I8  # (P,) its topology, -1 for none
    part_gives_way: I8  # (P,) 0: its jobs are never preempted, 1: requeued, 2: cancelled
    part_grace: I8  # (P,) seconds that they have left then
    # qualities
    quality_gives_way: I8  # (Q,) as of partitions, which of them counts is preempts_by
    quality_grace: I8  # (Q,) seconds
    quality_preempts: I8x2  # (Q, Q)
    quality_order: I8  # (Q,) priority
    quality_rank: I8  # (Q,) how many qualities stand below one another under this one, which goes before them
    # jobs, by submission
    submit: I8  # (J,) seconds; of a requeued job its last one
    begin: I8  # (J,) seconds: not before
    runtime: I8  # (J,) seconds, of each run
    limit: I8  # (J,) seconds
    cancel: I8  # (J,) seconds: when it is cancelled while it waits
    recorded: I8  # (J,) seconds: a start that is given, -1 where none is
    nodes_min: I8
    nodes_wanted: I8  # that it gets where there are as many: the most of a range (-N 2-4)
    nodes_max: I8  # N where as many as it takes
    cores: I8  # that it asks for
    per_task: I8  # cores of a task
    in_tasks: I8  # whether a node's room counts in whole tasks: so it is with memory per core, or tasks per node
    per_node: I8  # cores on a node at most
    memory: I8  # megabytes, per core or per node; `ALL_OF_NODE`
    memory_per_core: I8
    gres: I8x2  # (J, G) per node
    exclusive: I8
    own_user: I8  # whether it shares nodes with jobs of its own user only
    held: I8
    user: I8
    association: I8  # leaf, -1 where unknown
    array: I8  # number of its array, -1
    array_limited: I8  # whether its first limit is that of its array
    billing: F8
    cpus: I8  # that it asks for
    per_cpu: F8  # priority that each cpu adds which it is found to take beyond those
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
    job_bucket: I8  # (...,)
    bucket_checks: I8  # (...,) bits of the fields of its bucket's limit that hold the job
    bf_licenses: Int  # whether a cycle of backfill plans licences
    licence_total: I8  # (L,)
    licences_asked: I8x2  # (J, L)
    licence_order: I8x2  # (J, L) of a job for which any of its licences will do: which of them first; -1: no more
    # entries
    entry_job: I8  # (E,)
    entry_part: I8
    entry_mask: I8  # row of `masks`
    entry_kind: I8  # the same for entries that ask for the same
    entry_quality: I8  # -1 where unknown
    entry_bucket: I8x2  # (E, 2) of the limits that hold it in this quality: the first one, and behind the last one
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
    now: Int
    last_main: Int
    last_full: Int
    asked: Int  # whether something asked for a main loop
    goes: Int  # whether a main loop runs at once
    changed: Int  # whether anything changed since the last cycle
    next_calc: Int
    next_cycle: Int  # of `cycles`
    next_window: Int  # of `window_times`
    unsorted: Int
    nb_pending: Int
    nb_running: Int
    nb_completing_jobs: Int
    nb_started: Int  # entries of `started`
    nb_killed: Int  # entries of `killed`
    nb_tested: Int  # jobs tested by backfill
    nb_cycles: Int
    nb_submitted: Int
    nb_slots: Int
    nb_records: Int  # slots ever used by the cycle
    room_row: Int  # of `room_from`, the one of the entry that is tested
    running_stamp: Int  # how often `by_end` was made
    moved: Int  # whether a job has begun, ended or given back nodes since `by_end` was made
    next_backfill: Float  # seconds
    # the last cycle of backfill: until when (seconds) the same jobs would be planned alike, if nothing but the time and
    # the end of the queue changed; how many entries it went through and tested; whether it ended before the queue's end
    holds_until: Int
    nb_gone_through: Int
    nb_tested_last: Int
    ended_early: Int
    sees_more: Int  # seconds: when the first trial of an entry would see a slot more
    cycles: I8  # (C,) seconds, ascending
    window_times: I8  # (X,) ascending: when a node goes or comes back
    window_node: I8
    window_step: I8  # +1: goes, -1: comes back
    window_reservation: I8  # -1: none
    window_cores: I8  # that go or come back; 0: the node
    reservation: I8  # (J,) -1: none
    away: I8  # (N,) windows that hold a node
    reserved_by: I8  # (N,) the reservation that holds a node now, -1
    status: I8  # (J,)
    start: I8  # (J,) seconds, of the last run
    end: I8  # (J,) seconds: when it ends really; FAR where only others know
    expected_end: I8  # (J,)
    preempting_until: I8  # (J,) seconds: until when it preempts no more
    grace_end: I8  # (J,) seconds: until when a job runs that must give way; FAR
    eligible: I8  # (J,) seconds: since when; FAR before
    charged: I8  # (J,) seconds until which its usage is counted
    reason: I8  # (J,)
    part_of: I8  # (J,) the partition in which it runs
    quality: I8  # (J,) that in which it runs, or was last looked at; -1 where unknown
    placed_by: I8  # (J,) its entry by whose priority all of its partition are sorted into the queue
    bucket_begin: I8  # (J,) of the limits that hold it in this quality
    bucket_end: I8  # (J,)
    job_licences: I8x2  # (J, L) that it holds, or all that it asks for
    first_start: I8  # (J,)
    requeues: I8  # (J,)
    found_cpus: I8  # (J,) that backfill last found for it, 0 before
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
    tree: Int  # the topology of the partition for which nodes are chosen
    capacity: I8  # (N,) cores that a job can have on each node
    spots: I8  # (N,) nodes that have room, ascending
    order_weight: I8  # (N,) as this test sees it
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
    room_stamp: I8  # (K,) running_stamp when it was made
    room_from: I8x2  # (K, N) seconds from which a node has the room that a job needs of it
    room_order: I8x2  # (K, N) nodes that have it some time, by time
    nb_roomy: I8  # (K,) how many there are
    seen_user: I8  # (U,)
    seen_part: I8  # (P,)
    looked_part: I8  # (P,) as seen_part, of the main loop
    seen_assoc: I8  # (A,)
    seen_user_part: I8x2  # (U, P)
    seen_array: I8  # (arrays,)
    rejected: (
        I8  # (arrays,) the partition and QOS in which the main loop just left a task waiting, as one number; 0: none
    )
    left: I8  # (arrays,) the same by backfill
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
