"""Joint: one policy decides which job starts, which server wakes for it, and which server sleeps.

Four linear functions answer what is asked: in which order jobs are looked at (ORDER), for how long a job waits before
servers are woken for it (PATIENCE), where it runs (PLACE), and for how long a server stays idle before it sleeps
(LINGER). A rule with a fixed
order, `allocation=pack`, `patience` and `idle_timeout` has the same functions with constants. The weights of energy,
wait and switches are inputs of patience and timeouts: one checkpoint has all trade-offs between them.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from decision.compiling.bundle import F8, I4, I8, Float, bundle_at
from decision.compiling.jit import kernel
from decision.model.dates import chosen_days
from decision.model.errors import ConfigError
from decision.model.platform import Platform
from decision.model.workload import Workload
from decision.policies.guard import ask_for_call
from decision.policies.memory import Booking, new_booking
from decision.policies.options import OptionLine, read_value
from decision.policies.order import sort_by_key
from decision.policies.power import (
    WAKING,
    book,
    count_available,
    forget_gone,
    is_booked,
    pick_asleep,
    rank_hosts,
    sleepy_from,
    start_due,
    switch_off,
    wake_booked,
)
from decision.policies.prepared import DECIDE, DECIDED, CompiledPolicy
from decision.policies.profile import TOLERANCE
from decision.state.bitmap import count_hosts, has_host, insert_interval, next_in
from decision.state.cluster import COMPUTING, SLEEPING, ClusterState, nb_hosts
from decision.state.plan_arrays import clear

from .base import Episodes, ParametricScheduler, register
from .deepscheduling import Day, day_range
from .rollouts import enough_at
from .window import Confidence, confidence_in, learn_from, longer_confidence, new_confidence

# JointMemory.seen: numbers that functions see, all about 1; times are logarithms of minutes
CALM = 0  # since the last job came
CALM_8 = 1  # since the last eight came
WANTED = 2  # servers that would hold all that waits without hosts, logarithm
SHARE_ASLEEP = 3  # share of hosts
SHARE_BUSY = 4  # share of hosts
NB_IDLE = 5  # servers that are idle, logarithm
TRADE = 6  # the weights of energy, wait and switches: 0 where each has a third
RANK = 9  # LINGER: idle servers before this one, logarithm
WALLTIME_OF_JOB = 10  # from here on of a job
EXPECTED_RUNTIME = 11  # walltime times confidence in its user
SERVERS_OF_JOB = 12  # servers that would hold it, logarithm
WAITED_SO_FAR = 13
MISSING_HOSTS = 14  # share of its hosts that are not awake
WOKEN = 15  # servers that would have to be woken for it, logarithm
SOON = 16  # until enough hosts are awake and free, if jobs run for as long as expected
SOON_BY_WALLTIMES = 17  # and if they run for their walltimes
N_SEEN = 18
# JointMemory.fit: how a job fits a server; PLACE sees this alone
FREE_CORES, EMPTY, OUTLASTS, OUTLASTED, HOLDS = range(5)
N_FIT = 5

# Where the weights of each function begin: those with a constant have it first
ORDER_WEIGHTS = 0  # of WALLTIME_OF_JOB, EXPECTED_RUNTIME, SERVERS_OF_JOB, WAITED_SO_FAR: the lowest first
N_ORDER = 4
PATIENCE = ORDER_WEIGHTS + N_ORDER  # a constant, and all but RANK
LINGER = PATIENCE + N_SEEN  # a constant, and CALM to RANK
PLACE = LINGER + 1 + WALLTIME_OF_JOB  # of `fit`: the highest first
N_WEIGHTS = PLACE + N_FIT

_MINUTE = 60.0  # seconds
_LONGEST = math.log1p(120.0)  # two hours: no patience lasts longer, and no server lingers longer
_FAR = 1e7  # seconds: what counts as for ever, so that a number stays finite
_LAST = 8  # jobs that came, which CALM_8 is about


class JointMemory(Booking, Confidence):
    """Weights, what is booked, what is known of users, and room for a decision. H hosts, J jobs, R of them run."""

    weights: F8  # (N_WEIGHTS,)
    seen: F8  # (N_SEEN,)
    fit: F8  # (N_FIT,)
    next_call: Float = np.inf  # seconds: when the policy will be called on its own request, inf if it will not
    per_server: Float  # servers per host
    until: F8  # (H,) seconds: when the jobs of a server are expected to be over, by server
    vacant: I8  # (H,) hosts that are awake and free, by server
    ends: F8  # (R,) seconds, ascending: expected ends of the jobs that run
    sizes: I8  # (R,) their hosts
    ranked: I4  # (J,) jobs that wait, in order
    spare: I4  # (J,) scratch
    key: F8  # (J,) of each job


@kernel
def on_log_scale(seconds):
    """From 0, for none or less, to about 2."""
    return math.log1p(min(max(seconds, 0.0), _FAR) / _MINUTE) / 3.0


@kernel
def _since(state, jobs):
    """In which time (seconds) so many jobs have come; extrapolated where there were fewer."""
    count = state.nb_jobs
    last = min(count, jobs)
    return (state.now - state.submit_time[count - last]) * jobs / last if last > 0 else _FAR


@kernel
def see_all_servers(state, facts, memory, plan):
    """The numbers that are not a job's or a server's own; and what each server has vacant."""
    seen, hosts, servers = memory.seen, len(memory.rank), len(facts.server_begin) - 1
    memory.vacant[:] = 0
    host = next_in(plan.free, 0)
    while host < len(memory.rank):
        memory.vacant[facts.server[host]] += 1
        host = next_in(plan.free, host + 1)
    idle, wanted = 0, 0
    for server in range(servers):
        idle += memory.vacant[server] == facts.server_begin[server + 1] - facts.server_begin[server]
    for i in range(state.nb_queued):
        if not is_booked(memory, state.queue[i]):
            wanted += state.size[state.queue[i]]
    # logarithms, so that weights hold on a few servers and on hundreds
    seen[CALM], seen[CALM_8] = on_log_scale(_since(state, 1)), on_log_scale(_since(state, _LAST))
    seen[WANTED] = math.log1p(wanted * servers / hosts)
    seen[SHARE_ASLEEP], seen[SHARE_BUSY] = state.nb_in_state[SLEEPING] / hosts, state.nb_in_state[COMPUTING] / hosts
    seen[NB_IDLE] = math.log1p(idle)


@kernel
def expect_ends(state, facts, memory):
    """When each server's jobs are expected to be over, and the ends of the jobs that run, in order."""
    now, running = state.now, state.nb_running
    memory.until[:] = now
    for i in range(running):
        job = state.running[i]
        left = max(state.walltime[job] - (now - state.start_time[job]), 0.0) * confidence_in(state, memory, job)
        memory.spare[i], memory.key[job] = job, now + left
    for host in range(len(memory.rank)):
        if state.host_job[host] >= 0:
            server = facts.server[host]
            memory.until[server] = max(memory.until[server], memory.key[state.host_job[host]])
        elif memory.booked_by[host] >= 0:
            server, job = facts.server[host], memory.booked_by[host]
            # booked but not awake: it is counted from now on, though it starts later
            length = state.walltime[job] * confidence_in(state, memory, job)
            memory.until[server] = max(memory.until[server], now + length)
    sort_by_key(memory.spare, memory.ranked, memory.key, 1, running)
    for i in range(running):
        memory.ends[i], memory.sizes[i] = memory.key[memory.spare[i]], state.size[memory.spare[i]]


@kernel
def see_request(state, memory, job):
    """The numbers that ORDER sees."""
    seen, walltime = memory.seen, state.walltime[job]
    seen[WALLTIME_OF_JOB] = on_log_scale(walltime)
    seen[EXPECTED_RUNTIME] = on_log_scale(walltime * confidence_in(state, memory, job))
    seen[SERVERS_OF_JOB] = math.log1p(state.size[job] * memory.per_server)
    seen[WAITED_SO_FAR] = on_log_scale(state.now - state.submit_time[job])


@kernel
def see_waking(state, facts, memory, plan, job):
    """The other numbers of a job, for which too few hosts are awake."""
    seen, size, free, now = memory.seen, state.size[job], count_hosts(plan.free), state.now
    ready = free
    for host in range(len(memory.rank)):
        if memory.booked_by[host] < 0 and memory.rank[host] >= WAKING:
            ready += memory.rank[host] == WAKING or memory.woken[facts.server[host]] == 1
    seen[MISSING_HOSTS] = (size - free) / size
    seen[WOKEN] = math.log1p(max(size - ready, 0) * memory.per_server)
    running = state.nb_running
    seen[SOON] = on_log_scale(enough_at(memory.ends, memory.sizes, running, free, size) - now)
    # and by walltimes, by which the state has the running jobs in order
    missing, latest = size - free, np.inf
    for i in range(running):
        missing -= state.size[state.running[i]]
        if missing <= 0:
            latest = state.expected_end[i]
            break
    seen[SOON_BY_WALLTIMES] = on_log_scale(latest - now)


@kernel
def weighted_sum(weights, at, numbers, first, count):
    """The sum of `count` numbers from `first` on, with the weights from `at` on."""
    answer = 0.0
    for k in range(count):
        answer += weights[at + k] * numbers[first + k]
    return answer


@kernel
def in_seconds(answer):
    """What an answer means that is a time: those of the functions are logarithms of minutes."""
    return math.expm1(min(max(answer, 0.0), _LONGEST)) * _MINUTE


# --- What is decided at an instant ---------------------------------------------------------------------------------
#
# Jobs book hosts before these are awake (`decision.policies.power`), but here servers fall asleep after the
# choices of an instant, so that none does that a job takes at once. All that waits is looked at in the order of ORDER.
# A job takes hosts that are awake, by PLACE; where these are too few it takes those that wake, and wakes others once it
# has waited for its PATIENCE. A server that is idle for LINGER sleeps.


@kernel
def plan_jointly(state, facts, memory, plan):
    """Fill the plan for this instant, and ask for the next one that patience or a timeout makes."""
    clear(plan, state)
    for i in range(state.nb_ended):
        learn_from(state, memory, state.ended[i])
    forget_gone(state, memory)
    # bookings of before whose hosts are awake start first: they are older than what is booked now
    start_due(state, memory, plan)
    rank_hosts(state, facts, memory, np.zeros(len(plan.free), np.uint64))
    see_all_servers(state, facts, memory, plan)
    call = _book_for_jobs(state, facts, memory, plan)
    call = min(call, _put_to_sleep(state, facts, memory, plan))
    wake_booked(state, facts, memory, plan)
    if call < np.inf:
        ask_for_call(state, memory, plan, call)


@kernel
def _book_for_jobs(state, facts, memory, plan):
    """Book hosts for jobs, in order; returns when the patience of a job ends that could start then."""
    call, queued, available = np.inf, state.nb_queued, count_available(memory)
    if queued == memory.nb_booked or available == 0:
        return call
    expect_ends(state, facts, memory)
    for i in range(queued):
        job = state.queue[i]
        see_request(state, memory, job)
        memory.ranked[i] = job
        memory.key[job] = weighted_sum(memory.weights, ORDER_WEIGHTS, memory.seen, WALLTIME_OF_JOB, N_ORDER)
    sort_by_key(memory.ranked, memory.spare, memory.key, 1, queued)
    for i in range(queued):
        job = memory.ranked[i]
        if state.size[job] > available or is_booked(memory, job):
            continue  # smaller ones behind it go first: nothing is kept for it
        picked, size = np.zeros(len(plan.free), np.uint64), state.size[job]
        left = size - _pick_awake(state, facts, memory, plan, job, picked)
        if left > 0:
            # hosts that wake already may be booked at once; sleeping ones only when patience is over
            patient = _patient_until(state, facts, memory, plan, job)
            if not pick_asleep(facts, memory, left, patient <= state.now + TOLERANCE, picked):
                call = min(call, patient)
                continue
        _book(state, facts, memory, plan, job, picked)
        available -= size
        if available == 0:
            break
    return call


@kernel
def _patient_until(state, facts, memory, plan, job):
    """When (seconds) a job that has to wake servers may do so."""
    see_request(state, memory, job)
    see_waking(state, facts, memory, plan, job)
    weights, seen = memory.weights, memory.seen
    # RANK is a server's number, and is left out
    answer = weights[PATIENCE] + weighted_sum(weights, PATIENCE + 1, seen, CALM, RANK)
    answer += weighted_sum(weights, PATIENCE + 1 + RANK, seen, WALLTIME_OF_JOB, N_SEEN - WALLTIME_OF_JOB)
    return state.submit_time[job] + in_seconds(answer)


@kernel
def _book(state, facts, memory, plan, job, picked):
    """Book the picked hosts, and keep up to date what the next jobs see of their servers."""
    end = state.now + state.walltime[job] * confidence_in(state, memory, job)
    host = next_in(picked, 0)
    while host < len(memory.rank):
        server = facts.server[host]
        memory.vacant[server] -= has_host(plan.free, host)
        memory.until[server] = max(memory.until[server], end)
        host = next_in(picked, host + 1)
    book(facts, memory, plan, job, picked)


@kernel
def _pick_awake(state, facts, memory, plan, job, picked):
    """Put hosts into the bitmap that are awake, those of the servers that PLACE likes best; returns how many."""
    size = state.size[job]
    left, servers = size, len(facts.server_begin) - 1
    score = np.full(servers, -np.inf)
    for server in range(servers):
        if memory.vacant[server] > 0:
            fit, hosts = memory.fit, facts.server_begin[server + 1] - facts.server_begin[server]
            longer = state.now + state.walltime[job] * confidence_in(state, memory, job) - memory.until[server]
            fit[FREE_CORES] = memory.vacant[server] / hosts
            fit[EMPTY] = memory.vacant[server] == hosts
            fit[OUTLASTS], fit[OUTLASTED] = on_log_scale(longer), on_log_scale(-longer)
            fit[HOLDS] = memory.vacant[server] >= size
            score[server] = weighted_sum(memory.weights, PLACE, memory.fit, 0, N_FIT)
    while left > 0:
        best = np.argmax(score)  # the first of equals: the lowest server
        if score[best] == -np.inf:
            break
        score[best] = -np.inf
        # its free hosts, from the lowest; a wide job takes the next best server, too
        for i in range(facts.server_begin[best], facts.server_begin[best + 1]):
            host = facts.server_host[i]
            if left > 0 and has_host(plan.free, host):
                insert_interval(picked, host, host)
                left -= 1
    return size - left


@kernel
def _put_to_sleep(state, facts, memory, plan):
    """Put servers to sleep that were idle for long enough; returns when (seconds) the next one will have been."""
    due, wanted, before = np.inf, np.zeros(len(plan.free), np.uint64), 0
    see_all_servers(state, facts, memory, plan)
    weights, seen, now = memory.weights, memory.seen, state.now
    for server in range(len(facts.server_begin) - 1):
        if sleepy_from(state, facts, plan, server, 0.0) == np.inf:
            continue
        # the more idle servers come before it, the less one more is needed
        seen[RANK] = math.log1p(before)
        before += 1
        answer = weights[LINGER] + weighted_sum(weights, LINGER + 1, seen, CALM, RANK + 1)
        at = sleepy_from(state, facts, plan, server, in_seconds(answer))
        if at > now + TOLERANCE:
            due = min(due, at)
            continue
        for i in range(facts.server_begin[server], facts.server_begin[server + 1]):
            insert_interval(wanted, facts.server_host[i], facts.server_host[i])
    switch_off(state, facts, plan, wanted)
    return due


TRADED = ("energy", "wait", "switches")  # what there are weights for
EVEN = np.ones(len(TRADED))

Cluster = Literal["orion", "graphite", "econome"]


def saf_packed(timeout: float = 60.0, patience: float = 300.0) -> NDArray[np.float64]:
    """(N_WEIGHTS,) smallest area first, fullest server first, with a fixed timeout and a fixed patience, in seconds."""
    weights = np.zeros(N_WEIGHTS)
    weights[[ORDER_WEIGHTS, ORDER_WEIGHTS + 2]] = 1.0, 0.5
    weights[PATIENCE], weights[LINGER] = math.log1p(patience / 60.0), math.log1p(timeout / 60.0)
    weights[PLACE + FREE_CORES] = -1.0
    return weights


@DECIDE.entry
def decide_jointly(state, facts, memory, plan):
    """As `plan_jointly`, always with a plan."""
    plan_jointly(state, facts, _memory_at(memory), plan)
    return DECIDED


_memory_at = bundle_at(JointMemory)


class JointPolicy(CompiledPolicy):
    """Starts jobs, wakes servers and lets them sleep.

    Args:
        weights: (N_WEIGHTS,) of the functions in `decision.rl.schedulers.joint`.
        name: for messages.
        traded: (3,) weights of TRADED; what counts is the share that each has of their sum.
    """

    needs_walltime = True
    switches_hosts = True
    entry = decide_jointly

    def __init__(self, weights: NDArray[np.float64], name: str = "joint", traded: NDArray[np.float64] = EVEN) -> None:
        self.weights, self.name = np.ascontiguousarray(weights, np.float64), name
        self._trade = len(TRADED) * traded / traded.sum() - 1.0
        self._per_server = 1.0

    def reset(self, platform: Platform, seed: int) -> None:
        """A run begins.

        Raises:
            ConfigError: if no host of the platform sleeps.
        """
        super().reset(platform, seed)
        if not any(host.sleep for host in platform.hosts):
            where = platform.path or "the platform"
            advice = "decision platform grid5000 --energy taurus makes such hosts, and decision run needs -E"
            raise ConfigError(
                f"{where}: no host has sleep states, and {self.name} needs some; {advice}", field="platform"
            )
        hosts = platform.servers
        self._per_server = len({server or host for host, server in enumerate(hosts)}) / len(hosts)

    def memory_for(self, state: ClusterState, memory: JointMemory | None = None) -> JointMemory:
        """`memory` with room for all of `state`."""
        jobs, running = len(state.size), len(state.running)
        if memory is None:
            hosts, seen = nb_hosts(state), np.zeros(N_SEEN)
            seen[TRADE : TRADE + len(TRADED)] = self._trade  # which stays: nothing else is written there
            return JointMemory(
                **new_booking(hosts),
                **new_confidence(jobs),
                weights=self.weights,
                seen=seen,
                fit=np.zeros(N_FIT),
                per_server=self._per_server,
                until=np.zeros(hosts),
                vacant=np.zeros(hosts, np.int64),
                ends=np.zeros(running),
                sizes=np.zeros(running, np.int64),
                **_room(jobs),
            )
        if jobs > len(memory.key):
            memory = memory._replace(**_room(jobs), **longer_confidence(memory, jobs))
        if running > len(memory.ends):
            memory = memory._replace(ends=np.zeros(running), sizes=np.zeros(running, np.int64))
        return memory

    def __repr__(self) -> str:
        return f"<policy {self.name}>"


def _room(jobs: int) -> dict[str, Any]:
    """Where that many jobs are put in order."""
    return {"ranked": np.zeros(jobs, np.int32), "spare": np.zeros(jobs, np.int32), "key": np.zeros(jobs)}


def read_weights(policy: str, options: Mapping[str, Any]) -> NDArray[np.float64]:
    """(3,) weights of TRADED from a policy's options; 1 where nothing is said.

    Raises:
        ConfigError: for one that is negative or not finite, or if all are 0.
    """
    given = np.array([read_value(policy, name, options.get(name, 1.0), float) for name in TRADED])
    for name, weight in zip(TRADED, given.tolist(), strict=True):
        if not 0.0 <= weight < math.inf:
            raise ConfigError(f"policy {policy}: option {name}={weight:g} must be finite and not negative")
    if not given.any():
        raise ConfigError(f"policy {policy}: {', '.join(TRADED)} are all 0; one of these weights must be more")
    return given / given.max()  # whose sum is finite


# --- The record ----------------------------------------------------------------------------------------------------

Limit = Annotated[float, msgspec.Meta(gt=0)]


class JointSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The days that joint policies are judged by."""

    days: Annotated[tuple[Day, ...], msgspec.Meta(max_length=2)] = ()  # (A,): from A on; (A, B): A to B - 1; (): all
    like: tuple[Cluster, ...] = ()  # clusters, days like whose are made and learned from, too
    wait_limit: Limit = 1.1  # of waits with even weights, over those of first-fit with a timeout of 5 minutes
    switch_limit: Limit = 0.98  # switches, likewise


class Joint(ParametricScheduler):
    """Starts, waking and sleeping in one policy, for any number of servers.

    With even weights, as by default, what is minimised is the waste of energy (its logarithm) within limits on wait and
    switches, those of first-fit with a timeout of 5 minutes being 1; with others, the weighted sum of the three
    logarithms. A wait is kept in sum, and on the usual day.
    """

    name = "joint"
    summary = "one policy for starts, waking and sleeping of servers, with weights of energy, wait and switches"
    Settings = JointSettings
    presets = ("joint",)
    curves = ("waiting_time", "energy_waste", "switches")
    sees = {"name": "joint", "version": 1}  # raised whenever a number changes its meaning
    weights = (N_WEIGHTS,)
    energy = True
    options = tuple(OptionLine(name, "1", "", f"weight of {name}; shares of the sum count") for name in TRADED)
    model_summary = "learned starts, waking and sleeping of servers, for little waste; for any number of them"

    def episodes(self, settings: JointSettings, workload: Workload) -> Episodes:
        """Each of the days that the settings name is an episode."""
        return Episodes(jobs=None, online=False, days=tuple(chosen_days(workload, day_range(settings.days))))

    def first_weights(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """The rule that wastes least of a grid, with patience and timeouts as the trade-off asks for."""
        weights = saf_packed()
        weights[PATIENCE + 1 + TRADE : PATIENCE + 4 + TRADE] = 0.5, -0.7, 0.2
        weights[LINGER + 1 + TRADE : LINGER + 4 + TRADE] = -0.3, 0.1, 0.4
        return weights

    def policy(self, weights: NDArray[np.float64], name: str = "joint", **options: Any) -> JointPolicy:
        """The policy that the weights make; options are the weights of TRADED."""
        return JointPolicy(weights, name, read_weights(name, options))


register(Joint())
