"""Who wakes at one instant, and in which order they act.

Why there are rounds
--------------------
SimGrid runs its actors in rounds. All actors that are awake go on to their next request to SimGrid's kernel, one after
the other; then the kernel meets the requests in the same order, and the next round begins with those that need not
wait. The server hears of things in the order in which actors come to their message, and Batsim's questions list them
in that order. So an actor that makes more requests before its message is later. Those requests are: to measure a
host's energy (one for each host that is not up to date), to prepare a parallel task (three), to change a pstate. Here
each actor's code is in `sim.actor`, what it has asked for in `sim.request`, and a number that belongs to it in
`sim.request_arg`. Without energy nothing but a task that begins needs a request, so all others are done after one
round.

Two jobs that end together
--------------------------
Jobs 3 (parallel task on hosts 0 and 1) and 5 (parallel task on host 2) end at t=10, when a call of the decision process
is due, too; the three activities began in this order. Host 3 has been idle since t=4.

Without energy: `sim.actor` is [TASK_ENDS 3, TASK_ENDS 5, CALL_IS_DUE]. In the first round each job ends and puts
MSG_COMPLETED, and the call puts MSG_CALL. Nobody is awake then. The server handles the three messages in this order;
at the first two the mailbox is not empty, so that one question reports all three.

With energy: `settle` measures hosts 0 to 2, as SimGrid does when a task ends.

- Round 1: job 3 ends. Its own hosts are up to date, but the sum over all hosts needs host 3: MEASURE_ALL 3. Job 5
  likewise. The call takes a round: COUNT_DOWN 1. Then the requests are met: host 3 is measured.
- Round 2: job 3 finds all hosts up to date, writes its row of the energy trace, and takes a round: COUNT_DOWN 1. Job 5
  likewise. The call puts MSG_CALL.
- Round 3: the jobs put MSG_COMPLETED 3 and 5.

So the call is reported before the jobs. If job 3 had another parallel task to compute instead of ending, it would
COUNT_DOWN from 3, then BEGIN_TASK, and then BEGIN_LIMIT if it has a walltime.
"""

from decision.compiling.jit import inlined, kernel
from decision.engine.rules import TASK_STEPS
from decision.model.errors import InternalError

from . import arrays as a
from .clock import begin_sleep, put, put_reply, sender_of, takes_time, twelve_decimals
from .commands import reach_pstate, set_target_pstate
from .energy import ROW_END, energy_row, joules_of, measure_host, note_first_submission
from .jobs import (
    begin_computing,
    begin_delay,
    begin_limit,
    end_at_walltime,
    end_leaf,
    end_overrun,
    is_computing,
    kill_job,
    next_host,
    present_leaf,
    unload_hosts,
)
from .network import end_flow

# What an actor has asked for in this round
(
    NO_REQUEST,  # it waits again, or is done
    MEASURE_OWN,  # to measure host request_arg, one of the job's own
    MEASURE_ALL,  # to measure host request_arg, on the way through all hosts
    MEASURE_PROBED,  # to measure host number request_arg of those that probes measure
    COUNT_DOWN,  # something that only takes rounds, request_arg of them
    BEGIN_TASK,
    BEGIN_LIMIT,
    LEAVE_VIRTUAL_PSTATE,
) = range(8)


@kernel
def run_rounds(world):
    """Let all actors in `sim.actor` act until they wait again."""
    other_rounds(world, first_round(world))


@kernel
def first_round(world):
    """All whose activities are over go on to their first request; False where all wait then."""
    settle(world)
    return wake(world, 0, world.sim.nb_actors)


@kernel
def wake(world, begin, end):
    """Actors from `begin` to before `end` go on to their first request; False where they all wait then."""
    sim, awake = world.sim, False
    for i in range(begin, end):
        sim.request[i] = NO_REQUEST
        if sim.actor[i] != a.CANCELLED:
            _wake(world, i)
            awake |= sim.request[i] != NO_REQUEST
    return awake


@kernel
def other_rounds(world, awake):
    """Those who are `awake` after the first round go on until they wait again."""
    while awake:
        awake = next_round(world)
    world.sim.nb_actors = 0


@kernel
def settle(world):
    """What SimGrid measures when activities end: all hosts of a task, the first host of a job that slept."""
    state, sim = world.state, world.sim
    if sim.energy_on == 0:
        return
    for i in range(sim.nb_actors):
        kind, arg = a.code_kind(sim.actor[i]), a.code_arg(sim.actor[i])
        # In the order of the actors, since a host is measured once in an instant.
        if sim.actor[i] == a.CANCELLED:
            pass
        elif kind in (a.TASK_ENDS, a.OVERRUN_ENDS):
            unload_hosts(world, arg)
        elif kind == a.SWITCH_ENDS:
            measure_host(world, arg)
        elif kind == a.MESSAGE_ARRIVES:
            if sender_of(world, arg) < len(state.host_state):
                measure_host(world, sender_of(world, arg))
        elif kind in (a.DELAY_ENDS, a.WALLTIME_ENDS):
            measure_host(world, state.interval_first[state.alloc_first[arg]])


@kernel
def _ask(world, i, request, arg):
    """Actor `i` makes a request."""
    world.sim.request[i] = request
    world.sim.request_arg[i] = arg


@kernel
def _wake(world, i):
    """The first round of one actor."""
    sim, kind = world.sim, a.code_kind(world.sim.actor[i])
    if kind == a.OVERRUN_ENDS:
        end_flow(world, a.code_arg(sim.actor[i]))
    # Without energy all but tasks and switches are at their message in the first round. With it each has one request
    # more: the submitters' first measures all hosts.
    if kind in (a.DELAY_ENDS, a.TASK_ENDS, a.WALLTIME_ENDS):
        job = a.code_arg(sim.actor[i])
        if kind == a.WALLTIME_ENDS:
            end_at_walltime(world, job)
        else:
            end_leaf(world, job)
        # It ended, and measures hosts where there is energy; or goes on with a delay, which takes no round, or a task,
        # which SimGrid wants told of its flop, bytes and hosts before it begins.
        if sim.over[job]:
            if sim.energy_on:
                _measure_own(world, i, 0)
            else:
                put(world, a.pack(a.MSG_COMPLETED, job))
        elif world.truth.leaf_kind[present_leaf(world, job)] == a.DELAY:
            begin_delay(world, job)
        else:
            _ask(world, i, COUNT_DOWN, TASK_STEPS)
    elif kind == a.SWITCH_ENDS:  # Batsim 5 has these without energy, too
        _ask(world, i, LEAVE_VIRTUAL_PSTATE, 0)
    elif sim.energy_on == 0:
        _send(world, i)
    elif kind == a.SUBMITTER_WAKES and sim.first_submitted == 0:
        _measure_all(world, i, 0)
    elif kind == a.CALL_IS_DUE and sim.nb_probed > 0 and a.code_arg(sim.actor[i]) == sim.stroke:
        _measure_probed(world, i, 0)
    else:
        _ask(world, i, COUNT_DOWN, 1)


@kernel
def _measure_own(world, i, host):
    """A job that ended measures its hosts from `host` on, one a round, and then all of them."""
    sim, job = world.sim, a.code_arg(world.sim.actor[i])
    # Hosts that somebody else has measured in this instant take no round.
    host = next_host(world, job, host)
    while host >= 0 and sim.host_joules_at[host] >= sim.now:
        host = next_host(world, job, host + 1)
    if host >= 0:
        _ask(world, i, MEASURE_OWN, host)
        return
    sim.energy[job] += joules_of(world, job)
    if a.code_kind(sim.actor[i]) == a.WALLTIME_ENDS and not takes_time(world):
        unload_hosts(world, job)  # until here SimGrid lets an overrun task compute
    _measure_all(world, i, 0)


@kernel
def _measure_all(world, i, host):
    """A job that ended, or the first submitter, measures the hosts from `host` on, one a round, and writes it down."""
    sim, hosts = world.sim, len(world.sim.host_joules_at)
    while host < hosts and sim.host_joules_at[host] >= sim.now:
        host += 1
    if host < hosts:
        _ask(world, i, MEASURE_ALL, host)
        return
    if a.code_kind(sim.actor[i]) == a.SUBMITTER_WAKES:
        note_first_submission(world)
    else:
        energy_row(world, ROW_END)
    _ask(world, i, COUNT_DOWN, 1)


@kernel
def _measure_probed(world, i, at):
    """Batsim 5's periodic clock measures the hosts of its probes, from number `at` on, and tells the server."""
    sim = world.sim
    while at < sim.nb_probed and sim.host_joules_at[sim.probed[at]] >= sim.now:
        at += 1
    if at < sim.nb_probed:
        _ask(world, i, MEASURE_PROBED, at)
    else:
        _ask(world, i, COUNT_DOWN, 1)


@kernel
def _meet_requests(world):
    """SimGrid's kernel meets the requests of a round, in the actors' order."""
    sim = world.sim
    for i in range(sim.nb_actors):
        request, arg = sim.request[i], a.code_arg(sim.actor[i])
        if request in (MEASURE_OWN, MEASURE_ALL):
            measure_host(world, sim.request_arg[i])
        elif request == MEASURE_PROBED:
            measure_host(world, sim.probed[sim.request_arg[i]])
        elif request == BEGIN_TASK:
            begin_computing(world, arg)
        elif request == BEGIN_LIMIT:
            begin_limit(world, arg)
        elif request == LEAVE_VIRTUAL_PSTATE:
            set_target_pstate(world, arg)


@kernel
def next_round(world):
    """Requests are met, and those who are awake go on to their next one; False where all wait."""
    _meet_requests(world)
    return _act(world, 0, world.sim.nb_actors)


@kernel
def round_of_reply(world, at):
    """The round in which the reply's first message comes: after those of the actors before `at`.

    Returns:
        Whether someone is awake after it, and the mailbox's end when the reply comes.
    """
    _meet_requests(world)
    awake = _act(world, 0, at)
    tail = world.sim.mail_tail
    return _act(world, at, world.sim.nb_actors) or awake, tail


@kernel
def rounds_of_killer(world, at):
    """The killer of the newest request, an actor before actor `at`, ends its jobs and says so to the server.

    Jobs that are over already stay as they ended. Returns whether someone is awake after that.
    """
    sim = world.sim
    request = sim.nb_kills - 1
    # The killer begins in the round after the server made it, one actor before those that come after the server.
    next_round(world)
    for i in range(sim.kill_begin[request], sim.kill_end[request]):
        if sim.over[sim.kill_job[i]] == 0:
            _rounds_of_kill(world, sim.kill_job[i])
    _meet_requests(world)
    awake = _act(world, 0, at)
    put(world, a.pack(a.MSG_KILLED, request))
    return _act(world, at, sim.nb_actors) or awake


@kernel
def _rounds_of_kill(world, job):
    """A job is killed and writes its energy down. The killer waits for that where no task of the job was cancelled:
    else the job's own actor does it."""
    sim, computes = world.sim, is_computing(world, job)
    if computes:
        next_round(world)
    kill_job(world, job)
    sim.kill_state[job] = a.KILL_DONE
    if sim.energy_on == 0:
        next_round(world)
        return
    # Whoever writes the energy down takes rounds for that, as one more actor that is awake.
    i = sim.nb_actors
    if i >= len(sim.actor):
        raise InternalError("the engine has no room for another actor")
    sim.nb_actors = i + 1
    sim.actor[i] = a.pack(a.OVERRUN_ENDS, job)
    _ask(world, i, MEASURE_OWN, next_host(world, job, 0))
    next_round(world)
    while not computes and sim.request[i] in (MEASURE_OWN, MEASURE_ALL):
        next_round(world)


@kernel
def _act(world, begin, end):
    """Those of the actors from `begin` to before `end` who are awake go on to their next request."""
    sim, awake = world.sim, False
    for i in range(begin, end):
        if sim.request[i] != NO_REQUEST and sim.actor[i] != a.CANCELLED:
            _go_on(world, i)
            awake |= sim.request[i] != NO_REQUEST
    return awake


@kernel
def _go_on(world, i):
    """What one actor asks for after its last request was met."""
    sim = world.sim
    request, kind, arg = sim.request[i], a.code_kind(sim.actor[i]), a.code_arg(sim.actor[i])
    if request == MEASURE_OWN:
        _measure_own(world, i, sim.request_arg[i])
    elif request == MEASURE_ALL:
        _measure_all(world, i, sim.request_arg[i])
    elif request == MEASURE_PROBED:
        _measure_probed(world, i, sim.request_arg[i])
    elif request == LEAVE_VIRTUAL_PSTATE:
        reach_pstate(world, arg)
        _ask(world, i, COUNT_DOWN, 1)
    elif request == COUNT_DOWN and sim.request_arg[i] > 1:
        sim.request_arg[i] -= 1
    # The task's three requests are met: now it begins, and after it its limit, so that at equal times the task ends.
    elif request == COUNT_DOWN and kind in (a.DELAY_ENDS, a.TASK_ENDS) and sim.over[arg] == 0:
        sim.request[i] = BEGIN_TASK
    elif request == COUNT_DOWN:
        _send(world, i)
        sim.request[i] = NO_REQUEST
    elif request == BEGIN_TASK and sim.walltime_left[arg] >= 0.0:
        sim.request[i] = BEGIN_LIMIT
    else:
        sim.request[i] = NO_REQUEST


@kernel
def _send(world, i):
    """One actor sends its message to the server."""
    kind, arg = a.code_kind(world.sim.actor[i]), a.code_arg(world.sim.actor[i])
    if kind == a.SUBMITTER_WAKES:
        _send_due(world, arg, False)
    elif kind == a.EVENT_LIST_WAKES:
        _send_due(world, arg, True)
    elif kind == a.CALL_IS_DUE:
        put(world, a.pack(a.MSG_CALL, arg))
    elif kind == a.SWITCH_ENDS:
        put(world, a.pack(a.MSG_SWITCHED, arg))
    elif kind == a.REPLY_WAKES:
        put(world, arg)
    elif kind == a.MESSAGE_ARRIVES:
        continue_sender(world, a.code_kind(arg), a.code_arg(arg))
    elif kind != a.OVERRUN_ENDS:
        put(world, a.pack(a.MSG_COMPLETED, arg))


# --- Who sends the server one message after the other ----------------------------------------------------------------
#
# Submitters of jobs, lists of external events, and the reply. What is due goes to the server in one message; then they
# sleep again. How long is counted from when they last woke, as in Batsim: where messages take time, the next one is as
# much later.


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
        _go_on_sending(world, arg, kind == a.MSG_HELLO, False)
    elif kind in (a.MSG_EVENTS_HELLO, a.MSG_EVENTS):
        _go_on_sending(world, arg, kind == a.MSG_EVENTS_HELLO, True)


@inlined
def _go_on_sending(world, which, begins, is_list):
    """A sender of events (a list) or of jobs sends what is due, sleeps until its next one, or says goodbye.

    Each call is compiled into its place, where `is_list` is known.
    """
    at, _, clock, end, time = _due_of(world, is_list)
    if begins:
        clock[which] = world.sim.now
    next_one, woke = at[which], clock[which]
    if next_one == end[which]:
        put(world, a.pack(a.MSG_EVENTS_BYE if is_list else a.MSG_BYE, which))
    # Counted from when it woke and not from now: Batsim's submitter reads its clock before it sends.
    elif time[next_one] > woke:
        wakes = a.EVENT_LIST_WAKES if is_list else a.SUBMITTER_WAKES
        begin_sleep(world, time[next_one] - woke, a.pack(wakes, which))
    else:
        _send_due(world, which, is_list)


@inlined
def _due_of(world, is_list):
    """What senders have, those of external events (lists) or of jobs (workloads).

    By sender: the next one, one past the last that was sent, when it last woke (seconds), one past its last; and the
    time (seconds) of each job or event.
    """
    sim, truth = world.sim, world.truth
    if is_list:
        return sim.list_at, sim.list_sent, sim.list_clock, truth.list_end, truth.event_time
    return sim.workload_at, sim.workload_sent, sim.workload_clock, truth.workload_end, truth.submit_time


@inlined
def _send_due(world, which, is_list):
    """One message with the job or event that was waited for and all others that are due."""
    if not is_list:
        note_first_submission(world)
    next_one, sent, clock, end, time = _due_of(world, is_list)
    at, now = next_one[which], world.sim.now
    sent[which], clock[which] = at, now
    at += 1
    while at < end[which] and time[at] <= now:
        at += 1
    next_one[which] = at
    put(world, a.pack(a.MSG_EVENTS if is_list else a.MSG_SUBMITTED, which))


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
    # Batsim 5 writes times with twelve decimals, so that a reply at the question's own time is at what that said.
    if sim.calls_in_ms == 1 and time == world.state.now:  # the question's time, with the digits it had
        time = twelve_decimals(sim.now)
    if time > sim.now:
        sim.nb_late_mail = 0
        begin_sleep(world, time - sim.now, a.pack(a.REPLY_WAKES, code))
    else:
        put_reply(world, code)
