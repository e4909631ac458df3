"""From a case and its parameters to the arrays of the model."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import I8
from decision.model.dates import DAY
from decision.model.errors import ConfigError
from decision.slurm.kernels import world as at
from decision.slurm.kernels.world import ALL_OF_NODE, FAR, SlurmWorld

from .case import Case
from .conf import Settings
from .jobs import ALL_MEMORY, SlurmJob
from .limits import Buckets, Masks, Member, asked_licenses, bitmap, licenses_of, nb_words
from .nodes import Partition, default_memory
from .priority import YEAR, Factors, ShareTree, make_tree
from .switches import switch_arrays, topology_of
from .text import read_hosts
from .versions import VERSION_RULES

# What changes in a world, as it is before anything has happened.

# each kind keeps a row of all nodes: more rows save trials where jobs are of many kinds, and cost memory (2 x 8 bytes
# for each node)
_KINDS_KEPT = 256  # kinds of requests for which backfill keeps when nodes have room
# longer than sched_interval, so that a main loop has run when the first job arrives
_ALIKE = 0.01  # of an amount of memory: units are rounded
_LEAD = 100  # seconds before the first submission in which the simulation begins


def zero_of(case: Case) -> int:
    """The world's zero, seconds since 1970: a midnight, because times are rounded to whole steps since 1970."""
    return (case.begin - _LEAD) // DAY * DAY


def initial_state(case: Case, settings: Settings, parts: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays that change, besides the `parts` that do not: no job submitted, but those that ran before."""
    nb_nodes, nb_jobs, nb_entries = len(case.nodes), len(case.jobs), len(parts["entry_job"])
    words = nb_words(case)
    # records of the table are bounded; each window may split two slots besides
    slots = parts["table_size"] + 2 * len(parts["window_times"]) + 8
    # a job holds no more nodes than cores, and its place in the pool is fixed: nothing is allocated while it runs
    room = np.minimum(np.minimum(parts["nodes_max"], parts["cores"]), nb_nodes)
    begin = np.concatenate(([0], np.cumsum(room)[:-1])) if nb_jobs else np.zeros(0, np.int64)
    now = case.begin - _LEAD - zero_of(case)
    interval = parts["sched_interval"]
    far, never = ("eligible", "end", "expected_end", "grace_end"), ("start", "first_start")
    pool = int(room.sum()) + 1
    state: dict[str, Any] = {
        # phases of slurmctld's periodic threads: what the log does not say, and `simulate` guesses
        "now": now,
        "last_main": now,
        "last_full": now - interval + int(settings.number("main_phase")) % interval,
        "next_calc": now + int(settings.number("calc_phase")) % settings.calc_period,
        "next_backfill": now + settings.number("bf_phase"),
        "changed": 1,
        "tree": -1,
        **{name: np.full(nb_jobs, FAR, np.int64) for name in far},
        **{name: np.full(nb_jobs, -1, np.int64) for name in never},
        **_zeros(
            nb_jobs,
            *(
                "preempting_until",
                "part_of",
                "status",
                "charged",
                "reason",
                "requeues",
                "alloc_count",
                "running",
                "completing",
                "free_at",
            ),
            *("found_cpus", "started", "killed", "by_end", "ends", "candidates", "estimated"),
        ),
        **_zeros(
            nb_nodes,
            *("away", "nb_jobs", "nb_completing", "capacity", "chosen", "chosen_cores", "trial_cores", "trial_memory"),
            *("trial_jobs", "spots", "room_left", "order_weight"),
        ),
        "reserved_by": np.full(nb_nodes, -1, np.int64),
        **_zeros(len(case.partitions), "seen_part", "looked_part", "kept_part", "failed"),
        **{name: np.zeros(words, np.uint64) for name in ("open", "free_now", "usable")},
        **_zeros(slots, "slot_begin", "slot_end"),
        "slot_mask": np.zeros((slots, words), np.uint64),
        **_zeros((slots, len(parts["licence_total"]) * bool(parts["bf_licenses"])), "slot_licences"),
        "job_licences": parts["licences_asked"].copy(),
        # as its first entry has it, until another one is looked at
        "quality": parts["entry_quality"][parts["entry_begin"][:-1]],
        "placed_by": parts["entry_begin"][:-1].copy(),
        "bucket_begin": parts["entry_bucket"][parts["entry_begin"][:-1], 0],
        "bucket_end": parts["entry_bucket"][parts["entry_begin"][:-1], 1],
        **_zeros((_KINDS_KEPT, nb_nodes), "room_from", "room_order"),
        **{name: np.full(_KINDS_KEPT, -1, np.int64) for name in ("room_kind", "room_stamp", "nb_roomy")},
        **_zeros(nb_entries, "priority", "pending"),
        "queue": np.full(nb_entries, -1, np.int64),
        **{f"free_{name}": parts[f"node_{name}"].copy() for name in ("cores", "memory", "gres")},
        "trial_gres": parts["node_gres"].copy(),
        "alloc_begin": begin.astype(np.int64),
        **_zeros(pool, "alloc_node", "alloc_cores", "held_node", "held_cores", "held_memory"),
        **_zeros(nb_jobs + 1, "held_begin"),
    }
    _place_running(case, state, parts, settings.linear)
    return state


def _zeros(shape: int | tuple[int, ...], *names: str) -> dict[str, NDArray[np.int64]]:
    return {name: np.zeros(shape, np.int64) for name in names}


def _place_running(case: Case, state: Mapping[str, Any], parts: Mapping[str, Any], linear: bool) -> None:
    """The nodes that jobs had which ran when the log began."""
    numbers = {node.name: number for number, node in enumerate(case.nodes)}
    for number, job in enumerate(case.jobs):
        if not job.before:
            continue
        hosts = [numbers[name] for name in read_hosts(job.hosts) if name in numbers]
        begin = state["alloc_begin"][number]
        room = min(parts["nodes_max"][number], parts["cores"][number], len(case.nodes))
        hosts = hosts[:room]
        # sacct says on which nodes, not how many cores of each: evenly, the first ones one more
        cores = int(parts["cores"][number])
        for i, host in enumerate(hosts):
            state["alloc_node"][begin + i] = host
            unit, share = parts["node_unit"][host], cores // len(hosts) + (i < cores % len(hosts))
            state["alloc_cores"][begin + i] = 1 if linear else -(-share // unit) * unit
        state["alloc_count"][number] = len(hosts)


# The columns of a case's jobs: what they ask for, in cores and nodes, their times, and what they wait for.

_KINDS = {"after": at.AFTER, "afterany": at.AFTER_ANY, "afterok": at.AFTER_OK, "afternotok": at.AFTER_NOT_OK}


def gres_names(case: Case) -> list[str]:
    """Kinds of generic resources, and each of their types (gpu:a100) as one more; GPUs first."""
    names = {name for node in case.nodes for name in node.gres}
    return sorted(names, key=lambda name: (name != "gpu", name))


def job_arrays(case: Case, settings: Settings, tree: ShareTree, begin: int) -> dict[str, Any]:
    """The arrays with a row for each job, of a world that begins `begin` seconds after 1970."""
    jobs, kinds = case.jobs, gres_names(case)
    users: dict[str, int] = {}
    arrays: dict[str, int] = {}
    partitions = {p.name: p for p in case.partitions}
    needs, reservations = _Cores(case, settings), reservation_numbers(case)
    # PreemptExemptTime: that of the partition's QOS goes before the job's own, and the cluster's is last
    exempt = {each.name: each.exempt for each in case.qualities if each.exempt >= 0}
    factors, once = {each.name: each.usage_factor for each in case.qualities}, settings.conf.get("JobRequeue") == "0"
    columns: dict[str, list[int]] = {name: [] for name in _JOB_COLUMNS}
    gres, billing = [], []
    for job in jobs:
        partition = partitions[job.partition.split(",")[0]]
        row, first = needs.of(job, partition), job.qos.split(",")[0]
        ended = job.started and job.state not in ("RUNNING", "SUSPENDED", "PENDING")
        waits = not job.started and job.state != "PENDING" and job.end > 0
        limit = int(min(partition.limit_of(job), YEAR))  # a job without any limit counts as a year
        row |= {
            "submit": job.submitted - begin,
            "begin": job.begin - begin if job.begin > 0 else 0,
            # a job that still ran when the log was made is taken to run to its limit
            "runtime": max(1, round(job.runtime)) if ended else limit,
            "limit": max(1, limit),
            "cancel": job.end - begin if waits else FAR,
            "recorded": job.start - begin if job.before else -1,
            "held": job.held and not job.started,
            "user": users.setdefault(job.user, len(users)),
            "association": tree.leaf_of(job.account, job.user),
            "array": arrays.setdefault(job.array, len(arrays)) if job.array else -1,
            "array_limited": bool(job.array and job.array_limit),
            "succeeded": job.state == "COMPLETED",
            "reservation": reservations.get(job.reservation, -1),
            "need_any": job.any_need,
            "exempt": min(exempt.get(partition.qos, exempt.get(first, settings.exempt_time)), FAR),
            "runs_once": job.runs_once or (once and not job.runs_again),
            "needs_named": bool(job.nodelist) and len(read_hosts(job.nodelist)) >= row["nodes_min"],
        }
        for name, values in columns.items():
            values.append(int(row[name]))
        # a typed one counts for its type and for its name; a type that no node has is one that Slurm found by itself
        counts = [sum(n for name, n in job.gres.items() if kind in (name, name.partition(":")[0])) for kind in kinds]
        spread = row["nodes_min"] if job.gres_in_all else 1
        gres.append([-(-count // spread) for count in counts])
        billing.append((job.billing or max(job.cpus_had, job.cpus)) * factors.get(first, 1.0))
    arrays_of = {name: np.array(values, np.int64) for name, values in columns.items()}
    return {
        **arrays_of,
        "gres": np.array(gres, np.int64).reshape(len(jobs), len(kinds)),
        "billing": np.array(billing),
        "seen_user": np.zeros(max(1, len(users)), np.int64),
        "seen_array": np.zeros(max(1, len(arrays)), np.int64),
        "rejected": np.zeros(max(1, len(arrays)), np.int64),
        "left": np.zeros(max(1, len(arrays)), np.int64),
        "seen_user_part": np.zeros((max(1, len(users)), len(case.partitions)), np.int64),
        **_needs(jobs),
    }


NEED_COLUMNS = (
    *("nodes_min", "nodes_wanted", "nodes_max", "cores", "per_task", "in_tasks", "per_node", "memory"),
    *("memory_per_core", "exclusive", "own_user"),
)
_JOB_COLUMNS = (
    *NEED_COLUMNS,
    *("submit", "begin", "runtime", "limit", "cancel", "recorded", "held", "user", "association", "array"),
    *("array_limited", "exempt", "runs_once"),
    *("succeeded", "reservation", "need_any", "needs_named"),
)


def _has_memory(case: Case, settings: Settings) -> bool:
    """Whether memory is allocated: not where no node says how much it has."""
    said = any(node.memory > 1 for node in case.nodes)  # slurm.conf(5), RealMemory: 1 by default
    return said and "MEMORY" in settings.text("SelectTypeParameters").upper()


class _Cores:
    """What jobs need of nodes, in cores."""

    def __init__(self, case: Case, settings: Settings) -> None:
        self._linear, self._conf = settings.linear, settings.conf
        self._has_memory = _has_memory(case, settings)
        self._threads, self._nb_nodes = case.threads, len(case.nodes)
        self._largest = max(case.units(node) for node in case.nodes)
        cpus = {node.name: node.cores * node.threads for node in case.nodes}
        self._largest_of = {each.name: max((cpus[name] for name in each.nodes), default=1) for each in case.partitions}
        gpus = {node.name: node.gres for node in case.nodes}
        self._most_of = {
            (each.name, kind): max((gpus[name].get(kind, 0) for name in each.nodes), default=0)
            for each in case.partitions
            for kind in gres_names(case)
        }
        self._tasks_bound = settings.version >= VERSION_RULES["first_node"].since

    def of(self, job: SlurmJob, partition: Partition) -> dict[str, Any]:
        """The columns of a job."""
        most = job.nodes_max or self._nb_nodes
        if partition.max_nodes and not job.started:
            most = min(most, partition.max_nodes)
        # select/linear: whole nodes, as many as hold the cpus; a job that ran had what it had, whatever it asked for
        if self._linear:
            nodes = max(job.nodes, -(-job.cpus // self._largest_of[partition.name]))
            had = len(read_hosts(job.hosts)) if job.started else 0
            nodes = had or nodes
            return self._row(nodes, nodes, nodes, nodes, 1, False, 1, 0, False, False, False)
        nodes = self._nodes(job, partition)
        # SelectTypeParameters=CR_Core...: a core is not divided, so that cpus are rounded up to cores
        per_task = -(-job.cpus_per_task // self._threads)
        cores = max(-(-job.cpus // self._threads), nodes)
        per_node = job.tasks_per_node * per_task or self._largest
        memory, per_core = self._memory(job, partition)
        exclusive = job.exclusive or partition.exclusive
        own = job.own_user or partition.own_user
        # with memory per cpu or tasks per node a node counts in whole tasks
        in_tasks = job.tasks_per_node > 0 or (self._has_memory and per_core)
        # without -N a job has no more nodes than tasks
        if self._tasks_bound and not job.nodes_max:
            most = min(most, -(-job.cpus // job.cpus_per_task))
        most = max(most, nodes)
        wanted = most if job.nodes_max > job.nodes else nodes
        return self._row(nodes, wanted, most, cores, per_task, in_tasks, per_node, memory, per_core, exclusive, own)

    def _nodes(self, job: SlurmJob, partition: Partition) -> int:
        """The fewest nodes of a job: with resources for all of them together, on as many as hold these, or had them."""
        if not job.gres_in_all or job.nodes_max:
            return job.nodes
        # sbatch(1), --gpus: Slurm takes what nodes have until it is enough; how many that are depends on who else runs
        most = [(count, self._most_of.get((partition.name, kind), 0)) for kind, count in job.gres.items()]
        needed = max((-(-count // each) for count, each in most if each), default=1)
        had = min(len(read_hosts(job.hosts)), max(job.gres.values(), default=1)) if job.started else 1
        return max(job.nodes, needed, had)

    def _row(self, *values: Any) -> dict[str, Any]:
        return dict(zip(NEED_COLUMNS, values, strict=True))

    def _memory(self, job: SlurmJob, partition: Partition) -> tuple[int, bool]:
        """Megabytes, and whether they are per core."""
        if job.memory == ALL_MEMORY:
            return ALL_OF_NODE, False
        if job.memory > 0:
            return math.ceil(job.memory * (self._threads if job.memory_per_cpu else 1)), job.memory_per_cpu
        # slurm.conf(5): DefMemPerCPU and DefMemPerNode exclude each other, and a partition's go before the cluster's
        per_cpu = 0.0 if partition.memory_per_node else partition.memory_per_cpu or self._default("DefMemPerCPU")
        per_node = partition.memory_per_node or self._default("DefMemPerNode")
        default = per_cpu * job.cpus or per_node * job.nodes
        # a script may ask for memory without its command line saying so: then the log knows better than the default
        if job.memory_in_all and abs(job.memory_in_all - default) > _ALIKE * default:
            return math.ceil(job.memory_in_all / job.nodes), False
        if per_cpu:
            return math.ceil(per_cpu * self._threads), True
        # without any default Slurm gives a job all memory of its nodes, where memory is allocated
        return int(per_node) or ALL_OF_NODE, False

    def _default(self, key: str) -> float:
        text = self._conf.get(key)
        try:
            return default_memory(text)
        except ValueError:
            raise ConfigError(f"{self._conf.places[key.lower()].place}: {key}={text} is no amount of memory") from None


def _needs(jobs: Sequence[SlurmJob]) -> dict[str, I8]:
    """The jobs that each job waits for: an array stands for all of its tasks, one that is not in the log for none."""
    numbers: dict[str, list[int]] = {}
    for number, job in enumerate(jobs):
        # a job may be waited for by its own id, by its array, or as a task ARRAY_TASK
        for name in {job.id, job.array, _task_name(job.array, job)} - {""}:
            numbers.setdefault(name, []).append(number)
    begin: list[int] = [0]
    rows: list[tuple[int, int, int]] = []
    for job in jobs:
        for need in job.needs:
            # sbatch(1), aftercorr: each task waits for the task of the same number
            name = _task_name(need.job, job) if need.kind == "aftercorr" else need.job
            kind = _KINDS.get(need.kind, at.AFTER_OK)
            rows += [(number, kind, int(need.delay)) for number in numbers.get(name, ())]
        begin.append(len(rows))
    table = np.array(rows, np.int64).reshape(len(rows), 3)
    columns = [np.ascontiguousarray(table[:, column]) for column in range(3)]
    return {"need_begin": np.array(begin, np.int64)} | dict(
        zip(("need_job", "need_kind", "need_delay"), columns, strict=True)
    )


def _task_name(array: str, job: SlurmJob) -> str:
    """The task of an array with the number of this one."""
    return f"{array}_{job.task}" if array and job.array else array


def reservation_numbers(case: Case) -> dict[str, int]:
    """Numbers of the reservations by name."""
    names = {window.reservation for window in case.windows} - {""}
    return {name: number for number, name in enumerate(sorted(names))}


_MICRO = 1e-6  # seconds


def build_world(
    case: Case, settings: Settings, cycles: Sequence[int] = (), fixed: Mapping[str, Any] | None = None
) -> SlurmWorld:
    """A world in which nothing has happened yet.

    Args:
        case: the cluster and its jobs.
        settings: the parameters.
        cycles: seconds since 1970 at which backfill begins; none: as bf_interval says.
        fixed: what `fixed_parts` made of them, with whatever guesses at phases.

    Raises:
        ConfigError: for a value that cannot be read.
    """
    begin = zero_of(case)
    # a world changes its arrays
    made = fixed_parts(case, settings) if fixed is None else {name: part.copy() for name, part in fixed.items()}
    parts = {**_parameters(case, settings, bool(cycles)), **made}
    parts["cycles"] = np.array([time - begin for time in cycles], np.int64)
    return SlurmWorld(**parts, **initial_state(case, settings, parts))


def fixed_parts(case: Case, settings: Settings) -> dict[str, Any]:
    """The arrays of a world in which nothing has happened that no guess at phases changes.

    Raises:
        ConfigError: for a value that cannot be read.
    """
    tree = make_tree(case, settings)
    begin = zero_of(case)
    total, licences, order = licenses_of(settings), [], []
    places = {name: place for place, name in enumerate(total)}
    for job in case.jobs:
        mine = dict(asked_licenses(job))
        licences.append([mine.get(name, 0) for name in total])
        # any of them will do: in the order in which the job names them
        one_of = [places[name] for name in mine if name in places] if "|" in job.licenses else []
        order.append(one_of + [-1] * (len(total) - len(one_of)))
    numbers, reservations = {node.name: number for number, node in enumerate(case.nodes)}, reservation_numbers(case)
    windows = []
    for window in case.windows:
        reservation = reservations.get(window.reservation, -1)
        for name in window.nodes:
            if name in numbers and window.end > begin:
                cores = window.cores * case.nodes[numbers[name]].threads // case.threads
                windows.append((max(0, window.begin - begin), numbers[name], 1, reservation, cores))
                windows.append((min(FAR, window.end - begin), numbers[name], -1, reservation, cores))
    table = np.array(sorted(windows), np.int64).reshape(len(windows), 5)
    names = ("times", "node", "step", "reservation", "cores")
    parts = {
        **_nodes(case, settings),
        **_partitions(case, settings),
        **job_arrays(case, settings, tree, begin),
        **_entries(case, settings),
        "licence_total": np.array(list(total.values()), np.int64),
        "licences_asked": np.array(licences, np.int64).reshape(len(licences), len(total)),
        "licence_order": np.array(order, np.int64).reshape(len(licences), len(total)),
        **{f"share_{name}": getattr(tree, name) for name in ("parent", "norm", "path")},
        **{"leaf": tree.leaf, "usage": tree.usage.copy(), "seen_assoc": np.zeros(max(1, len(tree.usage)), np.int64)},
        **{name: np.zeros(len(tree.usage)) for name in ("level_share", "factor")},
        **{f"window_{name}": np.ascontiguousarray(table[:, column]) for column, name in enumerate(names)},
        **switch_arrays(case.switches, case.nodes, case.partitions, case.jobs, settings),
    }
    # backfill asks for each waiting job when nodes have room: the same answer for all that ask for the same
    asked = [*(parts[name] for name in (*NEED_COLUMNS, "must_have", "max_switches")), *parts["gres"].T]
    rows = np.column_stack([np.stack(asked, 1)[parts["entry_job"]], parts["entry_mask"]])
    parts["entry_kind"] = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    parts["nodes_owned"] = int(parts["own_user"].any())
    return {name: np.array(part) for name, part in parts.items()}


# parameters that are as slurm.conf has them
_NUMBERS = (
    *("default_queue_depth", "partition_job_depth", "sched_max_job_start", "bf_max_job_test", "bf_max_job_user"),
    *("bf_max_job_part", "bf_max_job_assoc", "bf_max_job_user_part", "bf_max_job_start", "bf_max_job_array_resv"),
    *("bf_min_age_reserve", "bf_min_prio_reserve", "bf_job_part_count_reserve", "bf_window_linear", "requeue_order"),
)
_AT_LEAST_A_SECOND = ("sched_interval", "bf_interval", "bf_resolution")
_FLAGS = (*("assoc_limit_stop", "bf_one_resv_per_job", "bf_continue", "bf_busy_nodes", "preempt_youngest_first"),)
_COSTS = ("test_cost", "cycle_cost")


def _parameters(case: Case, settings: Settings, recorded: bool) -> dict[str, Any]:
    whole, flags = settings.whole, settings.priority_flags
    # sched/builtin with priority/basic and one tier is a plain list in 22.05
    tiers = {partition.tier for partition in case.partitions}
    preempt = settings.text("PreemptType").lower()
    bf_licenses = settings.flag("bf_licenses")
    # slurm.conf(5): 0 is no decay at all
    half = settings.seconds("PriorityDecayHalfLife")
    return {
        **{name: whole(name) for name in _NUMBERS},
        **{name: max(1, whole(name)) for name in _AT_LEAST_A_SECOND},
        **{name: settings.flag(name) for name in _FLAGS},
        # _slurm_rpc_epilog_complete looks for "defer" anywhere in SchedulerParameters
        "defer": settings.flag("defer") or settings.flag("defer_batch"),
        **{name: settings.number(name) for name in _COSTS},
        **{name: rule.since <= settings.version for name, rule in VERSION_RULES.items()},
        "linear": settings.linear,
        "builtin": settings.builtin,
        "multifactor": settings.multifactor,
        "fifo": settings.builtin and not settings.multifactor and len(tiers) == 1,
        "has_memory": _has_memory(case, settings) and not settings.linear,
        "lln": "CR_LLN" in settings.text("SelectTypeParameters").upper(),
        "batch_sched_delay": max(0, whole("batch_sched_delay")),
        "bf_window": whole("bf_window") * 60,
        "by_switches": topology_of(case.switches, settings),
        "complete_wait": whole("CompleteWait"),
        # never 0: from an epilog to the next main loop 1 to 2 s were measured
        "completing_time": max(1, whole("completing")),
        "calc_period": settings.calc_period,
        "fair_tree": "NO_FAIR_TREE" not in flags,
        "ages": settings.has_database,
        "max_age": _seconds(settings.seconds("PriorityMaxAge")),
        "preempts_by": 1 if "partition_prio" in preempt else 2 if "qos" in preempt else 0,
        "preempt_pause": whole("KillWait") + whole("MessageTimeout"),
        "table_size": settings.table_size,
        "bf_licenses": bf_licenses,
        # licences of running jobs are in the table as well where bf_licenses plans them
        "bf_running_job_reserve": bf_licenses or settings.flag("bf_running_job_reserve"),
        "leaves_out": False,
        "cycles_given": recorded,
        "increase_only": "INCR_ONLY" in flags,
        "accrue_always": "ACCRUE_ALWAYS" in flags,
        "age_weight": settings.number("PriorityWeightAge"),
        "share_weight": settings.number("PriorityWeightFairshare"),
        "decay": 0.5 ** (1 / half) if 0 < half < math.inf else 1.0,
        "dampening": settings.number("FairShareDampeningFactor"),
        "cycle_limit": settings.bf_max_time,
        "yield_sleep": settings.number("bf_yield_sleep") * _MICRO,
        "yield_after": settings.number("bf_yield_interval") * _MICRO,
    }


def _seconds(value: float) -> int:
    return int(min(value, FAR))


def _nodes(case: Case, settings: Settings) -> dict[str, Any]:
    kinds, nodes = gres_names(case), case.nodes
    gres = np.array([[node.gres.get(kind, 0) for kind in kinds] for node in nodes], np.int64)
    weight = np.array([node.weight for node in nodes], np.int64)
    # _build_node_list of node_scheduler.c: each NodeName line is a set of nodes of its own
    by_line = settings.linear and not topology_of(case.switches, settings)
    lines = [node.line if by_line else 0 for node in nodes]
    steps = np.unique(np.stack([weight, lines]), axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return {
        "node_cores": np.array([case.units(node) for node in nodes], np.int64),
        "node_unit": np.array([node.threads // case.threads for node in nodes], np.int64),
        "largest_node": max(case.units(node) for node in nodes),
        "node_memory": np.array([int(node.memory) for node in nodes], np.int64),
        "node_gres": np.ascontiguousarray(gres.reshape(len(nodes), len(kinds))),
        "node_weight": weight,
        "node_step": steps,
        "last_step": int(steps.max()),
    }


def _partitions(case: Case, settings: Settings) -> dict[str, Any]:
    numbers = {node.name: number for number, node in enumerate(case.nodes)}
    words, names = nb_words(case), [each.name for each in case.qualities]
    mode = settings.text("PreemptMode")
    # sacctmgr(1): a QOS without PreemptMode, or with "cluster", has that of slurm.conf
    modes = [mode if each.preempt_mode.lower() in ("", "cluster") else each.preempt_mode for each in case.qualities]
    preempts = [[other in each.preempts for other in names] for each in case.qualities]
    # how many qualities stand one below the other under each; as many rounds as there are, should one preempt itself
    ranks = [0] * len(names)
    for _ in names:
        ranks = [max((ranks[k] + 1 for k, below in enumerate(row) if below), default=0) for row in preempts]
    return {
        "part_mask": np.stack([bitmap((numbers[name] for name in p.nodes), words) for p in case.partitions]),
        "part_tier": np.array([p.tier for p in case.partitions], np.int64),
        "part_lln": np.array([p.lln for p in case.partitions], np.int64),
        "part_gives_way": np.array([_gives_way(p.preempt_mode or mode) for p in case.partitions], np.int64),
        "part_grace": np.array([_seconds(p.grace) for p in case.partitions], np.int64),
        "quality_gives_way": np.array([_gives_way(each) for each in modes], np.int64),
        "quality_grace": np.array([_seconds(each.grace) for each in case.qualities], np.int64),
        "quality_preempts": np.array(preempts, np.int64).reshape(len(names), len(names)),
        "quality_order": np.array([int(each.priority) for each in case.qualities], np.int64),
        "quality_rank": np.array(ranks, np.int64),
    }


def _gives_way(mode: str) -> int:
    # slurm.conf(5), PreemptMode; SUSPEND and GANG are named by `keys` as not simulated
    return 1 if "REQUEUE" in mode.upper() else 2 if "CANCEL" in mode.upper() else 0


def _entries(case: Case, settings: Settings) -> dict[str, Any]:
    numbers = {partition.name: number for number, partition in enumerate(case.partitions)}
    # entries of a job stand one behind the other, as build_job_queue makes them
    limits = Buckets(case, settings)
    masks, prices = Masks(case, limits), Factors(case, settings)
    qualities = {each.name: number for number, each in enumerate(case.qualities)}
    begin, must_have, per_cpu = [0], [], []
    columns: dict[str, list[int]] = {name: [] for name in ("job", "part", "mask", "quality")}
    base: list[float] = []
    members: list[Member] = []
    bucket_of: list[tuple[int, int]] = []
    for number, job in enumerate(case.jobs):
        must_have.append(masks.named(job))
        # those of the highest priority first, as in qos_list
        ranked = sorted(
            job.qos.split(","), key=lambda qos: -case.qualities[qualities[qos]].priority if qos in qualities else 0.0
        )
        buckets = []
        for qos in ranked:
            first = len(members)
            members += limits.of(job, qos)
            buckets.append((first, len(members)))
        for name in job.partition.split(","):
            part = numbers[name]
            for qos in ranked:
                row = (number, part, masks.of(job, case.partitions[part], qos), qualities.get(qos, -1))
                for values, value in zip(columns.values(), row, strict=True):
                    values.append(value)
                base.append(prices.of(job, case.partitions[part], qos))
            bucket_of += buckets
        begin.append(len(base))
        per_cpu.append(prices.per_cpu(job))
    limit = np.array(limits.limits, np.int64).reshape(len(limits.limits), 5)
    limit[:, 2] //= case.threads  # of cpus, which jobs get by whole cores; -1 stays
    return {
        "entry_begin": np.array(begin, np.int64),
        **{f"entry_{name}": np.array(values, np.int64) for name, values in columns.items()},
        "entry_bucket": np.array(bucket_of, np.int64).reshape(len(bucket_of), 2),
        "job_bucket": np.array([each.bucket for each in members], np.int64),
        "bucket_checks": np.array([each.checks for each in members], np.int64),
        "bucket_limit": limit,
        "bucket_used": np.zeros_like(limit),
        "must_have": np.array(must_have, np.int64),
        "masks": np.stack(masks.rows),
        "entry_base": np.array(base),
        "per_cpu": np.array(per_cpu, np.float64),
        "cpus": np.array([job.cpus for job in case.jobs], np.int64),
        "threads": case.threads,
    }
