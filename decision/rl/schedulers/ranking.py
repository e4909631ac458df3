"""Ranking: list scheduling whose three questions are answered by functions that are learned.

At each decision all waiting jobs are ranked and looked at from the highest. One that fits starts, unless it is held
back. For the first that does not fit and is found worth it, hosts are kept, as EASY keeps them for the first of the
queue: jobs behind it that would still run by then, on hosts that it needs, are as a rule held back.

So there are three questions to a job: how high it ranks (ORDER), whether hosts are kept for it (RESERVE), and whether
it is held back though it fits (HOLD; never on an idle cluster, nor where all that wait could start: no job waits on a
machine that is nearly idle). Each is answered by a function of the same numbers, a linear one and a few units
a / (1 + |a|) (softsign); RESERVE and HOLD say yes above 0. Any order by size and runtime with EASY or first-fit is
among them. Learning begins with `first_guess`: `smallest_area_first`, and the rule that a job which would leave few
hosts free for long waits until few others come.
"""

import math
from collections.abc import Sequence
from enum import IntEnum
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import F8, I4, I8, Bundle, F8x2, bundle_at
from decision.compiling.jit import kernel
from decision.compiling.small_kernels import insert_in_order
from decision.model.errors import InternalError
from decision.model.record import SHORTEST_RUNTIME
from decision.model.workload import Workload
from decision.policies.allocation import take_lowest
from decision.policies.order import sort_by_key
from decision.policies.prepared import DECIDE, DECIDED, CompiledPolicy
from decision.state.cluster import ClusterState, nb_hosts
from decision.state.plan_arrays import START, add, clear

from .base import Episodes, Measured, ParametricScheduler, register
from .rollouts import enough_at, free_hosts_at, smallest_waiting
from .window import Count

ORDER, RESERVE, HOLD = range(3)


class RankNumber(IntEnum):
    """What a function sees of a job; all about 1, logarithms but for shares."""

    RUNTIME = 0  # requested
    SIZE = 1  # hosts
    WAIT = 2  # so far
    SLOWDOWN = 3  # so far
    DELAY = 4  # until the job could begin; with HOLD until the hosts are free that are kept for another
    OVERRUN = 5  # with HOLD: for how long it would use hosts that another job needs by then
    QUEUE = 6  # jobs
    FREE = 7  # share of hosts that are free
    SOON = 8  # share of hosts that are free within an hour
    CALM = 9  # in which time the last few jobs have come
    BLOCKED = 10  # with HOLD: for how long it would be among those that keep a share of the hosts from being free


NB_RANK_SEEN = len(RankNumber)
NB_RANK_UNITS = 3
RANK_LINEAR = 1 + NB_RANK_SEEN  # weights of the linear part: a constant, and one for each number
NB_RANK_UNIT = NB_RANK_SEEN + 2  # of a unit: one for each number, a constant, and the unit's own
_LAST = 8  # jobs that came, which CALM is about
_SHARE = 16  # BLOCKED is about one in so many of the hosts
_HOUR = 3600.0  # seconds: as far as SOON looks


class RankingMemory(Bundle):
    """The weights, and room for a decision. R jobs may run, H hosts, J jobs may wait."""

    weights: F8x2  # (3, P)
    numbers: F8  # (11,) that a function sees
    ends: F8  # (R + H,) seconds, ascending: expected ends of the jobs that run or are planned to start
    sizes: I8  # (R + H,) their hosts
    ranked: I4  # (J,) numbers of the waiting jobs, the highest rank first
    spare: I4  # (J,) scratch
    key: F8  # (J,) minus the rank of each job


def new_ranking_memory(state: ClusterState, weights: NDArray[np.float64]) -> RankingMemory:
    """With room for every job and host of `state`."""
    jobs, running = len(state.size), len(state.running) + nb_hosts(state)
    return RankingMemory(
        weights=np.ascontiguousarray(weights, np.float64),
        numbers=np.zeros(NB_RANK_SEEN),
        ends=np.zeros(running),
        sizes=np.zeros(running, np.int64),
        ranked=np.zeros(jobs, np.int32),
        spare=np.zeros(jobs, np.int32),
        key=np.zeros(jobs),
    )


@DECIDE.entry
def decide_by_rank(state, facts, memory, plan):
    """As `plan_by_rank`, always with a plan."""
    clear(plan, state)
    plan_by_rank(state, plan, _memory_at(memory))
    return DECIDED


_memory_at = bundle_at(RankingMemory)


@kernel
def plan_by_rank(state, plan, memory):
    """Plan what starts now; the plan is empty."""
    queued, free, now = state.nb_queued, state.nb_free, state.now
    if free < smallest_waiting(state):
        return
    weights, seen, ends, sizes = memory.weights, memory.numbers, memory.ends, memory.sizes
    idle, calm = state.nb_running == 0, _all_fit(state, free)
    running = state.nb_running
    for i in range(running):
        ends[i], sizes[i] = state.expected_end[i], state.size[state.running[i]]
    # numbers of the cluster, the same for all jobs and all three functions
    seen[:] = 0.0
    seen[RankNumber.QUEUE] = math.log1p(queued) / 5.0
    seen[RankNumber.SOON] = free_hosts_at(ends, sizes, running, free, now + _HOUR) / len(state.host_state)
    last = min(state.nb_jobs, _LAST)  # of jobs that came; where there were fewer, their time is extrapolated
    since_last = (now - state.submit_time[state.nb_jobs - last]) * _LAST / last
    seen[RankNumber.CALM] = _long(since_last) - 0.5
    kept, shadow, spare = False, now, 0
    _rank(state, memory, running)
    for i in range(queued):
        job = memory.ranked[i]
        size, end = state.size[job], now + state.expected_runtime[job]
        if size > free:
            if kept:
                continue  # one reservation at most, as EASY
            begin = enough_at(ends, sizes, running, free, size)
            _see(state, job, begin, now, free, seen)
            seen[RankNumber.BLOCKED] = 0.0
            if begin < np.inf and _answer(weights[RESERVE], seen) > 0.0:
                kept, shadow = True, begin
                spare = free_hosts_at(ends, sizes, running, free, begin) - size
            continue
        # the overrun counts only on hosts that the reservation needs: `spare` ones are over then
        late = kept and end > shadow
        _see(state, job, shadow, end if late and size > spare else now, free, seen)
        # for how long no share of the hosts would be free, if this job started; not after its own end
        blocked = enough_at(ends, sizes, running, free - size, max(len(state.host_state) // _SHARE, 1)) - now
        seen[RankNumber.BLOCKED] = _long(min(blocked, state.expected_runtime[job])) - 0.5
        # nobody is held back on an idle cluster, nor where all could start: what for?
        if not idle and not calm and _answer(weights[HOLD], seen) > 0.0:
            continue
        spare -= size if late else 0
        take_lowest(plan, add(plan, START, job), size)
        if running >= len(ends):
            raise InternalError("a ranking started more jobs than there are free hosts")
        insert_in_order(ends, sizes, running, end, size)
        running += 1
        free -= size
        idle = False
        if free == 0:
            return


@kernel
def _all_fit(state, free):
    """Whether all that wait could start now: then no job is held back for another."""
    for i in range(state.nb_queued):
        free -= state.size[state.queue[i]]
        if free < 0:
            return False
    return True


@kernel
def _rank(state, memory, running):
    """Sort the waiting jobs, the highest rank first, ties by arrival."""
    queued, free, seen = state.nb_queued, state.nb_free, memory.numbers
    for i in range(queued):
        job = state.queue[i]
        begin = enough_at(memory.ends, memory.sizes, running, free, state.size[job])
        _see(state, job, begin, state.now, free, seen)
        memory.key[job] = -_answer(memory.weights[ORDER], seen)
        memory.ranked[i] = job
    # stable: ties stay in order of arrival
    sort_by_key(memory.ranked, memory.spare, memory.key, 1, queued)


@kernel
def _see(state, job, begin, end, free, out):
    """The numbers that are a job's own: it could begin at one time, and uses what others need up to the other."""
    now = state.now
    wait, runtime = now - state.submit_time[job], max(state.expected_runtime[job], SHORTEST_RUNTIME)
    out[RankNumber.RUNTIME] = math.log(runtime) / 5.0 - 1.0
    out[RankNumber.SIZE] = math.log(state.size[job]) / 3.0 - 0.5
    out[RankNumber.WAIT] = _long(wait) - 0.5
    out[RankNumber.SLOWDOWN] = math.log1p(wait / runtime) / 3.0
    out[RankNumber.DELAY] = _long(begin - now) - 0.5
    out[RankNumber.OVERRUN] = _long(end - max(begin, now))
    out[RankNumber.FREE] = free / len(state.host_state)


@kernel
def _long(seconds):
    """From 0, for none or less, to about 2."""
    return math.log1p(min(max(seconds, 0.0), 1e9) / 60.0) / 4.0


@kernel
def _answer(weights, seen):
    """What a function of P weights answers: its linear part, and its units a / (1 + |a|)."""
    answer = weights[0]
    for k in range(NB_RANK_SEEN):
        answer += weights[1 + k] * seen[k]
    for begin in range(RANK_LINEAR, len(weights), NB_RANK_UNIT):
        unit = weights[begin + NB_RANK_SEEN]
        for k in range(NB_RANK_SEEN):
            unit += weights[begin + k] * seen[k]
        answer += weights[begin + NB_RANK_SEEN + 1] * unit / (1.0 + abs(unit))
    return answer


RANKING_WEIGHTS = (3, RANK_LINEAR + NB_RANK_UNITS * NB_RANK_UNIT)  # shape of all of them
SEES: dict[str, str | int | float] = {"name": "ranking", "version": 2}  # raised whenever a number changes its meaning


def smallest_area_first() -> NDArray[np.float64]:
    """(3, P) weights: SAF, indifferent about keeping hosts, strict about those that are kept; units do nothing."""
    weights = np.zeros(RANKING_WEIGHTS)
    # as the numbers are scaled: minus the area's logarithm
    weights[ORDER, [1 + RankNumber.RUNTIME, 1 + RankNumber.SIZE]] = -5.0, -3.0
    weights[HOLD, [0, 1 + RankNumber.OVERRUN]] = -1.0, 20.0
    return weights


def first_guess() -> NDArray[np.float64]:
    """(3, P) weights: SAF, but what would block hosts for longer than the last few jobs took to come is held back.

    Jobs that run for hours had better begin when few jobs come.
    """
    weights = smallest_area_first()
    weights[HOLD, [0, 1 + RankNumber.CALM, 1 + RankNumber.BLOCKED]] = 0.0, -4.0, 4.0
    return weights


def random_units(rng: np.random.Generator, spread: float) -> NDArray[np.float64]:
    """(3, P) weights of units that see something and do nothing yet; the linear parts are 0."""
    weights = np.zeros(RANKING_WEIGHTS)
    weights[:, RANK_LINEAR:] = spread * rng.standard_normal((3, NB_RANK_UNITS * NB_RANK_UNIT))
    weights[:, RANK_LINEAR + NB_RANK_UNIT - 1 :: NB_RANK_UNIT] = 0.0
    return weights


class RankingPolicy(CompiledPolicy):
    """Schedules by ranking.

    Args:
        weights: (3, P), as `RANKING_WEIGHTS` has the shape: of ORDER, RESERVE and HOLD.
        name: for messages.
    """

    needs_walltime = True
    entry = decide_by_rank

    def __init__(self, weights: NDArray[np.float64], name: str = "ranking") -> None:
        self.weights, self.name = weights, name

    def memory_for(self, state: ClusterState, memory: RankingMemory | None = None) -> RankingMemory:
        """Nothing is remembered from one decision to the next."""
        large = memory is not None and len(memory.key) >= len(state.size)
        if memory is not None and large and len(memory.ends) >= len(state.running) + nb_hosts(state):
            return memory
        return new_ranking_memory(state, self.weights)

    def __repr__(self) -> str:
        return f"<policy {self.name}>"


# --- The record ----------------------------------------------------------------------------------------------------

_BOTH = 0.25  # so that the other ratio counts, too: of either ratio in what is minimised, besides the larger one
_UNITS_SPREAD = 0.3  # of a unit's first weights: it is nearly linear where it begins
_EASY, _FIRST_FIT = range(2)  # references

Weight = Annotated[float, msgspec.Meta(ge=0)]


class RankingSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The schedules that rankings are judged by."""

    jobs: Count = 1000  # of a sequence; no others come
    slowdown_first: Weight = 1.5  # weight of the bounded slowdown, the waiting time's being 1, in the first generation
    slowdown_last: Weight = 0.85  # and in the last, linear between


class Ranking(ParametricScheduler):
    """List scheduling whose order, reservations and restraint are learned.

    What is minimised is mostly the larger of two ratios to SAF's: waiting time, and bounded slowdown times a weight.
    """

    name = "ranking"
    summary = "list scheduling: functions that are learned answer which job is next, and which is held back"
    Settings = RankingSettings
    presets = ("ranking",)
    sees = SEES
    weights = RANKING_WEIGHTS
    model_summary = (
        "learned order, reservations and restraint; keeps one job waiting 83 times as long as EASY on CTC, with "
        "guard=1.5x at most 1.58 times"
    )

    def episodes(self, settings: RankingSettings, workload: Workload) -> Episodes:
        """Sequences of jobs after which none come."""
        return Episodes(jobs=settings.jobs, online=False)

    def first_weights(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """SAF with restraint, and units that do nothing yet."""
        return first_guess() + random_units(rng, _UNITS_SPREAD)

    def policy(self, weights: NDArray[np.float64], name: str = "ranking") -> RankingPolicy:
        """The policy that the weights make."""
        return RankingPolicy(weights, name)

    def references(self) -> list[NDArray[np.float64]]:
        """SAF with EASY and with first-fit: a reservation is always made, or never."""
        references = [smallest_area_first(), smallest_area_first()]
        references[_EASY][RESERVE, 0], references[_FIRST_FIT][RESERVE, 0] = 1.0, -1.0
        return references

    def cost(self, settings: RankingSettings, own: Measured, references: Sequence[Measured], done: float) -> float:
        """Mostly the larger of its waiting time and weighted slowdown over the best of SAF's.

        SAF waits least with first-fit, and has the least slowdown with EASY. A sequence counts by the square root of
        what it costs SAF: else the few worst would be all that counts.
        """
        wait = _ratio(own["waiting_time"], references[_FIRST_FIT]["waiting_time"])
        slowdown = _ratio(own["bounded_slowdown"], references[_EASY]["bounded_slowdown"])
        slowdown *= (1 - done) * settings.slowdown_first + done * settings.slowdown_last
        return max(wait, slowdown) + _BOTH * (wait + slowdown)


def _ratio(own: NDArray[np.float64], reference: NDArray[np.float64]) -> float:
    """A mean of their ratios; a second is added to both, so that where nothing waits nothing is infinite."""
    own, reference = own + 1, reference + 1
    return float((own / np.sqrt(reference)).sum() / np.sqrt(reference).sum())


register(Ranking())

# --- Packer --------------------------------------------------------------------------------------------------------
#
# List scheduling as above, whose numbers are learned for utilization.
#
# It answers the same questions about the same numbers: which job is next, whether hosts are kept for one that does not
# fit, and which that fits is held back. Learning begins with the largest area first and EASY, which is the best of what
# needs no learning; and utilization is to the end of the last job, so that what is left for last counts. Small jobs
# wait for large ones, some for long: the option ``guard=auto`` bounds that.


def largest_area_first() -> NDArray[np.float64]:
    """(3, P) weights: LAF with EASY; units do nothing."""
    weights = smallest_area_first()
    weights[ORDER] *= -1.0
    weights[RESERVE, 0] = 1.0
    return weights


class PackerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The schedules that packers are judged by."""

    jobs: Count = 1000  # of a sequence; no others come


class Packer(ParametricScheduler):
    """List scheduling whose order, reservations and restraint are learned for utilization to the last end."""

    name = "packer"
    summary = "list scheduling for utilization: functions that are learned answer which job is next, and which waits"
    Settings = PackerSettings
    presets = ("packer",)
    sees = {**SEES, "name": "packer"}
    weights = RANKING_WEIGHTS
    model_summary = (
        "order, reservations and restraint learned for utilization; for any number of hosts; keeps one job waiting 19 "
        "times as long as EASY on CTC, with guard=1.5x at most 1.45 times"
    )
    for_utilization = True  # gates ask for little idle room, not for short waits

    def episodes(self, settings: PackerSettings, workload: Workload) -> Episodes:
        """Sequences of jobs after which none come."""
        return Episodes(jobs=min(settings.jobs, len(workload.jobs)), online=False)

    def first_weights(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """LAF with EASY, and units that do nothing yet."""
        return largest_area_first() + random_units(rng, _UNITS_SPREAD)

    def policy(self, weights: NDArray[np.float64], name: str = "packer") -> RankingPolicy:
        """The policy that the weights make."""
        return RankingPolicy(weights, name)

    def cost(self, settings: PackerSettings, own: Measured, references: Sequence[Measured], done: float) -> float:
        """Minus the mean utilization, up to the last end."""
        return -float(own["packed_utilization"].mean())


register(Packer())
