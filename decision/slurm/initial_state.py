"""What changes in a world, as it is before anything has happened."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from decision.model.dates import DAY

from .case import Case
from .kernels.world import FAR
from .masks import nb_words
from .parameters import Settings
from .text import read_hosts

_KINDS_KEPT = 256  # kinds of requests for which backfill keeps when nodes have room
_LEAD = 100  # seconds before the first submission in which the simulation begins


def zero_of(case: Case) -> int:
    """The world's zero, seconds since 1970: a midnight, because times are rounded to whole steps since 1970."""
    return (case.begin - _LEAD) // DAY * DAY


def initial_state(case: Case, settings: Settings, parts: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays that change, besides the `parts` that do not: no job submitted, but those that ran before."""
    nb_nodes, nb_jobs, nb_entries = len(case.nodes), len(case.jobs), len(parts["entry_job"])
    words, nb_parts = nb_words(case), len(case.partitions)
    slots = parts["table_size"] + 2 * len(parts["window_times"]) + 8
    room = np.minimum(np.minimum(parts["nodes_max"], parts["cores"]), nb_nodes)
    begin = np.concatenate(([0], np.cumsum(room)[:-1])) if nb_jobs else np.zeros(0, np.int64)
    job, node = (lambda value=0: np.full(nb_jobs, value, np.int64)), (lambda: np.zeros(nb_nodes, np.int64))
    now = case.begin - _LEAD - zero_of(case)
    interval = parts["sched_interval"]
    timers = {
        "now": now,
        "last_main": now,
        "last_full": now - interval + int(settings.number("main_phase")) % interval,
        "next_calc": now + int(settings.number("calc_phase")) % settings.calc_period,
        "changed": 1,
    }
    times = ("eligible", "end", "expected_end", "grace_end")
    names = dict.fromkeys(times, FAR) | {"start": -1, "first_start": -1}
    zero = (
        *("part_of", "status", "charged", "reason", "requeues", "alloc_count", "running", "completing", "free_at"),
        *("started", "killed", "by_end", "ends", "candidates", "estimated"),
    )
    state: dict[str, Any] = {name: job(value) for name, value in names.items()} | {name: job() for name in zero}
    state |= {name: node() for name in ("away", "nb_jobs", "nb_completing", "capacity", "chosen", "chosen_cores")}
    state |= {name: node() for name in ("trial_cores", "trial_memory", "trial_jobs", "spots", "room_left")}
    state["reserved_by"] = np.full(nb_nodes, -1, np.int64)
    state |= {name: np.zeros(nb_parts, np.int64) for name in ("seen_part", "kept_part", "failed")}
    state |= {name: np.zeros(words, np.uint64) for name in ("open", "free_now", "usable")}
    state |= {name: np.zeros(slots, np.int64) for name in ("slot_begin", "slot_end")}
    state |= {name: np.zeros((_KINDS_KEPT, nb_nodes), np.int64) for name in ("room_from", "room_order")}
    state |= {name: np.full(_KINDS_KEPT, -1, np.int64) for name in ("room_kind", "room_stamp", "nb_roomy")}
    state |= {"slot_mask": np.zeros((slots, words), np.uint64), **timers}
    state["slot_licences"] = np.zeros((slots, len(parts["licence_total"])), np.int64)
    state["next_backfill"] = now + settings.number("bf_phase")
    state |= {"priority": np.zeros(nb_entries, np.int64), "pending": np.zeros(nb_entries, np.int64)}
    state["queue"] = np.full(nb_entries, -1, np.int64)
    state |= {"free_cores": parts["node_cores"].copy(), "free_memory": parts["node_memory"].copy()}
    state |= {"free_gres": parts["node_gres"].copy(), "trial_gres": parts["node_gres"].copy()}
    state["alloc_begin"] = begin.astype(np.int64)
    size = int(room.sum()) + 1
    pools = ("alloc_node", "alloc_cores", "held_node", "held_cores", "held_memory")
    state |= {name: np.zeros(size, np.int64) for name in pools} | {"held_begin": np.zeros(nb_jobs + 1, np.int64)}
    _place_running(case, state, parts, settings.linear)
    return state


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
        cores = int(parts["cores"][number])
        for i, host in enumerate(hosts):
            state["alloc_node"][begin + i] = host
            state["alloc_cores"][begin + i] = 1 if linear else cores // len(hosts) + (i < cores % len(hosts))
        state["alloc_count"][number] = len(hosts)
