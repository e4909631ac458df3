"""From a case and its parameters to the arrays of the model."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from decision.compiling.bundle import I8

from .accounts import Quality
from .case import Case
from .factors import Factors
from .forest import switch_arrays, topology_of
from .initial_state import initial_state, zero_of
from .job_columns import NEED_COLUMNS, gres_names, job_arrays, reservation_numbers
from .kernels.world import FAR, SlurmWorld
from .limits import Buckets, asked_licenses, licenses_of
from .masks import Masks, bitmap, nb_words
from .parameters import Settings
from .shares import ShareTree, make_tree

_MICRO = 1e-6  # seconds


def build_world(case: Case, settings: Settings, cycles: Sequence[int] = ()) -> SlurmWorld:
    """A world in which nothing has happened yet.

    Args:
        case: the cluster and its jobs.
        settings: the parameters.
        cycles: seconds since 1970 at which backfill begins; none: as bf_interval says.

    Raises:
        ConfigError: for a value that cannot be read.
    """
    tree = make_tree(case, settings)
    begin = zero_of(case)
    parts = {
        **_parameters(case, settings, bool(cycles)),
        **_nodes(case, settings),
        **_partitions(case, settings),
        **job_arrays(case, settings, tree, begin),
        **_entries(case, settings),
        **_limits(case, settings),
        **_licences(case, settings),
        **_shares(tree),
        **_windows(case, begin),
        **switch_arrays(case, settings),
    }
    parts["entry_kind"] = _kinds(parts)
    parts["cycles"] = np.array([time - begin for time in cycles], np.int64)
    return SlurmWorld(**parts, **initial_state(case, settings, parts))


def _parameters(case: Case, settings: Settings, recorded: bool) -> dict[str, Any]:
    whole, flags = settings.whole, settings.priority_flags
    tiers = {partition.tier for partition in case.partitions}
    select = settings.text("SelectTypeParameters").upper()
    preempt = settings.text("PreemptType").lower()
    planned = settings.flag("bf_licenses")
    half = settings.seconds("PriorityDecayHalfLife")
    return {
        "linear": settings.linear,
        "builtin": settings.builtin,
        "multifactor": settings.multifactor,
        "fifo": settings.builtin and not settings.multifactor and len(tiers) == 1,
        "has_memory": "MEMORY" in select and not settings.linear,
        "lln": "CR_LLN" in select,
        "sched_interval": max(1, whole("sched_interval")),
        "batch_sched_delay": max(0, whole("batch_sched_delay")),
        "default_queue_depth": whole("default_queue_depth"),
        "partition_job_depth": whole("partition_job_depth"),
        "sched_max_job_start": whole("sched_max_job_start"),
        "defer": settings.flag("defer"),
        "assoc_limit_stop": settings.flag("assoc_limit_stop"),
        "bf_interval": max(1, whole("bf_interval")),
        "bf_window": whole("bf_window") * 60,
        "bf_resolution": max(1, whole("bf_resolution")),
        "bf_max_job_test": whole("bf_max_job_test"),
        "bf_max_job_user": whole("bf_max_job_user"),
        "bf_max_job_part": whole("bf_max_job_part"),
        "bf_max_job_assoc": whole("bf_max_job_assoc"),
        "bf_max_job_user_part": whole("bf_max_job_user_part"),
        "bf_max_job_start": whole("bf_max_job_start"),
        "bf_max_job_array_resv": whole("bf_max_job_array_resv"),
        "bf_min_age_reserve": whole("bf_min_age_reserve"),
        "bf_min_prio_reserve": whole("bf_min_prio_reserve"),
        "bf_job_part_count_reserve": whole("bf_job_part_count_reserve"),
        "bf_one_resv_per_job": settings.flag("bf_one_resv_per_job"),
        "bf_continue": settings.flag("bf_continue"),
        "by_switches": topology_of(case, settings),
        "complete_wait": whole("CompleteWait"),
        "bf_window_linear": whole("bf_window_linear"),
        "completing_time": max(1, whole("completing")),
        "calc_period": settings.calc_period,
        "fair_tree": "NO_FAIR_TREE" not in flags,
        "ages": settings.has_database,
        "max_age": _seconds(settings.seconds("PriorityMaxAge")),
        "preempts_by": 1 if "partition_prio" in preempt else 2 if "qos" in preempt else 0,
        "bf_busy_nodes": settings.flag("bf_busy_nodes"),
        "table_size": settings.table_size,
        "bf_running_job_reserve": planned or settings.flag("bf_running_job_reserve"),
        "preempt_youngest_first": settings.flag("preempt_youngest_first"),
        "cycles_given": recorded,
        "increase_only": "INCR_ONLY" in flags,
        "accrue_always": "ACCRUE_ALWAYS" in flags,
        "age_weight": settings.number("PriorityWeightAge"),
        "share_weight": settings.number("PriorityWeightFairshare"),
        "decay": 0.5 ** (1 / half) if 0 < half < math.inf else 1.0,
        "dampening": settings.number("FairShareDampeningFactor"),
        "test_cost": settings.number("test_cost"),
        "cycle_cost": settings.number("cycle_cost"),
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
    by_line = settings.linear and not topology_of(case, settings)
    lines = [node.line if by_line else 0 for node in nodes]
    steps = np.unique(np.stack([weight, lines]), axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return {
        "node_cores": np.array([node.cores for node in nodes], np.int64),
        "largest_node": max(node.cores for node in nodes),
        "node_memory": np.array([int(node.memory) for node in nodes], np.int64),
        "node_gres": np.ascontiguousarray(gres.reshape(len(nodes), len(kinds))),
        "node_weight": weight,
        "weight_steps": np.unique(weight),
        "node_step": steps,
        "last_step": int(steps.max()),
    }


def _partitions(case: Case, settings: Settings) -> dict[str, Any]:
    numbers = {node.name: number for number, node in enumerate(case.nodes)}
    words, names = nb_words(case), [each.name for each in case.qualities]
    mode = settings.text("PreemptMode")
    preempts = [[other in each.preempts for other in names] for each in case.qualities]
    return {
        "part_mask": np.stack([bitmap((numbers[name] for name in p.nodes), words) for p in case.partitions]),
        "part_tier": np.array([p.tier for p in case.partitions], np.int64),
        "part_lln": np.array([p.lln for p in case.partitions], np.int64),
        "part_gives_way": np.array([_gives_way(p.preempt_mode or mode) for p in case.partitions], np.int64),
        "part_grace": np.array([_seconds(p.grace) for p in case.partitions], np.int64),
        "quality_gives_way": np.array([_gives_way(_own_mode(each, mode)) for each in case.qualities], np.int64),
        "quality_grace": np.array([_seconds(each.grace) for each in case.qualities], np.int64),
        "quality_preempts": np.array(preempts, np.int64).reshape(len(names), len(names)),
        "quality_order": np.array([int(each.priority) for each in case.qualities], np.int64),
    }


def _gives_way(mode: str) -> int:
    return 1 if "REQUEUE" in mode.upper() else 2 if "CANCEL" in mode.upper() else 0


def _own_mode(quality: Quality, mode: str) -> str:
    """The PreemptMode of a QOS, which may be the cluster's."""
    return mode if quality.preempt_mode.lower() in ("", "cluster") else quality.preempt_mode


def _entries(case: Case, settings: Settings) -> dict[str, Any]:
    numbers = {partition.name: number for number, partition in enumerate(case.partitions)}
    masks = Masks(case, Buckets(case, settings))
    prices = Factors(case, settings)
    begin, job_of, part_of, mask_of, base = [0], [], [], [], []
    must_have = []
    for number, job in enumerate(case.jobs):
        must_have.append(masks.named(job))
        for name in job.partition.split(","):
            part = numbers[name]
            job_of.append(number)
            part_of.append(part)
            mask_of.append(masks.of(job, case.partitions[part]))
            base.append(prices.of(job, case.partitions[part]))
        begin.append(len(job_of))
    return {
        "entry_begin": np.array(begin, np.int64),
        "entry_job": np.array(job_of, np.int64),
        "entry_part": np.array(part_of, np.int64),
        "entry_mask": np.array(mask_of, np.int64),
        "must_have": np.array(must_have, np.int64),
        "masks": np.stack(masks.rows),
        "entry_base": np.array(base),
    }


def _kinds(parts: Mapping[str, I8]) -> I8:
    """A number for each entry, the same for entries that ask for the same resources of the same nodes."""
    columns = [*(parts[name] for name in (*NEED_COLUMNS, "must_have", "max_switches")), *parts["gres"].T]
    of_jobs = np.stack(columns, 1)[parts["entry_job"]]
    rows = np.column_stack([of_jobs, parts["entry_mask"]])
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _limits(case: Case, settings: Settings) -> dict[str, Any]:
    buckets = Buckets(case, settings)
    begin, members = [0], []
    for job in case.jobs:
        members += buckets.of(job)
        begin.append(len(members))
    limit = np.array(buckets.limits, np.int64).reshape(len(buckets.limits), 5)
    return {
        "bucket_begin": np.array(begin, np.int64),
        "job_bucket": np.array([each.bucket for each in members], np.int64),
        "bucket_checks": np.array([each.checks for each in members], np.int64),
        "bucket_amount": np.array([each.amount for each in members], np.int64),
        "bucket_limit": limit,
        "bucket_used": np.zeros_like(limit),
    }


def _licences(case: Case, settings: Settings) -> dict[str, Any]:
    """The licences that backfill plans: none, unless bf_licenses says so."""
    total = licenses_of(settings) if settings.flag("bf_licenses") else {}
    asked = [dict(asked_licenses(job)) for job in case.jobs]
    rows = [[mine.get(name, 0) for name in total] for mine in asked]
    return {
        "licence_total": np.array(list(total.values()), np.int64),
        "job_licences": np.array(rows, np.int64).reshape(len(rows), len(total)),
    }


def _shares(tree: ShareTree) -> dict[str, Any]:
    return {
        "share_parent": tree.parent,
        "share_norm": tree.norm,
        "share_path": tree.path,
        "leaf": tree.leaf,
        "usage": tree.usage.copy(),
        "level_share": np.zeros(len(tree.usage)),
        "factor": np.zeros(len(tree.usage)),
        "seen_assoc": np.zeros(max(1, len(tree.usage)), np.int64),
    }


def _windows(case: Case, begin: int) -> dict[str, I8]:
    numbers = {node.name: number for number, node in enumerate(case.nodes)}
    rows, reservations = [], reservation_numbers(case)
    for window in case.windows:
        reservation = reservations.get(window.reservation, -1)
        for name in window.nodes:
            if name in numbers and window.end > begin:
                rows.append((max(0, window.begin - begin), numbers[name], 1, reservation))
                rows.append((min(FAR, window.end - begin), numbers[name], -1, reservation))
    table = np.array(sorted(rows), np.int64).reshape(len(rows), 4)
    names = ("window_times", "window_node", "window_step", "window_reservation")
    return {name: np.ascontiguousarray(table[:, column]) for column, name in enumerate(names)}
