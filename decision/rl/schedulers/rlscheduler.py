"""RLScheduler: which job of a window of the queue is next.

Zhang et al., RLScheduler: an automated HPC batch job scheduler using reinforcement learning, SC 2020. The job that was
chosen is committed: nothing else is chosen before it starts, and meanwhile others are backfilled by rule.
"""

from typing import Any

import numpy as np

from decision.compiling.bundle import I4, Bundle, Float, Int
from decision.compiling.jit import kernel
from decision.state.cluster import ClusterState

from .base import ACT, BEGIN, FOLLOW, OBSERVE, OPEN, REWARD, STEP_ENDS, ExpectingSettings, register
from .decision_points import is_over, mean_slowdown, start_at
from .window import (
    JOB_FEATURES,
    Count,
    ScaledScheduler,
    Slots,
    WindowEncoder,
    check_window,
    place_of,
    see_window,
    slot_begun,
)


class RLSchedulerSettings(ExpectingSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What RLScheduler's environment can be set to."""

    head: Slots = 128  # jobs of the window
    jobs: Count = 256  # placed jobs that end an episode
    online: bool = False  # whether other jobs arrive after those


class RLSchedulerEncoder(WindowEncoder, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first jobs of the queue."""

    name: str = "rlscheduler"

    @property
    def window(self) -> int:
        """Slots of the window, M."""
        return self.head

    @property
    def actions(self) -> int:
        """A: the slots of the window."""
        return self.window

    @property
    def shape(self) -> tuple[int]:
        """(D,): four numbers for each slot."""
        return (JOB_FEATURES * self.window,)

    def new_memory(self, state: ClusterState) -> "RLSchedulerMemory":
        """The encoder as numbers for the kernels; no job was chosen."""
        return RLSchedulerMemory(
            head=self.head, max_runtime=self.max_runtime, max_wait=self.max_wait, committed=np.full(1, -1, np.int32)
        )


class RLSchedulerMemory(Bundle):
    """The encoder as numbers, and the job that was chosen."""

    head: Int  # jobs of the window
    max_runtime: Float  # seconds that count as 1 in a run time
    max_wait: Float  # seconds that count as 1 in a wait
    committed: I4  # (1,) number of the job that starts next, whenever it fits; -1 where none was chosen


@kernel
def open_committed(state, cycles, plan, committed):
    """A cycle begins; returns whether there is something to choose: not while a job that was chosen does not fit."""
    # the committed job starts before anything is chosen, or keeps all else from being chosen
    if committed[0] >= 0:
        at = 0
        while at < cycles.nb_queued and cycles.queue[at] != committed[0]:
            at += 1
        if at == cycles.nb_queued:
            committed[0] = -1  # it left the queue, too late to end in time
        elif not start_or_commit(state, cycles, plan, committed, at):
            return False
    return cycles.nb_queued > 0


@kernel
def start_or_commit(state, cycles, plan, committed, at):
    """Start the job at a place of the queue; or else let others start that it will not wait for, and return False."""
    job = cycles.queue[at]
    if state.size[job] <= cycles.nb_free:  # then the next choice is open at once
        committed[0] = -1
        start_at(state, cycles, plan, at)
        return True
    committed[0] = job
    _backfill(state, cycles, plan, job)
    return False


@kernel
def _backfill(state, cycles, plan, committed):
    """Start what fits and ends before as many cores as the committed job needs are free, by requested times."""
    # by requested times that many hosts are free when the needed-th of their jobs ends; a tie does not count as before
    needed = state.size[committed]
    begins = np.partition(cycles.until, needed - 1)[needed - 1]
    at = 0
    while at < cycles.nb_queued:
        job = cycles.queue[at]
        fits = state.size[job] <= cycles.nb_free
        if fits and job != committed and state.now + state.expected_runtime[job] < begins:
            start_at(state, cycles, plan, at)  # the job leaves the queue: the next one is at the same place
        else:
            at += 1


@BEGIN.entry_with(RLSchedulerMemory)
def rlscheduler_begin(state, facts, memory):
    """No job is committed when a run begins."""
    memory.committed[0] = -1
    return 0


@OPEN.entry_with(RLSchedulerMemory)
def rlscheduler_open(state, facts, cycles, plan, memory):
    """Start the job that was chosen, if it fits now."""
    return open_committed(state, cycles, plan, memory.committed)


@ACT.entry_with(RLSchedulerMemory)
def rlscheduler_act(state, facts, cycles, plan, memory, action):
    """Choose the job of a slot; an empty one ends the cycle."""
    at = place_of(cycles, memory.head, 0, action)
    if at < 0:
        return 0
    return start_or_commit(state, cycles, plan, memory.committed, at) and cycles.nb_queued > 0


@FOLLOW.entry_with(RLSchedulerMemory)
def rlscheduler_follow(state, cycles, memory, starts):
    """The slot whose job began first, whenever that was; the first one where none of them began."""
    return max(slot_begun(state, cycles, memory.head, 0, starts, np.inf, len(cycles.until)), 0)


@OBSERVE.entry_with(RLSchedulerMemory)
def rlscheduler_observe(state, facts, cycles, plan, memory, observation, mask):
    """Write the window's jobs, and the mask of slots that have one."""
    longest, longest_wait = memory.max_runtime, memory.max_wait
    # every job may be chosen, also one that does not fit: choosing it is what commits to it
    see_window(state, cycles, memory.head, 0, longest, longest_wait, False, False, observation, mask)
    return 0


@REWARD.entry_with(RLSchedulerMemory)
def rlscheduler_reward(state, facts, cycles, progress, memory, moment):
    """Minus the mean bounded slowdown, when the episode is over."""
    return -mean_slowdown(progress) if moment == STEP_ENDS and is_over(progress) else 0.0


class RLScheduler(ScaledScheduler):
    """RLScheduler: which job of a window of the queue is next.

    Zhang et al., RLScheduler: an automated HPC batch job scheduler using reinforcement learning, SC 2020.

    Observation, version 1, all in [0, 1], f32 (4 M,)::

        4 k               of slot k of the window: cores / cores of the cluster
        4 k + 1               requested runtime / longest runtime
        4 k + 2               time waited / longest wait (12 hours)
        4 k + 3               1 where the job could start now; all four are 0 where there is no job

    Actions: slot 0 .. M - 1, whose job is the next to start. Until it fits nothing is chosen, and jobs behind it, in
    order of arrival, are backfilled where they fit and end before it can begin. An empty slot ends the cycle. A cycle
    begins at each arrival and at each instant at which jobs end.

    Reward: minus the mean bounded slowdown of the episode's jobs, at its end.

    Episode: begins on an idle cluster with the arrival of a random job of the trace, and ends when `jobs` jobs have
    been placed; no others come, unless `online`.

    Masks: ``info["action_mask"]`` i8 (A,), `action_masks()`, and in the observation with `dict_observation`: 1 where a
    slot has a job.

    At the end ``info["metrics"]`` has what `decision.rl.envs.EPISODE_METRICS` names.
    """

    name = "rlscheduler"
    summary = "a network ranks the jobs of a window of the queue; others are backfilled by rule"
    paper = "Zhang et al. 2020"
    Settings = RLSchedulerSettings
    presets = ("rlscheduler",)
    networks = ("priority", "mlp")
    env_id = "RLScheduler"
    observations = {"rlscheduler": {}}
    encoder_type = RLSchedulerEncoder
    begin, open, act, observe, reward, follow = (
        rlscheduler_begin,
        rlscheduler_open,
        rlscheduler_act,
        rlscheduler_observe,
        rlscheduler_reward,
        rlscheduler_follow,
    )
    model_summary = "learned order, with backfilling"

    def check(self, settings: RLSchedulerSettings, where: str) -> None:
        """Refuse a window without slots. Raises ConfigError."""
        check_window(where, head=settings.head)

    def encoder_fields(self, settings: RLSchedulerSettings, cores: int) -> dict[str, Any]:
        """Fields of the encoder that follow from the settings."""
        return {"name": self.name, "head": settings.head}


register(RLScheduler())
