"""`ComposedPolicy`: an order, a backfilling rule, an allocation and a power rule, decided by compiled kernels."""

import math
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from decision.compiling.entry import Entry
from decision.compiling.jit import kernel, without_vectors
from decision.model.errors import ConfigError
from decision.model.hosts import nearest
from decision.model.platform import Platform
from decision.state.cluster import QUEUED, ClusterState
from decision.state.plan_arrays import START, SUSPEND, add, clear
from decision.state.transitions import spare_power

from .allocation import check_prices, check_topology, check_tree, plan_start, take_near, take_on_tree
from .backfill import choose_reserved, choose_starts, next_call
from .guard import (
    OPTION,
    GuardLimit,
    ask_for_call,
    choose_guarded,
    follow_guard,
    guard_call,
    is_guarded,
    read_guard,
    switch_times,
)
from .loading import read_learned
from .memory import SLOT, Memory, call_slot, grown_memory, memory_at, new_memory
from .options import (
    NUMERIC_OPTIONS,
    SLOTS,
    Allocation,
    Backfill,
    Order,
    PolicyConfig,
    Power,
    StartHosts,
    Suspend,
    read_value,
    refuse_unknown,
)
from .order import density_of, sort_queue
from .power import decide_booked, manage_power
from .prepared import DECIDE, DECIDED, CompiledPolicy

# Running jobs that give their hosts to a waiting one that is worth more.
#
# A job that waits and does not fit takes the hosts of running jobs that are worth less than it, by value or by value
# per host-second left: those worth least first, and no more than it needs. They are suspended in one decision, and it
# starts in the next, at the same instant, before all others: Batsim starts no job on the hosts of one that was killed
# in the same reply. Venkataswamy, Grigsby, Grimshaw and Qi, Launchpad (JSSPP 2024), suspend one job for one other; here
# are as many as it takes.


@SLOT.entry
def suspend_for_others(state, facts, memory, plan, length):
    """Suspend running jobs for those of ``memory.sorted``, which has this length, that are worth more.

    0 where there is none to suspend: then those that others were suspended for are first in ``memory.sorted``.
    """
    running = state.running[: state.nb_running]
    if state.suspended[running].any():
        return 1.0  # their hosts are not free yet, and they are somebody's
    # Else a job that ranks before them could take the hosts that others were suspended for, and so on for ever.
    _put_heirs_first(state, memory, length)
    # A supply of power may be shorter than the hosts that are free.
    free, heirs = min(np.int64(state.nb_free), spare_power(state)), 0
    goes = np.zeros(len(running), np.bool_)
    for i in range(length):
        job = memory.sorted[i]
        if state.size[job] > free:
            gained = _choose_victims(state, memory, running, goes, job, state.size[job] - free)
            if gained == 0 and memory.backfill == Backfill.NONE:
                break
            if gained == 0:
                continue
            free += gained
            memory.heirs[heirs] = job
            heirs += 1
        free -= state.size[job]
    for i in range(len(running)):
        if goes[i]:
            add(plan, SUSPEND, running[i])
    memory.nb_heirs = heirs
    return 1.0 if heirs > 0 else 0.0


@kernel
def _put_heirs_first(state, memory, length):
    """The jobs that others were suspended for come first in ``memory.sorted``, in their order."""
    heirs, at = memory.nb_heirs, 0
    for i in range(heirs):
        job = memory.heirs[i]
        if state.job_state[job] != QUEUED:
            continue
        place = at
        while memory.sorted[place] != job and place < length - 1:
            place += 1
        while place > at:
            memory.sorted[place] = memory.sorted[place - 1]
            place -= 1
        memory.sorted[at] = job
        at += 1
    memory.nb_heirs = 0


@kernel
def _choose_victims(state, config, running, goes, job, wanted):
    """Let running jobs go that are worth less than `job`, least first, for `wanted` hosts; returns how many they have.

    0, and none goes, where all of them have too few. In the end those stay that were not needed, worth most first.
    """
    limit, gained = _worth_of(state, config, job), 0
    chosen, picked = np.zeros(len(running), np.int64), 0
    # Greedy: the least worth first, until there are enough hosts.
    while gained < wanted:
        # Of equals the last one goes.
        least, lowest = -1, limit
        for i in range(len(running)):
            if not goes[i]:
                worth = _worth_of(state, config, running[i])
                if worth < lowest or (least >= 0 and worth == lowest and running[i] > running[least]):
                    least, lowest = i, worth
        if least < 0:
            break
        goes[least] = True
        gained += state.size[running[least]]
        chosen[picked] = least
        picked += 1
    # A late, wide victim may make earlier ones needless: spare those again, the most worth first.
    enough = gained >= wanted
    for i in range(picked - 1, -1, -1):
        hosts = state.size[running[chosen[i]]]
        if not enough or gained - hosts >= wanted:
            goes[chosen[i]] = False
            gained -= hosts
    return gained


@kernel
def _worth_of(state, config, job):
    """What a job counts in a suspension."""
    if config.suspend == Suspend.VALUE:
        return state.value[job]
    return density_of(state, job, 0.0 if state.job_state[job] == QUEUED else state.now - state.start_time[job])


# Options of a composed policy: their names, their values, and which of them do not go together.

SLOT_VALUES: dict[str, Mapping[str, tuple[int, Any]]] = {slot: values for slot, (_, values) in SLOTS.items()}
BACKFILL_ORDER, PRICES = "backfill_order", "prices"
OPTIONS = (*SLOT_VALUES, PRICES, *NUMERIC_OPTIONS, OPTION, BACKFILL_ORDER)


def composed_name(order: str, backfill: str) -> str:
    """A policy's name from its parts, in short."""
    if backfill == "none":
        return order
    return backfill if order == "fcfs" else f"{order}+{backfill}"


UNGUARDED = f"keeps no reservations: it cannot have the option {OPTION}"


def check_booking(policy: str, codes: Mapping[str, int], guarded: bool, reordered: bool) -> None:
    """Refuse what does not go with start=bound."""
    wrong = {
        "needs power=idle-timeout": codes["power"] != Power.IDLE_TIMEOUT,
        "needs allocation=first-fit or allocation=pack": codes["allocation"]
        not in (Allocation.LOWEST, Allocation.PACK),
        "keeps no reservations: it needs backfill=none, first-fit or easy": codes["backfill"] == Backfill.CONSERVATIVE,
        UNGUARDED: guarded,
        f"looks at jobs in one order: it cannot have the option {BACKFILL_ORDER}": reordered,
    }
    for text, is_wrong in wrong.items():
        if is_wrong:
            raise ConfigError(f"policy {policy}: start=bound {text}")


def check_suspend(policy: str, codes: Mapping[str, int], guarded: bool) -> None:
    """Refuse what does not go with suspend=..."""
    wrong = {
        "breaks reservations: it needs backfill=none or first-fit": codes["backfill"]
        not in (Backfill.NONE, Backfill.FIRST_FIT),
        f"breaks reservations: it cannot have the option {OPTION}": guarded,
        "needs hosts that are awake: it needs power=never": codes["power"] != Power.NEVER,
    }
    for text, is_wrong in wrong.items():
        if is_wrong:
            raise ConfigError(f"policy {policy}: suspend=... {text}")


def refuse_sleepless(policy: str, platform: Platform) -> NoReturn:
    """Refuse a platform without hosts that sleep."""
    none = f"start=bound needs hosts that sleep, and {platform.path or 'the platform'} has none"
    raise ConfigError(f"policy {policy}: {none}; decision platform grid5000 makes some, with energy", field="platform")


def allocation_name(config: PolicyConfig) -> str:
    """The allocation as users name it."""
    return next(name for name, (code, _) in SLOT_VALUES["allocation"].items() if code == config.allocation)


def slot_code(policy: str, slot: str, value: str) -> int:
    """The number of a slot's value. Raises ConfigError for one that there is not."""
    known = SLOT_VALUES[slot]
    if value not in known:
        raise ConfigError(
            f"policy {policy}: there is no {slot} {value!r}{nearest(str(value), known)} (there are {', '.join(known)})"
        )
    return int(known[value][0])


def candidate_order(policy: str, order: str, backfill: int) -> int:
    """The order of EASY's candidates."""
    if backfill != Backfill.EASY:
        raise ConfigError(f"policy {policy}: option backfill_order does nothing without EASY; use easy or ORDER+easy")
    return slot_code(policy, "order", order)


def checked_number(policy: str, name: str, value: Any, codes: Mapping[str, int]) -> Any:
    """The value of a numeric option. Raises ConfigError where no slot reads it, or it makes no sense."""
    option = NUMERIC_OPTIONS[name]
    if codes[option.slot] not in option.readers:
        names = [n for n, (code, _) in SLOT_VALUES[option.slot].items() if code in option.readers]
        raise ConfigError(f"policy {policy}: option {name} does nothing without {option.slot}={' or '.join(names)}")
    number = read_value(policy, name, value, type(option.default))
    if not 0 <= number < math.inf:
        raise ConfigError(f"policy {policy}: option {name}={value} must be finite and not negative")
    return number


# What a composed policy decides at an instant; what few of them do is called by address.


@kernel
def decide(state, facts, memory, plan):
    """Fill `plan` for this instant, after all transitions of it; reads `state` and never writes it."""
    clear(plan, state)
    # Who is guarded has reservations, so more than counts of free hosts decide from here on; it is asked first because
    # the early return below depends on it.
    guarded = follow_guard(state, memory) if is_guarded(memory) else 0
    strict = memory.backfill == Backfill.CONSERVATIVE or guarded > 0
    suspends = memory.suspend != Suspend.NEVER
    # Most decisions of a busy cluster end here: with no free host nothing can start. Reservations, sleeping hosts and
    # suspensions need a look all the same, since time or a victim may change what they say.
    if state.nb_free == 0 and not strict and memory.power == Power.NEVER and not suspends:
        return
    # FCFS is the state's own queue, which costs nothing to keep. Suspensions put heirs first, and so need a list of
    # their own.
    if memory.order == Order.FCFS and not suspends:
        queue, length = state.queue, state.nb_queued
    else:
        queue, length = memory.sorted, sort_queue(state, memory)
    if suspends and call_slot(memory.suspension_slot, (state, facts, memory, plan, length)) > 0.0:
        return
    # Which jobs start: one rule of four, each of which fills `memory.chosen`.
    call = np.inf
    if memory.start == StartHosts.BOOKED:
        chosen, call = 0, call_slot(memory.booked_slot, (state, facts, memory, plan, length))
    elif memory.backfill == Backfill.CONSERVATIVE:
        chosen = choose_reserved(state, facts, memory, queue, length)
        call = next_call(state, memory, chosen)
    elif guarded > 0 or memory.nb_watched > 0:
        chosen = choose_guarded(state, facts, memory, queue, length, guarded)
    else:
        chosen = choose_starts(state, facts, memory, queue, length)
    if is_guarded(memory):
        # A job that starts has its reservation from now on, so that its end is known as booked (`booked_end`).
        free = state.nb_free
        for i in range(chosen):
            memory.reserved[memory.chosen[i]] = state.now
            free -= state.size[memory.chosen[i]]
        call = min(call, guard_call(state, memory, guarded, chosen, free))
    # On which hosts: the rule has counted, so that every allocation finds enough.
    for i in range(chosen):
        if memory.network_slot != 0:
            call_slot(memory.network_slot, (state, facts, memory, plan, add(plan, START, memory.chosen[i])))
        else:
            plan_start(plan, state, facts, memory, memory.chosen[i])
    # Which idle hosts sleep; booked hosts are switched by `decide_booked`, which knows whose they are.
    if memory.power != Power.NEVER and memory.start == StartHosts.AWAKE:
        call = min(call, manage_power(state, facts, memory, plan, queue, length, chosen, guarded))
    if call < np.inf:
        ask_for_call(state, memory, plan, call)


@SLOT.entry
def _take_on_tree(state, facts, memory, plan, action):
    """Give an action of the plan its hosts."""
    take_on_tree(plan, state, facts, action, memory.prices, memory.allocation == Allocation.TREE)
    return 0.0


@SLOT.entry
def _take_near(state, facts, memory, plan, action):
    """Give an action of the plan its hosts."""
    take_near(plan, state, facts, action)
    return 0.0


@SLOT.entry
def _decide_booked(state, facts, memory, plan, length):
    """As `decide_booked`, for the first so many jobs."""
    if memory.order == Order.FCFS:
        return decide_booked(state, facts, memory, plan, state.queue, length)
    return decide_booked(state, facts, memory, plan, memory.sorted, length)


@DECIDE.entry
@without_vectors
def decide_composed(state, facts, memory, plan):
    decide(state, facts, memory_at(memory), plan)
    return DECIDED


def used_slots(config: PolicyConfig) -> dict[str, Entry]:
    """What a policy does and few others do, by its field of `Memory`."""
    # Called by address, so that who does none of it compiles none of it; an address that is 0 is never called.
    used = {}
    if config.allocation in (Allocation.TREE, Allocation.SLURM_TREE):
        used["network_slot"] = _take_on_tree
    if config.allocation == Allocation.HOPS:
        used["network_slot"] = _take_near
    if config.start == StartHosts.BOOKED:
        used["booked_slot"] = _decide_booked
    if config.suspend != Suspend.NEVER:
        used["suspension_slot"] = suspend_for_others
    return used


def slots_of(config: PolicyConfig) -> dict[str, int]:
    """The addresses of what a policy does and few others do, by field of `Memory`; `decide` calls no others."""
    return {slot: entry.address for slot, entry in used_slots(config).items()}


# Orders that rank by what a job asks for; F1 to F4 were fitted with it (SC'17).
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
            the name of a shipped one, or weights (L - 1, N_FEATURES) of `decision.policies.placement.windows`; "":
            nothing.
        power: when idle hosts sleep.
        start: which hosts a job may be given; ``bound`` needs the power slot idle-timeout.
        suspend: which running jobs give their hosts to a waiting one that does not fit; needs the backfilling none or
            first-fit, which keep no reservations.
        guard: seconds after which a job that waits gets a reservation that nothing may delay, or ``auto``
            (`decision.policies.guard`); None: never. With the backfilling conservative, where every job has one from
            its arrival, it changes nothing.
        backfill_order: in which order EASY looks at the jobs behind its first one that waits; None: that of the queue.
        numbers: those of `decision.policies.options.NUMERIC_OPTIONS`, such as ``idle_timeout``.

    Raises:
        ConfigError: for a name or number that makes no sense, or a checkpoint that has no prices.
        InputError: if the checkpoint cannot be read.
    """

    entry = decide_composed
    recalls = False  # users' shares and run times are counted as jobs end

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
            settings |= read_guard(self.name, guard)._asdict()
        # What does not go together is refused here, where the message can name the options, and nowhere in kernels.
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
        """Whether it suspends running jobs for others."""
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
        reserves = config.backfill in (Backfill.EASY, Backfill.CONSERVATIVE) or config.is_guarded
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
        # Kernels reckon with one time to wake and one to doze for all hosts: the slowest host's, so that what is woken
        # in time is awake in time.
        wake, doze = switch_times(platform, self._given.wake_time) if self._given.power else (0.0, 0.0)
        if self._given.start == StartHosts.BOOKED and not any(host.sleep for host in platform.hosts):
            refuse_sleepless(self.name, platform)
        self.config = self._given._replace(seed=seed % 2**63, wake_time=wake, doze_time=doze)
        # A guard that decides nothing would only cost time, the shadow alone is a second simulation: with conservative
        # backfilling every job has a reservation, and plain EASY is what the guard is relative to.
        order, backfill = self._given.order, self._given.backfill
        is_easy = order == Order.FCFS and backfill == Backfill.EASY and self._given.backfill_order < 0
        is_relative_to_itself = self._given.guard_times > 0 and is_easy and self._given.power == Power.NEVER
        if backfill == Backfill.CONSERVATIVE or is_relative_to_itself:
            self.config = self.config._replace(**GuardLimit()._asdict())

    def memory_for(self, state: ClusterState, memory: Memory | None = None) -> Memory:
        """`memory` with room for all of `state`; an empty one where there is none yet."""
        if memory is None:
            return new_memory(state, self.config, self._prices, **slots_of(self.config))
        return grown_memory(memory, state, self.config)

    def __repr__(self) -> str:
        return f"<policy {self.name}>"
