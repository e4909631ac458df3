"""Who submits jobs and external events: what is due goes to the server in one message, then they sleep again."""

from decision.jit import kernel

from . import arrays as a
from .clock import begin_sleep, put
from .energy import note_first_submission


@kernel
def continue_submitter(world, w):
    """The submitter of workload `w` sends what is due, sleeps until its next job, or says goodbye."""
    truth, now = world.truth, world.sim.real[a.SIM_NOW]
    at = world.sim.workload_at[w]
    if at == truth.workload_end[w]:
        put(world, a.pack(a.MSG_BYE, w))
    elif truth.submit_time[at] > now:
        begin_sleep(world, truth.submit_time[at] - now, a.pack(a.SUBMITTER_WAKES, w))
    else:
        submit_due(world, w)


@kernel
def submit_due(world, w):
    """One message with the job that was waited for and all others that are due."""
    sim, truth = world.sim, world.truth
    note_first_submission(world)
    at = sim.workload_at[w]
    sim.workload_sent[w] = at
    at += 1
    while at < truth.workload_end[w] and truth.submit_time[at] <= sim.real[a.SIM_NOW]:
        at += 1
    sim.workload_at[w] = at
    put(world, a.pack(a.MSG_SUBMITTED, w))


@kernel
def continue_event_list(world, m):
    """Event list `m` sends what is due, sleeps until its next event, or says goodbye."""
    truth, now = world.truth, world.sim.real[a.SIM_NOW]
    at = world.sim.list_at[m]
    if at == truth.list_end[m]:
        put(world, a.pack(a.MSG_EVENTS_BYE, m))
    elif truth.event_time[at] > now:
        begin_sleep(world, truth.event_time[at] - now, a.pack(a.EVENT_LIST_WAKES, m))
    else:
        send_due_events(world, m)


@kernel
def send_due_events(world, m):
    """One message with the event that was waited for and all others that are due."""
    sim, truth = world.sim, world.truth
    at = sim.list_at[m]
    sim.list_sent[m] = at
    at += 1
    while at < truth.list_end[m] and truth.event_time[at] <= sim.real[a.SIM_NOW]:
        at += 1
    sim.list_at[m] = at
    put(world, a.pack(a.MSG_EVENTS, m))
