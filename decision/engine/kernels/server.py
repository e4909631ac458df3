"""Batsim's server: time passes, messages wait in one mailbox, questions go out when it is empty.

This is Batsim 4's own order of events, as its actors act it. Activities that end together do so in the order in which
they began, and each puts a message into the mailbox (`rounds` says when). The server handles one message at a time; the
sender goes on only then (a submitter's next message follows its last, the next command of a reply its predecessor), and
what a command starts begins after that. When the mailbox is empty and the decision process waits, everything that was
logged becomes one question.
"""

import numpy as np

from decision.compiling.bundle import begin_again
from decision.compiling.entry import Interface
from decision.compiling.jit import inlined, kernel, without_vectors
from decision.state import transitions
from decision.state.cluster import COMPUTING, IDLE, UNAVAILABLE
from decision.state.plan_arrays import KILL, SET_PSTATE

from . import arrays as a
from .clock import begin_sleep, begin_transfer, end_instant, log, pass_to_next_end, put, six_decimals, takes_time
from .commands import (
    begin_command,
    handle_command,
    is_possible,
    note_end,
    queue_rests,
    register_rests,
    report_switched,
    take_suspensions,
)
from .energy import begin_energy, enter
from .jobs import load_hosts, share_network
from .network import IS_COMPUTED_ON, ask_flows
from .rounds import (
    continue_reply,
    continue_sender,
    first_round,
    next_round,
    other_rounds,
    round_of_reply,
    rounds_of_killer,
    run_rounds,
    settle,
    wake,
)

NOT_OVER = -1  # of a step within `advance`: it is not over
# Operations of `engine`
BEGIN_RUN, REPLY, ADVANCE, CARRY_OUT, COUNT_JOBS = range(5)

ENGINE = Interface(int, *a.WORLD, int, float)
_call_engine = ENGINE.caller()

ROUNDS_BEFORE_REPLY = 2  # from that in which a message was handled to that in which the reply's first message comes


# --- As a root -----------------------------------------------------------------------------------------------------


@ENGINE.entry
@without_vectors
def engine(state, facts, truth, sim, rows, plan, operation, now):
    """What is asked of the engine from outside: BEGIN_RUN, REPLY (`load_reply`), ADVANCE, CARRY_OUT, which is both, or
    COUNT_JOBS (`jobs_to_come`)."""
    world = a.World(state, facts, truth, sim, rows, plan)
    if operation == BEGIN_RUN:
        begin_world(world)
        return 0
    if operation == COUNT_JOBS:
        return jobs_to_come(world)
    # REPLY and CARRY_OUT load the plan; only the second goes on at once, which saves a call for each decision.
    if operation != ADVANCE:
        loaded = load_reply(world, now)
        if operation == REPLY:
            return 1 if loaded else 0
        if not loaded:
            return a.UNCARRIED
    return advance(world)


@kernel
def ask_engine(world, operation, now):
    """As `engine`, whose address is in `Sim.root`."""
    given = (world.state, world.facts, world.truth, world.sim, world.rows, world.plan, operation, now)
    return _call_engine(world.sim.root, given)


@kernel
def begin_world(world):
    """Time 0: submitters and event lists say hello, and the first question is ready."""
    truth = world.truth
    begin_energy(world)
    world.sim.nb_submitters = len(truth.workload_end)
    world.sim.nb_event_lists = len(truth.list_end)
    # Batsim starts its submitters before the server asks its first question: their messages wait in the mailbox.
    for w in range(len(truth.workload_end)):
        put(world, a.pack(a.MSG_HELLO, w))
    for m in range(len(truth.list_end)):
        put(world, a.pack(a.MSG_EVENTS_HELLO, m))
    log(world, a.LOG_BEGINS, 0, 0.0)
    world.sim.log_sent = 1


@kernel
def rewind(world, pstates, energy, first, last, clock):
    """An idle cluster at `clock` seconds, to which jobs `first` <= t < `last` of the truth's only workload will come.

    Hosts are in the pstates (H,); `energy` is whether energy is simulated. Of the truth's only list of external events,
    which may be empty, come the last one that is over by then, and those after it. The same arrays simulate another
    run, and nothing is allocated. For runs without traces, and without jobs that the decision process registers. The
    first question is open then.
    """
    sim = world.sim
    # `begin_again` sets all numbers to what they were at first, and these are the run's own.
    network, flows, root, restart, every = sim.network, sim.flows, sim.root, sim.restart, sim.checkpoint_every
    # Arrays by job are written before they are read again, but for these two: no job was killed, none is a rest.
    for i in range(sim.nb_kill_jobs):
        sim.kill_state[sim.kill_job[i]] = a.NOT_KILLED
    if sim.nb_rests > 0:
        sim.rest[: world.state.nb_jobs] = 0.0
    transitions.reset(world.state, world.facts, pstates, six_decimals(clock))
    begin_again(sim)
    sim.network, sim.flows, sim.root, sim.restart, sim.checkpoint_every = network, flows, root, restart, every
    sim.energy_on = energy
    sim.switches_on = energy
    sim.policy_watches = 1
    sim.host_state[:] = IDLE
    sim.host_since[:] = clock
    sim.in_state[:] = 0
    sim.in_state[IDLE] = len(sim.host_state)
    sim.host_joules[:] = 0.0
    sim.host_watts[:] = 0.0
    sim.first_watts[:] = -1.0
    sim.host_joules_at[:] = clock
    sim.switch[:] = -1
    sim.now = clock
    sim.workload_at[0] = first
    sim.workload_sent[0] = first
    world.truth.workload_end[0] = last
    # The last event that is over tells how much power there is at `clock`.
    if len(sim.list_at) > 0:
        sim.list_at[0] = max(np.searchsorted(world.truth.event_time, clock, side="right") - 1, 0)
        sim.list_sent[0] = sim.list_at[0]
    ask_engine(world, BEGIN_RUN, clock)


@kernel
def load_reply(world, now):
    """Take the decision's commands, which are in the plan, to be carried out by `advance`.

    `now` is the reply's own time, in seconds. False where arrays must grow first.
    """
    sim = world.sim
    transitions.take_ends(world.state)
    sim.next_command = 0
    if sim.policy_watches:
        take_suspensions(world)
    if not _has_room(world):
        return False
    if sim.nb_unregistered:
        register_rests(world)
    sim.reply_now = now
    continue_reply(world)
    return True


@kernel
def advance(world):
    """Go on until the decision process must be asked (ASK), all is over (DONE), nothing can happen any more
    (DEADLOCK), arrays must grow first (GROW), or a command is impossible (BAD_COMMAND; which,
    `Sim.refused_command` says).

    The plan holds the commands of the reply that is being carried out.
    """
    if takes_time(world):
        return _advance_over_network(world)
    sim = world.sim
    while True:
        # The server takes what is in its mailbox, and the rest of the world stands still.
        while sim.mail_head < sim.mail_tail:
            if sim.rates_changed and not share_network(world):
                return a.GROW
            code = sim.mail[sim.mail_head & (len(sim.mail) - 1)]
            sim.mail_head += 1
            result = _take_at_once(world, code)
            if result != NOT_OVER:
                return result
        sim.mail_head = sim.mail_tail = 0  # the next message takes the memory of the first
        # The mailbox is empty, and time may pass. Here, between two instants, arrays may grow: no kernel below stops in
        # the middle.
        if not _has_room(world) or (sim.rates_changed and not share_network(world)):
            return a.GROW
        load_hosts(world)
        if not pass_to_next_end(world):
            return a.DEADLOCK
        run_rounds(world)


@kernel
def _advance_over_network(world):
    """`advance` where messages take time: the server takes one after the other."""
    sim = world.sim
    while True:
        # One message at a time is on its way: the server asks for the next only when it has handled the last.
        if sim.in_transit == 0 and sim.mail_head < sim.mail_tail:
            begin_transfer(world)
        if not _has_room(world) or (sim.rates_changed and not share_network(world)):
            return a.GROW
        load_hosts(world)
        if not pass_to_next_end(world):
            return a.DEADLOCK
        # Is the message there? Those before it act before the server does, those after it with what it starts.
        at = 0
        while at < sim.nb_actors and a.code_kind(sim.actor[at]) != a.MESSAGE_ARRIVES:
            at += 1
        if at == sim.nb_actors:
            run_rounds(world)
            continue
        sim.in_transit = 0
        result = _take_on_arrival(world, at)
        if result != NOT_OVER:
            return result


@inlined
def _take_at_once(world, code):
    """The server takes a message that took no time; returns a code of `advance`, or NOT_OVER.

    What takes no time either ends with it: sleepers act before the server does, tasks after it, unless the server first
    takes rounds to measure hosts, in which they act, too.
    """
    kind, arg = a.code_kind(code), a.code_arg(code)
    if not _is_possible(world, kind, arg):
        return a.BAD_COMMAND
    load_hosts(world)
    # What takes no time ends with this message: first the sleepers.
    instant, slow, awake, tail = world.sim.nb_instant > 0, False, False, world.sim.mail_tail
    if instant:
        end_instant(world, False)
        run_rounds(world)
        slow = _measures_first(world, kind, arg)
        if slow:
            tail = world.sim.mail_tail
            end_instant(world, True)
            awake = first_round(world)
    # The server's turn, and then its sender's.
    result = _handle(world, kind, arg)
    if result != NOT_OVER:
        return result
    must_ask = _must_ask(world, tail)
    continue_sender(world, kind, arg)
    # And the tasks that take no time, which end after the server has acted.
    if instant and not slow:
        end_instant(world, True)
        awake = first_round(world)
    return _go_on(world, kind, arg, 0, awake, must_ask)


@kernel
def _take_on_arrival(world, at):
    """The server takes actor `at`'s message, and all who are awake act, its sender among them; returns as above."""
    sim = world.sim
    code = a.code_arg(sim.actor[at])
    kind, arg = a.code_kind(code), a.code_arg(code)
    if not _is_possible(world, kind, arg):
        return a.BAD_COMMAND
    tail = sim.mail_tail
    settle(world)
    slow = _measures_first(world, kind, arg)
    awake = wake(world, 0, sim.nb_actors if slow else at)
    if slow:  # sleepers other than jobs have sent their messages by then, and jobs have written down that they ended
        awake = awake and next_round(world)
        tail = sim.mail_tail
        other_rounds(world, awake)
        awake = False
    # The server's turn.
    result = _handle(world, kind, arg)
    if result != NOT_OVER:
        return result
    must_ask = _must_ask(world, tail)
    if not slow:
        awake = wake(world, at, sim.nb_actors) or awake
    return _go_on(world, kind, arg, at, awake, must_ask)


@inlined
def _go_on(world, kind, arg, at, awake, must_ask):
    """The rounds after a message was handled, and what its command sets going; actor `at` is the first after the
    server."""
    # The killer ends its jobs in rounds of its own, in which the others who are awake go on.
    if kind == a.MSG_COMMAND and world.plan.kind[arg] == KILL:
        awake = rounds_of_killer(world, at)
    tail = world.sim.mail_tail
    if must_ask and awake:  # a message that takes more rounds than the reply comes after it
        for _ in range(ROUNDS_BEFORE_REPLY):
            awake = awake and next_round(world)
        awake, tail = round_of_reply(world, at)
    other_rounds(world, awake)
    if kind == a.MSG_COMMAND:
        begin_command(world, arg)
    if not must_ask:
        return NOT_OVER
    # What was put since the reply's round came after it.
    world.sim.nb_late_mail = world.sim.mail_tail - tail
    world.sim.decision_waits = 0
    world.sim.log_sent = 1
    return a.ASK


@kernel
def _is_possible(world, kind, arg):
    """Whether a message is none of an impossible command; `Sim.refused_command` says which."""
    if kind == a.MSG_COMMAND and not is_possible(world, arg):
        world.sim.refused_command = arg
        return False
    return True


@kernel
def _measures_first(world, kind, arg):
    """Whether the server measures hosts, which takes it some rounds, before a message of switches changes anything."""
    sim = world.sim
    done = kind == a.MSG_SWITCHED and sim.switch_left[sim.switch[arg]] == 1
    asked = kind == a.MSG_COMMAND and world.plan.kind[arg] == SET_PSTATE
    # Batsim writes a row of energy before it changes a pstate, and a row takes a round for each host that is not up to
    # date.
    return sim.energy_on == 1 and (done or asked) and (sim.host_joules_at < sim.now).any()


@inlined
def _handle(world, kind, arg):
    """The server handles one message; returns NOT_OVER, or why the simulation stops."""
    is_over = False
    if kind == a.MSG_COMMAND:
        handle_command(world, arg)
    elif kind == a.MSG_READY:
        world.sim.decision_waits = 1
        is_over = world.sim.ends_sent != 0
    elif kind == a.MSG_COMPLETED:
        _report_end(world, arg)
    elif kind == a.MSG_SUBMITTED:
        _report_submissions(world, arg)
    elif kind == a.MSG_BYE:
        world.sim.nb_submitters -= 1
        _log_last(world, world.sim.nb_submitters, a.LOG_NO_MORE_JOBS)
    elif kind == a.MSG_CALL:
        sim = world.sim
        sim.nb_calls -= 1
        log(world, a.LOG_CALLED, arg, 0.0)
        # Batsim 5's periodic clock waits for its next stroke, before the answer to this one.
        if arg == sim.stroke and sim.next_stroke_time > sim.now:
            sim.nb_calls += 1
            begin_sleep(world, sim.next_stroke_time - sim.now, a.pack(a.CALL_IS_DUE, sim.next_stroke))
    elif kind == a.MSG_SWITCHED:
        world.sim.nb_switching -= 1
        report_switched(world, arg)
    elif kind == a.MSG_KILLED:
        # First the jobs that it really ended, then the request itself.
        world.sim.nb_killers -= 1
        for i in range(world.sim.kill_begin[arg], world.sim.kill_end[arg]):
            if world.sim.kill_state[world.sim.kill_job[i]] == a.KILL_DONE:
                _report_end(world, world.sim.kill_job[i])
        if world.sim.nb_suspending:
            queue_rests(world, arg)
        log(world, a.LOG_KILLED, arg, 0.0)
    elif kind == a.MSG_EVENTS:
        _report_events(world, arg)
    elif kind == a.MSG_EVENTS_BYE:
        world.sim.nb_event_lists -= 1
        _log_last(world, world.sim.nb_event_lists, a.LOG_NO_MORE_EVENTS)
    return a.DONE if is_over else NOT_OVER


@kernel
def _log_last(world, senders, line):
    """There is one sender fewer, so many are left; after the last one this is logged."""
    if senders == 0:
        log(world, line, 0, 0.0)


@kernel
def _must_ask(world, tail):
    """Whether a question goes out now, with messages up to `tail`; SIMULATION_ENDS is logged where all is over."""
    sim = world.sim
    if sim.decision_waits == 0 or sim.mail_head < tail:
        return False
    if sim.log_sent == 0:
        return True
    # All is over where nothing can happen any more and nothing is owed.
    pending = sim.nb_submitters + sim.nb_event_lists + sim.registration_open
    pending += sim.nb_switching + sim.nb_calls + sim.nb_killers
    if sim.ends_sent or pending > 0 or sim.nb_finished != sim.nb_submitted:
        return False
    log(world, a.LOG_ENDS, 0, 0.0)
    sim.ends_sent = 1
    return True


@kernel
def _report_submissions(world, w):
    state, sim, truth = world.state, world.sim, world.truth
    for t in range(sim.workload_sent[w], sim.workload_at[w]):
        # As a message says it: a policy may not know more digits than under Batsim.
        walltime = six_decimals(truth.walltime[t])
        job = transitions.submit(state, truth.size[t], walltime, truth.user[t], truth.estimate[t])
        sim.truth_of[job] = t
        if len(truth.worth):
            worth = truth.worth[t]
            transitions.appraise(state, job, worth[0], worth[1], worth[2], worth[3])
        sim.nb_submitted += 1
        log(world, a.LOG_SUBMITTED, job, 0.0)


@kernel
def _report_events(world, m):
    state, sim, truth = world.state, world.sim, world.truth
    for event in range(sim.list_sent[m], sim.list_at[m]):
        first = truth.event_host_end[event - 1] if event > 0 else 0
        hosts = truth.event_host[first : truth.event_host_end[event]]
        if truth.event_kind[event] == a.HOSTS_LEAVE:
            for host in hosts:
                enter(world, host, UNAVAILABLE)
                transitions.leave(state, world.facts, host)
        elif truth.event_kind[event] == a.HOSTS_COME_BACK:
            for host in hosts:
                # It switched while it was away: Batsim 4.2.1 ends itself here. The run goes on, and its end warns of
                # it.
                if sim.host_state[host] != UNAVAILABLE and sim.changed_away == 0:
                    sim.changed_away, sim.changed_away_at = host + 1, sim.now
                # A job that ran on a host that left went on; it may have ended by now.
                enter(world, host, COMPUTING if _computes(world, host) else IDLE)
                transitions.come_back(state, world.facts, host)
        elif truth.event_kind[event] == a.SUPPLY_CHANGES and sim.policy_watches:
            transitions.set_supply(state, hosts[0], hosts[1:])
        log(world, a.LOG_EVENT, event, 0.0)


@kernel
def _computes(world, host):
    """Whether a job has the host, and is not over."""
    if world.state.shares:
        return ask_flows(world, IS_COMPUTED_ON, host, 0) > 0.0
    job = world.state.host_job[host]
    return job >= 0 and world.sim.over[job] == 0


@kernel
def _report_end(world, job):
    """The server hears that a job ended."""
    if world.sim.policy_watches:
        transitions.end(world.state, world.facts, job, world.sim.over[job] - 1)
    note_end(world, job)
    log(world, a.LOG_COMPLETED, job, 0.0)


@kernel
def _has_room(world):
    """Whether no array can overflow before this is asked again.

    Until then each command still to come, each activity and each message makes at most one thing of a kind, or the
    two for which there is twice the room; all jobs may be submitted, and all external events happen.
    """
    state, sim, rows = world.state, world.sim, world.rows
    commands = world.plan.nb_actions - sim.next_command + world.plan.nb_intervals
    mail = sim.mail_tail - sim.mail_head
    # Generous on purpose: an array that grows early costs memory, one that overflows ends the run.
    more = commands + sim.nb_activities + sim.nb_instant + mail + 3 * len(state.host_state) + 64
    logged = 0 if sim.log_sent else sim.nb_logged
    if sim.nb_suspending and jobs_to_come(world) > len(state.size):
        return False
    return (
        sim.nb_activities + more <= len(sim.left)
        and mail + more <= len(sim.mail)
        and logged + more + len(sim.finished) + len(world.truth.event_time) <= len(sim.log_kind)
        and state.nb_ended + state.nb_running + commands <= len(state.ended)
        and (sim.trace_on == 0 or sim.nb_host_rows + more <= len(rows.host_time))
        and (sim.energy_on == 0 or sim.nb_energy_rows + 2 * more <= len(rows.energy_time))
        and (sim.switches_on == 0 or sim.nb_pstate_rows + 2 * more <= len(rows.pstate_time))
        and sim.nb_switches + more <= len(sim.switch_left)
        and sim.nb_switch_intervals + more <= len(sim.switch_first)
        and sim.nb_kills + more <= len(sim.kill_begin)
        and sim.nb_kill_jobs + more <= len(sim.kill_job)
        and state.nb_intervals + more <= len(state.interval_first)
    )


@kernel
def jobs_to_come(world):
    """How many jobs the state will have at most, if none is suspended that is not being suspended now."""
    sim, truth = world.sim, world.truth
    jobs = world.state.nb_jobs + sim.nb_suspending
    for w in range(len(truth.workload_end)):
        jobs += truth.workload_end[w] - sim.workload_sent[w]
    return jobs
