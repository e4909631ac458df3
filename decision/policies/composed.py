"""`ComposedPolicy`: an order, a backfilling rule, an allocation and a power rule, decided by compiled kernels."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from decision.model.errors import ConfigError
from decision.model.platform import Platform
from decision.state.cluster import ClusterState, platform_facts
from decision.state.view import ClusterView

from .base import Plan
from .decide import decide
from .presets import ALLOCATIONS, BACKFILLS, ORDERS, POWERS
from .settings import nearest, read_value, refuse_unknown
from .slots import Backfill, Memory, Order, PolicyConfig, Power, new_memory, with_room

_SLOTS: dict[str, Mapping[str, tuple[int, Any]]] = {
    "order": ORDERS,
    "backfill": BACKFILLS,
    "allocation": ALLOCATIONS,
    "power": POWERS,
}
_NUMBERS: dict[str, tuple[type, str, tuple[int, ...]]] = {  # option: kind, slot that reads it, values that read it
    "age_weight": (float, "order", (Order.MULTIFACTOR,)),
    "size_weight": (float, "order", (Order.MULTIFACTOR,)),
    "max_age": (float, "order", (Order.MULTIFACTOR,)),
    "idle_timeout": (float, "power", (Power.IDLE_TIMEOUT,)),
    "keep_awake": (int, "power", (Power.KEEP_AWAKE,)),
    "wake_time": (float, "power", (Power.IDLE_TIMEOUT, Power.KEEP_AWAKE)),
}
OPTIONS = (*_SLOTS, *_NUMBERS)

_BY_WALLTIME = {
    *(Order.SJF, Order.LJF, Order.SAF, Order.LAF, Order.WFP3, Order.UNICEP),
    *(Order.F1, Order.F2, Order.F3, Order.F4),
}


class ComposedPolicy:
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
        self._memory: Memory | None = None
        self._state: ClusterState | None = None

    @property
    def needs_walltime(self) -> bool:
        """Whether jobs must say their walltime: orders that rank by it do, and rules that keep reservations.

        The kernels take a job without one as endless: it comes last or first, and no reservation can count on it.
        """
        config = self.config
        return config.backfill in (Backfill.EASY, Backfill.CONSERVATIVE) or config.order in _BY_WALLTIME

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins on this platform."""
        wake, doze = _switch_times(platform, self._given.wake_time) if self._given.power else (0.0, 0.0)
        self.config = self._given._replace(seed=seed % 2**63, wake_time=wake, doze_time=doze)
        self._memory = self._state = None

    def memory_for(self, state: ClusterState, memory: Memory | None = None) -> Memory:
        """`memory` with room for all of `state`; an empty one where there is none yet."""
        return new_memory(state, self.config) if memory is None else with_room(memory, state, self.config)

    def decide(self, cluster: ClusterView, plan: Plan) -> None:
        """Fill the plan; whoever holds the arrays calls `decision.policies.decide.decide` itself."""
        if cluster.arrays is not self._state or self._memory is None:
            self._memory = self.memory_for(cluster.arrays, self._memory)
            self._state = cluster.arrays
        decide(cluster.arrays, cluster.facts, self.config, self._memory, plan.arrays)

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
