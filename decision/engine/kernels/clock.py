"""The clock and what it moves: activities, the server's mailbox, and the log of what the next question will say.

An activity is a sleep or a parallel task, with what is left of it. Time goes on to the next end, and everything is
brought up to date by the same subtraction that SimGrid makes: so the clock has SimGrid's rounding errors, and what
ends together there ends together here. Activities that end together do so in the order in which they began. Rejected:
a heap of absolute times; it is hardly faster (a pass over some hundreds of numbers costs less than a tenth of a
microsecond), and its times differ from Batsim's in the last digits, which Batsim's files show where a value is halfway
between two printed ones.
"""

import numpy as np

from decision.compiling.jit import kernel
from decision.compiling.small_kernels import nearest_millionths
from decision.engine.rules import LAST_INSTANT, TIME_PRECISION, WORK_PRECISION
from decision.model.errors import InternalError
from decision.state import transitions

from . import arrays as a
from .network import begin_flow


@kernel
def put(world, code):
    """Put a message into the server's mailbox."""
    sim = world.sim
    tail = sim.mail_tail
    if tail - sim.mail_head >= len(sim.mail):
        raise InternalError("the engine's mailbox has no room for another message")
    sim.mail[tail & (len(sim.mail) - 1)] = code
    sim.mail_tail = tail + 1


@kernel
def put_reply(world, code):
    """Put the reply's first message into the mailbox, before those that came later than it."""
    sim = world.sim
    # The reply comes from outside, once those who were awake with the server have acted to the end: it moves before the
    # messages of later rounds than its own, one by one.
    put(world, code)
    at, mask = sim.mail_tail - 1, len(sim.mail) - 1
    for i in range(at, at - sim.nb_late_mail, -1):
        sim.mail[i & mask], sim.mail[(i - 1) & mask] = sim.mail[(i - 1) & mask], sim.mail[i & mask]
    sim.nb_late_mail = 0


@kernel
def log(world, kind, arg, value):
    """Something happened now that the next question reports."""
    sim = world.sim
    if sim.log_sent:
        sim.log_sent = 0
        sim.nb_logged = 0
    at = sim.nb_logged
    if at >= len(sim.log_kind):
        raise InternalError("the engine's log has no room for another event")
    sim.nb_logged = at + 1
    sim.log_kind[at] = kind
    sim.log_time[at] = world.state.now
    sim.log_arg[at] = arg
    sim.log_value[at] = value


@kernel
def six_decimals(seconds):
    """A time as Batsim writes it into messages, as it does all numbers, and as the state has it."""
    return nearest_millionths(seconds) / 1e6


@kernel
def twelve_decimals(seconds):
    """A time as Batsim 5 writes it into messages: from 8192 s on that is all of it."""
    # From 2^13 s on neighbouring numbers are 1.8e-12 s apart: twelve decimals show each of them.
    whole = np.floor(seconds)
    return seconds if seconds >= 8192.0 else (whole * 1e12 + np.rint((seconds - whole) * 1e12)) / 1e12


@kernel
def whole_milliseconds(seconds):
    """A time rounded up to the millisecond, as calls of Batsim 5 are; 1 ns above one counts as that one."""
    # First to whole nanoseconds, or the rounding error of a sum such as 0.1 + 0.2 would cost a millisecond.
    return np.ceil(np.rint(seconds * 1e9) / 1e6) / 1e3


@kernel
def begin_sleep(world, seconds, code):
    """Let a sleep begin, whose end wakes `code` after `seconds`."""
    _begin(world, seconds, 1.0, code)


@kernel
def begin_task(world, rate, code):
    """Wake `code` when a whole task is done at `rate` (share per second); with nothing to do (inf) at once."""
    _begin(world, 1.0, rate, code)


@kernel
def _begin(world, left, rate, code):
    sim = world.sim
    if sim.nb_activities + sim.nb_instant >= len(sim.actor):  # all may be over at once
        raise InternalError("the engine has no room for another activity")
    # SimGrid ends a sleep below its precision, and a task without work, without letting time pass. Where messages take
    # time the next message is a later instant, so that there these are activities like others.
    brief = rate == np.inf if _is_task(code) else left < TIME_PRECISION
    if brief and not takes_time(world):
        sim.instant[sim.nb_instant] = code
        sim.instant_left[sim.nb_instant] = 0.0 if rate == np.inf else left
        sim.nb_instant += 1
        return
    if rate == np.inf:
        left, rate = 0.0, 1.0
    if _is_task(code):
        sim.nb_tasks += 1
    at = sim.nb_activities
    sim.nb_activities = at + 1
    sim.left[at] = left
    sim.pace[at] = rate
    sim.code[at] = code


@kernel
def takes_time(world):
    """Whether messages to the server take time."""
    return len(world.sim.route_latency) > 0


@kernel
def sender_of(world, code):
    """The host from which a message comes; one past the last host is the master."""
    kind, arg = a.code_kind(code), a.code_arg(code)
    if kind == a.MSG_COMPLETED:
        return world.state.interval_first[world.state.alloc_first[arg]]
    return np.int32(arg) if kind == a.MSG_SWITCHED else np.int32(len(world.state.host_state))


@kernel
def begin_transfer(world):
    """The next message in the mailbox sets off to the server."""
    sim = world.sim
    code = sim.mail[sim.mail_head & (len(sim.mail) - 1)]
    sim.mail_head += 1
    sim.in_transit = 1
    route = sender_of(world, code)
    if sim.route_latency[route] > 0.0:
        begin_sleep(world, sim.route_latency[route], a.pack(a.LATENCY_ENDS, code))
    else:
        begin_task(world, sim.route_rate[route], a.pack(a.MESSAGE_ARRIVES, code))


@kernel
def find(world, code):
    """Index of an activity, -1 where there is none."""
    sim = world.sim
    for at in range(sim.nb_activities):
        if sim.code[at] == code:
            return at
    return -1


@kernel
def is_instant(world, code):
    """Whether this is an activity that takes no time, and has not ended."""
    sim = world.sim
    return (sim.instant[: sim.nb_instant] == code).any()


@kernel
def cancel(world, code):
    """End an activity without waking its actor, also where it is over now."""
    sim = world.sim
    # It is under way, or takes no time, or is over in this instant with an actor that has not acted yet. The last two
    # are marked and not removed: requests are by place in `sim.actor`.
    for i in range(sim.nb_activities):
        if sim.code[i] == code:
            if _is_task(code):
                sim.nb_tasks -= 1
            sim.nb_activities -= 1
            for later in range(i, sim.nb_activities):  # they stay in the order in which they began
                sim.left[later], sim.pace[later] = sim.left[later + 1], sim.pace[later + 1]
                sim.code[later] = sim.code[later + 1]
            break
    for i in range(sim.nb_instant):
        if sim.instant[i] == code:
            sim.instant[i] = a.CANCELLED
    for i in range(sim.nb_actors):
        if sim.actor[i] == code:
            sim.actor[i] = a.CANCELLED


@kernel
def _is_task(code):
    kind = a.code_kind(code)
    return kind in (a.TASK_ENDS, a.SWITCH_ENDS, a.MESSAGE_ARRIVES, a.OVERRUN_ENDS)


@kernel
def pass_to_next_end(world):
    """Go on to the next end; whose activities are over is in `sim.actor`, in order.

    False where nothing takes time, and where the end is after `LAST_INSTANT`.
    """
    sim = world.sim
    if sim.nb_activities + sim.nb_instant == 0:
        return False
    seconds = _next_end(world)
    # An instant activity leaves the clock where it is.
    if seconds > 0.0:
        sim.now += seconds
        if sim.now > LAST_INSTANT:
            return False
        # The state has the time that messages say; the engine's own has all digits, or errors would add up.
        transitions.tick(world.state, six_decimals(sim.now))
        left, pace, count = sim.left, sim.pace, sim.nb_activities
        if sim.nb_tasks == 0:
            for i in range(count):
                left[i] -= seconds
        else:
            for i in range(count):
                left[i] -= pace[i] * seconds
    _wake_actors(world)
    return True


@kernel
def _next_end(world):
    """Seconds to the next end. Where there are only sleeps, which is most often, nothing is divided by its pace."""
    sim, seconds, count = world.sim, np.inf, world.sim.nb_activities
    for i in range(sim.nb_instant):
        seconds = min(seconds, sim.instant_left[i])
    if seconds == 0.0:
        return 0.0
    if sim.nb_tasks == 0:
        for i in range(count):
            seconds = min(seconds, sim.left[i])
    else:
        for i in range(count):
            seconds = min(seconds, sim.left[i] / sim.pace[i])
    return seconds


@kernel
def _wake_actors(world):
    """Move what is over from the activities to `sim.actor`, keeping the order of both; then the instant ones."""
    sim, left, awake = world.sim, 0, 0
    for i in range(sim.nb_activities):
        # The wider of SimGrid's two precisions first: it rules out nearly all with one comparison.
        if sim.left[i] < TIME_PRECISION and _is_over(world, i):
            if _is_task(sim.code[i]):
                sim.nb_tasks -= 1
            sim.actor[awake] = sim.code[i]
            awake += 1
        else:
            if left < i:
                sim.left[left], sim.pace[left], sim.code[left] = sim.left[i], sim.pace[i], sim.code[i]
            left += 1
    sim.nb_activities = left
    for i in range(sim.nb_instant):
        sim.actor[awake + i] = sim.instant[i]
    sim.nb_actors = awake + sim.nb_instant
    sim.nb_instant = 0


@kernel
def _is_over(world, at):
    """Whether an activity with next to nothing left is over. What follows a latency takes its
    place: a message's byte, or a task that communicates."""
    sim, code = world.sim, world.sim.code[at]
    # A task's precision is a share of its work, a sleep's is in seconds.
    if sim.left[at] >= WORK_PRECISION and _is_task(code):
        return False
    if a.code_kind(code) == a.FLOW_BEGINS:
        job = a.code_arg(code)
        begin_flow(world, job)
        # A job that reached its walltime meanwhile goes on until the server knows that.
        sim.left[at], sim.pace[at] = 1.0, 0.0
        sim.code[at] = a.pack(a.OVERRUN_ENDS if sim.over[job] else a.TASK_ENDS, job)
        sim.nb_tasks += 1
        return False
    if a.code_kind(code) != a.LATENCY_ENDS:
        return True
    # A message waits for its route's latency, then for its byte; a link without a limit passes that at once.
    message = a.code_arg(code)
    rate = sim.route_rate[sender_of(world, message)]
    sim.left[at], sim.pace[at], sim.code[at] = 1.0, rate, a.pack(a.MESSAGE_ARRIVES, message)
    sim.nb_tasks += 1
    return rate == np.inf


@kernel
def end_instant(world, tasks):
    """End the instant tasks and their limits, or the instant sleeps; no time passes.

    The next message to the server ends both, but sleepers act before the server handles it, and tasks after that.
    """
    sim, left, awake = world.sim, 0, 0
    for i in range(sim.nb_instant):
        code = sim.instant[i]
        if (a.code_kind(code) in (a.TASK_ENDS, a.WALLTIME_ENDS)) == tasks:
            sim.actor[awake] = code
            awake += 1
        else:
            sim.instant[left], sim.instant_left[left] = code, sim.instant_left[i]
            left += 1
    sim.nb_actors = awake
    sim.nb_instant = left
