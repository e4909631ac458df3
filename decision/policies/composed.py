"""`ComposedPolicy`: an order, a backfilling rule, an allocation and a power rule, decided by compiled kernels."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decision.compiling.entry import Entry
from decision.model.errors import ConfigError
from decision.model.platform import Platform
from decision.state.cluster import ClusterState

from .above import read_learned
from .allocation import check_prices, check_topology, check_tree
from .composed_kernels import decide_composed, slots_of, used_slots
from .composed_options import (
    BACKFILL_ORDER,
    OPTIONS,
    PRICES,
    SLOT_VALUES,
    UNGUARDED,
    allocation_name,
    candidate_order,
    check_booking,
    check_suspend,
    checked_number,
    composed_name,
    refuse_sleepless,
    slot_code,
)
from .config import Allocation, Backfill, Order, PolicyConfig, Power, StartHosts, Suspend
from .guard import OPTION, read_guard, switch_times
from .memory import Memory, grown_memory, new_memory
from .options import refuse_unknown
from .prepared import CompiledPolicy

_BY_WALLTIME = {
    *(Order.SJF, Order.LJF, Order.SAF, Order.LAF, Order.WFP3, Order.UNICEP),
    *(Order.F1, Order.F2, Order.F3, Order.F4),
}


class ComposedPolicy(CompiledPolicy):
    """A policy made of slots.

    Args:
        order: in which order jobs are looked at.
        backfill: what happens behind a job that does not fit.
        allocation: which of the free hosts a job gets.
        prices: with the allocation tree: what free hosts are worth. A checkpoint that ``decision train prices`` made,
            the name of a shipped one, or weights (L - 1, N_FEATURES) of `decision.placement.prices`; "": nothing.
        power: when idle hosts sleep.
        start: which hosts a job may be given; ``bound`` needs the power slot idle-timeout.
        suspend: which running jobs give their hosts to a waiting one that does not fit; needs the backfilling none or
            first-fit, which keep no reservations.
        guard: seconds after which a job that waits gets a reservation that nothing may delay, or ``auto``
            (`decision.policies.guard`); None: never. With the backfilling conservative, where every job has one from
            its arrival, it changes nothing.
        backfill_order: in which order EASY looks at the jobs behind its first one that waits; None: that of the queue.
        numbers: ``age_weight``, ``size_weight`` and ``max_age`` (seconds) of the order multifactor;
            ``idle_timeout`` (seconds) and ``keep_awake`` (hosts) of the power slots of these names; ``wake_time``
            (seconds) where the platform does not say how long hosts take to wake; ``patience`` (seconds) of ``bound``.

    Raises:
        ConfigError: for a name or number that makes no sense, or a checkpoint that has no prices.
        InputError: if the checkpoint cannot be read.
    """

    entry = decide_composed

    def __init__(
        self,
        order: str = "fcfs",
        backfill: str = "none",
        allocation: str = "first-fit",
        power: str = "never",
        start: str = "awake",
        suspend: str = "never",
        guard: float | str | None = None,
        backfill_order: str | None = None,
        prices: str | NDArray[np.float64] = "",
        **numbers: Any,
    ) -> None:
        self.name = composed_name(order, backfill)
        codes: dict[str, Any] = {
            slot: slot_code(self.name, slot, value)
            for slot, value in zip(SLOT_VALUES, (order, backfill, allocation, power, start, suspend), strict=True)
        }
        refuse_unknown(self.name, numbers, OPTIONS)
        settings = {option: checked_number(self.name, option, value, codes) for option, value in numbers.items()}
        if guard is not None:
            settings[OPTION] = read_guard(self.name, guard)
        if codes["start"] == StartHosts.BOOKED:
            check_booking(self.name, codes, guard is not None, backfill_order is not None)
        if codes["suspend"] != Suspend.NEVER:
            check_suspend(self.name, codes, guard is not None)
        if backfill_order is not None:
            settings[BACKFILL_ORDER] = candidate_order(self.name, backfill_order, codes["backfill"])
        self._given = PolicyConfig(**codes, **settings)
        self.config = self._given
        self._prices = np.zeros((0, 0)) if isinstance(prices, str) else prices
        if isinstance(prices, str) and prices:
            if self._given.allocation != Allocation.TREE:
                raise ConfigError(f"policy {self.name}: option {PRICES} does nothing without allocation=tree")
            self._prices = read_learned("prices", prices)
        self._priced_by = prices if isinstance(prices, str) else "given"

    @property
    def called(self) -> tuple[Entry, ...]:
        """What few other policies do."""
        return tuple(used_slots(self._given).values())

    @property
    def needs_value(self) -> bool:
        """Whether jobs must have values: orders and suspensions by value need them."""
        return self.config.order in (Order.HVF, Order.DENSITY) or self.config.suspend != Suspend.NEVER

    @property
    def needs_qos(self) -> bool:
        """Whether jobs must have a quality of service."""
        return self.config.order == Order.QOS

    @property
    def switches_hosts(self) -> bool:
        """Whether it puts hosts to sleep."""
        return self.config.power != Power.NEVER

    @property
    def suspends(self) -> bool:
        """Whether it suspends jobs."""
        return self.config.suspend != Suspend.NEVER

    @property
    def books_hosts(self) -> bool:
        """Whether it gives jobs hosts that are not awake yet."""
        return self.config.start == StartHosts.BOOKED

    @property
    def needs_walltime(self) -> bool:
        """Whether jobs must say their walltime: orders that rank by it do, and what keeps reservations.

        The kernels take a job without one as endless: it comes last or first, and no reservation can count on it.
        """
        config = self.config
        reserves = config.backfill in (Backfill.EASY, Backfill.CONSERVATIVE) or config.guard < math.inf
        return reserves or config.order in _BY_WALLTIME

    def refuse_guard(self) -> None:
        """Refuse a guard around this policy, if its jobs book hosts. Raises ConfigError."""
        if self.books_hosts:
            raise ConfigError(f"policy {self.name}: start=bound {UNGUARDED}")

    def keep_promises(self) -> None:
        """Remember when EASY first promises each head of the queue to start (`Memory.promised`)."""
        self._given = self._given._replace(promises=1)

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins on this platform."""
        super().reset(platform, seed)
        if self._given.allocation in (Allocation.TREE, Allocation.SLURM_TREE):
            check_tree(f"policy {self.name}: allocation={allocation_name(self._given)}", platform)
        if self._given.allocation == Allocation.HOPS:
            check_topology(f"policy {self.name}: allocation={allocation_name(self._given)}", platform)
        check_prices(f"policy {self.name}: {PRICES}={self._priced_by}", self._prices, platform)
        wake, doze = switch_times(platform, self._given.wake_time) if self._given.power else (0.0, 0.0)
        if self._given.start == StartHosts.BOOKED and not any(host.sleep for host in platform.hosts):
            refuse_sleepless(self.name, platform)
        guard = math.inf if _needs_no_guard(self._given) else self._given.guard
        self.config = self._given._replace(seed=seed % 2**63, wake_time=wake, doze_time=doze, guard=guard)

    def memory_for(self, state: ClusterState, memory: Memory | None = None) -> Memory:
        """`memory` with room for all of `state`; an empty one where there is none yet."""
        if memory is None:
            return new_memory(state, self.config)._replace(prices=self._prices, **slots_of(self.config))
        return grown_memory(memory, state, self.config)

    def __repr__(self) -> str:
        return f"<policy {self.name}>"


def _needs_no_guard(config: PolicyConfig) -> bool:
    """Whether every job has a reservation anyway, or the policy is what the guard is relative to."""
    is_easy = config.order == Order.FCFS and config.backfill == Backfill.EASY and config.backfill_order < 0
    return config.backfill == Backfill.CONSERVATIVE or (config.guard < 0 and is_easy and config.power == Power.NEVER)
