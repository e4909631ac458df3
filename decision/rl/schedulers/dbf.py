"""Deep backfilling (DBF): which jobs of a split window of the queue start now.

Wang, Harwood and Rodriguez, Deep Back-Filling: a Split Window Technique for Deep Online Cluster Job Scheduling, HPCC
2022. First what the kernels see, do and pay, then settings, encoder and the record, whose docstring is the table of the
observation and says where it differs from the paper.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from decision.compiling.bundle import Bundle, Float, Int
from decision.compiling.jit import kernel
from decision.model.errors import ConfigError
from decision.model.workload import Workload
from decision.policies.profile import TOLERANCE
from decision.state.cluster import ClusterState
from decision.state.plan_arrays import START

from .base import (
    ACT,
    CYCLE_ENDS,
    FOLLOW,
    OBSERVE,
    REWARD,
    ChoosingScheduler,
    Draws,
    Episodes,
    ExpectingSettings,
    Layout,
    register,
)
from .decision_points import start_at
from .window import (
    JOB_FEATURES,
    Count,
    Slots,
    WindowEncoder,
    check_window,
    longest_walltime,
    place_of,
    see_window,
    slot_begun,
)

BY_CORE, BY_POOL = "dbf", "dbf-pools"  # observations
CLIPPED, ENDLESS, UNMASKED = 1, 2, 3  # their versions: how waits are seen; clipped ones, and no choice is masked


class DbfMemory(Bundle):
    """The encoder as numbers; nothing is remembered."""

    head: Int  # window slots for the first jobs of the queue
    tail: Int  # and for the last ones
    pools: Int  # numbers about the cluster, 0 for one number per core
    version: Int  # of the observation: CLIPPED, ENDLESS or UNMASKED
    must_start: Int  # 1 where an idle cluster must start a job that fits
    max_runtime: Float  # seconds that count as 1 in a run time
    max_wait: Float  # seconds that count as a half in a wait, or as 1 with CLIPPED


@ACT.entry_with(DbfMemory)
def dbf_act(state, facts, cycles, plan, memory, action):
    """Start the job of a slot; anything else ends the cycle."""
    at = place_of(cycles, memory.head, memory.tail, action)
    if at < 0 or state.size[cycles.queue[at]] > cycles.nb_free:
        return 0
    start_at(state, cycles, plan, at)
    return 1


@FOLLOW.entry_with(DbfMemory)
def dbf_follow(state, cycles, memory, starts):
    """The slot of a job that began by now; Fwd where none fits."""
    head, tail = memory.head, memory.tail
    slot = slot_begun(state, cycles, head, tail, starts, state.now + TOLERANCE, cycles.nb_free)
    return slot if slot >= 0 else head + tail


@OBSERVE.entry_with(DbfMemory)
def dbf_observe(state, facts, cycles, plan, memory, observation, mask):
    """The cluster, then the window."""
    head, tail, max_runtime, endless = memory.head, memory.tail, memory.max_runtime, memory.version == ENDLESS
    if memory.pools == 0:
        width = see_hosts(cycles.until, state.now, max_runtime, observation)
    else:
        width = see_pools(state, cycles, plan, memory.pools, max_runtime, observation)
    window = observation[width:]
    some = see_window(state, cycles, head, tail, max_runtime, memory.max_wait, endless, True, window, mask)
    idle = cycles.nb_free == len(cycles.until)
    # Fwd, the last action: the paper masks it on an idle cluster, where nothing but an arrival would end the wait; with
    # waits without an end it is masked wherever no job would gain by waiting
    mask[len(mask) - 1] = not (some and (_all_fit(state, cycles) if endless else idle))
    # without a mask the reward teaches what is valid, but a run would stand still on an idle cluster after the last
    # arrival: there only jobs that fit can be chosen
    if memory.version == UNMASKED and not (memory.must_start and some and idle):
        mask[:] = 1
    return 0


@kernel
def _all_fit(state, cycles):
    """Whether the cluster is idle, or all jobs that wait could start now: then waiting for anything is of no use."""
    free = cycles.nb_free
    if free == len(cycles.until):
        return True
    for at in range(cycles.nb_queued):
        free -= state.size[cycles.queue[at]]
        if free < 0:  # of a long queue few jobs are looked at
            return False
    return True


@REWARD.entry_with(DbfMemory)
def dbf_reward(state, facts, cycles, progress, memory, moment):
    """R(t), the paper's equation 2, at the end of each cycle."""
    if moment != CYCLE_ENDS:
        return 0.0
    # each part is over its maximum so far, so that all are in [0, 1] whatever the load of the trace
    weight = progress.parameters
    idle = cycles.nb_free / len(cycles.until)
    queued = cycles.nb_queued / progress.most_queued if progress.most_queued > 0.0 else 0.0
    waiting = progress.waiting / progress.most_waiting if progress.most_waiting > 0.0 else 0.0
    return -(weight[0] * idle + weight[1] * queued + weight[2] * waiting)


@kernel
def see_hosts(until, now, longest, out):
    """Remaining time of each host's job over the longest, 0 where it is free, 1 at most; returns how many hosts."""
    scale = 1.0 / longest
    for host in range(len(until)):
        left = (until[host] - now) * scale  # -inf where it is free, inf where it is away
        left = left if left > 0.0 else 0.0
        out[host] = left if left < 1.0 else 1.0
    return len(until)


@kernel
def see_pools(state, cycles, plan, pools, max_runtime, out):
    """Count the cores of each pool, and divide by all: sums of whole numbers are exact. Returns how many pools."""
    hosts = len(cycles.until)
    now, scale = state.now, 1.0 / max_runtime
    out[:pools] = 0.0
    out[0] = cycles.nb_free
    # hosts that are neither free nor run a job are away: with the longest
    away = hosts - cycles.nb_free
    for i in range(state.nb_running):
        size = state.size[state.running[i]]
        out[_pool(pools, (state.expected_end[i] - now) * scale)] += size
        away -= size
    # jobs that this decision has started so far are in the plan, and not in the state
    for at in range(plan.nb_actions):
        if plan.kind[at] == START:
            size = state.size[plan.job[at]]
            out[_pool(pools, state.expected_runtime[plan.job[at]] * scale)] += size
            away -= size
    out[pools - 1] += away
    for k in range(pools):
        out[k] /= hosts
    return pools


@kernel
def _pool(pools, left):
    """Pool k >= 1 ends at 2 ** (k - pools + 1) of the longest runtime, and begins where the one before it ends."""
    if not left < 1.0:  # NaN, too: its exponent could be any
        return pools - 1
    if left <= 0.0:
        return 1
    fraction, exponent = math.frexp(left)  # exact, as no logarithm is; a power of two belongs to the pool that it ends
    return max(1, pools - 1 + exponent - (fraction == 0.5))


MOST_CORES = 1 << 20  # seen one by one
MOST_POOLS = 1024  # a share of the longest runtime below 2 ** -1024 is 0

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class DbfSettings(ExpectingSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What DBF's environment can be set to."""

    head: Slots = 16  # jobs of the window from the queue's head
    tail: Slots = 4  # and from its tail
    cluster: Literal["cores", "pools"] = "cores"  # how the cluster is seen: each core, or pools that fit any size
    jobs: Count = 1000  # placed jobs that end an episode
    online: bool = True  # whether other jobs arrive after those
    paper: bool = False  # waits, episodes' ends and the mask of Fwd as in the paper, for short runs
    mask: bool = True  # whether choices that start nothing are masked; if not, they end the cycle, and that is learned
    idle_weight: Share = 1 / 3  # w1 of the reward
    queue_weight: Share = 1 / 3  # w2
    waiting_weight: Share = 1 / 3  # w3


class DbfEncoder(WindowEncoder, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Numbers about the cluster, then a split window of the queue."""

    name: str = BY_CORE
    version: int = ENDLESS
    cores: int  # of the cluster; 0 for any number
    cluster: int  # numbers before those of the window: as many as cores, or pools
    tail: int  # window slots for the last jobs of the queue

    VERSIONS: ClassVar[tuple[int, ...]] = (CLIPPED, ENDLESS, UNMASKED)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.name == BY_POOL and not 2 <= self.cluster <= MOST_POOLS:
            limits = f"at least 2, for free cores and for others, and at most {MOST_POOLS}"
            raise ConfigError(f"{self.cluster} pools: there must be {limits}")
        if self.name == BY_CORE and not 1 <= self.cores <= MOST_CORES:
            limits = f"must be 1 to {MOST_CORES:,} with the encoder {BY_CORE}"
            raise ConfigError(f"cores: {limits}; found {self.cores}; {BY_POOL} takes any number")
        if self.name == BY_POOL and self.cores != 0:
            raise ConfigError(f"cores: must be 0 with the encoder {self.name}; found {self.cores}")
        if self.name == BY_CORE and self.cluster != self.cores:
            raise ConfigError(f"cluster: must be {self.cores} with the encoder {self.name}; found {self.cluster}")

    @property
    def window(self) -> int:
        """Slots of the window, M."""
        return self.head + self.tail

    @property
    def actions(self) -> int:
        """A: the slots of the window, and Fwd."""
        return self.window + 1

    @property
    def shape(self) -> tuple[int]:
        """(D,): `cluster` numbers, then four for each slot."""
        return (self.cluster + JOB_FEATURES * self.window,)

    def width_on(self, cores: int) -> int:
        """A number for each core there is, or for each pool; and those of the window."""
        return (cores if self.name == BY_CORE else self.cluster) + JOB_FEATURES * self.window

    def new_memory(self, state: ClusterState, must_start: bool = True) -> "DbfMemory":
        """The encoder as numbers for the kernels.

        Args:
            state: of the cluster.
            must_start: whether a job must start where the cluster is idle, also where no choice is masked: without
                further arrivals nothing else would ever happen.
        """
        pools = self.cluster if self.name == BY_POOL else 0
        return DbfMemory(
            head=self.head,
            tail=self.tail,
            pools=pools,
            version=self.version,
            must_start=must_start,
            max_runtime=self.max_runtime,
            max_wait=self.max_wait,
        )

    def check_cores(self, cores: int, where: str = "the platform") -> None:
        """Refuse a platform of another size than the observation is for. Raises ConfigError."""
        if self.cores not in (0, cores):
            raise ConfigError(
                f"{where} has {cores} hosts, but the policy's observations are of {self.cores}; run it on "
                f"{self.cores} hosts, or train one with the encoder {BY_POOL}, which takes any number"
            )


class Dbf(ChoosingScheduler):
    """Deep backfilling (DBF): which jobs of a split window of the queue start now.

    Wang, Harwood and Rodriguez, Deep Back-Filling: a Split Window Technique for Deep Online Cluster Job Scheduling,
    HPCC 2022.

    Observation, version 2, all in [0, 1], f32 (D,)::

        0 .. N - 1        remaining requested time of each core's job / longest runtime, 0 where it is free
        N + 4 k           of slot k of the window: cores / N
        N + 4 k + 1           requested runtime / longest runtime
        N + 4 k + 2           time waited / (time waited + longest runtime)
        N + 4 k + 3           1 where there is a job, else all four are 0

    A core that is away counts as 1. Slots 0 .. head - 1 are the first jobs of the queue, the `tail` slots after them
    the last ones, the newest first; no job is in two slots. The encoder ``dbf-pools`` is for any number of cores: in
    place of the N cores it has shares of all cores by remaining time: those that are free, and then pools of twice the
    time each, up to the longest runtime.

    Actions: slot 0 .. M - 1, and M, Fwd. A valid choice starts the job on the free cores with the lowest numbers.
    Anything else (Fwd, an empty slot, a job that does not fit) ends the cycle. A cycle begins at each arrival (jobs
    that arrive together are seen one after the other) and at each instant at which jobs end.

    Reward: 0 for a valid choice, else R(t) = -w1 (1 - eta) - w2 L / Lmax - w3 W / Wmax: the share of idle cores, the
    queue's length and the time waited by its jobs, each of the two over its maximum since the episode began.

    Episode: begins on an idle cluster with the arrival of a random job of the trace, and is truncated when `jobs` jobs
    have been placed: others wait, and what becomes of them counts (the learner takes the value of the last state in
    their place). Jobs go on to arrive; after the last the trace begins again. It is truncated, too, when four times as
    many have come, or (not `online`) when nothing can happen any more; not `online` it terminates with its last job.

    Masks: ``info["action_mask"]`` i8 (A,), `action_masks()`, and in the observation with `dict_observation`. Fwd is
    masked where all jobs that wait could start now, and where the cluster is idle and one of them could: nothing but
    another arrival would end that wait. So no job waits on a machine that is nearly idle. (The paper has no such rule.
    A Fwd that is chosen all the same is carried out.)

    With ``paper=True`` it is the paper's, in which starvation cannot be seen, and leaving large jobs is paid for:
    observation version 1, where waits are shares of the longest runtime, and longer ones 1; an episode terminates when
    `jobs` jobs have been placed; Fwd is masked on an idle cluster alone. With ``mask=False`` as well nothing is masked
    (observation version 3, the same numbers): a slot that is empty or whose job does not fit can be chosen, ends the
    cycle and is paid for as Fwd is, and a policy learns by that what is valid, as in the paper. What was learned so
    draws from all of its choices, and as a policy of runs starts one of the jobs that fit where the cluster is idle:
    after the last arrival nothing else would happen any more.

    At the end ``info["metrics"]`` has what `decision.rl.envs.EPISODE_METRICS` names.
    """

    name = "dbf"
    summary = "split-window deep backfilling: a network chooses which jobs of a window of the queue start"
    paper = "Wang et al. 2023"
    Settings = DbfSettings
    presets = ("dbf-compact", "dbf-paper", "dbf-bc", "dbf-crr", "dbf-sac")
    networks = ("jobs", "mlp")
    env_id = "DBF"
    env_options = {"head": 20, "tail": 0}
    observations = {BY_CORE: {"cluster": "cores"}, BY_POOL: {"cluster": "pools"}}
    encoder_type = DbfEncoder
    draws = "last"
    former_settings = {"paper": True}
    act, observe, reward, follow = dbf_act, dbf_observe, dbf_reward, dbf_follow
    model_summary = "learned deep backfilling, window {head}-{tail}"

    def check(self, settings: DbfSettings, where: str) -> None:
        """Refuse a window without slots, and to learn without the mask what is not the paper's. Raises ConfigError."""
        check_window(where, head=settings.head, tail=settings.tail)
        if not settings.mask and not settings.paper:
            raise ConfigError(f"{where}env.mask is false: that is the paper's way; set env.paper=true, too")

    def episodes(self, settings: DbfSettings, workload: Workload) -> Episodes:
        """Of so many placed jobs: a horizon where others wait, unless as in the paper."""
        return Episodes(jobs=settings.jobs, online=settings.online, horizon=settings.online and not settings.paper)

    def encoder_fields(self, settings: DbfSettings, cores: int) -> dict[str, Any]:
        """Fields of the encoder that follow from the settings and the number of hosts."""
        by_core = settings.cluster == "cores"
        return {
            "name": BY_CORE if by_core else BY_POOL,
            "version": (CLIPPED if settings.mask else UNMASKED) if settings.paper else ENDLESS,
            "cores": cores if by_core else 0,
            "head": settings.head,
            "tail": settings.tail,
        }

    def make_encoder(  # type: ignore[override]  # each scheduler has its own options
        self,
        settings: DbfSettings,
        cores: int,
        workloads: Sequence[Workload],
        *,
        max_runtime: float | None = None,
        max_wait: float | None = None,
        pools: int = 20,
    ) -> DbfEncoder:
        """The encoder for a cluster and its jobs.

        Args:
            settings: of the environment.
            cores: hosts of the cluster.
            workloads: jobs, all with a walltime.
            max_runtime: seconds; by default the longest walltime of the workloads.
            max_wait: seconds that count as a half, or as 1 with `DbfSettings.paper`; by default as `max_runtime`.
            pools: with ``dbf-pools``: how many numbers describe the cluster.
        """
        fields = self.encoder_fields(settings, cores)
        longest = longest_walltime(workloads) if max_runtime is None else max_runtime
        cluster = cores if fields["cores"] else pools
        wait = longest if max_wait is None else max_wait
        return DbfEncoder(**fields, cluster=cluster, max_runtime=float(longest), max_wait=float(wait))

    def new_memory(self, settings: DbfSettings, encoder: Any, state: ClusterState) -> DbfMemory:
        """The encoder's; in an environment no job must start."""
        return encoder.new_memory(state, must_start=False)

    def draws_of(self, settings: DbfSettings) -> Draws:
        """All without the mask: the best could be a choice that starts nothing, cycle after cycle."""
        return self.draws if settings.mask else "all"

    def reward_parameters(self, settings: DbfSettings) -> tuple[float, ...]:
        """The weights w1, w2 and w3 of the reward."""
        return settings.idle_weight, settings.queue_weight, settings.waiting_weight

    def layout(self, encoder: DbfEncoder) -> Layout:
        """The cluster, then the window."""
        by_core, endless = encoder.cores > 0, encoder.version == ENDLESS
        return Layout(encoder.cluster, encoder.window, by_core=by_core, endless=endless)

    def read_options(self, options: Mapping[str, Any]) -> tuple[DbfSettings, dict[str, Any]]:
        """Also ``weights``: w1, w2 and w3 together. Raises ConfigError."""
        options = dict(options)
        if (weights := options.pop("weights", None)) is not None:
            if len(weights) != 3 or not all(0 <= weight <= 1 for weight in weights):
                raise ConfigError(f"weights: must be three numbers between 0 and 1; found {weights}", field="weights")
            options |= zip(("idle_weight", "queue_weight", "waiting_weight"), map(float, weights), strict=True)
        return super().read_options(options)


register(Dbf())
