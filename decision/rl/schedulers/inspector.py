"""SchedInspector: whether the next job of an order starts, or is put off.

Zhang, Dai and Xie, SchedInspector: a batch job scheduling inspector using reinforcement learning, HPDC 2022. A job that
was accepted is committed as RLScheduler's is (`rlscheduler.start_or_commit`).
"""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from decision.compiling.bundle import I4, Bundle, Float, Int
from decision.compiling.jit import kernel
from decision.model.errors import ConfigError
from decision.model.record import SHORTEST_RUNTIME
from decision.policies.options import Order, PolicyConfig
from decision.policies.order import rank_of
from decision.state.cluster import ClusterState

from .base import ACT, BEGIN, OBSERVE, OPEN, REWARD, STEP_ENDS, ExpectingSettings, register
from .decision_points import call_at, is_over, mean_slowdown
from .rlscheduler import open_committed, start_or_commit
from .window import Count, ScaledEncoder, ScaledScheduler

ACCEPT, REFUSE = 0, 1  # actions
BASES = {"sjf": Order.SJF, "f1": Order.F1}  # orders that can be inspected
# Both bounds are the paper's (MAX_INTERVAL and MAX_REJECTION_TIMES): without them a refusal could starve a job
RETRY = 600.0  # seconds after which a job that was refused is looked at again, at the latest
MOST_REFUSALS = 72  # of a job: 12 hours
INSPECTED = 7  # numbers of an observation
MANY = 128  # jobs of a sequence, whose slowdowns count as 1
_CONFIG = PolicyConfig()


class InspectorSettings(ExpectingSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What SchedInspector's environment can be set to."""

    base: Literal["sjf", "f1"] = "sjf"  # the order that is inspected
    jobs: Count = 128  # placed jobs that end an episode
    online: bool = False  # whether other jobs arrive after those


class InspectorEncoder(ScaledEncoder, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One job, and the state of the cluster."""

    name: str = "inspector"
    base: str = "sjf"  # the order that is inspected

    def __post_init__(self) -> None:
        super().__post_init__()
        check_base(self.base)

    @property
    def actions(self) -> int:
        """A: to accept or to refuse."""
        return 2

    @property
    def shape(self) -> tuple[int]:
        """(D,): the seven numbers of the job that is next."""
        return (INSPECTED,)

    def new_memory(self, state: ClusterState) -> "InspectorMemory":
        """The encoder as numbers for the kernels; nothing was accepted or refused."""
        return InspectorMemory(
            order=int(BASES[self.base]),
            max_runtime=self.max_runtime,
            max_wait=self.max_wait,
            committed=np.full(1, -1, np.int32),
            refused=np.zeros(len(state.size), np.int32),
        )

    def with_room(self, memory: "InspectorMemory", state: ClusterState) -> "InspectorMemory":
        """The same memory with room for every job of `state`."""
        if len(memory.refused) >= len(state.size):
            return memory
        refused = np.zeros(len(state.size), np.int32)
        refused[: len(memory.refused)] = memory.refused
        return memory._replace(refused=refused)


def check_base(base: str) -> None:
    """Refuse an order that cannot be inspected. Raises ConfigError."""
    if base not in BASES:
        raise ConfigError(f"there is no order {base!r} to inspect (there are {', '.join(BASES)})", field="base")


class InspectorMemory(Bundle):
    """The encoder as numbers, and what was accepted and refused."""

    order: Int  # `decision.policies.options.Order`
    max_runtime: Float  # seconds that count as 1 in a run time
    max_wait: Float  # seconds that count as 1 in a wait
    committed: I4  # (1,) number of the job that starts next, whenever it fits; -1 where none was accepted
    refused: I4  # (J,) how often each job's start was refused


@kernel
def first_in_order(state, cycles, memory):
    """Place in the queue of the job that the base order has first; ties go to fewer hosts, then to the older one."""
    by_walltime = memory.order == Order.SJF
    best, lowest = 0, np.inf
    for at in range(cycles.nb_queued):
        job = cycles.queue[at]
        rank = rank_of(state, _CONFIG, Order.SJF if by_walltime else Order.F1, job)
        if rank < lowest or (rank == lowest and state.size[job] < state.size[cycles.queue[best]]):
            best, lowest = at, rank
    return best


@BEGIN.entry_with(InspectorMemory)
def inspector_begin(state, facts, memory):
    """Nothing was accepted or refused."""
    memory.committed[0] = -1
    memory.refused[:] = 0
    return 0


@OPEN.entry_with(InspectorMemory)
def inspector_open(state, facts, cycles, plan, memory):
    """Start the job that was accepted, if it fits now."""
    return open_committed(state, cycles, plan, memory.committed)


@ACT.entry_with(InspectorMemory)
def inspector_act(state, facts, cycles, plan, memory, action):
    """Accept or refuse the first job; one that was refused too often is accepted."""
    # the order is looked up again: an entry keeps nothing between the observation and the choice
    at = first_in_order(state, cycles, memory)
    job = cycles.queue[at]
    if action == REFUSE and memory.refused[job] < MOST_REFUSALS:
        memory.refused[job] += 1
        call_at(cycles, plan, state.now + RETRY)
        return 0
    return start_or_commit(state, cycles, plan, memory.committed, at) and cycles.nb_queued > 0


@OBSERVE.entry_with(InspectorMemory)
def inspector_observe(state, facts, cycles, plan, memory, observation, mask):
    """The seven numbers; all but the share of free cores are 0 where no job waits."""
    observation[:] = 0.0
    mask[:] = 1
    observation[3] = cycles.nb_free / len(cycles.until)
    if cycles.nb_queued == 0:
        return 0
    job, delay = cycles.queue[first_in_order(state, cycles, memory)], 0.0
    for i in range(cycles.nb_queued):
        # a refusal lets all that waits wait on for a retry, which adds so much to its bounded slowdown
        delay += RETRY / max(state.expected_runtime[cycles.queue[i]], SHORTEST_RUNTIME)
    observation[0] = min((state.now - state.submit_time[job]) / memory.max_wait, 1.0)
    observation[1] = min(state.expected_runtime[job] / memory.max_runtime, 1.0)
    observation[2] = state.size[job] / len(cycles.until)
    observation[4] = state.size[job] <= cycles.nb_free
    observation[5] = memory.refused[job] / MOST_REFUSALS
    observation[6] = min(delay / (RETRY / SHORTEST_RUNTIME * MANY), 1.0)
    mask[1] = memory.refused[job] < MOST_REFUSALS
    return 0


@REWARD.entry_with(InspectorMemory)
def inspector_reward(state, facts, cycles, progress, memory, moment):
    """By what share the mean bounded slowdown is lower than without refusals, when the episode is over."""
    if moment != STEP_ENDS or not is_over(progress):
        return 0.0
    inspected, base = mean_slowdown(progress), progress.baseline_slowdown
    return (base - inspected) / max(base, inspected, 1.0)  # over the larger one, so that it is in [-1, 1]


class Inspector(ScaledScheduler):
    """SchedInspector: whether the next job of an order starts, or is put off.

    Zhang, Dai and Xie, SchedInspector: a batch job scheduling inspector using reinforcement learning, HPDC 2022.

    Observation, version 1, all in [0, 1], f32 (7,), of the first job in the order `base` (``sjf`` or ``f1``)::

        0                 time waited / longest wait (12 hours)
        1                 requested runtime / longest runtime
        2                 cores / cores of the cluster
        3                 share of free cores
        4                 1 where the job could start now
        5                 how often it was refused / 72
        6                 what a refusal adds to the slowdowns of all jobs that wait

    Actions: 0 accepts: the job is the next to start; until it fits nothing is chosen, and jobs behind it are
    backfilled where they fit and end before it can begin. 1 refuses: the cycle ends, and the next one begins after 600
    seconds at the latest. A job is refused 72 times at most. A cycle begins at each arrival and at each instant at
    which jobs end, too.

    Reward: at the end of the episode, by what share the mean bounded slowdown of its jobs is lower than if nothing was
    refused.

    Episode: begins on an idle cluster with the arrival of a random job of the trace, and ends when `jobs` jobs have
    been placed; no others come, unless `online`.

    Masks: ``info["action_mask"]`` i8 (2,), `action_masks()`, and in the observation with `dict_observation`.

    At the end ``info["metrics"]`` has what `decision.rl.envs.EPISODE_METRICS` names.
    """

    name = "inspector"
    summary = "SchedInspector: a network accepts or refuses the next job of an order"
    paper = "Zhang et al. 2022"
    Settings = InspectorSettings
    presets = ("inspector",)
    env_id = "Inspector"
    observations = {"inspector": {}}
    encoder_type = InspectorEncoder
    baseline_action = ACCEPT
    choices_per_job = 2 + MOST_REFUSALS
    calls = True
    begin, open, act, observe, reward = (
        inspector_begin,
        inspector_open,
        inspector_act,
        inspector_observe,
        inspector_reward,
    )
    model_summary = "{base} with backfilling, and a learned filter of what may start"

    def read_options(self, options: Mapping[str, Any]) -> tuple[InspectorSettings, dict[str, Any]]:
        """Settings, and what of the options of an environment is none. Raises ConfigError."""
        check_base(options.get("base", "sjf"))
        return super().read_options(options)

    def encoder_fields(self, settings: InspectorSettings, cores: int) -> dict[str, Any]:
        """Fields of the encoder that follow from the settings."""
        return {"name": self.name, "base": settings.base}


register(Inspector())
