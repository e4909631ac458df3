"""Launchpad: a green datacenter, where power comes and goes and jobs have values and deadlines.

Venkataswamy, Grigsby, Grimshaw and Qi, Launchpad: Learning to Schedule Using Offline and Online RL Methods, JSSPP 2024,
arXiv 2212.00639. Shapes, the number of ready jobs, what happens to jobs beyond the supply and to late ones, and when
time passes are not in the paper; they are ours, as are the compact observation and the density of a suspension.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from decision.compiling.bundle import Bundle, Float, Int
from decision.compiling.jit import kernel
from decision.model.demand import EXPECTED, VALUE, sizes, walltimes, worths
from decision.model.errors import ConfigError
from decision.model.workload import Workload
from decision.policies.checks import check_worths
from decision.policies.options import Suspend
from decision.policies.order import density_of
from decision.policies.profile import TOLERANCE
from decision.policies.traits import SupplySettings, Traits
from decision.state.cluster import QUEUED, ClusterState
from decision.state.plan_arrays import START, SUSPEND, add

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
    Image,
    Pool,
    jobs_in_a_row,
    register,
)
from .decision_points import call_at, start_at
from .packing import MOST_NODES
from .window import MOST_SLOTS, Count, check_scale, slot_begun

# Launchpad in compiled code: decision points at each step, starts, suspensions for a job of more value, and rewards.
#
# A job that another was suspended for (the heir) starts in the next decision, at the same instant, before anything is
# chosen: Batsim starts no job on the hosts of one that was killed in the same reply.

_AHEAD = (1, 2, 5, 10, 20)  # steps ahead that the compact observation tells of
CLUSTER = 3 + 2 * len(_AHEAD) + 4  # numbers about the cluster
COMPACT_FEATURES = 11  # numbers of a job, of which the image has the first ones
IMAGE_FEATURES = 8
ROWS = 20  # steps of the image
EXTRA_ACTIONS = 2  # actions besides starts: suspend, and no_op
_STEPS = 20.0  # that count as 1 in waits and deadlines: as far as the paper's image shows


class LaunchpadMemory(Bundle):
    """The encoder as numbers, and whom this decision point may suspend for whom."""

    pool: Int  # ready jobs
    suspends: Int  # `decision.policies.options.Suspend`
    image: Int  # 1 where the image is seen
    step_length: Float  # seconds
    longest_runtime: Float  # seconds: the longest job
    most_value: Float  # of a job
    most_density: Float  # value per host-second
    paid: Float  # rewards so far
    heir: Int = -1  # job that another was suspended for and that has not started yet, -1 for none
    candidate: Int = -1  # ready job that does not fit and that another may be suspended for, -1 for none
    victim: Int = -1  # that other


@kernel
def value_after(state, memory, job, ran):
    """What jobs are compared by: value, or value per host-second that is left when a job has run for `ran` seconds."""
    return state.value[job] if memory.suspends == Suspend.VALUE else density_of(state, job, ran)


@OBSERVE.entry_with(LaunchpadMemory)
def launchpad_observe(state, facts, cycles, plan, memory, out, mask):
    """The compact observation or the image, and the mask."""
    pool, shown = memory.pool, min(cycles.nb_queued, memory.pool)
    mask[:] = 0
    for slot in range(shown):
        mask[slot] = state.size[cycles.queue[slot]] <= cycles.nb_free
    mask[pool] = memory.victim >= 0
    mask[pool + 1] = 1
    out[:] = 0.0
    beyond = min((cycles.nb_queued - shown) / pool, 1.0)
    # the paper's image: hosts by steps, where jobs run and where there is power, then the first numbers of ready jobs
    if memory.image:
        hosts = len(cycles.until)
        cells = ROWS * hosts
        _see_occupied(state, plan, memory, out[:cells])
        for row in range(ROWS):  # hosts with power are counted from the first
            out[cells + row * hosts : cells + row * hosts + _power_in(state, row)] = 1.0
        for slot in range(shown):
            _see_job(state, cycles, memory, cycles.queue[slot], out[2 * cells + IMAGE_FEATURES * slot :])
        out[2 * cells + IMAGE_FEATURES * pool] = beyond
        return 0
    # the compact one: the same as shares, for any number of hosts, and three numbers more of each job
    _see_cluster(state, cycles, plan, memory, out)
    out[CLUSTER - 4] = beyond
    density = memory.most_density
    for slot in range(shown):
        job, at = cycles.queue[slot], CLUSTER + COMPACT_FEATURES * slot
        _see_job(state, cycles, memory, job, out[at:])
        out[at + 8] = min(density_of(state, job, 0.0) / density, 1.0)
        out[at + 9] = mask[slot]
        out[at + 10] = job == memory.candidate
    return 0


@kernel
def _see_job(state, cycles, memory, job, out):
    """Write the first IMAGE_FEATURES numbers of a job."""
    now = state.now
    # what is left of a suspended job is a job of its own, which waits since the first one came
    first = state.origin[job] if state.nth_rest[job] > 0 else job
    left, unit = _expected(state, job), 1.0 / (_STEPS * memory.step_length)
    out[0] = min(state.value[job] / memory.most_value, 1.0)
    out[1] = min(state.qos[job] * 0.01, 1.0)
    out[2] = state.size[job] / len(cycles.until)
    out[3] = min(left / memory.longest_runtime, 1.0)
    out[4] = 1.0
    if state.deadline[job] > 0.0:
        out[4] = 0.5 + 0.5 * min(max((state.deadline[job] - now) * unit, -1.0), 1.0)
    out[5] = min((now - state.submit_time[first]) * unit, 1.0)
    out[6] = min(max(1.0 - left / _expected(state, first), 0.0), 1.0)
    out[7] = 1.0


@kernel
def _expected(state, job):
    """Seconds that a job is expected to run."""
    return state.expected[job] if state.expected[job] > 0.0 else state.walltime[job]


@kernel
def _steps_left(state, memory, job):
    """Steps that a running job is expected to go on for."""
    return (state.start_time[job] + _expected(state, job) - state.now) / memory.step_length


@kernel
def _see_cluster(state, cycles, plan, memory, out):
    """Hosts that are free, have power and compute, now and in some steps; and the job that may be suspended."""
    share, count = 1.0 / len(cycles.until), len(_AHEAD)
    out[0] = cycles.nb_free * share
    out[1] = state.supply * share
    out[2] = cycles.nb_busy * share
    for k in range(count):
        out[3 + k] = _power_in(state, _AHEAD[k]) * share
    busy = out[3 + count : 3 + 2 * count]
    for i in range(state.nb_running):
        job = state.running[i]
        _add_busy(busy, _steps_left(state, memory, job), state.size[job] * share)
    # and those that this decision has started so far
    for action in range(plan.nb_actions):
        if plan.kind[action] == START:
            job = plan.job[action]
            _add_busy(busy, _expected(state, job) / memory.step_length, state.size[job] * share)
    for k in range(count):
        busy[k] = min(busy[k], 1.0)  # sums of shares are rounded
    victim = memory.victim
    if victim >= 0:  # zeros where nothing can be suspended
        out[CLUSTER - 3] = min(state.value[victim] / memory.most_value, 1.0)
        out[CLUSTER - 2] = state.size[victim] * share
        left = _steps_left(state, memory, victim) * memory.step_length / memory.longest_runtime
        out[CLUSTER - 1] = min(max(left, 0.0), 1.0)


@kernel
def _add_busy(busy, left, share):
    """Count a job's hosts in the steps in which it is expected to run on."""
    for k in range(len(_AHEAD)):
        if left <= _AHEAD[k]:
            break
        busy[k] += share


@kernel
def _power_in(state, steps):
    """Hosts that are expected to have power in so many steps; what was said last, where nothing says it."""
    known = state.nb_forecast
    hosts = state.supply if known == 0 or steps == 0 else np.int64(state.forecast[min(steps, known) - 1])
    return min(hosts, len(state.host_state))


@kernel
def _see_occupied(state, plan, memory, out):
    """1 where a host's job still runs so many steps from now."""
    for i in range(state.nb_running):
        job = state.running[i]
        begin = state.alloc_first[job]
        left = _steps_left(state, memory, job)
        for k in range(begin, begin + state.alloc_count[job]):
            _fill(out, len(state.host_state), left, state.interval_first[k], state.interval_last[k])
    for action in range(plan.nb_actions):
        if plan.kind[action] == START:
            left = _expected(state, plan.job[action]) / memory.step_length
            for k in range(plan.begin[action], plan.end[action]):
                _fill(out, len(state.host_state), left, plan.first[k], plan.last[k])


@kernel
def _fill(out, hosts, left, first, last):
    """Mark the hosts first .. last in the rows of the image of the steps that are left."""
    for row in range(min(np.int64(np.ceil(left - 1e-6)), ROWS)):  # a step only begun by rounding does not count
        out[row * hosts + first : row * hosts + last + 1] = 1.0


@BEGIN.entry_with(LaunchpadMemory)
def launchpad_begin(state, facts, memory):
    """Nobody was suspended, and nothing paid."""
    memory.heir = memory.candidate = memory.victim = -1
    memory.paid = 0.0
    return 0


# --- When there is something to choose, and what is done -----------------------------------------------------------


@OPEN.entry_with(LaunchpadMemory)
def launchpad_look(state, facts, cycles, plan, memory):
    """Start the heir, and see all that comes at one instant together; whether there is something to choose."""
    if cycles.next_shown < state.nb_queued:
        return 0
    # a job that was suspended at this instant is asked for first; Batsim frees its hosts, and asks again
    for i in range(state.nb_running):
        if state.suspended[state.running[i]]:
            return 0  # its hosts are not free yet
    _start_heir(state, cycles, plan, memory)
    return _goes_on(state, cycles, plan, memory)


@ACT.entry_with(LaunchpadMemory)
def launchpad_choose(state, facts, cycles, plan, memory, action):
    """Start a ready job that fits, or suspend one for another; anything else lets time pass."""
    pool = memory.pool
    if 0 <= action < min(cycles.nb_queued, pool) and state.size[cycles.queue[action]] <= cycles.nb_free:
        start_at(state, cycles, plan, action)
        return _goes_on(state, cycles, plan, memory)
    if action == pool and memory.victim >= 0:
        add(plan, SUSPEND, memory.victim)
        memory.heir = memory.candidate
        return 0  # the next decision point is at the same instant, when the victim has left its hosts
    _call_next_step(state, cycles, plan, memory)
    return 0


@kernel
def _start_heir(state, cycles, plan, memory):
    """Start the job that another made way for, unless it left or lost its hosts in between."""
    heir = memory.heir
    memory.heir = -1
    if heir < 0 or state.job_state[heir] != QUEUED or state.size[heir] > cycles.nb_free:
        return
    for at in range(cycles.nb_queued):
        if cycles.queue[at] == heir:
            start_at(state, cycles, plan, at)
            return


@kernel
def _goes_on(state, cycles, plan, memory):
    """Whether there is something to choose besides no_op; else the next step is waited for."""
    _find_pair(state, cycles, memory)
    if memory.victim >= 0:
        return 1
    for at in range(min(cycles.nb_queued, memory.pool)):
        if state.size[cycles.queue[at]] <= cycles.nb_free:
            return 1
    _call_next_step(state, cycles, plan, memory)
    return 0


@kernel
def _call_next_step(state, cycles, plan, memory):
    """Ask for the next step while jobs are ready, unless something earlier was asked for."""
    if cycles.nb_queued == 0:  # then only an arrival brings something to choose
        return
    step = memory.step_length
    due = (np.floor((state.now + TOLERANCE) / step) + 1.0) * step
    if cycles.call > due + TOLERANCE:
        call_at(cycles, plan, due)


@kernel
def _find_pair(state, cycles, memory):
    """The ready job that is worth most of those that do not fit, and the running one that is worth least of those that
    are worth less and have enough hosts for it."""
    memory.candidate = memory.victim = -1
    if memory.suspends == Suspend.NEVER or state.nb_running == 0:
        return
    most, candidate = 0.0, -1
    for at in range(min(cycles.nb_queued, memory.pool)):
        job = cycles.queue[at]
        if state.size[job] > cycles.nb_free:
            value = value_after(state, memory, job, 0.0)
            if candidate < 0 or value > most:
                most, candidate = value, job
    if candidate < 0:
        return
    # free hosts count only as far as the supply of power lets them compute
    missing = state.size[candidate] - min(cycles.nb_free, state.supply - cycles.nb_busy)
    least, victim = most, -1
    for i in range(state.nb_running):
        job = state.running[i]
        if state.size[job] >= missing:
            value = value_after(state, memory, job, state.now - state.start_time[job])
            # strictly less than the candidate's, or two jobs could suspend each other for ever; ties: the younger one
            if value < least or (victim >= 0 and value == least and job > victim):
                least, victim = value, job
    if victim >= 0:
        memory.candidate, memory.victim = candidate, victim


@FOLLOW.entry_with(LaunchpadMemory)
def launchpad_follow(state, cycles, memory, starts):
    """The slot of a job that began by now, or suspend for one that did but does not fit; else no_op."""
    pool, by = memory.pool, state.now + TOLERANCE
    slot = slot_begun(state, cycles, pool, 0, starts, by, cycles.nb_free)
    if slot >= 0:
        return slot
    suspends = memory.victim >= 0 and starts[memory.candidate] <= by
    return pool if suspends else pool + 1


# --- What is paid --------------------------------------------------------------------------------------------------


@REWARD.entry_with(LaunchpadMemory)
def launchpad_reward(state, facts, cycles, progress, memory, moment):
    """The value that was completed since the last choice, minus `parameters[0]` times the value that was violated."""
    if moment != STEP_ENDS:
        return 0.0
    total = progress.earned - progress.parameters[0] * progress.violated
    owed = total - memory.paid
    memory.paid = total
    return owed


@MEASURE.entry_with(LaunchpadMemory)
def launchpad_measure(state, facts, cycles, progress, memory, out):
    """Value of the jobs that ended, its share of all, the share that was violated, and suspensions."""
    submitted, suspensions = 0.0, 0
    for job in range(state.nb_jobs):
        if state.nth_rest[job] == 0:  # a remainder is no job that was submitted, but marks a suspension
            submitted += state.value[job]
        else:
            suspensions += 1
    out[0] = progress.earned
    out[1] = progress.earned / submitted if submitted > 0.0 else np.nan
    out[2] = progress.violated / submitted if submitted > 0.0 else np.nan
    out[3] = suspensions
    return 0


COMPACT, IMAGE = "green", "green-image"  # observations, by the names that checkpoints have
Weight = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=86400)]
Suspensions = Literal["never", "value", "density"]


class LaunchpadSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What Launchpad's environment can be set to."""

    observation: Literal["compact", "image"] = "compact"  # numbers about jobs, or the paper's
    pool: Annotated[int, msgspec.Meta(ge=1, le=MOST_SLOTS)] = 10  # ready jobs: the first ones of the queue
    step: Annotated[float, msgspec.Meta(ge=1, le=86400)] = 60.0  # seconds
    suspend: Suspensions = "value"  # by what a running job is worth less than a ready one
    late: Literal["reject", "keep"] = "reject"  # jobs that cannot end in time
    beyond: Literal["suspend", "grid"] = "suspend"  # jobs beyond the supply
    restart: Seconds = 0.0  # that what is left of a suspended job takes before it goes on
    violation_cost: Weight = 0.0  # of the value that was violated
    jobs: Count = 200  # of an episode


class LaunchpadEncoder(Encoder, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The cluster and the ready jobs, or the image and these; and when there is something to choose."""

    name: str = COMPACT
    hosts: int  # of the image; 0 for any number
    pool: int  # ready jobs
    step: float  # seconds
    suspend: Suspensions
    max_value: float  # of a job
    max_density: float  # value per host-second
    max_runtime: float  # seconds: the longest that a job is expected to run

    def __post_init__(self) -> None:
        super().__post_init__()
        for scale in ("step", "max_runtime"):
            check_scale(scale, getattr(self, scale))
        for scale in ("max_value", "max_density"):
            if not 0 < getattr(self, scale) < np.inf:
                raise ConfigError(f"{scale}: must be positive and finite; found {getattr(self, scale)}")
        if not 1 <= self.pool <= MOST_SLOTS:
            raise ConfigError(f"pool: must be 1 to {MOST_SLOTS:,} jobs; found {self.pool}")
        if not (self.hosts == 0 if self.name == COMPACT else 1 <= self.hosts <= MOST_NODES):
            wanted = "0" if self.name == COMPACT else f"1 to {MOST_NODES:,}"
            raise ConfigError(f"encoder {self.name}: hosts must be {wanted}; found {self.hosts}")

    @property
    def actions(self) -> int:
        """A: starts, suspend, and no_op."""
        return self.pool + EXTRA_ACTIONS

    @property
    def shape(self) -> tuple[int]:
        """(D,): the cluster or the image, then the ready jobs."""
        return (self.width_on(self.hosts),)

    def width_on(self, cores: int) -> int:
        """Numbers of the image on so many hosts, or about any cluster, and about the ready jobs."""
        if self.name == COMPACT:
            return CLUSTER + COMPACT_FEATURES * self.pool
        return 2 * ROWS * cores + IMAGE_FEATURES * self.pool + 1

    @property
    def window(self) -> int:
        """Jobs of the queue that are seen."""
        return self.pool

    @property
    def flags(self) -> int:
        """The cells of the image."""
        return 2 * ROWS * self.hosts

    @property
    def suspends(self) -> bool:
        """Whether running jobs may be suspended for others."""
        return self.suspend != "never"

    def new_memory(self, state: ClusterState) -> LaunchpadMemory:
        """The encoder as numbers for the kernels; nobody was suspended."""
        return LaunchpadMemory(
            pool=self.pool,
            suspends=Suspend[self.suspend.upper()],
            image=self.name == IMAGE,
            step_length=self.step,
            longest_runtime=self.max_runtime,
            most_value=self.max_value,
            most_density=self.max_density,
        )

    def check_cores(self, cores: int, where: str = "the platform") -> None:
        """Refuse a platform of another size than the image. Raises ConfigError."""
        if self.hosts not in (0, cores):
            raise ConfigError(
                f"{where} has {cores} hosts, but the policy's image has {self.hosts}; run it on {self.hosts} hosts, or "
                "train one with env.observation=compact, which takes any number"
            )


class Green(ChoosingScheduler):
    """Launchpad: which ready job starts, or takes the hosts of one that is worth less, while power comes and goes.

    Venkataswamy, Grigsby, Grimshaw and Qi, JSSPP 2024. Jobs have a value, a QoS and a deadline; at most as many hosts
    compute as a supply of power says (events of type ``power_supply``). The `pool` first jobs of the queue are ready.

    Observation ``green``, version 1, all in [0, 1], f32 (17 + 11 n,), n = `pool`, H hosts::

        0 .. 2            hosts that are free, have power, and compute, / H
        3 .. 7            hosts that are expected to have power in 1, 2, 5, 10 and 20 steps / H
        8 .. 12           hosts whose jobs are expected to run on then / H
        13                jobs beyond the pool / n
        14 .. 16          of the job that `suspend` is about: value / highest value, hosts / H, time left / longest
        17 + 11 k         of the k-th ready job: value / highest value
        17 + 11 k + 1         QoS
        17 + 11 k + 2         hosts / H
        17 + 11 k + 3         time that it is expected to run on for / longest
        17 + 11 k + 4         steps to the deadline / 20, from -1 to 1, as 0 to 1
        17 + 11 k + 5         steps since its first submission / 20
        17 + 11 k + 6         share that is done
        17 + 11 k + 7         1
        17 + 11 k + 8         value per host-second / the highest
        17 + 11 k + 9         1 where it fits
        17 + 11 k + 10        1 where `suspend` would start it

    Observation ``green-image``, version 1, f32 (40 H + 8 n + 1,)::

        H r + h           1 where the job of host h is expected to run in r steps, r = 0 .. 19
        20 H + H r + h    1 where h is less than the hosts that are expected to have power in r steps
        40 H + 8 k        the first eight numbers of the k-th ready job
        40 H + 8 n        jobs beyond the pool / n

    Actions: k < n, the k-th ready job starts, on the lowest hosts; n, suspend: of the ready jobs that do not fit the
    one that is worth most takes the hosts of the running one that is worth least of those that are worth less and have
    enough; n + 1, no_op. With ``suspend="density"`` value per host-second left counts there. No time passes by a start
    or a suspension. No_op lets time pass, as do a job that does not fit, and a suspension where there is none. What is
    left of a suspended job joins the end of the queue.

    Decision points: each instant at which something happens, and each multiple of `step` while jobs are ready. Where
    nothing but no_op is valid, no choice is asked for.

    Reward: the value of the jobs that ended, minus `violation_cost` times the value of those that ended after their
    deadlines or left because they could not end before (``late="reject"``).

    Episode: `jobs` jobs in a row of the workload, on an idle cluster, under the supply of that time. It terminates when
    all of them are over, and is truncated where jobs were suspended far too often.

    Masks: ``info["action_mask"]`` i8 (n + 2,), `action_masks()`, and in the observation with `dict_observation`: jobs
    that fit; suspend where there are two such jobs; no_op.

    At the end ``info["metrics"]`` has what `decision.rl.envs.EPISODE_METRICS` names, and ``value`` of the jobs that
    ended, ``value_share`` and ``violated_share`` of the value of all jobs, and ``suspensions``.
    """

    name = "green"
    summary = "a network chooses which job starts, or is suspended for which, as power comes and goes"
    paper = "Venkataswamy et al. 2024"
    Settings = LaunchpadSettings
    presets = ("green", "green-bc", "green-crr", "green-sac", "green-offline-online", "green-paper")
    networks = ("jobs", "mlp", "image")
    curves = ("utilization", "queue_length")
    env_id = "Green"
    observations = {COMPACT: {"observation": "compact"}, IMAGE: {"observation": "image"}}
    encoder_type = LaunchpadEncoder
    metrics = ("value", "value_share", "violated_share", "suspensions")
    validated = ("value_share", "violated_share")
    choices_per_job = 60
    calls = True
    most_calls = 256  # one by itself, and those by which jobs that are too late leave an idle cluster
    needs_value = needs_qos = True
    begin, open, act, observe = (launchpad_begin, launchpad_look, launchpad_choose, launchpad_observe)
    reward, measure, follow = launchpad_reward, launchpad_measure, launchpad_follow
    model_summary = "learned starts and suspensions, pool {pool}"

    def episodes(self, settings: LaunchpadSettings, workload: Workload) -> Episodes:
        """As many jobs in a row, from any at which so many are left."""
        return jobs_in_a_row(settings.jobs, workload)

    def supply(self, settings: LaunchpadSettings) -> SupplySettings:
        """Late jobs leave, jobs beyond the supply are suspended, and restarts cost time, as the settings say."""
        return SupplySettings(settings.late == "reject", settings.beyond == "suspend", settings.restart)

    def encoder_fields(self, settings: LaunchpadSettings, cores: int) -> dict[str, Any]:
        """Fields of the encoder that follow from the settings and the number of hosts."""
        image = settings.observation == "image"
        same = {name: getattr(settings, name) for name in ("pool", "step", "suspend")}
        return {"name": IMAGE if image else COMPACT, "hosts": cores if image else 0, **same}

    def make_encoder(  # type: ignore[override]  # each scheduler has its own options
        self,
        settings: LaunchpadSettings,
        cores: int,
        workloads: Sequence[Workload],
        *,
        max_value: float | None = None,
        max_density: float | None = None,
        max_runtime: float | None = None,
    ) -> LaunchpadEncoder:
        """The encoder for a cluster and its jobs.

        Args:
            settings: of the environment.
            cores: hosts of the cluster.
            workloads: jobs, all with a walltime and a value.
            max_value: of a job; by default the highest of the workloads.
            max_density: value per host-second, likewise.
            max_runtime: seconds that a job is expected to run, likewise.

        Raises:
            ConfigError: if a job does not say its value or QoS.
        """
        check_worths(Traits(self.name, needs_value=self.needs_value, needs_qos=self.needs_qos), workloads)
        highest = np.zeros(3)  # value, value per host-second, and seconds that jobs are expected to run
        for workload in workloads:
            rows = worths(workload)
            assert rows is not None
            run = np.where(rows[:, EXPECTED] > 0, rows[:, EXPECTED], walltimes(workload))
            by_host_second = rows[:, VALUE] / (sizes(workload) * run)
            highest = np.maximum(highest, (rows[:, VALUE].max(), by_host_second.max(), run.max()))
        asked = (max_value, max_density, max_runtime)
        value, density, runtime = (float(h if a is None else a) for a, h in zip(asked, highest, strict=True))
        fields = self.encoder_fields(settings, cores)
        return LaunchpadEncoder(**fields, max_value=value, max_density=density, max_runtime=runtime)

    def reward_parameters(self, settings: LaunchpadSettings) -> tuple[float, ...]:
        """What a violated value costs, over what a completed one earns."""
        return (settings.violation_cost,)

    def layout(self, encoder: LaunchpadEncoder) -> Pool | Image:
        """The cluster, then the pool."""
        if encoder.name == IMAGE:
            return Image((2, ROWS, encoder.hosts), IMAGE_FEATURES * encoder.pool + 1)
        return Pool(CLUSTER, encoder.pool, COMPACT_FEATURES, EXTRA_ACTIONS)


register(Green())
