"""Joint: one policy decides which job starts, which server wakes for it, and which server sleeps.

What `decision.learned.joint_kernels` asks of linear functions are an order of jobs, for how long a job waits before
servers are woken for it, where it runs, and for how long a server stays idle before it sleeps. A rule with a fixed
order, `allocation=pack`, `patience` and `idle_timeout` has the same functions with constants. The weights of energy,
wait and switches are inputs of patience and timeouts: one checkpoint has all trade-offs between them.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import bundle_at
from decision.model.dates import chosen_days
from decision.model.errors import ConfigError
from decision.model.platform import Platform
from decision.model.workload import Workload
from decision.policies.booking import new_booking
from decision.policies.catalogue import OptionLine
from decision.policies.options import read_value
from decision.policies.prepared import DECIDE, DECIDED, CompiledPolicy
from decision.state.cluster import ClusterState, nb_hosts

from . import joint_numbers as n
from .base import Episodes, ParametricScheduler
from .confidence import longer_confidence, new_confidence
from .deepscheduling import Day, day_range
from .joint_kernels import plan_jointly
from .joint_seen import JointMemory
from .registry import register

TRADED = ("energy", "wait", "switches")  # what there are weights for
EVEN = np.ones(len(TRADED))

Cluster = Literal["orion", "graphite", "econome"]


def saf_packed(timeout: float = 60.0, patience: float = 300.0) -> NDArray[np.float64]:
    """(N_WEIGHTS,) smallest area first, fullest server first, with a fixed timeout and a fixed patience, in seconds."""
    weights = np.zeros(n.N_WEIGHTS)
    weights[[n.ORDER_WEIGHTS, n.ORDER_WEIGHTS + 2]] = 1.0, 0.5
    weights[n.PATIENCE], weights[n.LINGER] = math.log1p(patience / 60.0), math.log1p(timeout / 60.0)
    weights[n.PLACE + n.FREE_CORES] = -1.0
    return weights


@DECIDE.entry
def _decide_jointly(state, facts, memory, plan):
    plan_jointly(state, facts, _memory_at(memory), plan)
    return DECIDED


_memory_at = bundle_at(JointMemory)


class JointPolicy(CompiledPolicy):
    """Starts jobs, wakes servers and lets them sleep.

    Args:
        weights: (N_WEIGHTS,) of the functions in `decision.learned.joint_kernels`.
        name: for messages.
        traded: (3,) weights of TRADED; what counts is the share that each has of their sum.
    """

    needs_walltime = True
    switches_hosts = True
    entry = _decide_jointly

    def __init__(self, weights: NDArray[np.float64], name: str = "joint", traded: NDArray[np.float64] = EVEN) -> None:
        self.weights, self.name = np.ascontiguousarray(weights, np.float64), name
        self._trade = len(TRADED) * traded / traded.sum() - 1.0
        self._per_server = 1.0

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins.

        Raises:
            ConfigError: if no host of the platform sleeps.
        """
        super().reset(platform, seed)
        if not any(host.sleep for host in platform.hosts):
            where = platform.path or "the platform"
            advice = "decision platform grid5000 --energy taurus makes such hosts, and decision run needs -E"
            raise ConfigError(
                f"{where}: no host has sleep states, and {self.name} needs some; {advice}", field="platform"
            )
        hosts = platform.servers
        self._per_server = len({server or host for host, server in enumerate(hosts)}) / len(hosts)

    def memory_for(self, state: ClusterState, memory: JointMemory | None = None) -> JointMemory:
        """`memory` with room for all of `state`."""
        jobs, running = len(state.size), len(state.running)
        if memory is None:
            return self._new_memory(jobs, running, nb_hosts(state))
        if jobs > len(memory.key):
            memory = memory._replace(**_room(jobs), **longer_confidence(memory, jobs))
        if running > len(memory.ends):
            memory = memory._replace(ends=np.zeros(running), sizes=np.zeros(running, np.int64))
        return memory

    def _new_memory(self, jobs: int, running: int, hosts: int) -> JointMemory:
        seen = np.zeros(n.N_SEEN)
        seen[n.TRADE : n.TRADE + len(TRADED)] = self._trade
        return JointMemory(
            **new_booking(hosts),
            **new_confidence(jobs),
            weights=self.weights,
            seen=seen,
            fit=np.zeros(n.N_FIT),
            per_server=self._per_server,
            until=np.zeros(hosts),
            vacant=np.zeros(hosts, np.int64),
            ends=np.zeros(running),
            sizes=np.zeros(running, np.int64),
            **_room(jobs),
        )

    def __repr__(self) -> str:
        return f"<policy {self.name}>"


def _room(jobs: int) -> dict[str, Any]:
    """Where that many jobs are put in order."""
    return {"ranked": np.zeros(jobs, np.int32), "spare": np.zeros(jobs, np.int32), "key": np.zeros(jobs)}


def read_weights(policy: str, options: Mapping[str, Any]) -> NDArray[np.float64]:
    """(3,) weights of TRADED from a policy's options; 1 where nothing is said.

    Raises:
        ConfigError: for one that is negative or not finite, or if all are 0.
    """
    given = np.array([read_value(policy, name, options.get(name, 1.0), float) for name in TRADED])
    for name, weight in zip(TRADED, given.tolist(), strict=True):
        if not 0.0 <= weight < math.inf:
            raise ConfigError(f"policy {policy}: option {name}={weight:g} must be finite and not negative")
    if not given.any():
        raise ConfigError(f"policy {policy}: {', '.join(TRADED)} are all 0; one of these weights must be more")
    return given / given.max()  # whose sum is finite


# --- The record ----------------------------------------------------------------------------------------------------

Limit = Annotated[float, msgspec.Meta(gt=0)]


class JointSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The days that joint policies are judged by."""

    days: Annotated[tuple[Day, ...], msgspec.Meta(max_length=2)] = ()  # (A,): from A on; (A, B): A to B - 1; (): all
    like: tuple[Cluster, ...] = ()  # clusters, days like whose are made and learned from, too
    wait_limit: Limit = 1.1  # of waits with even weights, over those of first-fit with a timeout of 5 minutes
    switch_limit: Limit = 0.98  # switches, likewise


class Joint(ParametricScheduler):
    """Starts, waking and sleeping in one policy, for any number of servers.

    With even weights, as by default, what is minimised is the waste of energy (its logarithm) within limits on wait and
    switches, those of first-fit with a timeout of 5 minutes being 1; with others, the weighted sum of the three
    logarithms. A wait is kept in sum, and on the usual day.
    """

    name = "joint"
    summary = "one policy for starts, waking and sleeping of servers, with weights of energy, wait and switches"
    Settings = JointSettings
    presets = ("joint",)
    curves = ("waiting_time", "energy_waste", "switches")
    sees = {"name": "joint", "version": 1}  # raised whenever a number changes its meaning
    weights = (n.N_WEIGHTS,)
    energy = True
    options = tuple(OptionLine(name, "1", "", f"weight of {name}; shares of the sum count") for name in TRADED)
    model_summary = "learned starts, waking and sleeping of servers, for little waste; for any number of them"

    def episodes(self, settings: JointSettings, workload: Workload) -> Episodes:
        """Days."""
        return Episodes(jobs=None, online=False, days=tuple(chosen_days(workload, day_range(settings.days))))

    def first_weights(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """The rule that wastes least of a grid, with patience and timeouts as the trade-off asks for."""
        weights = saf_packed()
        weights[n.PATIENCE + 1 + n.TRADE : n.PATIENCE + 4 + n.TRADE] = 0.5, -0.7, 0.2
        weights[n.LINGER + 1 + n.TRADE : n.LINGER + 4 + n.TRADE] = -0.3, 0.1, 0.4
        return weights

    def policy(self, weights: NDArray[np.float64], name: str = "joint", **options: Any) -> JointPolicy:
        """The policy that the weights make; options are the weights of TRADED."""
        return JointPolicy(weights, name, read_weights(name, options))


register(Joint())
