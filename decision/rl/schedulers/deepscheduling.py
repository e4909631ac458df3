"""DeepScheduling: which job starts and which waits, so that servers may stay off.

Casagrande, Koslovski, Miers and Pillon, DeepScheduling: Grid Computing Job Scheduler based on Deep Reinforcement
Learning, AINA 2020. Where the paper contradicts itself or is silent the rules are those of the authors' program (shares
in the reward, 20 jobs), or ours: how numbers are scaled, and what a day is.
"""

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from decision.compiling.bundle import F4, F8, I4, Bundle, Float, Int
from decision.compiling.jit import kernel
from decision.model.dates import DAY, DAY_LEAD, chosen_days
from decision.model.errors import ConfigError, warn_once
from decision.model.platform import Platform
from decision.model.workload import Workload
from decision.policies.memory import Booking, new_booking
from decision.policies.power import (
    ASLEEP,
    book,
    count_available,
    forget_gone,
    is_booked,
    next_timeout,
    pick,
    sleep_due,
    start_due,
    wake_booked,
)
from decision.policies.profile import TOLERANCE
from decision.state.cluster import COMPUTING, IDLE, SLEEPING, SWITCHING_OFF, SWITCHING_ON, ClusterState, nb_hosts
from decision.state.plan_arrays import START

from .base import (
    ACT,
    BEGIN,
    MEASURE,
    OBSERVE,
    OPEN,
    REWARD,
    STEP_ENDS,
    ChoosingScheduler,
    Encoder,
    Episodes,
    Sequences,
    register,
)
from .decision_points import call_at, note_start, place_in_queue
from .window import Count, check_scale, confidence_in, learn_from, longer_confidence, longest_walltime, new_confidence

JOBS_SEEN = 20  # jobs of the queue, jobs that run, and snapshots
JOB_NUMBERS, SNAPSHOT_NUMBERS = 3, 8
WIDTH = (2 * JOB_NUMBERS + SNAPSHOT_NUMBERS) * JOBS_SEEN
VOID = 0  # action; action k is the k-th job
ONE_MINUTE = 60.0  # seconds
_LONGEST_QUEUE = 4500.0  # jobs that count as 1; the paper does not say how its queue length is scaled


class DeepSchedulingMemory(Booking):
    """The encoder as numbers, who has booked, and what was seen. J jobs, K >= 2 J places for users, a power of two."""

    max_runtime: Float  # seconds: the longest walltime
    timeout: Float  # seconds after which an idle server sleeps
    masked: Int  # 1 where only jobs that fit can be chosen
    nb_shown: Int  # jobs in the window
    nb_available: Int  # cores that a job can book
    nb_falling_asleep: Int  # cores that this decision puts to sleep
    nb_snapshots: Int  # so far, JOBS_SEEN at most
    next_choice: Float = -np.inf  # seconds: when the next choice is due; -inf where any event is
    last_choice: Float = -np.inf  # seconds: when time last began to pass by a choice, or for want of one
    # the reward's integral of 1 / walltime over the jobs of the window
    summed_at: Float  # seconds: up to when it is summed
    urgency: Float  # its integrand since then, 1 / seconds
    urged: Float  # the integral so far
    paid: Float  # rewards so far
    window: I4  # (JOBS_SEEN,) the first jobs of the queue that have no hosts yet
    agenda: I4  # (JOBS_SEEN,) scratch: jobs that run and end first
    agenda_end: F8  # (JOBS_SEEN,) seconds: when they do by their walltimes
    snapshot: F4  # (JOBS_SEEN * SNAPSHOT_NUMBERS,) the oldest first
    user: I4  # (K,) these four as in `decision.rl.schedulers.window.Confidence`
    last: I4  # (K,)
    confidence: F8  # (K,)
    previous: I4  # (J,)


@kernel
def fits(state, memory, job):
    """Whether there are servers for a job, asleep or not."""
    return state.size[job] <= memory.nb_available


@kernel
def take_snapshot(state, facts, cycles, memory):
    """Of the cluster as it is once the decision so far is carried out."""
    hosts, seen = len(cycles.until), memory.snapshot
    at = memory.nb_snapshots * SNAPSHOT_NUMBERS
    if memory.nb_snapshots == JOBS_SEEN:  # the oldest one goes
        at -= SNAPSHOT_NUMBERS
        for i in range(at):
            seen[i] = seen[i + SNAPSHOT_NUMBERS]
    else:
        memory.nb_snapshots += 1
    reserved = state.nb_in_state[COMPUTING]
    for i in range(memory.nb_booked):
        reserved += state.size[memory.booked[i]]
    # jobs that the plan starts have left the queue of the cycles, but are among the booked ones still
    waiting = cycles.nb_queued - memory.nb_booked + cycles.nb_running - state.nb_running
    # the state is that before this decision: what it starts, wakes and puts to sleep moves from one number to another
    started, dozing = cycles.nb_busy - state.nb_in_state[COMPUTING], memory.nb_falling_asleep
    woken = 0  # cores of servers that sleep and are about to wake
    for server in range(len(facts.server_begin) - 1):
        begin = facts.server_begin[server]
        if memory.woken[server] and memory.rank[facts.server_host[begin]] == ASLEEP:
            woken += facts.server_begin[server + 1] - begin
    seen[at] = reserved / hosts
    seen[at + 1] = min(math.log1p(waiting) / math.log1p(_LONGEST_QUEUE), 1.0)
    seen[at + 2] = (state.now - DAY_LEAD) % DAY / DAY
    seen[at + 3] = (state.nb_in_state[SLEEPING] - woken) / hosts
    seen[at + 4] = (state.nb_in_state[SWITCHING_ON] + woken) / hosts
    seen[at + 5] = (state.nb_in_state[SWITCHING_OFF] + dozing) / hosts
    seen[at + 6] = (state.nb_in_state[IDLE] - started - dozing) / hosts
    seen[at + 7] = cycles.nb_busy / hosts


@OBSERVE.entry_with(DeepSchedulingMemory)
def deepscheduling_observe(state, facts, cycles, plan, memory, out, mask):
    """Jobs that wait, jobs that run, and snapshots."""
    hosts, now = len(cycles.until), state.now
    scale = 1.0 / math.log1p(memory.max_runtime / ONE_MINUTE)
    out[:] = 0.0
    mask[:] = memory.masked == 0
    mask[VOID] = 1
    for i in range(memory.nb_shown):
        job, at = memory.window[i], JOB_NUMBERS * i
        out[at] = state.size[job] / hosts
        out[at + 1] = _share(state.walltime[job], scale)
        out[at + 2] = confidence_in(state, memory, job)
        if memory.masked:
            mask[1 + i] = fits(state, memory, job)
    for i in range(_first_to_end(state, plan, memory)):
        job, at = memory.agenda[i], JOB_NUMBERS * (JOBS_SEEN + i)
        left, walltime = memory.agenda_end[i] - now, state.walltime[job]
        out[at] = state.size[job] / hosts
        out[at + 1] = _share(left, scale)
        out[at + 2] = _share(left - walltime + confidence_in(state, memory, job) * walltime, scale)
    seen = memory.nb_snapshots * SNAPSHOT_NUMBERS
    out[2 * JOB_NUMBERS * JOBS_SEEN : 2 * JOB_NUMBERS * JOBS_SEEN + seen] = memory.snapshot[:seen]
    return 0


@kernel
def _share(seconds, scale):
    """Minutes on a logarithmic scale."""
    return min(math.log1p(max(seconds, 0.0) / ONE_MINUTE) * scale, 1.0)


@kernel
def _first_to_end(state, plan, memory):
    """Put the jobs into the agenda that run, or that the plan starts, and end first; returns how many."""
    jobs, ends = memory.agenda, memory.agenda_end
    length = min(state.nb_running, JOBS_SEEN)  # the state has them in order of their ends
    for i in range(length):
        job = state.running[i]
        jobs[i], ends[i] = job, state.start_time[job] + state.walltime[job]
    for action in range(plan.nb_actions):
        if plan.kind[action] == START:
            job = plan.job[action]
            end = state.now + state.walltime[job]
            if length == JOBS_SEEN and end >= ends[JOBS_SEEN - 1]:
                continue
            at = min(length, JOBS_SEEN - 1)
            length = min(length + 1, JOBS_SEEN)
            # insertion: few jobs start at an instant, and ties stay behind those that run
            while at > 0 and ends[at - 1] > end:
                jobs[at], ends[at] = jobs[at - 1], ends[at - 1]
                at -= 1
            jobs[at], ends[at] = job, end
    return length


# DeepScheduling in compiled code: jobs that book servers, minutes, and what is paid.
#
# What happens at an instant is as in `decision.policies.power`, whose bookings are part of the memory here: jobs
# whose hosts are awake start, servers that are due fall asleep, and then there is a choice, if the minute is over. A
# job with booked hosts waits in the queue of the cycles until it starts, but is no longer seen there.


@BEGIN.entry_with(DeepSchedulingMemory)
def deepscheduling_begin(state, facts, memory):
    """Nothing is booked, and nobody known."""
    memory.booked_by[:] = -1
    memory.nb_booked = 0
    # confidence is forgotten, too: an episode is a day of its own
    memory.nb_shown = memory.nb_available = memory.nb_falling_asleep = memory.nb_snapshots = 0
    memory.next_choice = memory.last_choice = -np.inf
    memory.summed_at = memory.urgency = memory.urged = memory.paid = 0.0
    memory.user[:] = -1
    return 0


# --- What happens at an instant ------------------------------------------------------------------------------------


@OPEN.entry_with(DeepSchedulingMemory)
def deepscheduling_look(state, facts, cycles, plan, memory):
    """Do what is due, see all that comes at one instant together; whether there is something to choose."""
    if cycles.next_shown < state.nb_queued:  # not before the last arrival of the instant
        return 0
    # the time that has passed, and who has ended, before anything changes
    _sum_urgency(state, memory)
    for i in range(state.nb_ended):
        learn_from(state, memory, state.ended[i])
    forget_gone(state, memory)
    # bookings whose hosts are awake now start; then servers that were idle for long enough sleep
    planned = plan.nb_actions
    start_due(state, memory, plan)
    _note_starts(state, cycles, plan, planned)
    memory.nb_falling_asleep = sleep_due(state, facts, memory, plan, memory.timeout)
    memory.nb_available = count_available(memory)
    _fill_window(cycles, memory)
    # a choice, if the minute is over and there is something to choose; where no job waits, an event must be later than
    # the last choice, or void would be asked for again and again at one instant
    late = memory.next_choice <= state.now + TOLERANCE
    if late and (memory.nb_shown > 0 or state.now > memory.last_choice + TOLERANCE):
        if state.nb_jobs > 0 and _offers(state, memory):
            take_snapshot(state, facts, cycles, memory)
            return 1
        _set_next(state, memory)
    _let_time_pass(state, facts, cycles, plan, memory)
    return 0


@ACT.entry_with(DeepSchedulingMemory)
def deepscheduling_choose(state, facts, cycles, plan, memory, action):
    """Bind a job of the window, if it fits; anything else lets time pass."""
    # VOID, an empty place and a job that does not fit come to the same
    job = memory.window[action - 1] if 1 <= action <= memory.nb_shown else -1
    if job >= 0 and fits(state, memory, job):
        picked, planned = np.zeros(len(plan.free), np.uint64), plan.nb_actions
        pick(facts, memory, plan, state.size[job], False, True, picked)
        book(facts, memory, plan, job, picked)  # which plans the start, if all of its hosts are awake
        _note_starts(state, cycles, plan, planned)
        memory.nb_available -= state.size[job]
        _fill_window(cycles, memory)
        if _offers(state, memory):
            take_snapshot(state, facts, cycles, memory)
            return 1
    _set_next(state, memory)
    _let_time_pass(state, facts, cycles, plan, memory)
    return 0


@kernel
def _offers(state, memory):
    """Whether there is a choice: with masks only where a job fits."""
    if memory.masked == 0:
        return True
    found = False
    for i in range(memory.nb_shown):
        found |= fits(state, memory, memory.window[i])
    return found


@kernel
def _note_starts(state, cycles, plan, begin):
    """The jobs leave the queue that the plan starts from its action `begin` on."""
    for action in range(begin, plan.nb_actions):
        if plan.kind[action] == START:
            note_start(state, cycles, plan, place_in_queue(cycles, plan.job[action]), action)


@kernel
def _fill_window(cycles, memory):
    """The first jobs that have no hosts yet."""
    shown = at = 0
    while shown < JOBS_SEEN and at < cycles.nb_queued:
        job = cycles.queue[at]
        if not is_booked(memory, job):
            memory.window[shown] = job
            shown += 1
        at += 1
    memory.nb_shown = shown


@kernel
def _set_next(state, memory):
    """A minute passes while jobs wait; else the next event is awaited."""
    memory.last_choice = state.now
    memory.next_choice = state.now + ONE_MINUTE if memory.nb_shown > 0 else -np.inf


@kernel
def _let_time_pass(state, facts, cycles, plan, memory):
    """Wake servers, and ask to be called for the next minute or timeout."""
    # servers wake once all choices of the instant are made: a job may book more hosts of the same one
    wake_booked(state, facts, memory, plan)
    urgency = 0.0
    for i in range(memory.nb_shown):
        urgency += 1.0 / state.walltime[memory.window[i]]
    memory.urgency = urgency
    due = next_timeout(state, facts, plan, memory.timeout)
    if memory.next_choice > state.now:
        due = min(due, memory.next_choice)
    # a later call than the one that is pending is asked for when that one is over (`most_calls`)
    if due < cycles.call - TOLERANCE:
        call_at(cycles, plan, due)


@kernel
def _sum_urgency(state, memory):
    """Bring the integral up to date; the window, and so its integrand, changes at choices only."""
    memory.urged += memory.urgency * (state.now - memory.summed_at)
    memory.summed_at = state.now


# --- What is paid --------------------------------------------------------------------------------------------------


@REWARD.entry_with(DeepSchedulingMemory)
def deepscheduling_reward(state, facts, cycles, progress, memory, moment):
    """What the time since the last choice was worth, in minutes; `parameters` are the four weights of its parts."""
    if moment != STEP_ENDS:
        return 0.0
    _sum_urgency(state, memory)
    weight = progress.parameters
    shares = progress.parameters[3] == 0.0
    # the authors' program pays shares, the paper prints counts: then a cluster of twice the size is paid twice
    idle, used = progress.idle_servers / ONE_MINUTE, progress.used / ONE_MINUTE
    if shares:
        idle /= len(facts.server_begin) - 1
        used /= len(cycles.until)
    total = weight[2] * used - weight[0] * idle - weight[1] * memory.urged
    owed = total - memory.paid
    memory.paid = total
    return owed


@MEASURE.entry_with(DeepSchedulingMemory)
def deepscheduling_measure(state, facts, cycles, progress, memory, out):
    """Joules that served nobody, switches of servers, and jobs whose user is unknown."""
    unknown = 0
    for job in range(state.nb_jobs):
        unknown += state.user[job] < 0
    out[0] = progress.wasted
    out[1] = progress.nb_switched
    out[2] = unknown
    return 0


NAME = "deepscheduling"

Weight = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Day = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31)]


class DeepSchedulingSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What DeepScheduling's environment can be set to."""

    days: Annotated[tuple[Day, ...], msgspec.Meta(max_length=2)] = ()  # (A,): from A on; (A, B): A to B - 1; (): all
    timeout: Annotated[float, msgspec.Meta(ge=0, le=86400)] = 300.0  # seconds after which an idle server sleeps
    masked: bool = False  # whether only jobs that fit can be chosen, and no choice is asked for where none does
    reward: Literal["shares", "counts"] = "shares"  # of servers and cores, or how many, as printed
    idle_weight: Weight = 1.0  # rho of the reward
    queue_weight: Weight = 1.0  # sigma
    computing_weight: Weight = 0.2  # tau
    steps: Count = 20_000  # choices after which a day is cut off


class DeepSchedulingEncoder(Encoder, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first jobs of the queue, jobs that run, and snapshots of the cluster; and when servers fall asleep."""

    name: str = NAME
    timeout: float  # seconds
    masked: Annotated[int, msgspec.Meta(ge=0, le=1)]  # 1 where only jobs that fit can be chosen
    max_runtime: float  # seconds: the longest walltime

    def __post_init__(self) -> None:
        super().__post_init__()
        check_scale("max_runtime", self.max_runtime)
        if not 0 <= self.timeout < np.inf:
            raise ConfigError(f"timeout: must be finite and not negative; found {self.timeout}")

    @property
    def shape(self) -> tuple[int]:
        """(D,), which is (280,) on any cluster."""
        return (WIDTH,)

    @property
    def actions(self) -> int:
        """A: void, and the jobs that are seen."""
        return JOBS_SEEN + 1

    @property
    def window(self) -> int:
        """Jobs of the queue that are seen."""
        return JOBS_SEEN

    def check_platform(self, platform: Platform) -> None:
        """Refuse a platform whose hosts never sleep. Raises ConfigError."""
        if not any(host.sleep for host in platform.hosts):
            where = platform.path or "the platform"
            advice = "decision platform grid5000 --energy taurus makes such hosts, and decision run needs -E"
            raise ConfigError(f"{where}: no host has sleep states, and {NAME} needs some; {advice}", field="platform")

    def new_memory(self, state: ClusterState) -> DeepSchedulingMemory:
        """The encoder as numbers for the kernels; nothing is booked."""
        return DeepSchedulingMemory(
            **new_booking(nb_hosts(state)),
            max_runtime=self.max_runtime,
            timeout=self.timeout,
            masked=self.masked,
            window=np.zeros(JOBS_SEEN, np.int32),
            agenda=np.zeros(JOBS_SEEN, np.int32),
            agenda_end=np.zeros(JOBS_SEEN),
            snapshot=np.zeros(JOBS_SEEN * SNAPSHOT_NUMBERS, np.float32),
            **new_confidence(len(state.size)),
        )

    def with_room(self, memory: Any, state: ClusterState) -> Bundle:
        """The same memory with room for every job of `state`."""
        if len(memory.previous) >= len(state.size):
            return memory
        return memory._replace(**longer_confidence(memory, len(state.size)))


class DeepScheduling(ChoosingScheduler):
    """DeepScheduling: which job starts and which waits, so that servers may stay off.

    Casagrande, Koslovski, Miers and Pillon, AINA 2020. Hosts with the same property ``server`` are one machine, and a
    host is a core. Servers sleep after `timeout` seconds in which no core of theirs runs or is booked.

    Observation, version 1, all in [0, 1], f32 (280,)::

        3 k               of the k-th of the first 20 jobs that wait without hosts: cores / all cores
        3 k + 1               log(1 + walltime) / log(1 + longest walltime), in minutes
        3 k + 2               confidence: the mean of run time / walltime of its user's last 20 jobs, 1 at first
        60 + 3 k          of the k-th of the 20 jobs that run and end first by their walltimes: cores / all cores
        60 + 3 k + 1          remaining time by its walltime, on the same scale
        60 + 3 k + 2          remaining time by confidence * walltime, 0 once that is over
        120 + 8 k         of the k-th of the last 20 snapshots, one for each choice: booked and busy cores / all cores
        120 + 8 k + 1         log(1 + jobs that wait without hosts) / log(1 + 4500)
        120 + 8 k + 2         time of the day
        120 + 8 k + 3 .. 7    cores that are off, wake, fall asleep, are idle, and compute, / all cores

    Zeros stand after the last entry. The time of the day is that of a run that begins an hour before midnight, as runs
    of days do.

    Actions: 0, void; k = 1 .. 20, the k-th of these jobs gets its cores at once, asleep or not: by state of the server
    (idle, waking, asleep, falling asleep), then by number. It starts when they are all awake. The clock stands still
    then. After void, and a job that is not there or does not fit, a minute passes; where no job waits without
    hosts, the time until the next event.

    Reward: 0 for a job that booked hosts, else the sum over the minutes that pass of R = -rho idle servers / servers
    - sigma (sum of 1 / walltime in minutes, over the jobs that are seen) + tau computing cores / cores. With
    ``reward="counts"`` servers and cores are counted, as the paper prints it.

    Episode: a day with two submissions or more. It begins an hour before midnight, so that all servers sleep when it
    comes, and terminates when all jobs are over and all servers sleep again; it is truncated after `steps` choices. The
    first choice is at the first submission. A random one is of one of five groups, by the share of submissions that
    come less than 5 minutes after the one before, and then any of its days.

    Masks: ``info["action_mask"]`` i8 (21,), `action_masks()`, and in the observation with `dict_observation`: all 1,
    but with `masked`: there only void and jobs that fit can be chosen, and where none fits no choice is asked for.

    At the end ``info["metrics"]`` has what `decision.rl.envs.EPISODE_METRICS` names, and from midnight on
    ``energy_waste``, joules of idle servers and of switches, and ``switches`` of servers; and ``unknown_users``, jobs
    that do not say whose they are.
    """

    name = NAME
    summary = "a network chooses which job starts and which waits, so that servers may stay off"
    paper = "Casagrande et al. 2020"
    Settings = DeepSchedulingSettings
    presets = ("deepscheduling-compact", "deepscheduling-paper")
    networks = ("jobs", "gru", "mlp")
    curves = ("waiting_time", "bounded_slowdown", "utilization")
    env_id = "DeepScheduling"
    observations = {NAME: {}}
    encoder_type = DeepSchedulingEncoder
    metrics = ("energy_waste", "switches", "unknown_users")
    energy = True
    draws = "all"
    calls = True
    most_calls = 64  # minutes and timeouts, of which a later one is asked for only when the earlier one is over
    opens_first = True
    begin, open = deepscheduling_begin, deepscheduling_look
    act, observe = deepscheduling_choose, deepscheduling_observe
    reward, measure = deepscheduling_reward, deepscheduling_measure
    model_summary = "learned starts of jobs on servers that sleep"

    def episodes(self, settings: DeepSchedulingSettings, workload: Workload) -> Episodes:
        """Days of the workload; warns of jobs without a user. Raises ConfigError if no day is left."""
        days = tuple(chosen_days(workload, day_range(settings.days)))
        if unknown := sum(not job.user for job in workload.jobs):
            warn_once(f"{unknown:,} of {len(workload.jobs):,} jobs do not say their user: the confidence in these is 1")
        return Episodes(jobs=None, online=False, days=days, steps=settings.steps)

    def encoder_fields(self, settings: DeepSchedulingSettings, cores: int) -> dict[str, Any]:
        """Fields of the encoder that follow from the settings."""
        return {"name": NAME, "timeout": settings.timeout, "masked": int(settings.masked)}

    def make_encoder(  # type: ignore[override]  # each scheduler has its own options
        self,
        settings: DeepSchedulingSettings,
        cores: int,
        workloads: Sequence[Workload],
        *,
        max_runtime: float | None = None,
    ) -> DeepSchedulingEncoder:
        """The encoder for jobs.

        Args:
            settings: of the environment.
            cores: hosts of the cluster.
            workloads: jobs, all with a walltime.
            max_runtime: seconds; by default the longest walltime of the workloads.
        """
        longest = longest_walltime(workloads) if max_runtime is None else max_runtime
        return DeepSchedulingEncoder(**self.encoder_fields(settings, cores), max_runtime=float(longest))

    def reward_parameters(self, settings: DeepSchedulingSettings) -> tuple[float, ...]:
        """rho, sigma, tau, and whether servers and cores are counted."""
        counts = float(settings.reward == "counts")
        return settings.idle_weight, settings.queue_weight, settings.computing_weight, counts

    def layout(self, encoder: Encoder) -> Sequences:
        """Jobs that wait, jobs that run, and snapshots."""
        return Sequences((JOBS_SEEN, JOB_NUMBERS), (JOBS_SEEN, JOB_NUMBERS), (JOBS_SEEN, SNAPSHOT_NUMBERS))


def day_range(days: tuple[int, ...]) -> slice:
    """Those that the setting `days` names."""
    return slice(days[0] if days else 0, days[1] if len(days) == 2 else None)


register(DeepScheduling())
