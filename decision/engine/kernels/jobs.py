"""What a running job does: its leaf tasks one after the other, its walltime, its end, its kill."""

import numpy as np

from decision.compiling.jit import kernel
from decision.engine.rules import KILLED_CODE, WALLTIME_CODE
from decision.model.record import FinalState
from decision.state import transitions
from decision.state.cluster import COMPUTING, IDLE

from . import arrays as a
from .clock import begin_sleep, begin_task, cancel, find, is_instant, takes_time
from .energy import ROW_START, energy_row, enter, host_row, joules_of, look_at, measure_host, put_load, set_load
from .network import (
    ENTER_SHARED,
    LEAVE_SHARED,
    LOAD_SHARED,
    NOTE_PARTS,
    NOTE_SPEEDS,
    SET_RATES,
    SUM_LATENCY,
    ask_flows,
    begin_flow,
    end_flow,
    flops_of,
    host_place_of,
    is_flow,
    nb_executors,
    network_of,
    sends,
    shares_hosts,
)

_SUCCESS = int(FinalState.COMPLETED_SUCCESSFULLY)
_FAILED = int(FinalState.COMPLETED_FAILED)
_WALLTIME_REACHED = int(FinalState.COMPLETED_WALLTIME_REACHED)
_KILLED = int(FinalState.COMPLETED_KILLED)
_TASKS_OF_JOBS = (a.TASK_ENDS, a.OVERRUN_ENDS)


@kernel
def begin_job(world, job, at):
    """A job starts on the hosts of the plan's action `at`, and begins its first leaf."""
    state, sim, plan = world.state, world.sim, world.plan
    # Energy is measured before anything changes on the hosts: at their old load.
    energy_row(world, ROW_START)
    transitions.start(state, job, plan.first, plan.last, plan.begin[at], plan.end[at])
    if state.shares:
        ask_flows(world, ENTER_SHARED, job, 0)
    else:
        _enter_all(world, job, IDLE, COMPUTING)
    sim.over[job] = 0
    if sim.energy_on:
        sim.energy[job] = -joules_of(world, job)
    host_row(world)
    sim.start_time[job] = sim.now
    sim.leaf[job] = 0
    # Batsim stops a job at the walltime of its workload, all digits of it; the state has six decimals, which are all
    # that a rest has.
    walltime = state.walltime[job] if state.nth_rest[job] else world.truth.walltime[sim.truth_of[job]]
    sim.walltime_left[job] = walltime if walltime < np.inf else -1.0
    # A delay has one sleep, as long as the shorter of delay and walltime; a task runs beside its limit.
    if world.truth.leaf_kind[present_leaf(world, job)] == a.DELAY:
        begin_delay(world, job)
    else:
        begin_computing(world, job)
        if sim.walltime_left[job] >= 0.0:
            begin_limit(world, job)


@kernel
def _enter_all(world, job, old, new):
    """`enter` for all hosts of a job that are in HostState `old`: all of them, unless external events may take some.

    Without such events nobody asks for the state of one host of a job, and its hosts are counted together.
    """
    state, sim = world.state, world.sim
    now, hosts, begin = sim.now, 0, state.alloc_first[job]
    # The whole job in one step is what most runs need: no trace asks for one host, and a job may have thousands.
    may_be_away = len(world.truth.event_time) > 0
    for i in range(begin, begin + state.alloc_count[job]):
        first, end = state.interval_first[i], state.interval_last[i] + 1
        if may_be_away:
            for host in range(first, end):
                if sim.host_state[host] == old:
                    enter(world, host, new)
        else:
            hosts += end - first
            # All were in `old` since the job began. Those that begin were idle, and idle seconds are what is left of
            # all.
            if new == IDLE:
                sim.time_in_state[old] += (end - first) * (now - sim.start_time[job])
                for host in range(first, end):
                    sim.host_since[host] = now
    sim.in_state[old] -= hosts
    sim.in_state[new] += hosts


@kernel
def present_leaf(world, job):
    """Index of the leaf that the job is at."""
    truth, sim = world.truth, world.sim
    return truth.leaf_first[truth.profile[sim.truth_of[job]]] + sim.leaf[job]


@kernel
def begin_delay(world, job):
    """The job's present leaf, a delay, begins; one as long as the walltime left is stopped by it, as in Batsim."""
    sim = world.sim
    sim.leaf_start[job] = sim.now
    allowed, duration = sim.walltime_left[job], delay_of(world, job)
    # Batsim compares with <: a delay as long as the walltime counts as stopped by it, though it was done.
    if allowed < 0.0 or duration < allowed:
        begin_sleep(world, duration, a.pack(a.DELAY_ENDS, job))
    else:
        begin_sleep(world, allowed, a.pack(a.WALLTIME_ENDS, job))


@kernel
def delay_of(world, job):
    """Seconds that the job's present leaf takes, a delay."""
    rest = world.sim.rest[job]
    return rest if rest > 0.0 else world.truth.leaf_amount[present_leaf(world, job)]


@kernel
def is_one_delay(world, job):
    """Whether the job does nothing but one delay, which can be cut in two."""
    # Tasks and sequences cannot be suspended: nobody could say what is left of them as a profile.
    truth, profile = world.truth, world.truth.profile[world.sim.truth_of[job]]
    return truth.leaf_count[profile] == 1 and truth.leaf_kind[truth.leaf_first[profile]] == a.DELAY


@kernel
def begin_computing(world, job):
    """The job's present leaf, a parallel task, begins and loads its hosts."""
    sim, leaf = world.sim, present_leaf(world, job)
    sim.leaf_start[job] = sim.now
    sim.rate[job] = _task_rate(world, job, leaf)
    # SimGrid looks at a host when a task begins on it alone, and at those of a larger task only when time passes.
    if sim.energy_on:
        hosts = _nb_allocated(world, job)
        if nb_executors(world.truth, leaf, hosts) == 1:
            look_at(world, _host_number(world, job, host_place_of(world.truth, leaf, hosts, 0)))
        sim.loading[sim.nb_loading] = job
        sim.nb_loading += 1
    # The task waits for the latency of its way first, and has no rate until `share_network` sets one.
    if sim.rate[job] < np.inf and shares_hosts(world, leaf) and not sends(world, leaf, _nb_allocated(world, job)):
        sim.rate[job] = 0.0
        begin_flow(world, job)
    elif sends(world, leaf, _nb_allocated(world, job)):
        sim.rate[job] = 0.0
        latency = ask_flows(world, SUM_LATENCY, job, leaf)
        if latency > 0.0:
            begin_sleep(world, latency, a.pack(a.FLOW_BEGINS, job))
            return
        begin_flow(world, job)
    begin_task(world, sim.rate[job], a.pack(a.TASK_ENDS, job))


@kernel
def share_network(world):
    """Tasks that communicate have new rates, which SimGrid computes when it lets time pass.

    False where arrays must grow first.
    """
    sim, network = world.sim, network_of(world)
    # First what new flows need of links and hosts, in the order in which they began: sums are made in that order. It is
    # noted only now, since a flow may end in the instant in which it began.
    for flow in range(network.nb_flows):
        known = network.flow_first[flow] >= 0
        if not known and not ask_flows(world, NOTE_PARTS, flow, present_leaf(world, network.flow_job[flow])):
            return False
    ask_flows(world, SET_RATES, 0, 0)
    # A host's load follows the rate of its task.
    for flow in range(network.nb_flows):
        job = network.flow_job[flow]
        sim.rate[job] = network.flow_rate[flow]
        _load_hosts(world, job, present_leaf(world, job))
    if world.state.shares and sim.energy_on:
        ask_flows(world, LOAD_SHARED, 0, 0)
    # What is left of a task is a share of it, so that a new rate needs nothing else.
    for i in range(sim.nb_activities):
        rate = sim.rate[a.code_arg(sim.code[i])] if a.code_kind(sim.code[i]) in _TASKS_OF_JOBS else np.inf
        if rate < np.inf:  # those that do not communicate have theirs already
            sim.pace[i] = rate
    return True


@kernel
def load_hosts(world):
    """Time passes, be it none: tasks that began are a load on their hosts from now on.

    SimGrid computes loads when it lets time pass. A host that is measured in the instant in which its task began is
    charged for the time before at its old load.
    """
    sim = world.sim
    for i in range(sim.nb_loading):
        job = sim.loading[i]
        # A job may have been killed in the instant in which its task began.
        if sim.over[job] == 0:
            _load_hosts(world, job, present_leaf(world, job))
    sim.nb_loading = 0


@kernel
def begin_limit(world, job):
    """What is left of the walltime begins to run, after the task: at equal times the task is over."""
    begin_sleep(world, world.sim.walltime_left[job], a.pack(a.WALLTIME_ENDS, job))


@kernel
def _nb_allocated(world, job):
    """Number of hosts that the job has."""
    state = world.state
    begin, hosts = state.alloc_first[job], 0
    for i in range(begin, begin + state.alloc_count[job]):
        hosts += state.interval_last[i] - state.interval_first[i] + 1
    return hosts


@kernel
def _task_rate(world, job, leaf):
    """Fraction of the task done per second: the slowest host sets the pace; inf with nothing to compute."""
    state = world.state
    begin, executor, rate = state.alloc_first[job], 0, np.inf
    hosts = _nb_allocated(world, job)
    # SimGrid divides each host's speed by its flop and takes the least: the same division here, or last digits differ.
    for i in range(begin, begin + state.alloc_count[job]):
        for host in range(state.interval_first[i], state.interval_last[i] + 1):
            amount = flops_of(world.truth, leaf, hosts, executor)
            if amount > 0.0:
                rate = min(rate, world.facts.speed[host, state.pstate[host]] / amount)
            executor += 1
    return rate


@kernel
def _load_hosts(world, job, leaf):
    """Put the running task's load on its hosts: fast hosts wait for slow ones.

    SimGrid does not measure hosts when a task begins: they are charged at the task's load from when they were last
    measured, which shows only where a delay came before the task in the same job.
    """
    state, sim = world.state, world.sim
    if sim.energy_on == 0 or state.shares:
        return
    begin, executor, hosts = state.alloc_first[job], 0, _nb_allocated(world, job)
    for i in range(begin, begin + state.alloc_count[job]):
        for host in range(state.interval_first[i], state.interval_last[i] + 1):
            amount = flops_of(world.truth, leaf, hosts, executor)
            put_load(world, host, amount * sim.rate[job] if amount > 0.0 else 0.0)
            executor += 1


@kernel
def _host_number(world, job, place):
    """The host at a place of the job's hosts, counted from 0."""
    state = world.state
    begin = state.alloc_first[job]
    for i in range(begin, begin + state.alloc_count[job]):
        hosts = state.interval_last[i] - state.interval_first[i] + 1
        if place < hosts:
            return state.interval_first[i] + place
        place -= hosts
    return np.int32(-1)


@kernel
def next_host(world, job, host):
    """The job's first host from `host` on, -1 where there is none."""
    state = world.state
    begin = state.alloc_first[job]
    for i in range(begin, begin + state.alloc_count[job]):
        if host <= state.interval_last[i]:
            return max(host, state.interval_first[i])
    return -1


@kernel
def unload_hosts(world, job):
    """The job's hosts compute nothing; where jobs share hosts, `LOAD_SHARED` says what others compute there."""
    state = world.state
    if world.sim.energy_on == 0:
        return
    begin = state.alloc_first[job]
    for i in range(begin, begin + state.alloc_count[job]):
        for host in range(state.interval_first[i], state.interval_last[i] + 1):
            if state.shares:
                measure_host(world, host)
            else:
                set_load(world, host, 0.0)


@kernel
def speed_changed(world, job):
    """A host of a running job changed its pstate: the rest of a parallel task takes as long as it now takes."""
    sim, leaf = world.sim, present_leaf(world, job)
    if sim.over[job] or world.truth.leaf_kind[leaf] == a.DELAY:
        return
    at = find(world, a.pack(a.TASK_ENDS, job))
    # Between two leaves it has no task: the next one begins at the new speed.
    if at < 0:
        return
    # The solver has it at its next round; here only the old load is charged up to now.
    if is_flow(world, job):
        ask_flows(world, NOTE_SPEEDS, job, leaf)
        joules_of(world, job)
        return
    sim.rate[job] = _task_rate(world, job, leaf)
    sim.pace[at] = sim.rate[job]
    joules_of(world, job)  # measures its hosts, at the load that they have had
    _load_hosts(world, job, leaf)


@kernel
def end_leaf(world, job):
    """A leaf ran to its end: the job ends with its exit code, is done, or comes to the next leaf."""
    sim, truth, leaf = world.sim, world.truth, present_leaf(world, job)
    elapsed = sim.now - sim.leaf_start[job]
    if truth.leaf_kind[leaf] == a.DELAY:
        # Batsim takes the delay itself off the walltime, and of a task what the clock says.
        elapsed = delay_of(world, job)
    else:
        end_flow(world, job)
        cancel(world, a.pack(a.WALLTIME_ENDS, job))
    if sim.walltime_left[job] >= 0.0:
        sim.walltime_left[job] -= elapsed
    code = truth.leaf_exit[leaf]
    sim.leaf[job] += 1
    # A leaf with an exit code ends the whole profile: above 0 it has failed; -1 is what Batsim itself gives where a
    # walltime was reached.
    if code != 0:
        _end_job(world, job, _FAILED if code > 0 else _WALLTIME_REACHED, code)
    elif sim.leaf[job] == truth.leaf_count[truth.profile[sim.truth_of[job]]]:
        _end_job(world, job, _SUCCESS, 0)
    # No walltime is left for a delay that follows; a task that follows still begins, and its limit ends it at once.
    elif sim.walltime_left[job] == 0.0 and truth.leaf_kind[leaf + 1] == a.DELAY:
        _end_job(world, job, _WALLTIME_REACHED, WALLTIME_CODE)


@kernel
def end_at_walltime(world, job):
    """The job reached its walltime."""
    at = find(world, a.pack(a.TASK_ENDS, job))
    # SimGrid does not cancel a task whose limit has passed: it computes, and draws power, until the job's actor ends,
    # which is when the server has taken its message.
    if takes_time(world):
        if at >= 0:
            world.sim.code[at] = a.pack(a.OVERRUN_ENDS, job)
    else:
        cancel(world, a.pack(a.TASK_ENDS, job))
        cancel(world, a.pack(a.FLOW_BEGINS, job))
        end_flow(world, job)
    _end_job(world, job, _WALLTIME_REACHED, WALLTIME_CODE)


@kernel
def end_overrun(world, job):
    """The server knows that the job has reached its walltime: its task ends at last."""
    task = a.pack(a.OVERRUN_ENDS, job)
    cancel(world, a.pack(a.FLOW_BEGINS, job))
    if find(world, task) >= 0:
        cancel(world, task)
        end_flow(world, job)
        unload_hosts(world, job)


@kernel
def _end_job(world, job, final_state, exit_code):
    """A job ends. Its energy is written down, and the server hears of it, some rounds later."""
    sim = world.sim
    sim.exit_code[job] = exit_code
    sim.end_time[job] = sim.now
    sim.over[job] = 1 + final_state
    if world.state.shares:
        ask_flows(world, LEAVE_SHARED, job, 0)
    else:
        _enter_all(world, job, COMPUTING, IDLE)
    # A policy hears of the end from the server (`server._report_end`), so that it knows no more than under Batsim.
    if sim.policy_watches == 0:
        transitions.end(world.state, world.facts, job, final_state)
    host_row(world)


@kernel
def kill_job(world, job):
    """Kill a running job, and remember how far its leaf was. Its energy is written down some rounds later."""
    sim, leaf, task = world.sim, present_leaf(world, job), a.pack(a.TASK_ENDS, job)
    elapsed = sim.now - sim.leaf_start[job]
    # Batsim cancels a running task, and its actor then says -2. Where the job sleeps, the actor itself is killed, and
    # its code stays what it was before: -1.
    if world.truth.leaf_kind[leaf] == a.DELAY:
        sim.progress[job] = elapsed / delay_of(world, job)
        exit_code = WALLTIME_CODE  # as Batsim leaves it where no task was cancelled
        if sim.energy_on:
            measure_host(world, next_host(world, job, 0))
    else:
        # A task is under way, or takes no time, or waits for its latency, or is over in this very instant: then there
        # is nothing to cancel.
        at, instant, waits = find(world, task), is_instant(world, task), find(world, a.pack(a.FLOW_BEGINS, job)) >= 0
        sim.progress[job] = 1.0 - sim.left[at] if at >= 0 else 1.0 * instant
        exit_code = KILLED_CODE if at >= 0 or instant or waits else WALLTIME_CODE
        cancel(world, task)
        cancel(world, a.pack(a.FLOW_BEGINS, job))
        end_flow(world, job)
        unload_hosts(world, job)
    cancel(world, a.pack(a.DELAY_ENDS, job))
    cancel(world, a.pack(a.WALLTIME_ENDS, job))
    _end_job(world, job, _KILLED, exit_code)


@kernel
def is_computing(world, job):
    """Whether a parallel task of the job is under way."""
    task = a.pack(a.TASK_ENDS, job)
    return find(world, task) >= 0 or find(world, a.pack(a.FLOW_BEGINS, job)) >= 0 or is_instant(world, task)
