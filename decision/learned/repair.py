"""Repair: a network says where in the sequence of free hosts the jobs of a window begin.

What Lan et al. train as the repair operator of neural simulated annealing ("Optimization of Topology-Aware Job
Allocation on a High-Performance Computing Cluster by Neural Simulated Annealing"): the jobs of a window, the one on
most hosts first, are placed by the dynamic strategy, each from the entry on that the network chooses. As a policy it
places windows without any search; in ``window,solver=nsa`` it chooses where removed jobs go back.

`decision.policies.window` says which jobs a window takes, `decision.placement.repair` what the network sees. As in the
published program a window of the training has two jobs on more than one host at most, and begins where the windows
before it have left the cluster.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from decision.compiling.bundle import F8, I8, Bundle, I8x2
from decision.compiling.jit import kernel
from decision.model.errors import ConfigError
from decision.model.platform import Platform
from decision.model.workload import Workload
from decision.placement.cost import text_cost
from decision.placement.repair import see_entries
from decision.placement.windows import groups_of, worth
from decision.policies.allocation import check_tree
from decision.policies.capacity import TOLERANCE
from decision.policies.window_jobs import first_of, in_order, is_due, take_hosts, taken_from, write_sequence
from decision.state.cluster import N_QUEUED, ClusterState, nb_hosts
from decision.state.plan_arrays import START, add

from .base import ChoosingScheduler
from .cycles import FREE_HOSTS, LENGTH, NEXT_SHOWN, call_at, note_start, start_at
from .encoder import Encoder
from .kernel_interfaces import ACT, BEGIN, MEASURE, OBSERVE, OPEN, REWARD
from .registry import register
from .window import Count

LEAST_ENTRIES = 14  # that the convolutions need
MOST_LEVELS = 8

# RepairMemory.number
_Q = 0  # entries that are seen
_JOBS = 1  # on more than one host, at most in a window
_LAST = 2  # number of the last window that was decided, -1 for none
_LEFT = 3  # hosts of the sequence that no job of this window has
_WIDE = 4  # jobs on more than one host of this window
_AT = 5  # which of them is next
_SINGLE = 6  # jobs on one host
_EACH = 7  # 1 where each job is paid for when it is placed
_DUE = 8  # number of the window that was called for, -1 for none
_N_NUMBERS = 9

# RepairMemory.total
_PERIOD = 0  # seconds
_OWED = 1  # hops of the windows that were not paid for yet
_COST = 2  # hops of this window so far
_WINDOWS = 3  # with a job on more than one host
_COSTS = 4  # hops of them all
_N_TOTALS = 5


class RepairSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The windows."""

    period: Annotated[float, msgspec.Meta(gt=0)] = 60.0  # seconds
    window: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 2  # jobs on more than one host, at most in a window
    q: Annotated[int, msgspec.Meta(ge=LEAST_ENTRIES, le=8192)] = 100  # free hosts that are seen
    levels: Annotated[int, msgspec.Meta(ge=1, le=MOST_LEVELS)] = 3  # of the tree
    jobs: Count = 200  # placed jobs that end an episode
    pay: Literal["window", "job"] = "window"  # a window's hops when its last job is placed, or each job's with the job
    online: bool = True  # whether other jobs arrive after those


class RepairEncoder(Encoder, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first free hosts of the sequence, and the jobs of the window."""

    name: str = "repair"
    q: int
    levels: int
    period: float
    jobs: int  # in a window
    pay: str = "window"

    @property
    def actions(self) -> int:
        """A: where to begin."""
        return self.q

    @property
    def shape(self) -> tuple[int]:
        """(D,)"""
        return ((self.levels + 2) * self.q,)

    def check_platform(self, platform: Platform) -> None:
        """Refuse a platform that is not a tree of so many levels. Raises ConfigError."""
        check_tree("a network for windows", platform)
        if len(platform.down) != self.levels:
            given = f"{platform.path or 'the platform'} has {len(platform.down)}"
            raise ConfigError(f"the network for windows is for trees of {self.levels} levels, and {given}")

    def new_memory(self, state: ClusterState) -> "RepairMemory":
        """The encoder as numbers for the kernels; no window was decided."""
        hosts, number, total = nb_hosts(state), np.zeros(_N_NUMBERS, np.int64), np.zeros(_N_TOTALS)
        number[[_Q, _JOBS, _LAST, _DUE]] = self.q, self.jobs, -1, -1
        number[_EACH] = self.pay == "job"
        total[_PERIOD] = self.period
        return RepairMemory(
            number=number,
            total=total,
            jobs=np.zeros(self.jobs, np.int64),
            hosts=np.zeros(hosts, np.int64),
            groups=np.zeros((self.levels - 1, hosts), np.int64),
            on=np.zeros(hosts, np.int64),
            own=np.zeros(hosts, np.int64),
            switches=np.zeros(hosts, np.int64),
        )


class RepairMemory(Bundle):
    """The encoder as numbers, and the present window. H hosts."""

    number: I8  # (_N_NUMBERS,)
    total: F8  # (_N_TOTALS,)
    jobs: I8  # (jobs,) of the window, on more than one host, most first
    hosts: I8  # (H,) of the sequence that no job of the window has, from left to right
    groups: I8x2  # (L - 1, at least S) the switches above each lowest switch
    on: I8  # (H,) zeros, scratch
    own: I8  # (H,) scratch
    switches: I8  # (H,) scratch


@BEGIN.entry_with(RepairMemory)
def _begin(state, facts, memory):
    """No window was decided."""
    switches = facts.switch.max() + 1
    memory.groups[:, :switches] = groups_of(facts.down, np.arange(switches))
    memory.number[_LAST] = memory.number[_DUE] = -1
    memory.total[_OWED:] = 0.0
    return 0


@OPEN.entry_with(RepairMemory)
def _open(state, facts, cycles, plan, memory):
    """Take the jobs of a window, if one is due; else ask for the next one, if a job could be in it.

    Nothing is done before the last arrival of an instant, because that is in a window which is due then.
    """
    number, period, now = memory.number, memory.total[_PERIOD], state.now[0]
    if cycles.number[NEXT_SHOWN] < state.count[N_QUEUED]:
        return 0
    index = int((now + TOLERANCE) / period)
    called = 0 <= number[_DUE] <= index
    if called:
        number[_DUE] = -1
    if cycles.number[LENGTH] == 0:
        return 0
    if not is_due(now, period, index, number[_LAST], called):
        _ask_for_next(state, cycles, plan, memory, index)
        return 0
    number[_LAST] = index
    order = in_order(state, cycles.queue[: cycles.number[LENGTH]], period, index)
    taken, wide = taken_from(state, order, cycles.number[FREE_HOSTS], number[_JOBS])
    number[_SINGLE] = taken - wide
    if wide == 0:
        _end_window(state, cycles, plan, memory)
        return 0
    _prepare(state, facts, plan, memory, order[:taken], wide)
    return 1


@kernel
def _ask_for_next(state, cycles, plan, memory, index):
    """Ask for the next window, unless that was done, if the first job that waits would fit now."""
    if cycles.number[LENGTH] == 0 or memory.number[_DUE] >= 0:
        return
    period = memory.total[_PERIOD]
    head = first_of(state, cycles.queue[: cycles.number[LENGTH]], period, index + 1)
    if state.size[head] <= cycles.number[FREE_HOSTS]:
        memory.number[_DUE] = index + 1
        call_at(cycles, plan, (index + 1) * period)


@kernel
def _prepare(state, facts, plan, memory, order, wide):
    """The window's jobs, the one on most hosts first, and the sequence."""
    number, jobs = memory.number, memory.jobs
    number[_WIDE], number[_AT] = wide, 0
    number[_LEFT] = write_sequence(facts, plan.free, memory.hosts)
    memory.total[_COST] = 0.0
    placed = 0
    for job in order:
        if state.size[job] == 1:
            continue
        at = placed
        while at > 0 and state.size[jobs[at - 1]] < state.size[job]:
            jobs[at] = jobs[at - 1]
            at -= 1
        jobs[at] = job
        placed += 1


@ACT.entry_with(RepairMemory)
def _act(state, facts, cycles, plan, memory, action):
    """Place the next job of the window from an entry on."""
    number, total, job = memory.number, memory.total, memory.jobs[memory.number[_AT]]
    begin, size = min(max(action, 0), min(number[_LEFT], number[_Q]) - 1), state.size[job]
    own = _hosts_from(memory, begin, size)
    start = add(plan, START, job)
    take_hosts(plan, start, own)
    note_start(state, cycles, plan, _place_of(cycles, job), start)
    squares = worth(memory.groups, memory.on, _switches_of(facts, own, memory.switches)) * size
    cost = text_cost(len(facts.down), size, squares)
    total[_COST] += cost
    number[_AT] += 1
    if number[_EACH]:
        total[_OWED] += cost
    if number[_AT] < number[_WIDE]:
        _take_out(memory, begin, size)
        return 1
    if not number[_EACH]:
        total[_OWED] += total[_COST]
    total[_COSTS] += total[_COST]
    total[_WINDOWS] += 1
    _end_window(state, cycles, plan, memory)
    return 0


@kernel
def _hosts_from(memory, begin, size):
    """The next `size` hosts of the sequence from number `begin` on, with wrap-around, the first of the sequence first;
    in scratch memory."""
    hosts, own, left = memory.hosts, memory.own[:size], memory.number[_LEFT]
    wrapped = max(begin + size - left, 0)
    for i in range(wrapped):
        own[i] = hosts[i]
    for i in range(wrapped, size):
        own[i] = hosts[begin + i - wrapped]
    return own


@kernel
def _take_out(memory, begin, size):
    """What `_hosts_from` gives leaves the sequence."""
    hosts, left = memory.hosts, memory.number[_LEFT]
    wrapped = max(begin + size - left, 0)
    for i in range(wrapped, begin):
        hosts[i - wrapped] = hosts[i]
    for i in range(begin + size, left):
        hosts[i - size] = hosts[i]
    memory.number[_LEFT] = left - size


@kernel
def _switches_of(facts, hosts, out):
    """The lowest switches of the hosts (n,), written into `out` (at least n,)."""
    for i in range(len(hosts)):
        out[i] = facts.switch[hosts[i]]
    return out[: len(hosts)]


@kernel
def _end_window(state, cycles, plan, memory):
    """Jobs on one host get the lowest ones that are left; they are the first of those that the window has left."""
    period, index = memory.total[_PERIOD], memory.number[_LAST]
    if memory.number[_SINGLE] > 0:
        order = in_order(state, cycles.queue[: cycles.number[LENGTH]], period, index)
        for job in order[: memory.number[_SINGLE]]:
            start_at(state, cycles, plan, _place_of(cycles, job))
    _ask_for_next(state, cycles, plan, memory, index)


@kernel
def _place_of(cycles, job):
    at = 0
    while cycles.queue[at] != job:
        at += 1
    return at


@OBSERVE.entry_with(RepairMemory)
def _observe(state, facts, cycles, plan, memory, observation, mask):
    """What `decision.placement.repair` lets a network see; nothing where no window is open."""
    number, shown = memory.number, 0
    if number[_AT] >= number[_WIDE]:
        observation[:] = 0.0
    else:
        others = 0
        for job in memory.jobs[number[_AT] + 1 : number[_WIDE]]:
            others += state.size[job]
        size = state.size[memory.jobs[number[_AT]]]
        seen = _switches_of(facts, memory.hosts[: min(number[_LEFT], number[_Q])], memory.switches)
        shown = see_entries(facts.down, memory.groups, seen, size, others, observation)
    for action in range(len(mask)):
        mask[action] = action < max(shown, 1)
    return 0


@REWARD.entry_with(RepairMemory)
def _reward(state, facts, cycles, progress, memory, moment):
    """Minus the hops of a window, when its last job is placed."""
    owed = memory.total[_OWED]
    memory.total[_OWED] = 0.0
    return -owed


@MEASURE.entry_with(RepairMemory)
def _measure(state, facts, cycles, progress, memory, out):
    """Hops of a window."""
    out[0] = memory.total[_COSTS] / max(memory.total[_WINDOWS], 1.0)
    return 0


class Repair(ChoosingScheduler):
    """The repair operator of neural simulated annealing: where each job of a window begins (Lan et al. 2023).

    The platform must be a fat-tree. The free hosts, from left to right in the tree, are a sequence; each job takes
    consecutive ones of those that the jobs before it have left, from the chosen one on, with wrap-around.

    Observation, version 1, f32 ((levels + 2) * q,), feature by feature, of the first q hosts that are left; zeros where
    there are fewer. With the three levels of the paper::

        0            number of its switch / number of the last switch; then the same of its pod
        levels - 1   1
        levels       hosts of the job / 40
        levels + 1   hosts of the window's jobs that are placed after it / 40

    Actions: 0 to q - 1, the host at which the job begins; where there are fewer hosts, the rest is masked.

    Reward: when the last job of a window is placed, minus the hops that the window costs (`decision.placement.cost`);
    else 0. With ``pay=job``, for each job minus its own hops.

    Episode: begins on an idle cluster with the arrival of a random job of the trace, and ends when `jobs` jobs have
    been placed.

    Masks: ``info["action_mask"]`` i8 (q,), `action_masks()`, and in the observation with `dict_observation`.

    At the end ``info["metrics"]`` has what `decision.envs.METRICS` names, and ``window_cost``, the mean hops of a
    window.
    """

    name = "repair"
    summary = "neural annealing: a network chooses where the jobs of a window begin on a fat-tree"
    paper = "Lan et al. 2023"
    Settings = RepairSettings
    presets = ("repair", "repair-paper")
    algorithms = ("ppo", "cma-es")
    networks = ("cnn", "fcn")
    curves = ("waiting_time", "utilization")
    env_id = "Repair"
    observations = {"repair": {}}
    encoder_type = RepairEncoder
    metrics = ("window_cost",)
    choices_per_job = 1
    calls = True
    begin, open, act, observe, reward, measure = _begin, _open, _act, _observe, _reward, _measure
    model_summary = "windows of {period:g} s on a fat-tree of {levels} levels; with window,solver=nsa,repair=repair"

    def encoder_fields(self, settings: RepairSettings, cores: int) -> dict[str, Any]:
        """Fields of the encoder that follow from the settings."""
        fields = {"q": settings.q, "levels": settings.levels, "period": settings.period, "jobs": settings.window}
        return {"name": self.name, "pay": settings.pay, **fields}

    def make_encoder(  # type: ignore[override]  # it has no options but the settings
        self, settings: RepairSettings, cores: int, workloads: Sequence[Workload]
    ) -> RepairEncoder:
        """The encoder for the settings."""
        return RepairEncoder(**self.encoder_fields(settings, cores))


register(Repair())
