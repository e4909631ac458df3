"""Who lets jobs and external events come: what is due goes to the server in one message, then they sleep on."""

from decision.jit import kernel

from .activities import begin_sleep
from .arrays import BYE, CLOCK, EVENTS, EVENTS_BYE, EXTERNAL, SUBMIT, SUBMITTED
from .jobs import put
from .power import note_first_submission


@kernel
def submitter_goes_on(state, truth, sim, w):
    """A workload's submitter sends what is due, sleeps until its next job, or says goodbye."""
    at = sim.workload_at[w]
    if at == truth.workload_end[w]:
        put(sim, BYE + 16 * w)
    elif truth.submit_time[at] > sim.real[CLOCK]:
        begin_sleep(sim, truth.submit_time[at] - sim.real[CLOCK], SUBMIT + 16 * w)
    else:
        submit_due(state, truth, sim, w)


@kernel
def submit_due(state, truth, sim, w):
    """One message with the job that was waited for and all others that are due."""
    note_first_submission(state, sim)
    at = sim.workload_at[w]
    sim.workload_told[w] = at
    at += 1
    while at < truth.workload_end[w] and truth.submit_time[at] <= sim.real[CLOCK]:
        at += 1
    sim.workload_at[w] = at
    put(sim, SUBMITTED + 16 * w)


@kernel
def event_list_goes_on(truth, sim, m):
    """A list of external events sends what is due, sleeps until its next event, or says goodbye."""
    at = sim.list_at[m]
    if at == truth.list_end[m]:
        put(sim, EVENTS_BYE + 16 * m)
    elif truth.event_time[at] > sim.real[CLOCK]:
        begin_sleep(sim, truth.event_time[at] - sim.real[CLOCK], EXTERNAL + 16 * m)
    else:
        send_due_events(truth, sim, m)


@kernel
def send_due_events(truth, sim, m):
    """One message with the event that was waited for and all others that are due."""
    at = sim.list_at[m]
    sim.list_told[m] = at
    at += 1
    while at < truth.list_end[m] and truth.event_time[at] <= sim.real[CLOCK]:
        at += 1
    sim.list_at[m] = at
    put(sim, EVENTS + 16 * m)
