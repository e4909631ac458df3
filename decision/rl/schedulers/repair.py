"""Repair: a network says where in the sequence of free hosts the jobs of a window begin.

What Lan et al. train as the repair operator of neural simulated annealing ("Optimization of Topology-Aware Job
Allocation on a High-Performance Computing Cluster by Neural Simulated Annealing"): the jobs of a window, the one on
most hosts first, are placed by the dynamic strategy, each from the entry on that the network chooses. As a policy it
places windows without any search; in ``window,solver=nsa`` it chooses where removed jobs go back.

`decision.policies.window` says which jobs a window takes, `decision.policies.placement.search` what the network sees.
As in the published program a window of the training has two jobs on more than one host at most, and begins where the
windows before it have left the cluster. As the text has it (`destroyed`), windows are larger, all their jobs are placed
in turn, and the network puts back those that are then taken out.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from decision.compiling.bundle import I8, Bundle, Float, I8x2, Int
from decision.compiling.jit import kernel
from decision.compiling.small_kernels import next_word, uniform
from decision.model.errors import ConfigError
from decision.model.platform import Platform
from decision.model.workload import Workload
from decision.policies.allocation import check_tree
from decision.policies.placement.search import see_entries
from decision.policies.placement.tree import text_cost
from decision.policies.placement.windows import groups_of, worth
from decision.policies.profile import TOLERANCE
from decision.policies.window import first_of, in_order, is_due, take_hosts, taken_from, write_sequence
from decision.state.cluster import ClusterState, nb_hosts
from decision.state.plan_arrays import START, add

from .base import ACT, BEGIN, MEASURE, OBSERVE, OPEN, REWARD, ChoosingScheduler, Encoder, register
from .decision_points import call_at, note_start, place_in_queue, start_at
from .window import Count


class RepairMemory(Bundle):
    """The encoder as numbers, and the present window. H hosts."""

    most_seen: Int  # entries that are seen
    most_jobs: Int  # on more than one host, at most in a window
    most_removed: Int  # jobs that are taken out of a window that was placed in turn; 0: all are placed by choice
    pays_each: Int  # 1 where each job is paid for when it is placed
    period: Float  # seconds
    last_window: Int = -1  # number of the last window that was decided, -1 for none
    due_window: Int = -1  # number of the window that was called for, -1 for none
    nb_left: Int  # hosts of the sequence that no job of this window has
    nb_wide: Int  # jobs on more than one host of this window
    at: Int  # which of them is next
    nb_single: Int  # jobs on one host
    owed: Float  # hops of the windows that were not paid for yet
    cost: Float  # hops of this window so far
    nb_windows: Float  # with a job on more than one host
    costs: Float  # hops of them all
    jobs: I8  # (jobs,) of the window, on more than one host, most first
    hosts: I8  # (H,) of the sequence that no job of the window has, from left to right
    groups: I8x2  # (L - 1, at least S) the switches above each lowest switch
    on: I8  # (H,) zeros, scratch
    of_job: I8  # (H,) scratch: hosts of a job
    switches: I8  # (H,) scratch


@BEGIN.entry_with(RepairMemory)
def repair_begin(state, facts, memory):
    """No window was decided yet; switches above each lowest one are looked up once."""
    switches = facts.switch.max() + 1
    memory.groups[:, :switches] = groups_of(facts.down, np.arange(switches))
    memory.last_window = memory.due_window = -1
    memory.owed = memory.cost = memory.nb_windows = memory.costs = 0.0
    return 0


@OPEN.entry_with(RepairMemory)
def repair_open(state, facts, cycles, plan, memory):
    """Take the jobs of a window, if one is due; else ask for the next one, if a job could be in it.

    Nothing is done before the last arrival of an instant, because that is in a window which is due then.
    """
    period, now = memory.period, state.now
    if cycles.next_shown < state.nb_queued:
        return 0
    # windows are numbered by the clock, not from event to event: so they are the same under Batsim
    index = int((now + TOLERANCE) / period)
    called = 0 <= memory.due_window <= index
    if called:
        memory.due_window = -1
    if cycles.nb_queued == 0:
        return 0
    if not is_due(now, period, index, memory.last_window, called):
        _ask_for_next(state, cycles, plan, memory, index)
        return 0
    memory.last_window = index
    order = in_order(state, cycles.queue[: cycles.nb_queued], period, index)
    taken, wide = taken_from(state, order, cycles.nb_free, memory.most_jobs)
    memory.nb_single = taken - wide
    if wide == 0:  # nothing to choose: jobs on one host cost no hops
        _end_window(state, cycles, plan, memory)
        return 0
    # the sequence, and the jobs on more than one host, by insertion, the one on most hosts first; ties by their order
    memory.nb_wide, memory.at = wide, 0
    memory.nb_left = write_sequence(facts, plan.free, memory.hosts)
    memory.cost = 0.0
    jobs, placed = memory.jobs, 0
    for job in order[:taken]:
        if state.size[job] == 1:
            continue
        at = placed
        while at > 0 and state.size[jobs[at - 1]] < state.size[job]:
            jobs[at] = jobs[at - 1]
            at -= 1
        jobs[at] = job
        placed += 1
    if memory.most_removed > 0:
        _destroy(state, facts, cycles, plan, memory)
    return 1


@kernel
def _destroy(state, facts, cycles, plan, memory):
    """Place the window's jobs in turn, and take out 1 to `most_removed` of them, which are left to be chosen for.

    How many and which follows from the number of the window, so that a schedule is the same everywhere. The others keep
    their hosts: in the sequence, those of a job that was taken out are before those of the jobs after it.
    """
    jobs, left = memory.jobs, memory.nb_wide
    word = next_word(np.uint64(memory.last_window))
    remove = 1 + int(uniform(word) * min(memory.most_removed, left))
    removed, begin = 0, 0
    for at in range(memory.nb_wide):
        job, size = jobs[at], state.size[jobs[at]]
        word = next_word(word)
        # one of those that are left, each as likely
        if uniform(word) * left < remove - removed:
            jobs[removed] = job
            removed += 1
            begin += size
        else:
            _place(state, facts, cycles, plan, memory, job, begin)
            _take_out(memory, begin, size)
        left -= 1
    memory.nb_wide = removed


@kernel
def _ask_for_next(state, cycles, plan, memory, index):
    """Ask for the next window, unless that was done, if the first job that waits would fit now."""
    if cycles.nb_queued == 0 or memory.due_window >= 0:
        return
    period = memory.period
    head = first_of(state, cycles.queue[: cycles.nb_queued], period, index + 1)
    if state.size[head] <= cycles.nb_free:
        memory.due_window = index + 1
        call_at(cycles, plan, (index + 1) * period)


@ACT.entry_with(RepairMemory)
def repair_act(state, facts, cycles, plan, memory, action):
    """Place the next job of the window from an entry on."""
    job = memory.jobs[memory.at]
    begin, size = min(max(action, 0), min(memory.nb_left, memory.most_seen) - 1), state.size[job]
    cost = _place(state, facts, cycles, plan, memory, job, begin)
    memory.cost += cost
    memory.at += 1
    if memory.pays_each:
        memory.owed += cost
    # another job of the window: it sees the sequence without these hosts
    if memory.at < memory.nb_wide:
        _take_out(memory, begin, size)
        return 1
    # the window is complete: it is paid for as a whole, unless each job was
    if not memory.pays_each:
        memory.owed += memory.cost
    memory.costs += memory.cost
    memory.nb_windows += 1
    _end_window(state, cycles, plan, memory)
    return 0


@kernel
def _place(state, facts, cycles, plan, memory, job, begin):
    """Start a job on the hosts from number `begin` of the sequence on; their hops."""
    size = state.size[job]
    taken = _hosts_from(memory, begin, size)
    start = add(plan, START, job)
    take_hosts(plan, start, taken)
    note_start(state, cycles, plan, place_in_queue(cycles, job), start)
    squares = worth(memory.groups, memory.on, _switches_of(facts, taken, memory.switches)) * size
    return text_cost(len(facts.down), size, squares)


@kernel
def _hosts_from(memory, begin, size):
    """The next `size` hosts of the sequence from number `begin` on, with wrap-around, the first of the sequence first;
    in scratch memory."""
    hosts, taken, left = memory.hosts, memory.of_job[:size], memory.nb_left
    wrapped = max(begin + size - left, 0)
    for i in range(wrapped):
        taken[i] = hosts[i]
    for i in range(wrapped, size):
        taken[i] = hosts[begin + i - wrapped]
    return taken


@kernel
def _take_out(memory, begin, size):
    """What `_hosts_from` gives leaves the sequence."""
    hosts, left = memory.hosts, memory.nb_left
    wrapped = max(begin + size - left, 0)
    for i in range(wrapped, begin):
        hosts[i - wrapped] = hosts[i]
    for i in range(begin + size, left):
        hosts[i - size] = hosts[i]
    memory.nb_left = left - size


@kernel
def _switches_of(facts, hosts, out):
    """The lowest switches of the hosts (n,), written into `out` (at least n,)."""
    for i in range(len(hosts)):
        out[i] = facts.switch[hosts[i]]
    return out[: len(hosts)]


@kernel
def _end_window(state, cycles, plan, memory):
    """Jobs on one host get the lowest ones that are left; they are the first of those that the window has left."""
    period, index = memory.period, memory.last_window
    if memory.nb_single > 0:
        order = in_order(state, cycles.queue[: cycles.nb_queued], period, index)
        for job in order[: memory.nb_single]:
            start_at(state, cycles, plan, place_in_queue(cycles, job))
    _ask_for_next(state, cycles, plan, memory, index)


@OBSERVE.entry_with(RepairMemory)
def repair_observe(state, facts, cycles, plan, memory, observation, mask):
    """What `decision.policies.placement.search` lets a network see; nothing where no window is open."""
    shown = 0
    if memory.at >= memory.nb_wide:
        observation[:] = 0.0
    else:
        # hosts that the window still needs after this job: what it leaves to them is what it costs
        others = 0
        for job in memory.jobs[memory.at + 1 : memory.nb_wide]:
            others += state.size[job]
        size = state.size[memory.jobs[memory.at]]
        entries = min(memory.nb_left, memory.most_seen)
        seen = _switches_of(facts, memory.hosts[:entries], memory.switches)
        shown = see_entries(facts.down, memory.groups, seen, size, others, observation)
    for action in range(len(mask)):
        mask[action] = action < max(shown, 1)  # one action is valid always, or a network's softmax had nothing to share
    return 0


@REWARD.entry_with(RepairMemory)
def repair_reward(state, facts, cycles, progress, memory, moment):
    """Minus the hops of a window's jobs that were chosen for, when the last one is placed."""
    owed = memory.owed
    memory.owed = 0.0
    return -owed


@MEASURE.entry_with(RepairMemory)
def repair_measure(state, facts, cycles, progress, memory, out):
    """The mean hops of a window."""
    out[0] = memory.costs / max(memory.nb_windows, 1.0)
    return 0


LEAST_ENTRIES = 14  # that the convolutions need
MOST_LEVELS = 8  # of a tree: each is a feature of the observation


class RepairSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long windows are, which jobs they take, and what is paid."""

    period: Annotated[float, msgspec.Meta(gt=0)] = 60.0  # seconds
    window: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 2  # jobs on more than one host, at most in a window
    destroyed: Annotated[int, msgspec.Meta(ge=0, le=1024)] = 0  # jobs at most that are taken out of a placed window
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
    destroyed: int = 0

    @property
    def actions(self) -> int:
        """A: the entries of the sequence at which a job may begin."""
        return self.q

    @property
    def shape(self) -> tuple[int]:
        """(D,): numbers of each entry that is seen."""
        return ((self.levels + 2) * self.q,)

    def check_platform(self, platform: Platform) -> None:
        """Refuse a platform that is not a tree of so many levels. Raises ConfigError."""
        check_tree("a network for windows", platform)
        if len(platform.down) != self.levels:
            given = f"{platform.path or 'the platform'} has {len(platform.down)}"
            raise ConfigError(f"the network for windows is for trees of {self.levels} levels, and {given}")

    def new_memory(self, state: ClusterState) -> "RepairMemory":
        """The encoder as numbers for the kernels; no window was decided."""
        hosts = nb_hosts(state)
        return RepairMemory(
            most_seen=self.q,
            most_jobs=self.jobs,
            most_removed=self.destroyed,
            pays_each=self.pay == "job",
            period=self.period,
            jobs=np.zeros(self.jobs, np.int64),
            hosts=np.zeros(hosts, np.int64),
            groups=np.zeros((self.levels - 1, hosts), np.int64),
            on=np.zeros(hosts, np.int64),
            of_job=np.zeros(hosts, np.int64),
            switches=np.zeros(hosts, np.int64),
        )


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

    Reward: when the last job of a window is placed, minus the hops that the window costs
    (`decision.policies.placement.tree`); else 0. With ``pay=job``, for each job minus its own hops. Where
    ``destroyed`` is N, all jobs of a window are placed in turn first, 1 to N of them at random are taken out, and only
    these are chosen and paid for: so learns the paper's text, with windows of several jobs; its program, and the
    presets, with windows of two and none taken out.

    Episode: begins on an idle cluster with the arrival of a random job of the trace, and ends when `jobs` jobs have
    been placed.

    Masks: ``info["action_mask"]`` i8 (q,), `action_masks()`, and in the observation with `dict_observation`.

    At the end ``info["metrics"]`` has what `decision.rl.envs.EPISODE_METRICS` names, and ``window_cost``, the mean
    hops of a window.
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
    begin, open, act = repair_begin, repair_open, repair_act
    observe, reward, measure = repair_observe, repair_reward, repair_measure
    model_summary = "windows of {period:g} s on a fat-tree of {levels} levels; with window,solver=nsa,repair=repair"

    def encoder_fields(self, settings: RepairSettings, cores: int) -> dict[str, Any]:
        """Fields of the encoder that follow from the settings."""
        fields = {"q": settings.q, "levels": settings.levels, "period": settings.period, "jobs": settings.window}
        return {"name": self.name, "pay": settings.pay, "destroyed": settings.destroyed, **fields}

    def make_encoder(  # type: ignore[override]  # it has no options but the settings
        self, settings: RepairSettings, cores: int, workloads: Sequence[Workload]
    ) -> RepairEncoder:
        """The encoder for the settings."""
        return RepairEncoder(**self.encoder_fields(settings, cores))


register(Repair())
