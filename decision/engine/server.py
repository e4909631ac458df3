"""Batsim's server: time passes, messages wait in one mailbox, questions go out when it is empty.

This is Batsim 4's own order of events, told as its actors act it. Activities that end together do so in the order in
which they began, and each puts a message into the mailbox. The server handles one message at a time; the sender goes on
only then (a submitter's next message follows its last, the next command of a reply its predecessor), and what a
command starts begins after that. When the mailbox is empty and the decision process waits, everything that was logged
becomes one question.
"""

from decision.jit import kernel
from decision.policies.plan import KILL, SET_PSTATE
from decision.state import transitions
from decision.state.cluster import N_ENDED, N_INTERVALS, N_RUNNING, UNAVAILABLE

from .activities import begin_sleep, end_brief, pass_time
from .arrays import (
    ACTIVITIES,
    ASK,
    BAD_COMMAND,
    BAD_EVENT,
    BRIEF,
    BYE,
    CALLED,
    CLOCK,
    COMMAND,
    COMPLETED,
    DEADLOCK,
    DONE,
    ENDED_N,
    ENDS_SENT,
    ENERGY_ON,
    ENERGY_ROWS,
    EVENT_LISTS,
    EVENTS,
    EVENTS_BYE,
    EVENTS_HELLO,
    GROUP_INTERVALS,
    GROUP_N,
    GROW,
    HELLO,
    HOST_ROWS,
    HOSTS_COME_BACK,
    HOSTS_LEAVE,
    KILL_JOBS,
    KILL_N,
    KILLED,
    KILLERS,
    LOG_ASKED,
    LOG_BEGINS,
    LOG_CALLED,
    LOG_COMPLETED,
    LOG_ENDS,
    LOG_EVENT,
    LOG_KILLED,
    LOG_N,
    LOG_NO_MORE_EVENTS,
    LOG_NO_MORE_JOBS,
    LOG_SUBMITTED,
    MAIL_HEAD,
    MAIL_TAIL,
    MISPLACED,
    NEXT_COMMAND,
    PSTATE_ROWS,
    READY,
    REFUSED,
    REGISTRATION,
    REPLY,
    REPLY_NOW,
    SCHED_READY,
    SUBMITTED,
    SUBMITTED_N,
    SUBMITTERS,
    SWITCHED,
    SWITCHING,
    TIMED_COMMANDS,
    TRACE_ON,
    WAITERS,
)
from .commands import begin_command, handle_command, kill_noted
from .jobs import put
from .log import log
from .possible import is_possible
from .power import begin_energy
from .rounds import first_round, other_rounds, wake
from .submitters import event_list_goes_on, submitter_goes_on
from .switches import tell_switched


@kernel
def begin(state, facts, truth, sim):
    """Time 0: submitters and event lists say hello, and the first question is ready."""
    begin_energy(state, facts, sim)
    sim.flag[SUBMITTERS] = len(truth.workload_end)
    sim.flag[EVENT_LISTS] = len(truth.list_end)
    for w in range(len(truth.workload_end)):
        put(sim, HELLO + 16 * w)
    for m in range(len(truth.list_end)):
        put(sim, EVENTS_HELLO + 16 * m)
    log(state, sim, LOG_BEGINS, 0, 0.0)
    sim.flag[LOG_ASKED] = 1


@kernel
def advance(state, facts, truth, sim, rows, plan):
    """Go on until the decision process must be asked (ASK), all is over (DONE), nothing can happen any more
    (DEADLOCK), arrays must grow first (GROW), a command is impossible (REFUSED; flag BAD_COMMAND says which) or an
    external event is (MISPLACED; flag BAD_EVENT).

    `plan` holds the commands of the reply that is being carried out.
    """
    while True:
        while sim.flag[MAIL_HEAD] < sim.flag[MAIL_TAIL]:
            code = sim.mail[sim.flag[MAIL_HEAD] & (len(sim.mail) - 1)]
            sim.flag[MAIL_HEAD] += 1
            kind, arg = code & 15, code >> 4
            if kind == COMMAND and not is_possible(state, facts, truth, sim, plan, arg):
                sim.flag[BAD_COMMAND] = arg
                return REFUSED
            brief, slow, awake, told = sim.flag[BRIEF] > 0, False, False, sim.flag[MAIL_TAIL]
            if brief:
                end_brief(sim, False)
                wake(state, facts, truth, sim, rows)
                slow = _measures_first(sim, plan, kind, arg)
                if slow:
                    told = sim.flag[MAIL_TAIL]
                    end_brief(sim, True)
                    awake = first_round(state, facts, truth, sim, rows)
            _handle(state, facts, truth, sim, rows, plan, kind, arg)
            if kind == EVENTS and sim.flag[BAD_EVENT] >= 0:
                return MISPLACED
            if kind == READY and sim.flag[ENDS_SENT]:
                return DONE
            asks = _must_ask(state, sim, told)
            _sender_goes_on(state, truth, sim, plan, kind, arg)
            if brief and not slow:
                end_brief(sim, True)
                awake = first_round(state, facts, truth, sim, rows)
            if kind == COMMAND and plan.kind[arg] == KILL:
                kill_noted(state, truth, sim, rows, facts)
            other_rounds(state, facts, truth, sim, rows, awake)
            if kind == COMMAND:
                begin_command(state, facts, truth, sim, rows, plan, arg)
            if asks:
                sim.flag[SCHED_READY] = 0
                sim.flag[LOG_ASKED] = 1
                return ASK
        if not _has_room(state, truth, sim, rows, plan):
            return GROW
        if not _fire(state, facts, truth, sim, rows):
            return DEADLOCK


@kernel
def _measures_first(sim, plan, kind, arg):
    """Whether the server measures hosts, which takes it some rounds, before a message of switches changes anything."""
    told = kind == SWITCHED and sim.group_left[sim.group[arg]] == 1
    asked = kind == COMMAND and plan.kind[arg] == SET_PSTATE
    return (told or asked) and (sim.host_joules_at < sim.real[CLOCK]).any()


@kernel
def load_reply(state, truth, sim, rows, plan, now):
    """Take the decision's commands, to be carried out by `advance`; False where arrays must grow first.

    `now` is the reply's own time, in seconds.
    """
    state.count[N_ENDED] = 0
    sim.flag[NEXT_COMMAND] = 0
    if not _has_room(state, truth, sim, rows, plan):
        return False
    sim.real[REPLY_NOW] = now
    _reply_goes_on(state, sim, plan)
    return True


@kernel
def _handle(state, facts, truth, sim, rows, plan, kind, arg):
    """The server handles one message."""
    flag = sim.flag
    if kind == COMMAND:
        handle_command(state, facts, truth, sim, rows, plan, arg)
    elif kind == READY:
        flag[SCHED_READY] = 1
    elif kind == COMPLETED:
        tell_end(state, sim, arg)
    elif kind == SUBMITTED:
        _tell_submissions(state, truth, sim, arg)
    elif kind == BYE:
        flag[SUBMITTERS] -= 1
        if flag[SUBMITTERS] == 0:
            log(state, sim, LOG_NO_MORE_JOBS, 0, 0.0)
    elif kind == CALLED:
        flag[WAITERS] -= 1
        log(state, sim, LOG_CALLED, 0, 0.0)
    elif kind == SWITCHED:
        flag[SWITCHING] -= 1
        tell_switched(state, sim, rows, arg)
    elif kind == KILLED:
        _tell_kill(state, sim, arg)
    elif kind == EVENTS:
        _tell_events(state, facts, truth, sim, arg)
    elif kind == EVENTS_BYE:
        flag[EVENT_LISTS] -= 1
        if flag[EVENT_LISTS] == 0:
            log(state, sim, LOG_NO_MORE_EVENTS, 0, 0.0)


@kernel
def _must_ask(state, sim, tail):
    """Whether a question goes out now, with messages up to `tail`; SIMULATION_ENDS is logged where all is over."""
    flag = sim.flag
    if flag[SCHED_READY] == 0 or flag[MAIL_HEAD] < tail:
        return False
    if flag[LOG_ASKED] == 0:
        return True
    if flag[ENDS_SENT] or not is_finished(sim):
        return False
    log(state, sim, LOG_ENDS, 0, 0.0)
    flag[ENDS_SENT] = 1
    return True


@kernel
def is_finished(sim):
    """Whether nothing can happen any more and nothing is owed."""
    flag = sim.flag
    pending = (
        flag[SUBMITTERS] + flag[EVENT_LISTS] + flag[REGISTRATION] + flag[SWITCHING] + flag[WAITERS] + flag[KILLERS]
    )
    return pending == 0 and flag[ENDED_N] == flag[SUBMITTED_N]


@kernel
def _sender_goes_on(state, truth, sim, plan, kind, arg):
    """The sender of a handled message takes its next step."""
    if kind == COMMAND:
        sim.flag[NEXT_COMMAND] += 1
        _reply_goes_on(state, sim, plan)
    elif kind in (HELLO, SUBMITTED):
        submitter_goes_on(state, truth, sim, arg)
    elif kind in (EVENTS_HELLO, EVENTS):
        event_list_goes_on(truth, sim, arg)


@kernel
def _reply_goes_on(state, sim, plan):
    """The reply sends its next command, or says that the decision process is ready, or waits until its time."""
    at = sim.flag[NEXT_COMMAND]
    while at < plan.count[0] and plan.kind[at] < 0:  # actions that were merged into the one before
        at += 1
    sim.flag[NEXT_COMMAND] = at
    code = COMMAND + 16 * at if at < plan.count[0] else READY
    time = sim.real[REPLY_NOW]
    if at < plan.count[0]:
        time = sim.command_time[at] if sim.flag[TIMED_COMMANDS] else time
    if time > sim.real[CLOCK]:
        begin_sleep(sim, time - sim.real[CLOCK], REPLY + 16 * code)
    else:
        put(sim, code)


@kernel
def _tell_submissions(state, truth, sim, w):
    for t in range(sim.workload_told[w], sim.workload_at[w]):
        job = transitions.submit(state, truth.size[t], truth.walltime[t], truth.user[t])
        sim.truth_of[job] = t
        sim.flag[SUBMITTED_N] += 1
        log(state, sim, LOG_SUBMITTED, job, 0.0)


@kernel
def _tell_events(state, facts, truth, sim, m):
    for event in range(sim.list_told[m], sim.list_at[m]):
        first = truth.event_host_end[event - 1] if event > 0 else 0
        hosts = truth.event_host[first : truth.event_host_end[event]]
        if truth.event_kind[event] == HOSTS_LEAVE:
            for host in hosts:
                transitions.leave(state, facts, host)
        elif truth.event_kind[event] == HOSTS_COME_BACK:
            if (state.host_state[hosts] != UNAVAILABLE).any():
                sim.flag[BAD_EVENT] = event
                return
            for host in hosts:
                transitions.come_back(state, facts, host)
        log(state, sim, LOG_EVENT, event, 0.0)


@kernel
def tell_end(state, sim, job):
    """The server hears that a job ended."""
    sim.ended[sim.flag[ENDED_N]] = job
    sim.flag[ENDED_N] += 1
    log(state, sim, LOG_COMPLETED, job, 0.0)


@kernel
def _tell_kill(state, sim, request):
    """A kill is over: first the jobs that it really ended, then the request itself."""
    sim.flag[KILLERS] -= 1
    for i in range(sim.kill_begin[request], sim.kill_end[request]):
        if sim.kill_asked[sim.kill_job[i]] == 2:
            tell_end(state, sim, sim.kill_job[i])
    log(state, sim, LOG_KILLED, request, 0.0)


@kernel
def _fire(state, facts, truth, sim, rows):
    """Go on to the next end of an activity and wake who waits for what is over; False where there is none."""
    if not pass_time(state, sim):
        return False
    wake(state, facts, truth, sim, rows)
    return True


@kernel
def _has_room(state, truth, sim, rows, plan):
    """Whether no array can overflow before the next look.

    Until then each command still to come, each activity and each message makes at most one thing of a kind, or the
    two for which there is twice the room; all jobs may be submitted, and all external events happen.
    """
    commands = plan.count[0] - sim.flag[NEXT_COMMAND] + plan.count[1]
    mail = sim.flag[MAIL_TAIL] - sim.flag[MAIL_HEAD]
    more = commands + sim.flag[ACTIVITIES] + sim.flag[BRIEF] + mail + 3 * len(state.host_state) + 64
    logged = 0 if sim.flag[LOG_ASKED] else sim.flag[LOG_N]
    return (
        sim.flag[ACTIVITIES] + more <= len(sim.left)
        and mail + more <= len(sim.mail)
        and logged + more + len(sim.ended) + len(truth.event_time) <= len(sim.log_kind)
        and state.count[N_ENDED] + state.count[N_RUNNING] + commands <= len(state.ended)
        and _rows_have_room(sim, rows, more)
        and _requests_have_room(state, sim, more)
    )


@kernel
def _rows_have_room(sim, rows, more):
    if sim.flag[TRACE_ON] and sim.flag[HOST_ROWS] + more > len(rows.host_time):
        return False
    if sim.flag[ENERGY_ON] == 0:
        return True
    energy, pstates = len(rows.energy_time), len(rows.pstate_time)
    return sim.flag[ENERGY_ROWS] + 2 * more <= energy and sim.flag[PSTATE_ROWS] + 2 * more <= pstates


@kernel
def _requests_have_room(state, sim, more):
    return (
        sim.flag[GROUP_N] + more <= len(sim.group_left)
        and sim.flag[GROUP_INTERVALS] + more <= len(sim.group_first)
        and sim.flag[KILL_N] + more <= len(sim.kill_begin)
        and sim.flag[KILL_JOBS] + more <= len(sim.kill_job)
        and state.count[N_INTERVALS] + more <= len(state.interval_first)
    )
