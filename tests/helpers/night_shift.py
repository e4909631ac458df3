"""A scheduler that is not of the package: all of it is in this file and in ``night_shift.toml``.

Jobs start in their order, and hosts sleep and wake as it chooses; it pays for what the hosts draw and for jobs that
wait. Its episodes are days.
"""

from pathlib import Path

import msgspec
import numpy as np

from decision.compiling.bundle import F8, I8, Bundle
from decision.compiling.jit import kernel
from decision.rl.schedulers import ChoosingScheduler, Encoder, Episodes, register
from decision.rl.schedulers.base import ACT, BEGIN, MEASURE, OBSERVE, REWARD, STEP_ENDS
from decision.rl.schedulers.decision_points import call_at, sleep_at, start_at, wake_at
from decision.state.cluster import SLEEPING

START, SLEEP, WAIT = range(3)  # actions
DAY = 86400.0  # seconds


class NightShiftSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The environment."""

    pause: float = 600.0  # seconds after which it looks again, while jobs wait
    price: float = 1e-6  # of a joule
    steps: int = 400  # choices of a day, at most


class NightShiftEncoder(Encoder, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Four numbers about the cluster and the time of the day."""

    name: str = "night-shift"
    pause: float

    @property
    def shape(self):
        return (4,)

    @property
    def actions(self):
        return 3

    def new_memory(self, state):
        return NightShiftMemory(
            pause=np.array([self.pause]), paid=np.zeros(1), at=np.full(1, -1.0), next_host=np.zeros(1, np.int64)
        )


class NightShiftMemory(Bundle):
    pause: F8  # (1,) seconds
    paid: F8  # (1,) joules that rewards have been paid for
    at: F8  # (1,) seconds: when a host was last woken
    next_host: I8  # (1,) the first one that was not woken then


@BEGIN.entry_with(NightShiftMemory)
def _begin(state, facts, memory):
    memory.paid[0] = 0.0
    memory.at[0] = -1.0
    return 0


@kernel
def _sleeper(state, memory):
    """A host that sleeps and is not woken by this decision; -1 if there is none."""
    first = memory.next_host[0] if memory.at[0] == state.now else 0
    for host in range(first, len(state.host_state)):
        if state.host_state[host] == SLEEPING:
            return host
    return -1


@kernel
def _last_free(facts, cycles):
    """The last free host that can sleep; -1 if there is none."""
    for host in range(len(cycles.until) - 1, -1, -1):
        if cycles.until[host] == -np.inf and facts.sleep_pstate[host] >= 0:
            return host
    return -1


@kernel
def _fits(state, cycles):
    return cycles.nb_queued > 0 and state.size[cycles.queue[0]] <= cycles.nb_free


@ACT.entry_with(NightShiftMemory)
def _act(state, facts, cycles, plan, memory, action):
    """START the first job, or wake a host for it; put a host to SLEEP; or WAIT."""
    if action == START and _fits(state, cycles):
        start_at(state, cycles, plan, 0)
        return 1
    if action == START and cycles.nb_queued > 0 and _sleeper(state, memory) >= 0:
        host = _sleeper(state, memory)
        memory.at[0], memory.next_host[0] = state.now, host + 1
        wake_at(facts, plan, host)
        return 1
    if action == SLEEP and _last_free(facts, cycles) >= 0:
        sleep_at(facts, cycles, plan, _last_free(facts, cycles))
        return 1
    if cycles.nb_queued > 0:
        call_at(cycles, plan, state.now + memory.pause[0])
    return 0


@OBSERVE.entry_with(NightShiftMemory)
def _observe(state, facts, cycles, plan, memory, observation, mask):
    hosts = len(cycles.until)
    observation[0] = cycles.nb_free / hosts
    observation[1] = state.nb_in_state[SLEEPING] / hosts
    observation[2] = min(cycles.nb_queued / 10.0, 1.0)
    observation[3] = state.now % DAY / DAY
    waits = cycles.nb_queued > 0
    mask[START] = waits and (_fits(state, cycles) or _sleeper(state, memory) >= 0)
    mask[SLEEP] = not waits and _last_free(facts, cycles) >= 0
    mask[WAIT] = not mask[START]  # so that every job starts
    return 0


@REWARD.entry_with(NightShiftMemory)
def _reward(state, facts, cycles, progress, memory, moment):
    if moment != STEP_ENDS:
        return 0.0
    joules = progress.joules - memory.paid[0]
    memory.paid[0] = progress.joules
    return -progress.parameters[0] * joules - 0.01 * cycles.nb_queued


@MEASURE.entry_with(NightShiftMemory)
def _measure(state, facts, cycles, progress, memory, out):
    out[0] = progress.joules
    return 0


class NightShift(ChoosingScheduler):
    """Hosts sleep and wake as it chooses; jobs start in their order."""

    name = "night-shift"
    summary = "puts hosts to sleep and wakes them"
    Settings = NightShiftSettings
    presets = (Path(__file__).with_suffix(".toml"),)
    env_id = "NightShift"
    observations = {"night-shift": {}}
    encoder_type = NightShiftEncoder
    curves = ("waiting_time",)
    metrics = ("joules",)
    energy = True
    calls = True
    begin, act, observe, reward, measure = _begin, _act, _observe, _reward, _measure

    def encoder_fields(self, settings, cores):
        return {"name": self.name, "pause": settings.pause}

    def make_encoder(self, settings, cores, workloads):
        return NightShiftEncoder(**self.encoder_fields(settings, cores))

    def reward_parameters(self, settings):
        return (settings.price,)

    def episodes(self, settings, workload):
        """Days, from midnight to midnight."""
        submit = np.sort([job.submit_time for job in workload.jobs])
        day, rows = np.unique(submit // DAY, return_index=True)
        begins = tuple((DAY * day).tolist())
        return Episodes(
            jobs=None, online=False, rows=tuple(rows.tolist()), begins=begins, seconds=DAY, steps=settings.steps
        )


register(NightShift())
