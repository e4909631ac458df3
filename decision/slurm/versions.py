"""Slurm's versions: which rules of its scheduler hold since when, and which defaults.

Facts were read in Slurm's source between the tags slurm-22-05-8-1 and slurm-26-05-3-1, and checked on recordings of
22.05.8 and 26.05.5; versions between were not run.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from decision.model.errors import ConfigError

Version = tuple[int, int, int]  # major, minor, micro: (24, 11, 0)
FIRST: Version = (22, 5, 0)  # the rules that hold where no other does; taken where the version is not known

_VERSION = re.compile(r"(?:slurm[-\s]*)?(\d{2})[.-](\d{1,2})(?:[.-](\d+))?(?:[-.+~\w]*)", re.IGNORECASE)


class Rule(NamedTuple):
    """A rule of the scheduler that changed."""

    since: Version
    text: str  # what holds since then
    source: str  # of Slurm: the commit, and the function


# by name in `SlurmWorld`
VERSION_RULES: Mapping[str, Rule] = {
    "completing_last": Rule(
        (23, 11, 0),
        "shared nodes: backfill tries nodes on which a job completes last",
        "55b5c8ca3a, _set_sched_weight of select/cons_tres",
    ),
    "switch_cpus": Rule(
        (23, 2, 0),
        "topology/tree, shared nodes: the leaf that fits best must have the cores that are wanted, not only the nodes",
        "9762ae6280, _topo_compare_switches",
    ),
    "near_leaf": Rule(
        (24, 5, 3),
        "topology/tree, shared nodes: a nearer leaf goes before others wherever it fits",
        "64263118c3 and 2ec1d02624, _topo_choose_best_switch",
    ),
    "requeued_anew": Rule(
        (24, 5, 5),
        "a requeued job gets a new priority: by submission it is the last one, by age it begins again",
        "c90858ccbe, set_job_prio in slurmctld/job_mgr.c",
    ),
    "ends_up": Rule(
        (24, 11, 0),
        "ends of plans, and of running jobs that stand in the table, are rounded up to bf_resolution; down before",
        "ff54a35851, _set_slot_time of sched/backfill",
    ),
    "tests_from_plan": Rule(
        (24, 11, 0),
        "a trial for a later begin leaves out all jobs that end by then, and looks no further than the next change of "
        "the plan; whether another plan overlaps is asked first",
        "4107be4f80, 3d8d6cb4e9, b65719d1c2, d5e0c8e664, _attempt_backfill and _future_run_test",
    ),
    "ends_on_chosen": Rule(
        (25, 5, 1),
        "shared nodes: a plan begins when the last job on the chosen nodes ends, not the last that was taken away",
        "977bb2ee4f, _get_last_relevant_job of select/cons_tres",
    ),
    "drops_one": Rule(
        (25, 11, 0),
        "shared nodes: where a choice fails, nodes with the least room are left out one by one, not equal ones at once",
        "aa4e7f7ac7, common_topo_choose_nodes",
    ),
    "first_node": Rule(
        (26, 5, 0),
        "shared nodes: a job of one node gets the first one of the lowest weight on which it fits, not the tightest; "
        "-n without -N bounds the nodes by the tasks",
        "295100b5f6 and 496893603b, _get_one_res of select/cons_tres",
    ),
}

# what slurm.conf(5) says of a key that is left out, where that changed: since when, and what holds since then
DEFAULTS: Mapping[str, tuple[Version, str]] = {
    "selecttype": ((23, 11, 0), "select/cons_tres"),
    "prioritytype": ((23, 11, 0), "priority/multifactor"),
}


def read_version(text: str, field: str = "slurm_version") -> Version:
    """A version from ``25.05``, ``25.05.3`` or ``slurm 25.05.3``.

    Raises:
        ConfigError: if it is none.
    """
    found = _VERSION.fullmatch(text.strip())
    if found is None:
        raise ConfigError(f"{text!r} is not a version of Slurm; write it as sinfo --version does: 25.05.3", field=field)
    # the micro version is the last that there was, where none is given: those of a cluster are kept up to date
    return int(found[1]), int(found[2]), int(found[3]) if found[3] else _LATEST


_LATEST = 99


def version_text(version: Version) -> str:
    """A version as Slurm writes it."""
    major, minor, micro = version
    return f"{major}.{minor:02d}" + ("" if micro in (0, _LATEST) else f".{micro}")
