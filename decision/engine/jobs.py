"""What a running job does: its leaf tasks one after the other, its walltime, its end, its kill."""

import numpy as np

from decision.jit import kernel
from decision.model.record import FinalState
from decision.state import transitions
from decision.state.cluster import RUNNING

from .activities import begin_sleep, begin_task, cancel, find, is_brief
from .arrays import (
    CLOCK,
    DELAY,
    ENERGY_ON,
    FLOPS_EACH,
    FLOPS_TOTAL,
    LEAF,
    MAIL_TAIL,
    PTASK,
    WALLTIME,
)
from .power import energy_row, host_row, joules_of, set_load, watts_under

SUCCESS = int(FinalState.COMPLETED_SUCCESSFULLY)
FAILED = int(FinalState.COMPLETED_FAILED)
WALLTIME_REACHED = int(FinalState.COMPLETED_WALLTIME_REACHED)
KILLED = int(FinalState.COMPLETED_KILLED)

START_ROW, END_ROW = ord("s"), ord("e")


@kernel
def put(sim, code):
    """Put a message into the server's mailbox."""
    tail = sim.flag[MAIL_TAIL]
    sim.mail[tail & (len(sim.mail) - 1)] = code
    sim.flag[MAIL_TAIL] = tail + 1


@kernel
def start_job(state, truth, sim, rows, facts, job, first, last, begin, end):
    """A job starts on the hosts of these intervals, and begins its first leaf."""
    energy_row(state, sim, rows, START_ROW)
    transitions.start(state, job, first, last, begin, end)
    if sim.flag[ENERGY_ON]:
        sim.energy[job] = -joules_of(state, sim, job)
    host_row(state, sim, rows)
    sim.began[job] = sim.real[CLOCK]
    sim.leaf[job] = 0
    sim.allowed[job] = state.walltime[job] if state.walltime[job] < np.inf else -1.0
    if truth.leaf_kind[present_leaf(truth, sim, job)] == DELAY:
        begin_sleeping(truth, sim, job)
    else:
        begin_computing(state, truth, sim, facts, job)
        if sim.allowed[job] >= 0.0:
            begin_limit(sim, job)


@kernel
def present_leaf(truth, sim, job):
    """Index of the leaf that the job is at."""
    return truth.leaf_first[sim.truth_of[job]] + sim.leaf[job]


@kernel
def begin_sleeping(truth, sim, job):
    """The job's present leaf, a delay, begins; one as long as the walltime left is stopped by it, as in Batsim."""
    sim.leaf_time[job] = sim.real[CLOCK]
    allowed, duration = sim.allowed[job], truth.leaf_amount[present_leaf(truth, sim, job)]
    if allowed < 0.0 or duration < allowed:
        begin_sleep(sim, duration, LEAF + 16 * job)
    else:
        begin_sleep(sim, allowed, WALLTIME + 16 * job)


@kernel
def begin_computing(state, truth, sim, facts, job):
    """The job's present leaf, a parallel task, begins and loads its hosts."""
    leaf = present_leaf(truth, sim, job)
    sim.leaf_time[job] = sim.real[CLOCK]
    sim.rate[job] = task_rate(state, truth, facts, job, leaf)
    load_hosts(state, truth, sim, facts, job, leaf)
    begin_task(sim, sim.rate[job], PTASK + 16 * job)


@kernel
def begin_limit(sim, job):
    """What is left of the walltime begins to run, after the task: at equal times the task is over."""
    begin_sleep(sim, sim.allowed[job], WALLTIME + 16 * job)


@kernel
def amount_on(state, truth, job, leaf, executor):
    """Flop that the job's host number `executor` computes in this leaf."""
    kind = truth.leaf_kind[leaf]
    if kind == FLOPS_EACH:
        return truth.leaf_amount[leaf]
    if kind == FLOPS_TOTAL:
        return truth.leaf_amount[leaf] / allocated(state, job)
    return truth.vector[truth.leaf_vector[leaf] + executor]


@kernel
def allocated(state, job):
    """Number of hosts that the job has."""
    begin, hosts = state.alloc_first[job], 0
    for i in range(begin, begin + state.alloc_count[job]):
        hosts += state.interval_last[i] - state.interval_first[i] + 1
    return hosts


@kernel
def task_rate(state, truth, facts, job, leaf):
    """Fraction of the task done per second: the slowest host sets the pace; inf with nothing to compute."""
    begin, executor, rate = state.alloc_first[job], 0, np.inf
    for i in range(begin, begin + state.alloc_count[job]):
        for host in range(state.interval_first[i], state.interval_last[i] + 1):
            amount = amount_on(state, truth, job, leaf, executor)
            if amount > 0.0:
                rate = min(rate, facts.speed[host, state.pstate[host]] / amount)
            executor += 1
    return rate


@kernel
def load_hosts(state, truth, sim, facts, job, leaf):
    """Put the running task's load on its hosts: fast hosts wait for slow ones.

    SimGrid does not measure hosts when a task begins: they are charged at the task's load from when they were last
    measured, which shows only where a delay came before the task in the same job.
    """
    if sim.flag[ENERGY_ON] == 0:
        return
    begin, executor = state.alloc_first[job], 0
    for i in range(begin, begin + state.alloc_count[job]):
        for host in range(state.interval_first[i], state.interval_last[i] + 1):
            amount = amount_on(state, truth, job, leaf, executor)
            load = amount * sim.rate[job] / facts.speed[host, state.pstate[host]] if amount > 0.0 else 0.0
            sim.host_watts[host] = watts_under(state, facts, host, min(load, 1.0))
            executor += 1


@kernel
def next_host(state, job, host):
    """The job's first host from `host` on, -1 where there is none."""
    begin = state.alloc_first[job]
    for i in range(begin, begin + state.alloc_count[job]):
        if host <= state.interval_last[i]:
            return max(host, state.interval_first[i])
    return -1


@kernel
def unload_hosts(state, sim, facts, job):
    """The job's hosts compute nothing."""
    if sim.flag[ENERGY_ON] == 0:
        return
    begin = state.alloc_first[job]
    for i in range(begin, begin + state.alloc_count[job]):
        for host in range(state.interval_first[i], state.interval_last[i] + 1):
            set_load(state, facts, sim, host, 0.0)


@kernel
def speed_changed(state, truth, sim, facts, job):
    """A host of a running job changed its pstate: the rest of a parallel task takes as long as it now takes."""
    leaf = present_leaf(truth, sim, job)
    if state.job_state[job] != RUNNING or truth.leaf_kind[leaf] == DELAY:
        return
    at = find(sim, PTASK + 16 * job)
    if at < 0:
        return
    sim.rate[job] = task_rate(state, truth, facts, job, leaf)
    sim.pace[at] = sim.rate[job]
    joules_of(state, sim, job)
    load_hosts(state, truth, sim, facts, job, leaf)


@kernel
def leaf_over(state, truth, sim, rows, facts, job):
    """A leaf ran to its end: the job ends with its exit code, is done, or comes to the next leaf."""
    leaf = present_leaf(truth, sim, job)
    elapsed = sim.real[CLOCK] - sim.leaf_time[job]
    if truth.leaf_kind[leaf] == DELAY:
        elapsed = truth.leaf_amount[leaf]
    else:
        cancel(sim, WALLTIME + 16 * job)
    if sim.allowed[job] >= 0.0:
        sim.allowed[job] -= elapsed
    code = truth.leaf_exit[leaf]
    sim.leaf[job] += 1
    if code != 0:
        end_job(state, sim, rows, facts, job, FAILED if code > 0 else WALLTIME_REACHED, code)
    elif sim.leaf[job] == truth.leaf_count[sim.truth_of[job]]:
        end_job(state, sim, rows, facts, job, SUCCESS, 0)
    elif sim.allowed[job] == 0.0 and truth.leaf_kind[leaf + 1] == DELAY:
        end_job(state, sim, rows, facts, job, WALLTIME_REACHED, -1)


@kernel
def walltime_over(state, sim, rows, facts, job):
    """The job reached its walltime."""
    cancel(sim, PTASK + 16 * job)
    end_job(state, sim, rows, facts, job, WALLTIME_REACHED, -1)


@kernel
def end_job(state, sim, rows, facts, job, final_state, exit_code):
    """A job ends; neither is its energy written down here nor the server told."""
    sim.exit_code[job] = exit_code
    sim.over[job] = sim.real[CLOCK]
    transitions.end(state, facts, job, final_state)
    host_row(state, sim, rows)


@kernel
def kill(state, truth, sim, rows, facts, job):
    """Kill a running job, and remember how far its leaf was."""
    if state.job_state[job] != RUNNING:
        return
    leaf = present_leaf(truth, sim, job)
    elapsed = sim.real[CLOCK] - sim.leaf_time[job]
    if truth.leaf_kind[leaf] == DELAY:
        sim.progress[job] = elapsed / truth.leaf_amount[leaf]
        exit_code = -1
        cancel(sim, LEAF + 16 * job)
    else:
        at, brief = find(sim, PTASK + 16 * job), is_brief(sim, PTASK + 16 * job)
        sim.progress[job] = 1.0 - sim.left[at] if at >= 0 else 1.0 * brief
        exit_code = -2 if at >= 0 or brief else -1
        cancel(sim, PTASK + 16 * job)
        unload_hosts(state, sim, facts, job)
    cancel(sim, WALLTIME + 16 * job)
    end_job(state, sim, rows, facts, job, KILLED, exit_code)
    if sim.flag[ENERGY_ON]:
        sim.energy[job] += joules_of(state, sim, job)
    energy_row(state, sim, rows, END_ROW)
