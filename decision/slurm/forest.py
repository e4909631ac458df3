"""The switches of a case as arrays of the model: topology/tree."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from decision.compiling.bundle import I8

from .case import Case
from .kernels.leaves import ALWAYS, IF_ASKED
from .kernels.world import FAR
from .parameters import Settings
from .switches import Switch


def topology_of(case: Case, settings: Settings) -> int:
    """Whether switches choose nodes: always, for jobs that ask for few of them, or never (0)."""
    if not case.switches or "tree" not in settings.text("TopologyPlugin").lower():
        return 0
    optional = "topooptional" in settings.text("TopologyParam").lower()
    return IF_ASKED if optional else ALWAYS


def switch_arrays(case: Case, settings: Settings) -> dict[str, Any]:
    """What `World` has of switches and of the jobs that ask for few."""
    switches = case.switches
    home = {node: number for number, switch in enumerate(switches) for node in switch.nodes}
    longest = settings.number("max_switch_wait")
    scratch = ("switch_nodes", "switch_cores", "switch_named", "switch_weight", "switch_used", "switch_far")
    return {
        "node_switch": np.array([home.get(node.name, -1) for node in case.nodes], np.int64),
        "switch_level": np.array([switch.level for switch in switches], np.int64),
        "switch_above": np.array([switch.above for switch in switches], np.int64),
        "switch_apart": _apart(switches),
        "max_switches": np.array([job.switches for job in case.jobs], np.int64),
        "switch_wait": np.array([int(min(job.switch_wait, longest)) for job in case.jobs], np.int64),
        "wanted": np.zeros(4, np.int64),
    } | {name: np.zeros(len(switches), np.int64) for name in scratch}


def _apart(switches: Sequence[Switch]) -> I8:
    """(S, S) links on the way from each switch to each other one."""
    way = [_up(switches, number) for number in range(len(switches))]
    apart = np.full((len(switches), len(switches)), FAR, np.int64)
    for one, first in enumerate(way):
        for other, second in enumerate(way):
            common = next((switch for switch in first if switch in second), None)
            if common is not None:
                apart[one, other] = first[common] + second[common]
    return apart


def _up(switches: Sequence[Switch], number: int) -> dict[int, int]:
    """The switches from one up to the highest above it, and how many links each is away."""
    way: dict[int, int] = {}
    while number >= 0:
        way[number] = len(way)
        number = switches[number].above
    return way
