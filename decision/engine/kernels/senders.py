"""Who sends the server one message after the other: submitters of jobs, lists of external events, and the reply.

What is due goes to the server in one message; then they sleep again. How long is counted from when they last woke, as
in Batsim: where messages take time, the next one is as much later.
"""

from decision.compiling.jit import kernel

from . import arrays as a
from .clock import begin_sleep, put, put_reply, takes_time, twelve_decimals
from .energy import note_first_submission
from .jobs import end_overrun


@kernel
def continue_sender(world, kind, arg):
    """The sender of a handled message takes its next step."""
    if kind == a.MSG_COMMAND:
        world.sim.next_command += 1
        continue_reply(world)
    elif kind == a.MSG_COMPLETED:
        if takes_time(world):
            end_overrun(world, arg)
    elif kind in (a.MSG_HELLO, a.MSG_SUBMITTED):
        if kind == a.MSG_HELLO:
            world.sim.workload_clock[arg] = world.sim.now
        _continue_submitter(world, arg)
    elif kind in (a.MSG_EVENTS_HELLO, a.MSG_EVENTS):
        if kind == a.MSG_EVENTS_HELLO:
            world.sim.list_clock[arg] = world.sim.now
        _continue_event_list(world, arg)


@kernel
def continue_reply(world):
    """The reply sends its next command, or says that the decision process is ready, or waits until its time."""
    sim, plan = world.sim, world.plan
    at = sim.next_command
    while at < plan.nb_actions and plan.kind[at] < 0:  # merged into the one before
        at += 1
    sim.next_command = at
    code = a.pack(a.MSG_COMMAND, at) if at < plan.nb_actions else a.pack(a.MSG_READY, 0)
    time = sim.reply_now
    if at < plan.nb_actions:
        time = sim.command_time[at] if sim.timed_commands else time
    if sim.calls_in_ms == 1 and time == world.state.now:  # the question's time, with the digits it had
        time = twelve_decimals(sim.now)
    if time > sim.now:
        sim.nb_late_mail = 0
        begin_sleep(world, time - sim.now, a.pack(a.REPLY_WAKES, code))
    else:
        put_reply(world, code)


@kernel
def _continue_submitter(world, w):
    """The submitter of workload `w` sends what is due, sleeps until its next job, or says goodbye."""
    truth, woke = world.truth, world.sim.workload_clock[w]
    at = world.sim.workload_at[w]
    if at == truth.workload_end[w]:
        put(world, a.pack(a.MSG_BYE, w))
    elif truth.submit_time[at] > woke:
        begin_sleep(world, truth.submit_time[at] - woke, a.pack(a.SUBMITTER_WAKES, w))
    else:
        submit_due(world, w)


@kernel
def submit_due(world, w):
    """One message with the job that was waited for and all others that are due."""
    sim, truth = world.sim, world.truth
    note_first_submission(world)
    at = sim.workload_at[w]
    sim.workload_sent[w] = at
    sim.workload_clock[w] = sim.now
    at += 1
    while at < truth.workload_end[w] and truth.submit_time[at] <= sim.now:
        at += 1
    sim.workload_at[w] = at
    put(world, a.pack(a.MSG_SUBMITTED, w))


@kernel
def _continue_event_list(world, m):
    """Event list `m` sends what is due, sleeps until its next event, or says goodbye."""
    truth, woke = world.truth, world.sim.list_clock[m]
    at = world.sim.list_at[m]
    if at == truth.list_end[m]:
        put(world, a.pack(a.MSG_EVENTS_BYE, m))
    elif truth.event_time[at] > woke:
        begin_sleep(world, truth.event_time[at] - woke, a.pack(a.EVENT_LIST_WAKES, m))
    else:
        send_due_events(world, m)


@kernel
def send_due_events(world, m):
    """One message with the event that was waited for and all others that are due."""
    sim, truth = world.sim, world.truth
    at = sim.list_at[m]
    sim.list_sent[m] = at
    sim.list_clock[m] = sim.now
    at += 1
    while at < truth.list_end[m] and truth.event_time[at] <= sim.now:
        at += 1
    sim.list_at[m] = at
    put(world, a.pack(a.MSG_EVENTS, m))
