"""The registry of learned schedulers, and of their observations by name."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import Bundle, bundle_at
from decision.compiling.jit import compile_ahead, kernel
from decision.model.errors import ConfigError
from decision.model.hosts import nearest
from decision.model.platform import Platform
from decision.model.workload import Workload
from decision.policies.policy import Plan
from decision.state.cluster import ClusterState, PlatformFacts
from decision.state.plan_arrays import PlanArrays
from decision.state.view import ClusterView

from .base import ChoosingScheduler, Encoder, Scheduler, call_act, call_observe, call_open
from .decision_points import Cycles, begin_decision, grow_cycles, new_cycles, show_arrival

_ENTRY_POINTS = "decision.schedulers"  # group of installed packages' entry points: each is a `Scheduler`

_S = TypeVar("_S", bound=Scheduler)
_RECORDS: dict[str, Scheduler] = {}
# What else knows the records (Gymnasium's registry) hears of later ones, too
_LISTENERS: list[Callable[[Scheduler], None]] = []


def register(scheduler: _S) -> _S:
    """Let a scheduler be trained, evaluated, deployed and listed like those of this package."""
    _RECORDS[scheduler.name] = scheduler
    for listener in _LISTENERS:
        listener(scheduler)
    return scheduler


def for_each_record(listener: Callable[[Scheduler], None]) -> None:
    """Call `listener` with each record, also with those that are registered later."""
    for scheduler in records().values():
        listener(scheduler)
    _LISTENERS.append(listener)


def records() -> Mapping[str, Scheduler]:
    """All schedulers by name; installed packages' ones (entry points) are loaded at the first call."""
    _load_installed()
    return _RECORDS


@functools.cache
def _load_installed() -> None:
    """Once: to look through what is installed takes ten milliseconds."""
    from importlib.metadata import entry_points  # 10 ms of a start

    for point in entry_points(group=_ENTRY_POINTS):
        if point.name not in _RECORDS:
            register(point.load())


def find_scheduler(name: str) -> Scheduler:
    """The scheduler of a name.

    Raises:
        ConfigError: if there is none.
    """
    known = records()
    if name not in known:
        if ":" in name or name.endswith(".py"):
            way = "an installed package brings it, by the entry-point group decision.schedulers"
            raise ConfigError(f"scheduler {name}: a checkpoint could not find its file again; {way}")
        raise ConfigError(f"there is no scheduler {name!r}{nearest(name, known)} (there are {', '.join(known)})")
    return known[name]


def choosing() -> list[ChoosingScheduler]:
    """The schedulers that choose, and so have environments."""
    return [scheduler for scheduler in records().values() if isinstance(scheduler, ChoosingScheduler)]


def find_observation(name: str) -> tuple[ChoosingScheduler, Mapping[str, Any]]:
    """The scheduler whose observation has this name, and the settings that the name stands for.

    Raises:
        ConfigError: if there is none.
    """
    known = {encoder: scheduler for scheduler in choosing() for encoder in scheduler.observations}
    if name not in known:
        raise ConfigError(f"there is no encoder {name!r}{nearest(name, known)} (there are {', '.join(known)})")
    return known[name], known[name].observations[name]


def make_encoder(cores: int, workloads: Sequence[Workload], *, name: str = "dbf", **options: Any) -> Encoder:
    """An encoder for a cluster and its jobs.

    Args:
        cores: hosts of the cluster.
        workloads: jobs, all with a walltime.
        name: of the observation: ``dbf`` (one number per core), ``dbf-pools``, ``rlscheduler``, ``inspector`` or
            another scheduler's.
        options: settings of its scheduler; ``max_runtime`` (seconds, by default the longest walltime of the
            workloads) and ``max_wait`` (seconds that count as 1); and ``pools`` with ``dbf-pools``.

    Raises:
        ConfigError: for a number or name that makes no sense.
    """
    scheduler, fixed = find_observation(name)
    settings, rest = scheduler.read_options({**scheduler.env_options, **options, **fixed})
    return scheduler.make_encoder(settings, cores, workloads, **rest)


def read_encoder(fields: Mapping[str, Any]) -> Encoder:
    """The encoder whose fields (`msgspec.to_builtins`) a checkpoint has.

    Raises:
        ConfigError: if a field is missing or unknown, or the version is another.
    """
    kind = find_observation(str(fields.get("name", "")))[0].encoder_type
    try:
        return msgspec.convert(dict(fields), kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"the encoder of the checkpoint cannot be read: {error}") from error


def encoder_of_format_1(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an encoder as checkpoints of format 1 have them, in the present form.

    Then all encoders had the same fields, most of which meant nothing to most.
    """
    former = ("cores", "cluster", "head", "tail", "base")
    kinds = {name: scheduler.encoder_type for scheduler in choosing() for name in scheduler.observations}
    kind = kinds.get(str(fields.get("name", "")))
    known = kind.__struct_fields__ if kind else former
    return {name: value for name, value in fields.items() if name in known or name not in former}


# A function from observations to actions as a policy, on all engines.

Choose = Callable[[NDArray[np.float32], NDArray[np.int8]], int]

_BEGIN_DECISION = -1  # in place of an action


class ChoosingPolicy:
    """Does what `choose` chooses, cycle by cycle, as in the environments.

    Args:
        encoder: what `choose` reads.
        choose: from an observation (D,) f32 and the mask of valid actions (A,) i8 to an action. The arrays are the
            same from call to call. It is not asked where a single action is valid.
        name: for messages.
    """

    needs_walltime = True

    def __init__(self, encoder: Encoder, choose: Choose, name: str = "") -> None:
        self.encoder, self.choose = encoder, choose
        self.scheduler: ChoosingScheduler = find_observation(encoder.name)[0]
        self.name = name or self.scheduler.name
        self.needs_value, self.needs_qos = self.scheduler.needs_value, self.scheduler.needs_qos
        self.suspends, self.switches_hosts = encoder.suspends, self.scheduler.energy
        self._observation = np.zeros(encoder.shape, np.float32)
        self._mask = np.zeros(encoder.actions, np.int8)
        self._addresses = np.zeros(_N_ADDRESSES, np.int64)
        self._kept: tuple[ClusterState, PlatformFacts, Cycles, Bundle, PlanArrays] | None = None

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins.

        Raises:
            ConfigError: if the platform is another than the encoder is for.
        """
        self.encoder.check_platform(platform)
        self._kept = None

    def decide(self, cluster: ClusterView, plan: Plan) -> None:
        """Go through the cycles of this instant."""
        self._use(cluster.arrays, cluster.facts, plan.arrays)
        wanted = next_choice(self._addresses, _BEGIN_DECISION, self._observation, self._mask)
        while wanted:
            action = int(self.choose(self._observation, self._mask))
            wanted = next_choice(self._addresses, action, self._observation, self._mask)

    def _use(self, state: ClusterState, facts: PlatformFacts, plan: PlanArrays) -> None:
        """Bring the addresses up to date, where the arrays have been replaced by longer ones."""
        kept = self._kept
        if kept and kept[0] is state and kept[1] is facts and kept[4] is plan:
            return
        self.encoder.check_arrays(len(state.host_state), self._observation, self._mask)
        if kept is None:
            cycles, memory = new_cycles(state), self.encoder.new_memory(state)
            if self.scheduler.opens_first:
                cycles.call = -np.inf
        else:
            cycles, memory = grow_cycles(kept[2], state), self.encoder.with_room(kept[3], state)
        self._kept = (state, facts, cycles, memory, plan)
        entries = self.scheduler.open, self.scheduler.act, self.scheduler.observe
        compile_ahead(*entries)
        # kernels take addresses: passing an array of them costs less than passing bundles (`compiling.bundle`)
        self._addresses[:] = [holder.address for holder in (*self._kept, *entries)]

    def __repr__(self) -> str:
        return f"<policy {self.name}>"


_STATE, _FACTS, _CYCLES, _MEMORY, _PLAN, _OPEN, _ACT, _OBSERVE, _N_ADDRESSES = range(9)
_state_at, _facts_at, _plan_at = bundle_at(ClusterState), bundle_at(PlatformFacts), bundle_at(PlanArrays)
_cycles_at = bundle_at(Cycles)


@kernel
def next_choice(addresses, action, observation, mask):
    """Make a choice, or begin a decision (-1), and go on to the next choice of this instant; False: there is none."""
    state, facts = _state_at(addresses[_STATE]), _facts_at(addresses[_FACTS])
    cycles, plan, memory = _cycles_at(addresses[_CYCLES]), _plan_at(addresses[_PLAN]), addresses[_MEMORY]
    if action == _BEGIN_DECISION:
        goes_on = begin_decision(state, cycles) and _open(addresses, state, facts, cycles, plan, memory)
    else:
        goes_on = _act(addresses, state, facts, cycles, plan, memory, action)
    while True:
        # choices of this cycle; where a single action is valid it is taken, and nobody is asked
        while goes_on:
            call_observe(addresses[_OBSERVE], (state, facts, cycles, plan, memory, observation, mask))
            only = _only_valid(mask)
            if only < 0:  # this one is for the caller: its call with the action goes on from here
                return True
            goes_on = _act(addresses, state, facts, cycles, plan, memory, only)
        # the next cycle, if another job has come at this instant
        if show_arrival(state, cycles) < 0:
            return False
        goes_on = _open(addresses, state, facts, cycles, plan, memory)


@kernel
def _open(addresses, state, facts, cycles, plan, memory):
    return call_open(addresses[_OPEN], (state, facts, cycles, plan, memory)) != 0


@kernel
def _act(addresses, state, facts, cycles, plan, memory, action):
    return call_act(addresses[_ACT], (state, facts, cycles, plan, memory, action)) != 0


@kernel
def _only_valid(mask):
    """The action that alone is valid, -1 where there are several."""
    only = -1
    for action in range(len(mask)):
        if mask[action]:
            if only >= 0:
                return -1
            only = action
    return only
