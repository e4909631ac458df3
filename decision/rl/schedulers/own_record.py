"""What makes a scheduler of an `Environment` in plain Python: a record around its base's, and who asks Python when."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import Bundle, Int
from decision.compiling.entry import Entry
from decision.compiling.jit import compile_ahead, kernel
from decision.model.errors import ConfigError, DecisionError, InternalError, PolicyError
from decision.model.platform import Host, Platform, PowerState
from decision.model.workload import Workload
from decision.policies.loading import find_class, in_words
from decision.policies.policy import Plan
from decision.policies.prepared import NoMemory
from decision.state.bitmap import count_hosts
from decision.state.cluster import PSTATE_SLEEP, ClusterState, new_state, platform_facts
from decision.state.plan_arrays import CALL_AT, REJECT, SET_PSTATE, START, new_plan

from .base import (
    ACT,
    BEGIN,
    MEASURE,
    OBSERVE,
    OPEN,
    REWARD,
    ChoosingScheduler,
    Draws,
    Encoder,
    Episodes,
    SchedulerKernels,
    call_act,
    call_begin,
    call_measure,
    call_observe,
    call_open,
    call_reward,
    find_scheduler,
    read_encoder,
)
from .decision_points import new_cycles, note_start
from .own import Asks, ChoiceView, Environment
from .window import Count

# --- The record: kernels around those of the base --------------------------------------------------------------------


class OwnMemory(Bundle):
    """The entries of the base, its memory, and what the last action planned. The base's memory lives as long."""

    begin: Int
    open: Int
    act: Int
    observe: Int
    reward: Int
    measure: Int
    memory: Int  # address of the base's
    acts: Int  # 1 where `act` is Python's
    asks: Int  # when a choice is asked for then
    planned: Int  # actions of the plan, with those of the last action
    goes_on: Int  # whether another choice follows

    def _replace(self, **changed: Any) -> "OwnMemory":
        other = super()._replace(**changed)
        other.__dict__["of_base"] = self.__dict__["of_base"]
        return other


_ASKS: tuple[Asks, ...] = ("waits", "fits", "always")
_WAITS, _FITS, _ALWAYS = range(len(_ASKS))


@BEGIN.entry_with(OwnMemory)
def own_begin(state, facts, memory):
    """Begins and reads as the base scheduler does."""
    return call_begin(memory.begin, (state, facts, memory.memory))


@OPEN.entry_with(OwnMemory)
def own_open(state, facts, cycles, plan, memory):
    """As the base does, or where jobs wait or fit."""
    if memory.acts == 0:
        return call_open(memory.open, (state, facts, cycles, plan, memory.memory))
    return _is_asked(state, cycles, memory.asks)


@kernel
def _is_asked(state, cycles, asks):
    if asks != _FITS:
        return asks == _ALWAYS or cycles.nb_queued > 0
    for at in range(cycles.nb_queued):  # noqa: SIM110 - numba knows no any
        if state.size[cycles.queue[at]] <= cycles.nb_free:
            return True
    return False


@ACT.entry_with(OwnMemory)
def own_act(state, facts, cycles, plan, memory, action):
    """As the base does, or take over what Python wrote into the plan."""
    if memory.acts == 0:
        return call_act(memory.act, (state, facts, cycles, plan, memory.memory, action))
    first = plan.nb_actions  # Python's actions are behind these, and become the plan's now
    plan.nb_actions = memory.planned
    for k in range(first, memory.planned):
        if plan.kind[k] == START or plan.kind[k] == REJECT:
            _leave_queue(state, cycles, plan, k)
        elif plan.kind[k] == CALL_AT:
            cycles.call = min(cycles.call, plan.time[k])
        elif plan.kind[k] == SET_PSTATE:
            pstate = plan.value[k]
            for i in range(plan.begin[k], plan.end[k]):
                for host in range(plan.first[i], plan.last[i] + 1):  # those that fall asleep are away
                    if 0 <= pstate < facts.pstate_kind.shape[1] and facts.pstate_kind[host, pstate] == PSTATE_SLEEP:
                        cycles.until[host] = np.inf
    cycles.nb_free = count_hosts(plan.free)
    return memory.goes_on != 0 and _is_asked(state, cycles, memory.asks)


@kernel
def _leave_queue(state, cycles, plan, k):
    """The job of an action leaves the queue; one that is not there stays for the engine to refuse."""
    at = 0
    while at < cycles.nb_queued and cycles.queue[at] != plan.job[k]:
        at += 1
    if at == cycles.nb_queued:
        return
    if plan.kind[k] == START:
        note_start(state, cycles, plan, at, k)
        return
    cycles.nb_queued -= 1
    for i in range(at, cycles.nb_queued):
        cycles.queue[i] = cycles.queue[i + 1]


@OBSERVE.entry_with(OwnMemory)
def own_observe(state, facts, cycles, plan, memory, observation, mask):
    """Writes what the base scheduler observes."""
    return call_observe(memory.observe, (state, facts, cycles, plan, memory.memory, observation, mask))


@REWARD.entry_with(OwnMemory)
def own_reward(state, facts, cycles, progress, memory, moment):
    """The reward that the base scheduler pays."""
    return call_reward(memory.reward, (state, facts, cycles, progress, memory.memory, moment))


@MEASURE.entry_with(OwnMemory)
def own_measure(state, facts, cycles, progress, memory, out):
    """Writes what the base scheduler measures."""
    return call_measure(memory.measure, (state, facts, cycles, progress, memory.memory, out))


class OwnEncoder(Encoder, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a class observes, and the encoder of its base."""

    width: int  # numbers of an observation
    choices: int  # actions
    of_base: str  # its encoder as JSON

    @property
    def inner(self) -> Encoder:
        """The encoder of the base scheduler."""
        return _encoder_in(self.of_base)

    @property
    def shape(self) -> tuple[int]:
        """(D,), numbers of an observation."""
        return (self.width,)

    @property
    def actions(self) -> int:
        """How many actions there are."""
        return self.choices

    @property
    def bounds(self) -> tuple[float, float]:
        """An observation may be any numbers."""
        return -np.inf, np.inf

    @property
    def window(self) -> int:
        """Jobs of the queue that the base sees."""
        return self.inner.window

    @property
    def suspends(self) -> bool:
        """Whether the base suspends jobs."""
        return self.inner.suspends

    def check_cores(self, cores: int, where: str = "the platform") -> None:
        """Refuse a platform that the base is not for. Raises ConfigError."""
        self.inner.check_cores(cores, where)

    def check_platform(self, platform: Platform) -> None:
        """Checks hosts as `check_cores` does."""
        self.inner.check_platform(platform)


@cache
def _encoder_in(text: str) -> Encoder:
    fields = msgspec.json.decode(text)
    return BASELESS.encoder_type(**fields) if fields["name"] == BASELESS.name else read_encoder(fields)


def _own_memory(record: "OwnScheduler", of_base: Bundle) -> OwnMemory:
    entries = record.inner.entries
    compile_ahead(*entries)
    memory = OwnMemory(
        **record.inner.kernels()._asdict(), memory=of_base.address, acts=int(record.acts), asks=_ASKS.index(record.asks)
    )
    memory.__dict__["of_base"] = of_base
    return memory


class OwnScheduler(ChoosingScheduler):
    """The record of an `Environment`'s class."""

    kind: ClassVar[type[Environment]]
    inner: ClassVar[ChoosingScheduler]  # the base's record
    acts: ClassVar[bool]  # whether `act` is Python's
    asks: ClassVar[Asks]

    summary = "a class of your own"
    presets = ()
    networks = ("mlp",)
    algorithms = ("ppo", "sac")
    encoder_type = OwnEncoder
    begin, open, act, observe, reward, measure = own_begin, own_open, own_act, own_observe, own_reward, own_measure

    @property
    def default_preset(self) -> str:
        """The class says it: ``Environment.preset``."""
        return self.name

    @property
    def file_name(self) -> str:
        """The name of the class, for files."""
        return self.name.rpartition(":")[2]

    @property
    def own_preset(self) -> dict[str, Any]:
        """What a training of the class begins with: many environments gain nothing where Python is asked for each."""
        learn = {"algorithm": "ppo", "envs": 16, "minibatch": 256} | dict(self.kind.preset.get("learn", {}))
        sections = {name: dict(section) for name, section in self.kind.preset.items()}
        network = {"kind": "mlp", "hidden": [64, 64]}
        return {"network": network, **sections, "learn": learn, "scheduler": self.name}

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The wrappers, and what they wrap."""
        return (*super().entries, *self.inner.entries)

    def kernels(self) -> SchedulerKernels:
        """Addresses of the wrappers around the base's kernels."""
        return SchedulerKernels(*(entry.address for entry in super().entries))

    def check(self, settings: Any, where: str) -> None:
        """As the base does. Raises ConfigError."""
        self.inner.check(settings, where)

    def episodes(self, settings: Any, workload: Workload) -> Episodes:
        """They are those of the base scheduler."""
        return self.inner.episodes(settings, workload)

    def encoder_fields(self, settings: Any, cores: int) -> dict[str, Any]:
        """The name alone: the rest is the base's."""
        return {"name": self.name}

    def make_encoder(self, settings: Any, cores: int, workloads: Sequence[Workload], **options: Any) -> OwnEncoder:
        """The encoder: what the class observes on an empty cluster says how many numbers it observes."""
        inner = self.inner.make_encoder(settings, cores, workloads, **options)
        text = msgspec.json.encode(inner).decode()
        actions = self.kind.actions if self.acts else inner.actions
        own = Own(self)
        own.look_at_nothing(inner, cores)
        return OwnEncoder(name=self.name, width=len(own.observation()), choices=actions, of_base=text)

    def new_memory(self, settings: Any, encoder: Encoder, state: ClusterState) -> Bundle:
        """That of the base, wrapped."""
        assert isinstance(encoder, OwnEncoder)
        return _own_memory(self, self.inner.new_memory(settings, encoder.inner, state))

    def memory_in_a_run(self, encoder: OwnEncoder, state: ClusterState, before: Bundle | None) -> OwnMemory:
        """The memory where a policy decides: the one before, with room for every job of `state`, or a new one."""
        if before is None:
            return _own_memory(self, encoder.inner.new_memory(state))
        return _own_memory(self, encoder.inner.with_room(before.__dict__["of_base"], state))

    def draws_of(self, settings: Any) -> Draws:
        """As the base, where the actions are its."""
        return "nothing" if self.acts else self.inner.draws_of(settings)

    def reward_parameters(self, settings: Any) -> tuple[float, ...]:
        """They are those of the base scheduler."""
        return self.inner.reward_parameters(settings)

    def outlook(self, settings: Any, encoder: Encoder) -> Any:
        """It is that of the base scheduler."""
        return self.inner.outlook(settings, encoder)

    def supply(self, settings: Any) -> Any:
        """It is that of the base scheduler."""
        return self.inner.supply(settings)

    def read_options(self, options: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Begins and reads as the base scheduler does."""
        return self.inner.read_options(options)


_COPIED = (
    *("Settings", "env_options", "needs_value", "needs_qos", "baseline_action", "choices_per_job", "calls"),
    *("most_calls", "opens_first", "curves", "metrics", "validated", "energy", "for_utilization", "former_settings"),
)


def record_of(kind: type[Environment], name: str) -> OwnScheduler:
    """The record of a class, by this name.

    Raises:
        ConfigError: if the class is not complete.
    """
    acts = kind.act is not Environment.act
    base = BASELESS if kind.base is None else find_scheduler(kind.base)
    if not isinstance(base, ChoosingScheduler):
        raise ConfigError(f"{name}: its base {kind.base} has no environment; take dbf, or None", field="base")
    if kind.base is None and not (acts and kind.observe is not Environment.observe):
        raise ConfigError(f"{name}: without a base it must have the methods observe and act", field="base")
    if acts and not (isinstance(kind.actions, int) and kind.actions >= 1):
        raise ConfigError(
            f"{name}: actions must say how many actions act knows; found {kind.actions!r}", field="actions"
        )
    if kind.asks not in _ASKS:
        raise ConfigError(f"{name}: asks must be {', '.join(_ASKS)}; found {kind.asks!r}", field="asks")
    own: dict[str, Any] = {each: getattr(base, each) for each in _COPIED}
    if acts:
        own |= {"calls": True, "most_calls": None, "opens_first": False, "energy": base.energy or kind.energy}
        own |= {"baseline_action": -1, "choices_per_job": max(base.choices_per_job, 8)}
    own |= {"kind": kind, "inner": base, "acts": acts, "asks": kind.asks, "name": name, "env_id": name}
    own |= {"observations": {name: {}}, "__doc__": kind.__doc__}
    record: OwnScheduler = type("OwnScheduler", (OwnScheduler,), own)()
    return record


@cache
def named_record(name: str) -> OwnScheduler:
    """The record of ``module:Class`` or ``./file.py:Class``.

    Raises:
        ConfigError: if there is no such class, or it is no `Environment`.
    """
    kind = find_class(name, "scheduler", "observe")
    if not (inspect.isclass(kind) and issubclass(kind, Environment)):
        raise ConfigError(f"scheduler {name}: that is no class that inherits from decision.Environment")
    return record_of(kind, name)


# --- Python, asked between two steps ---------------------------------------------------------------------------------


class Own:
    """An object of the class where it is asked: in one environment, or in one run.

    Args:
        record: of the class.
    """

    def __init__(self, record: OwnScheduler) -> None:
        self.name, self.acts = record.name, record.acts
        self._made = self._ask("making it", record.kind)
        kind = type(self._made)
        self.pays = kind.reward is not Environment.reward
        self._masks = kind.mask is not Environment.mask
        self._sees = kind.observe is not Environment.observe

    def look(self, view: ChoiceView, plan: Plan, memory: OwnMemory) -> None:
        """What is looked at from now on."""
        self.view, self.plan, self._memory = view, plan, memory

    def look_at_nothing(self, inner: Encoder, cores: int) -> None:
        """An idle cluster without jobs."""
        host = PowerState(1e9)
        hosts = tuple(Host(id=i, name=f"host{i}", pstates=(host,)) for i in range(cores))
        facts, pstates = platform_facts(Platform(hosts=hosts), False)
        state = new_state(facts, pstates, 1)
        arrays, cycles = new_plan(state), new_cycles(state)
        cycles.nb_free, cycles.until[:] = cores, -np.inf
        plan = Plan(arrays, state, facts)
        self.view = ChoiceView(state, facts, [], cycles, plan)
        self.view.observation, self.view.valid = np.zeros(inner.shape, np.float32), np.ones(inner.actions, np.int8)
        self.begin()

    def begin(self) -> None:
        """An episode or a run begins."""
        self.view.since, self.view.over, self.view.paid = -np.inf, False, 0.0
        self._ask("begin", self._made.begin)

    def observation(self) -> NDArray[np.float32]:
        """What the class observes, a vector (D,)."""
        if not self._sees:
            return self.view.observation
        given = self._ask("observe", self._made.observe, self.view)
        try:
            found = np.asarray(given, np.float32)
        except (TypeError, ValueError):
            found = np.zeros((0, 0), np.float32)
        if found.ndim != 1:
            raise ConfigError(f"{self.name}.observe: must give a list of numbers; found {given!r}", field="observe")
        if not np.isfinite(found).all():
            at = int(np.flatnonzero(~np.isfinite(found))[0])
            raise ConfigError(
                f"{self.name}.observe: number {at} is {found[at]} at {self._when()}; bound it", field="observe"
            )
        return found

    def write(self, observation: NDArray[np.float32], mask: NDArray[np.int8]) -> None:
        """Write what the class observes (D,) and which actions may be chosen (A,). Raises ConfigError."""
        found = self.observation()
        if found.shape != observation.shape:
            wanted = f"{len(observation)} numbers, as on an empty cluster"
            raise ConfigError(f"{self.name}.observe: gave {len(found)} at {self._when()}; it must give {wanted}")
        observation[:] = found
        if not self._masks:
            mask[:] = 1 if self.acts else self.view.valid
            return
        valid = np.asarray(self._ask("mask", self._made.mask, self.view))
        if valid.shape != mask.shape or not (valid.any() or self.view.over):
            wanted = f"one of {len(mask)} actions at least"
            raise ConfigError(f"{self.name}.mask: must allow {wanted}; found {valid.tolist()} at {self._when()}")
        mask[:] = valid

    def act(self, action: int) -> None:
        """Write what an action means into the plan; `own_act` takes it over. Raises PolicyError for what cannot be."""
        plan = self.plan.arrays
        self.view.since, before = self.view.now, plan.nb_actions
        if not self.acts:
            return
        goes_on = self._ask("act", self._made.act, self.view, action, self.plan)
        starts = self._started(before)
        if goes_on is None:
            goes_on = starts
        self._memory.planned, self._memory.goes_on = plan.nb_actions, int(bool(goes_on))
        plan.nb_actions = before

    def _started(self, before: int) -> bool:
        """Whether a job starts by the plan's actions from `before` on. Raises PolicyError where it does not wait."""
        plan, state, starts, gone = self.plan.arrays, self.view.arrays, False, set[int]()
        waiting = self.view.queue
        for k in range(before, plan.nb_actions):
            if plan.kind[k] not in (START, REJECT):
                continue
            number, intervals = int(plan.job[k]), slice(plan.begin[k], plan.end[k])
            name = f"{self.name}: act at {self._when()}: {self.view.names[number]}"
            if number in gone or not waiting.has(number):
                raise PolicyError(f"{name} does not wait")
            hosts = int((plan.last[intervals] - plan.first[intervals] + 1).sum())
            if plan.kind[k] == START and hosts != state.size[number]:
                raise PolicyError(f"{name} needs {state.size[number]} hosts, and was given {hosts}")
            gone.add(number)
            starts |= plan.kind[k] == START
        return starts

    def reward(self) -> float:
        """What the last choice is paid."""
        paid = self._ask("reward", self._made.reward, self.view)
        try:
            paid = float(paid)
        except (TypeError, ValueError):
            paid = np.nan
        if not np.isfinite(paid):
            raise ConfigError(f"{self.name}.reward: must give a finite number; found {paid} at {self._when()}")
        return paid

    def _when(self) -> str:
        return f"t={self.view.now:.12g} s"

    def _ask(self, what: str, method: Callable[..., Any], *given: Any) -> Any:
        """What the user's code gives; what it raises becomes one line that says where."""
        try:
            return method(*given)
        except (DecisionError, InternalError):
            raise
        except Exception as error:
            raise PolicyError(f"{self.name}: {what} failed: {in_words(error)}") from error


# --- A base of nothing -----------------------------------------------------------------------------------------------


class BaselessSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the environment of a class without a base can be set to."""

    jobs: Count = 200  # placed jobs that end an episode
    online: bool = False  # whether other jobs arrive after those


class BaselessEncoder(Encoder, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The encoder of an environment without a base: nothing is observed by kernels."""

    name: str = "plain"

    @property
    def shape(self) -> tuple[int]:
        """(1,): a zero is observed."""
        return (1,)

    @property
    def actions(self) -> int:
        """There is one action, to do nothing."""
        return 1


@ACT.entry_with(NoMemory)
def _do_nothing(state, facts, cycles, plan, memory, action):
    return 0


@OBSERVE.entry_with(NoMemory)
def _see_nothing(state, facts, cycles, plan, memory, observation, mask):
    observation[:] = 0.0
    mask[:] = 1
    return 0


@REWARD.entry_with(NoMemory)
def _pay_nothing(state, facts, cycles, progress, memory, moment):
    return 0.0


class Baseless(ChoosingScheduler):
    """The base of classes that have none."""

    name = "plain"
    summary = "nothing"
    Settings = BaselessSettings
    presets = ()
    env_id = "Baseless"
    observations: ClassVar[Mapping[str, Mapping[str, Any]]] = {"plain": {}}
    encoder_type = BaselessEncoder
    act, observe, reward = _do_nothing, _see_nothing, _pay_nothing

    def encoder_fields(self, settings: Any, cores: int) -> dict[str, Any]:
        """Only the name says which encoder."""
        return {"name": self.name}

    def make_encoder(self, settings: Any, cores: int, workloads: Iterable[Workload], **options: Any) -> BaselessEncoder:
        """The encoder that observes nothing."""
        return BaselessEncoder()


BASELESS = Baseless()
