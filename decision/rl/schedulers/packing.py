"""Packing: which of the first jobs of the queue starts next, for utilization, with predicted run times.

Takizawa, Nomura and Matsuba, IPSJ SIG Technical Report HPC-182 no. 6, 2021. The report is silent about the scale of its
numbers, which nodes a job gets, the shape of a network with two heads, and predictions that have run out; these are
ours: shares of the longest walltime and of all nodes, the lowest ids, two networks, and what `correction` says.

Ticks are calls: where something happens between two of them the scheduler asks for the next one and leaves all as it
is. So they are the same under Batsim as in an environment.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from decision.compiling.bundle import F8, Bundle, Float, Int
from decision.compiling.jit import kernel
from decision.model.errors import ConfigError
from decision.model.workload import Workload
from decision.policies.profile import TOLERANCE
from decision.policies.traits import Estimator, OutlookSettings
from decision.state.cluster import ClusterState, nb_hosts

from .base import (
    ACT,
    BEGIN,
    FOLLOW,
    MEASURE,
    OBSERVE,
    OPEN,
    REWARD,
    STEP_ENDS,
    ChoosingScheduler,
    Encoder,
    Episodes,
    Layout,
    register,
)
from .dbf import MOST_POOLS, see_hosts, see_pools
from .decision_points import call_at, is_over, start_at
from .window import JOB_FEATURES, MOST_SLOTS, Count, check_scale, longest_walltime, slot_begun

FAILURES = 4  # in a row, after which time passes
_PATIENCE = 60.0  # seconds until an idle cluster is looked at again, where there are no ticks
_LONGEST_GAP = 1024  # ticks: so far a doubling gap grows

# EpisodeProgress.parameters
FINAL = 0  # 1 where the reward comes at the end only


class PackingMemory(Bundle):
    """The encoder as numbers, and when the next decision is due. H hosts."""

    window: Int  # jobs that are seen
    pools: Int  # 0 for one number per node
    masked: Int  # 1 where only jobs that fit can be chosen
    doubles: Int  # 1 where the gap doubles while nothing comes or ends
    longest: Float  # seconds: longest walltime
    tick: Float  # seconds, 0 for none
    paid: Float  # idle node-seconds that were paid for
    nb_failed_choices: Int  # in a row
    gap: Int = 1  # ticks until the next look, if nothing comes or ends
    last_decision: Int = -1  # tick of the last decision, -1 for none
    any_change: Int  # 1 once a job came or ended, or nodes came or went, since that
    known_jobs: Int  # jobs that have come
    changes_seen: Int  # changes of capacity so far
    requested: F8  # (H,) seconds: when the job there ends by its walltime; empty where that is not seen apart


@OBSERVE.entry_with(PackingMemory)
def packing_observe(state, facts, cycles, plan, memory, observation, mask):
    """The cluster, then the window."""
    longest, now = memory.longest, state.now
    shown, until = min(cycles.nb_queued, memory.window), cycles.until
    if memory.pools > 0:
        # pools fit any number of nodes; the paper sees each node, by requested and, where known, by predicted ends
        width = see_pools(state, cycles, plan, memory.pools, longest, observation)
        _see_slots(state, cycles, shown, longest, observation[width:])
    else:
        both = len(memory.requested) > 0
        width = see_hosts(memory.requested if both else until, now, longest, observation)
        if both:
            width += see_hosts(until, now, longest, observation[width:])
        _see_vectors(state, cycles, shown, memory.window, longest, both, observation[width:])
    if memory.masked == 0:
        mask[:] = 1
        return 0
    # only jobs that fit; and X, unless one fits and nothing runs: no end would come that it could wait for
    some = False
    mask[:] = 0
    for slot in range(shown):
        fits = state.size[cycles.queue[slot]] <= cycles.nb_free
        mask[slot] = fits
        some |= fits
    mask[len(mask) - 1] = cycles.nb_running > 0 or not some
    return 0


@kernel
def _see_vectors(state, cycles, shown, window, longest, both, out):
    """Nodes, requested times, and predicted ones, of all jobs."""
    nodes, scale = len(cycles.until), 1.0 / longest
    out[:] = 0.0
    for slot in range(shown):
        job = cycles.queue[slot]
        out[slot] = state.size[job] / nodes
        out[window + slot] = min(state.walltime[job] * scale, 1.0)
        if both:
            out[2 * window + slot] = min(state.expected_runtime[job] * scale, 1.0)


@kernel
def _see_slots(state, cycles, shown, longest, out):
    """Nodes, requested time, predicted time, and 1, job by job."""
    nodes, scale = len(cycles.until), 1.0 / longest
    out[:] = 0.0
    for slot in range(shown):
        job, begin = cycles.queue[slot], JOB_FEATURES * slot
        out[begin] = state.size[job] / nodes
        out[begin + 1] = min(state.walltime[job] * scale, 1.0)
        out[begin + 2] = min(state.expected_runtime[job] * scale, 1.0)
        out[begin + 3] = 1.0


# --- When there is something to choose -----------------------------------------------------------------------------


@BEGIN.entry_with(PackingMemory)
def packing_begin(state, facts, memory):
    """Nothing was decided, and nothing paid for."""
    memory.nb_failed_choices = memory.any_change = memory.known_jobs = memory.changes_seen = 0
    memory.gap, memory.last_decision = 1, -1
    memory.paid = 0.0
    return 0


@OPEN.entry_with(PackingMemory)
def packing_look(state, facts, cycles, plan, memory):
    """See all that comes at one instant together, at a tick if there are ticks."""
    if cycles.next_shown < state.nb_queued:  # the last arrival of the instant is shown with all the others
        return 0
    if state.nb_ended > 0 or memory.known_jobs != state.nb_jobs or memory.changes_seen != state.nb_capacity_changes:
        memory.any_change = 1
        memory.known_jobs, memory.changes_seen = state.nb_jobs, state.nb_capacity_changes
    if cycles.nb_queued == 0 or not _is_due(state, cycles, plan, memory):
        return 0
    memory.nb_failed_choices = 0
    # when jobs end by their walltimes, where that is seen beside the predicted ends
    for host in range(len(memory.requested)):
        job = state.host_job[host]
        memory.requested[host] = state.start_time[job] + state.walltime[job] if job >= 0 else cycles.until[host]
    return memory.masked == 0 or _some_fit(state, cycles, memory)


@kernel
def _is_due(state, cycles, plan, memory):
    """Whether this is the instant of a decision; between two ticks the next one is asked for."""
    tick = memory.tick
    if tick == 0.0:
        return True
    since = state.now - state.submit_time[0]
    index = np.int64((since + TOLERANCE) / tick)
    # an event between two ticks, or a second one at a tick: nothing is decided before the next
    if index == memory.last_decision or since > index * tick + TOLERANCE:
        _call_at_tick(state, cycles, plan, memory, index + 1)
        return False
    memory.last_decision = index
    if memory.any_change:
        memory.any_change, memory.gap = 0, 1
    return True


@kernel
def _call_at_tick(state, cycles, plan, memory, index):
    """Ask for a tick, unless an earlier one was asked for."""
    time = state.submit_time[0] + index * memory.tick
    if cycles.call > time + TOLERANCE:
        call_at(cycles, plan, time)


@kernel
def _some_fit(state, cycles, memory):
    """Whether a job of the window could start now."""
    smallest = len(cycles.until) + 1
    for at in range(min(cycles.nb_queued, memory.window)):
        smallest = min(smallest, state.size[cycles.queue[at]])
    return smallest <= cycles.nb_free


@kernel
def _let_time_pass(state, cycles, plan, memory):
    """Jobs that wait next to free nodes are looked at again at a tick; and on an idle cluster, where nothing ends."""
    if cycles.nb_queued == 0:
        return
    if memory.tick == 0.0:
        if cycles.nb_running == 0:  # nothing ends, and no job need come any more
            call_at(cycles, plan, state.now + _PATIENCE)
        return
    if cycles.nb_free > 0 and (memory.masked == 0 or _some_fit(state, cycles, memory)):
        # jobs wait beside free nodes: by choice, or since none fits where nothing is masked
        _call_at_tick(state, cycles, plan, memory, memory.last_decision + memory.gap)
        if memory.doubles:
            memory.gap = min(2 * memory.gap, _LONGEST_GAP)


@ACT.entry_with(PackingMemory)
def packing_act(state, facts, cycles, plan, memory, action):
    """Start a job of the window if it fits; X, an empty slot, and a failure too many let time pass."""
    goes_on = False
    if 0 <= action < min(cycles.nb_queued, memory.window):
        if state.size[cycles.queue[action]] <= cycles.nb_free:
            memory.nb_failed_choices = 0
            job, start = cycles.queue[action], plan.nb_actions
            start_at(state, cycles, plan, action)
            if len(memory.requested) > 0:
                for i in range(plan.begin[start], plan.end[start]):
                    memory.requested[plan.first[i] : plan.last[i] + 1] = state.now + state.walltime[job]
            goes_on = cycles.nb_queued > 0 and (memory.masked == 0 or _some_fit(state, cycles, memory))
        else:
            memory.nb_failed_choices += 1
            goes_on = memory.nb_failed_choices < FAILURES
    if not goes_on:
        _let_time_pass(state, cycles, plan, memory)
    return goes_on


# --- What is paid --------------------------------------------------------------------------------------------------


@FOLLOW.entry_with(PackingMemory)
def packing_follow(state, cycles, memory, starts):
    """The slot of a job that began by now; X where none fits."""
    window = memory.window
    slot = slot_begun(state, cycles, window, 0, starts, state.now + TOLERANCE, cycles.nb_free)
    return slot if slot >= 0 else window


@REWARD.entry_with(PackingMemory)
def packing_reward(state, facts, cycles, progress, memory, moment):
    """The sum of the three shares at the end; or else minus the idle node-time of each step, up to the last end."""
    if moment != STEP_ENDS:
        return 0.0
    over, nodes = is_over(progress), len(cycles.until)
    if progress.parameters[FINAL]:
        return _share_started(progress) + _utilization(progress, nodes) + _share_left(progress) if over else 0.0
    # idle node-time up to now; once all have started it is known up to the last end, and the sum is that of `final`
    if over:
        idle = nodes * max(progress.last_end - progress.began, 0.0) - progress.work
    else:
        idle = nodes * (state.now - progress.began) - progress.used
    owed = idle - memory.paid
    memory.paid = idle
    return -owed / (nodes * memory.longest)


@MEASURE.entry_with(PackingMemory)
def packing_measure(state, facts, cycles, progress, memory, out):
    """The three parts of the reward."""
    out[0] = _share_started(progress)
    out[1] = _utilization(progress, len(cycles.until))
    out[2] = _share_left(progress)
    return 0


@kernel
def _share_started(progress):
    """The first part of the reward: jobs that have started, over those of the episode."""
    return progress.nb_placed / (progress.last_row - progress.first_row)


@kernel
def _utilization(progress, nodes):
    """Node-time of all jobs that have started, up to the last end of them."""
    seconds = progress.last_end - progress.began
    return progress.work / (nodes * seconds) if seconds > 0.0 else 0.0


@kernel
def _share_left(progress):
    """The third part: choices that the episode did not need, over those that it may take."""
    return 1.0 - progress.nb_steps / len(progress.actions)


_BY_NODE, _BY_POOL = "packing", "packing-pools"  # observations
MOST_NODES = 1 << 20  # seen one by one

Expected = Literal["none", "walltime", "last2", "regression", "given", "quantiles"]  # none: is not seen


class PackingSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What packing's environment can be set to."""

    window: Annotated[int, msgspec.Meta(ge=1, le=MOST_SLOTS)] = 100  # jobs from the queue's head
    cluster: Literal["nodes", "pools"] = "nodes"  # how the cluster is seen: each node, or pools that fit any size
    tick: Annotated[float, msgspec.Meta(ge=0)] = 60.0  # seconds between decisions at least; 0: at each event
    doubling: bool = False  # whether that doubles while nothing comes or ends: to learn from fewer such decisions
    masked: bool = False  # whether only jobs that fit can be chosen
    estimate: Expected = "none"  # who predicts run times, which are seen next to the requested ones; none: nobody
    reward: Literal["final", "dense"] = "final"  # at the end only, or idle node-time as it passes
    jobs: Count = 1000  # of an episode, the first ones of the workload
    steps: Count = 10_000  # choices after which it is over


class PackingEncoder(Encoder, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Numbers about the cluster, then those of a window of the queue; and when there is something to choose."""

    name: str = _BY_NODE
    nodes: int  # of the cluster; 0 for any number
    pools: int = 0  # numbers about the cluster where it is not seen by node
    window: int  # jobs from the queue's head
    tick: float  # seconds; 0 for none
    masked: Annotated[int, msgspec.Meta(ge=0, le=1)]  # 1 where only jobs that fit can be chosen
    estimate: Expected  # who predicts run times, which are seen next to the requested ones; none: nobody
    max_runtime: float  # seconds: the longest walltime

    def __post_init__(self) -> None:
        super().__post_init__()
        check_scale("max_runtime", self.max_runtime)
        if not 1 <= self.window <= MOST_SLOTS:
            raise ConfigError(f"window: must be 1 to {MOST_SLOTS:,} jobs; found {self.window}")
        if not 0 <= self.tick < np.inf:
            raise ConfigError(f"tick: must be finite and not negative; found {self.tick}")
        if self.name == _BY_POOL and not (self.nodes == 0 and 2 <= self.pools <= MOST_POOLS):
            limits = f"nodes must be 0 and pools 2 to {MOST_POOLS}"
            raise ConfigError(f"encoder {_BY_POOL}: {limits}; found {self.nodes} and {self.pools}")
        if self.name == _BY_NODE and not (1 <= self.nodes <= MOST_NODES and self.pools == 0):
            limits = f"nodes must be 1 to {MOST_NODES:,} and pools 0"
            raise ConfigError(f"encoder {_BY_NODE}: {limits}; found {self.nodes} and {self.pools}")

    @property
    def predicts(self) -> bool:
        """Whether predicted run times are seen."""
        return self.estimate != "none"

    @property
    def outlook(self) -> OutlookSettings | None:
        """What the policy expects of jobs, unless its options say otherwise; None for walltimes."""
        return None if self.estimate in ("none", "walltime") else OutlookSettings(Estimator[self.estimate.upper()])

    @property
    def actions(self) -> int:
        """A: the jobs of the window, and X."""
        return self.window + 1

    @property
    def shape(self) -> tuple[int]:
        """(D,): the cluster, then the window."""
        return (self.width_on(self.nodes),)

    def width_on(self, cores: int) -> int:
        """Numbers about so many nodes, or about pools, and about the window."""
        if self.name == _BY_POOL:
            return self.pools + JOB_FEATURES * self.window
        return 2 * cores + 3 * self.window if self.predicts else cores + 2 * self.window

    def new_memory(self, state: ClusterState) -> "PackingMemory":
        """The encoder as numbers for the kernels; nothing was decided."""
        hosts, both = nb_hosts(state), self.predicts and self.name == _BY_NODE
        return PackingMemory(
            window=self.window,
            pools=self.pools,
            masked=self.masked,
            longest=self.max_runtime,
            tick=self.tick,
            requested=np.zeros(hosts if both else 0),
        )

    def check_cores(self, cores: int, where: str = "the platform") -> None:
        """Refuse a platform of another size than the observation is for. Raises ConfigError."""
        if self.nodes not in (0, cores):
            raise ConfigError(
                f"{where} has {cores} hosts, but the policy's observations are of {self.nodes}; run it on "
                f"{self.nodes} hosts, or train one with env.cluster=pools, which takes any number"
            )


class Packing(ChoosingScheduler):
    """Packing: which of the first jobs of the queue starts next, for utilization.

    Takizawa, Nomura and Matsuba, IPSJ SIG Technical Report HPC-182 no. 6, 2021 (in Japanese).

    Observation, version 1, all in [0, 1], f32 (D,), with N nodes and a window of M jobs; what is in brackets only with
    an `estimate`: 456 numbers of 256 nodes and 100 jobs without, 812 with::

        N                 requested remaining time of each node's job / longest walltime, 0 where it is free
        [N]               predicted remaining time, likewise
        M                 nodes of each job / N, 0 where there is no job
        M                 requested time / longest walltime
        [M]               predicted time / longest walltime

    A node that is away counts as 1. The encoder ``packing-pools`` is for any number of nodes: in place of these it has
    shares of all nodes by remaining time (those that are free, and then pools of twice the time each, up to the
    longest walltime), and job by job nodes, requested time, predicted time, and 1 where there is a job. Without an
    `estimate` its predicted times are the requested ones.

    Actions: 0 .. M - 1, try to start that job, on the free nodes with the lowest numbers; and M, X. The clock stands
    still after a start, and after a failure (a job that does not fit). Time passes after X, an empty slot, a start that
    empties the queue, and 4 failures in a row.

    Decisions: with `tick` at multiples of it from the first submission, where jobs came or ended, or wait next to free
    nodes; with `doubling` the gap between two of the latter kind doubles while nothing comes or ends. With ``tick=0``
    at each instant at which jobs come or end. X on an idle cluster then waits for 60 s.

    Reward ``final``: 0, and at the end share of jobs started + utilization + share of `steps` left. Utilization is the
    node-time of all jobs that have started over all node-time from the first submission to their last end. ``dense``:
    minus the idle node-time of each step, in units of all nodes for the longest walltime; its sum up to the last end
    ranks schedules of the same jobs as utilization does.

    Episode: the first `jobs` jobs of the workload, after which none come. It terminates when all have started, or after
    `steps` choices.

    Masks: ``info["action_mask"]`` i8 (A,), `action_masks()`, and in the observation with `dict_observation`: all 1,
    but with `masked`: there only jobs that fit can be chosen, and X unless nothing runs; where none fits no choice is
    asked for.

    At the end ``info["metrics"]`` has what `decision.rl.envs.EPISODE_METRICS` names, and the parts of the reward:
    ``started``, ``packed_utilization``, ``steps_left``.
    """

    name = "packing"
    summary = "a network chooses which of the first jobs of the queue starts, for utilization, with predicted run times"
    paper = "Takizawa et al. 2021"
    Settings = PackingSettings
    presets = ("packing-compact", "packing-nn1", "packing-nn2")
    networks = ("jobs", "fcn", "mlp")
    curves = ("utilization", "waiting_time", "bounded_slowdown")
    env_id = "Packing"
    observations = {_BY_NODE: {"cluster": "nodes"}, _BY_POOL: {"cluster": "pools"}}
    encoder_type = PackingEncoder
    metrics = ("started", "packed_utilization", "steps_left")
    choices_per_job = 40
    calls = True
    draws = "all"
    begin, open = packing_begin, packing_look
    act, observe = packing_act, packing_observe
    reward, measure, follow = packing_reward, packing_measure, packing_follow
    model_summary = "learned packing, window {window}"

    def episodes(self, settings: PackingSettings, workload: Workload) -> Episodes:
        """The first jobs of the workload."""
        jobs = min(settings.jobs, len(workload.jobs))
        return Episodes(jobs=jobs, online=False, rows=(0,), steps=settings.steps, steps_end=True)

    def outlook(self, settings: PackingSettings, encoder: PackingEncoder) -> OutlookSettings | None:  # type: ignore[override]
        """That of the encoder, which a deployed policy has, too."""
        return encoder.outlook

    def encoder_fields(self, settings: PackingSettings, cores: int) -> dict[str, Any]:
        """Fields of the encoder that follow from the settings and the number of hosts."""
        by_node = settings.cluster == "nodes"
        return {
            "name": _BY_NODE if by_node else _BY_POOL,
            "nodes": cores if by_node else 0,
            "window": settings.window,
            "tick": settings.tick,
            "masked": int(settings.masked),
            "estimate": settings.estimate,
        }

    def make_encoder(  # type: ignore[override]  # each scheduler has its own options
        self,
        settings: PackingSettings,
        cores: int,
        workloads: Sequence[Workload],
        *,
        max_runtime: float | None = None,
        pools: int = 20,
    ) -> PackingEncoder:
        """The encoder for a cluster and its jobs.

        Args:
            settings: of the environment.
            cores: hosts of the cluster.
            workloads: jobs, all with a walltime.
            max_runtime: seconds; by default the longest walltime of the workloads.
            pools: with ``packing-pools``: how many numbers describe the cluster.
        """
        fields = self.encoder_fields(settings, cores)
        longest = longest_walltime(workloads) if max_runtime is None else max_runtime
        return PackingEncoder(**fields, pools=0 if fields["nodes"] else pools, max_runtime=float(longest))

    def new_memory(self, settings: PackingSettings, encoder: Encoder, state: ClusterState) -> Bundle:
        """The encoder's, with the gap that doubles: a deployed policy has none."""
        memory = encoder.new_memory(state)
        assert isinstance(memory, PackingMemory)
        memory.doubles = settings.doubling
        return memory

    def reward_parameters(self, settings: PackingSettings) -> tuple[float, ...]:
        """Whether the reward comes at the end."""
        return (float(settings.reward == "final"),)

    def layout(self, encoder: PackingEncoder) -> Layout | None:
        """Pools, then the window; a network that shares its weights is for these."""
        if encoder.name == _BY_NODE:
            return None
        return Layout(encoder.pools, encoder.window, by_core=False, endless=False)


register(Packing())
