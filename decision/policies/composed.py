"""`ComposedPolicy`: an order, a backfilling rule, an allocation and a power rule, decided by compiled kernels."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from decision.jit import kernel
from decision.model.errors import ConfigError
from decision.model.names import nearest
from decision.model.platform import Platform
from decision.state.cluster import N_FREE, N_QUEUED, ClusterState, platform_facts

from .allocation import plan_start
from .backfill import choose
from .capacity import TOLERANCE
from .catalogue import SLOTS
from .config import Backfill, Order, PolicyConfig, Power
from .conservative import choose_reserved, next_call
from .memory import NEXT_CALL, Memory, config_in, grown_memory, memory_at, new_memory
from .options import read_value, refuse_unknown
from .order import sort_queue
from .plan_arrays import CALL_AT, add, clear
from .power import manage_power
from .prepared import DECIDE, DECIDED, CompiledPolicy

_SLOTS: dict[str, Mapping[str, tuple[int, Any]]] = {slot: values for slot, (_, values) in SLOTS.items()}
_NUMBERS: dict[str, tuple[type, str, tuple[int, ...]]] = {  # option: kind, slot that reads it, values that read it
    "age_weight": (float, "order", (Order.MULTIFACTOR,)),
    "size_weight": (float, "order", (Order.MULTIFACTOR,)),
    "max_age": (float, "order", (Order.MULTIFACTOR,)),
    "idle_timeout": (float, "power", (Power.IDLE_TIMEOUT,)),
    "keep_awake": (int, "power", (Power.KEEP_AWAKE,)),
    "wake_time": (float, "power", (Power.IDLE_TIMEOUT, Power.KEEP_AWAKE)),
}
OPTIONS = (*_SLOTS, *_NUMBERS)
_SOON = 1e-6  # seconds: no call is asked for sooner, because a peer rounds its clock down

_BY_WALLTIME = {
    *(Order.SJF, Order.LJF, Order.SAF, Order.LAF, Order.WFP3, Order.UNICEP),
    *(Order.F1, Order.F2, Order.F3, Order.F4),
}


@kernel
def decide(state, facts, memory, plan):
    """Fill `plan` for this instant, after all transitions of it; reads `state` and never writes it."""
    config = config_in(memory)
    clear(plan, state)
    if state.count[N_FREE] == 0 and config.backfill != Backfill.CONSERVATIVE and config.power == Power.NEVER:
        return
    if config.order == Order.FCFS:
        queue, length = state.queue, state.count[N_QUEUED]
    else:
        queue, length = memory.sorted, sort_queue(state, config, memory)
    call = np.inf
    if config.backfill == Backfill.CONSERVATIVE:
        chosen = choose_reserved(state, facts, config, memory, queue, length)
        call = next_call(state, memory, chosen)
    else:
        chosen = choose(state, facts, config, memory, queue, length)
    for i in range(chosen):
        plan_start(plan, config, memory.chosen[i], state.size[memory.chosen[i]])
    if config.power != Power.NEVER:
        call = min(call, manage_power(state, facts, config, memory, plan, queue, length, chosen))
    if call < np.inf:
        _ask_for_call(state, memory, plan, call)


@kernel
def _ask_for_call(state, memory, plan, time):
    """Ask to be called at `time` (seconds), but once for each time: a peer keeps every request.

    Nothing is asked where a call is pending that comes no later.
    """
    pending = memory.times[NEXT_CALL]
    if pending <= state.now[0] + TOLERANCE:
        pending = np.inf
    time = max(time, state.now[0] + _SOON)
    if time < pending:
        plan.time[add(plan, CALL_AT, -1)] = time
        pending = time
    memory.times[NEXT_CALL] = pending


@DECIDE.entry
def _decide_composed(state, facts, memory, plan):
    decide(state, facts, memory_at(memory), plan)
    return DECIDED


class ComposedPolicy(CompiledPolicy):
    """A policy made of slots.

    Args:
        order: in which order jobs are looked at.
        backfill: what happens behind a job that does not fit.
        allocation: which of the free hosts a job gets.
        power: when idle hosts sleep.
        numbers: ``age_weight``, ``size_weight`` and ``max_age`` (seconds) of the order multifactor;
            ``idle_timeout`` (seconds) and ``keep_awake`` (hosts) of the power slots of these names; ``wake_time``
            (seconds) where the platform does not say how long hosts take to wake.

    Raises:
        ConfigError: for a name or number that makes no sense.
    """

    entry = _decide_composed

    def __init__(
        self,
        order: str = "fcfs",
        backfill: str = "none",
        allocation: str = "first-fit",
        power: str = "never",
        **numbers: Any,
    ) -> None:
        self.name = _name(order, backfill)
        codes: dict[str, Any] = {
            slot: _code(self.name, slot, value)
            for slot, value in (("order", order), ("backfill", backfill), ("allocation", allocation), ("power", power))
        }
        refuse_unknown(self.name, numbers, OPTIONS)
        settings = {option: _number(self.name, option, value, codes) for option, value in numbers.items()}
        self._given = PolicyConfig(**codes, **settings)
        self.config = self._given

    @property
    def needs_walltime(self) -> bool:
        """Whether jobs must say their walltime: orders that rank by it do, and rules that keep reservations.

        The kernels take a job without one as endless: it comes last or first, and no reservation can count on it.
        """
        config = self.config
        return config.backfill in (Backfill.EASY, Backfill.CONSERVATIVE) or config.order in _BY_WALLTIME

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins on this platform."""
        super().reset(platform, seed)
        wake, doze = _switch_times(platform, self._given.wake_time) if self._given.power else (0.0, 0.0)
        self.config = self._given._replace(seed=seed % 2**63, wake_time=wake, doze_time=doze)

    def memory_for(self, state: ClusterState, memory: Memory | None = None) -> Memory:
        """`memory` with room for all of `state`; an empty one where there is none yet."""
        return new_memory(state, self.config) if memory is None else grown_memory(memory, state, self.config)

    def __repr__(self) -> str:
        return f"<policy {self.name}>"


def _name(order: str, backfill: str) -> str:
    if backfill == "none":
        return order
    return backfill if order == "fcfs" else f"{order}+{backfill}"


def _code(policy: str, slot: str, value: str) -> int:
    known = _SLOTS[slot]
    if value not in known:
        raise ConfigError(
            f"policy {policy}: there is no {slot} {value!r}{nearest(str(value), known)} (there are {', '.join(known)})"
        )
    return int(known[value][0])


def _number(policy: str, name: str, value: Any, codes: Mapping[str, int]) -> Any:
    kind, slot, readers = _NUMBERS[name]
    if codes[slot] not in readers:
        names = [n for n, (code, _) in _SLOTS[slot].items() if code in readers]
        raise ConfigError(f"policy {policy}: option {name} does nothing without {slot}={' or '.join(names)}")
    number = read_value(policy, name, value, kind)
    if not 0 <= number < math.inf:
        raise ConfigError(f"policy {policy}: option {name}={value} must be finite and not negative")
    return number


def _switch_times(platform: Platform, unknown: float) -> tuple[float, float]:
    """Seconds that the slowest host takes to wake and to fall asleep; `unknown` for waking where it is not said."""
    facts, _ = platform_facts(platform, energy=True)
    sleeps = facts.sleep_pstate >= 0
    if not sleeps.any():
        return 0.0, 0.0
    wake, doze = facts.on_time[sleeps], facts.off_time[sleeps]
    return float(np.where(np.isnan(wake), unknown, wake).max()), float(np.nan_to_num(doze, nan=0.0).max())
