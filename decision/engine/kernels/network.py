"""Tasks that communicate or share hosts: what they need of links and hosts, and at what rate they get it.

A task that communicates waits for the longest latency that its bytes meet (`SUM_LATENCY`). Then it is a *flow*: its
*parts* are what it needs of each link, and each executor of its host (`NOTE_PARTS`), and all flows have new rates
whenever one begins or ends, or a host changes its speed (`SET_RATES`). A task that computes only is a flow where jobs
share hosts, or where several of its executors are on one host; else it has its hosts to itself, and needs none of this.
`decision.engine.reference.machines` is the same to be read.
"""

from decision.compiling.bundle import bundle_at
from decision.compiling.entry import Interface
from decision.compiling.jit import kernel
from decision.engine.rules import SHARE_PRECISION, TCP_WINDOW, TIME_PRECISION
from decision.model.errors import InternalError
from decision.state import transitions
from decision.state.cluster import COMPUTING, IDLE

from . import arrays as a
from .energy import enter, put_load
from .links import LinkState, find_way, top_of_way

LARGEST_RATE = 1.7976931348623157e308  # a rate without a limit
# Rounds in a row in which no flow stops to rise: rounding makes one now and then, an error of ours would make all.
_MOST_IDLE = 1000
# Slots of a flow that are compared with a new one. A bound, since to compare with all takes the square of the hosts.
_LOOK_BACK = 32
_RISES, _STOPS, _FROZEN = range(3)  # of flow_frozen; STOPS since this round

_network_at = bundle_at(LinkState)

# Operations of `flows`
SUM_LATENCY, NOTE_SPEEDS, NOTE_PARTS, SET_RATES, ENTER_SHARED, LEAVE_SHARED, LOAD_SHARED, IS_COMPUTED_ON = range(8)

_FLOWS = Interface(float, *a.WORLD, int, int, int)
_call_flows = _FLOWS.caller()


@kernel
def network_of(world):
    """The links of a world, and what goes through them."""
    return _network_at(world.sim.network)


@kernel
def sends(world, leaf, hosts):
    """Whether a job on so many hosts communicates in this leaf."""
    truth = world.truth
    return truth.leaf_bytes[leaf] > 0.0 and (hosts > 1 or truth.leaf_kind[leaf] >= a.FLOPS_VECTOR)


@kernel
def shares_hosts(world, leaf):
    """Whether the executors of a task that computes may be on hosts with others, be they its own."""
    return world.state.shares == 1 or world.truth.leaf_kind[leaf] == a.FLOPS_EXECUTORS


@kernel
def nb_executors(truth, leaf, hosts):
    """How many executors a job on so many hosts has."""
    if truth.leaf_kind[leaf] != a.FLOPS_EXECUTORS:
        return hosts
    return int(truth.vector[truth.leaf_vector[leaf] + hosts])


@kernel
def host_place_of(truth, leaf, hosts, executor):
    """Which of the job's hosts an executor is on."""
    if truth.leaf_kind[leaf] != a.FLOPS_EXECUTORS:
        return executor
    return int(truth.vector[truth.leaf_vector[leaf] + hosts + 1 + 2 * executor])


@kernel
def _flops_of_executor(truth, leaf, hosts, executor):
    if truth.leaf_kind[leaf] != a.FLOPS_EXECUTORS:
        return flops_of(truth, leaf, hosts, executor)
    return truth.vector[truth.leaf_vector[leaf] + hosts + 2 + 2 * executor]


@kernel
def bytes_between(truth, leaf, hosts, i, j):
    """Bytes that host i of a job sends to host j."""
    kind = truth.leaf_kind[leaf]
    if kind >= a.FLOPS_VECTOR:
        return truth.matrix[truth.leaf_matrix[leaf] + i * hosts + j]
    if i == j:
        return 0.0
    return truth.leaf_bytes[leaf] / hosts if kind == a.FLOPS_TOTAL else truth.leaf_bytes[leaf]


@kernel
def flops_of(truth, leaf, hosts, i):
    """Flop that host i of a job computes."""
    kind = truth.leaf_kind[leaf]
    if kind >= a.FLOPS_VECTOR:
        return truth.vector[truth.leaf_vector[leaf] + i]
    return truth.leaf_amount[leaf] / hosts if kind == a.FLOPS_TOTAL else truth.leaf_amount[leaf]


@kernel
def _list_hosts(world, job):
    """Put the job's hosts into `network.hosts`; returns how many they are."""
    state, hosts, count = world.state, network_of(world).hosts, 0
    begin = state.alloc_first[job]
    for i in range(begin, begin + state.alloc_count[job]):
        for host in range(state.interval_first[i], state.interval_last[i] + 1):
            hosts[count] = host
            count += 1
    return count


@kernel
def _latency_of(world, job, leaf):
    """Seconds before the job's bytes flow: the longest latency of a way that any take; 0 if too short to wait for."""
    network, truth = network_of(world), world.truth
    count, top = _list_hosts(world, job), 0
    if truth.leaf_kind[leaf] >= a.FLOPS_VECTOR:
        for i in range(count):
            for j in range(count):
                if bytes_between(truth, leaf, count, i, j) > 0.0:
                    top = max(top, top_of_way(network, network.hosts[i], network.hosts[j]))
    else:
        # Every pair communicates, so the longest way is between subtrees; from the first host's own, some way leaves
        # it.
        for i in range(1, count):  # two subtrees that are not one part from the first host's on some way
            top = max(top, top_of_way(network, network.hosts[0], network.hosts[i]))
    # Below its precision SimGrid begins the flow without waiting.
    latency = network.latency[top]
    return latency if latency >= TIME_PRECISION else 0.0


@kernel
def begin_flow(world, job):
    """The job's task takes its share of links from now on."""
    network = network_of(world)
    at = network.nb_flows
    if at + 1 >= len(network.flow_job):
        raise InternalError("the engine has no room for another task that communicates")
    network.nb_flows = at + 1
    world.sim.rates_changed = 1
    network.flow_job[at] = job
    # What it needs is noted when rates are set: it may end before that.
    network.flow_first[at] = network.flow_end[at] = -1


@kernel
def end_flow(world, job):
    """The job's task, if it is a flow, leaves its links to others."""
    at = _find_flow(world, job)
    if at < 0:
        return
    network = network_of(world)
    first, end = network.flow_first[at], network.flow_end[at]
    # Links have a user less, and the parts and flows after it move up, so that both stay in the order in which they
    # began.
    for part in range(first, end):
        network.users[network.part_link[part]] -= 1
    for part in range(end, network.nb_parts if end > first else end):
        to = part - (end - first)
        network.part_link[to] = network.part_link[part]
        network.part_width[to] = network.part_width[part]
        network.part_amount[to] = network.part_amount[part]
    network.nb_parts -= end - first
    network.nb_flows -= 1
    world.sim.rates_changed = 1
    for flow in range(at, network.nb_flows):
        known = network.flow_first[flow + 1] >= 0
        network.flow_job[flow] = network.flow_job[flow + 1]
        network.flow_first[flow] = network.flow_first[flow + 1] - (end - first if known else 0)
        network.flow_end[flow] = network.flow_end[flow + 1] - (end - first if known else 0)
        network.flow_limit[flow] = network.flow_limit[flow + 1]


@kernel
def _find_flow(world, job):
    network = network_of(world)
    for flow in range(network.nb_flows):
        if network.flow_job[flow] == job:
            return flow
    return -1


@kernel
def is_flow(world, job):
    """Whether the job's task takes its share of links now."""
    return _find_flow(world, job) >= 0


@kernel
def _note_speeds(world, job, leaf):
    """A host of a flow has changed its speed."""
    network, flow = network_of(world), _find_flow(world, job)
    world.sim.rates_changed = 1
    # Its parts are still to be noted, and that reads the new speeds.
    if network.flow_first[flow] < 0:
        return
    truth, hosts, part = world.truth, _list_hosts(world, job), network.flow_first[flow]
    # A flow's executors are its first parts, as `_note_parts` lists them.
    for i in range(nb_executors(truth, leaf, hosts)):
        if _flops_of_executor(truth, leaf, hosts, i) > 0.0:
            network.part_width[part] = _width(world, host_place_of(truth, leaf, hosts, i))
            part += 1
    network.flow_limit[flow] = _limit(world, leaf, hosts)


@kernel
def _speed(world, i):
    """Flop/s of host number i of those listed."""
    host = network_of(world).hosts[i]
    return world.facts.speed[host, world.state.pstate[host]]


@kernel
def _width(world, i):
    """Flop/s of all cores of host number i of those listed."""
    return world.facts.cores[network_of(world).hosts[i]] * _speed(world, i)


@kernel
def _limit(world, leaf, hosts):
    """Share per second that the listed hosts have at most, by their speeds and by TCP's window over latencies."""
    network, truth, delay, limit = network_of(world), world.truth, 0.0, LARGEST_RATE
    if not sends(world, leaf, hosts):
        pass
    elif truth.leaf_kind[leaf] >= a.FLOPS_VECTOR:
        most = hosts**2 if truth.leaf_kind[leaf] == a.FLOPS_EXECUTORS else 0
        for i in range(hosts):
            for j in range(hosts):
                sent = truth.matrix[truth.leaf_matrix[leaf] + most + i * hosts + j]
                if sent > 0.0:
                    top = top_of_way(network, network.hosts[i], network.hosts[j])
                    delay = max(delay, network.latency[top] * sent)
    else:
        for i in range(1, hosts):
            top = top_of_way(network, network.hosts[0], network.hosts[i])
            delay = max(delay, network.latency[top] * bytes_between(truth, leaf, hosts, 0, i))
    # SimGrid bounds a flow by the window over twice the latency, weighted by what the pair sends.
    if delay > 0.0:
        limit = TCP_WINDOW / (2.0 * delay)
    # An executor has one core at most.
    for i in range(nb_executors(truth, leaf, hosts)):
        flops = _flops_of_executor(truth, leaf, hosts, i)
        if flops > 0.0:
            limit = min(limit, _speed(world, host_place_of(truth, leaf, hosts, i)) / flops)
    return limit if limit < LARGEST_RATE else -1.0


@kernel
def _note_parts(world, flow, leaf):
    """List what a flow needs of hosts and links. False where arrays must grow first."""
    network, truth = network_of(world), world.truth
    hosts = _list_hosts(world, network.flow_job[flow])
    touched = _count_bytes(world, leaf, hosts) if sends(world, leaf, hosts) else 0
    executors = nb_executors(truth, leaf, hosts)
    # Where they do not fit, `amount` is cleared all the same, and the caller asks again with longer arrays.
    fits = network.nb_parts + executors + touched <= len(network.part_link)
    part = network.nb_parts
    network.flow_first[flow] = part if fits else -1
    if fits:
        for i in range(executors):
            flops = _flops_of_executor(truth, leaf, hosts, i)
            if flops > 0.0:
                place = host_place_of(truth, leaf, hosts, i)
                link = len(network.bandwidth) + network.hosts[place]
                network.part_link[part] = link
                network.part_width[part] = _width(world, place)
                network.part_amount[part] = flops
                network.users[link] += 1
                part += 1
    for i in range(touched):
        link = network.touched[i]
        if fits:
            network.part_link[part] = link
            network.part_width[part] = network.bandwidth[link]
            network.part_amount[part] = network.amount[link]
            network.users[link] += 1
            part += 1
        network.amount[link] = 0.0
    network.flow_end[flow] = part if fits else -1
    network.flow_limit[flow] = _limit(world, leaf, hosts)
    network.nb_parts = part
    return fits


@kernel
def _count_bytes(world, leaf, hosts):
    """Add up in `amount` what goes through each link, pair after pair; returns how many links are `touched`."""
    network, truth, touched = network_of(world), world.truth, 0
    for i in range(hosts):
        for j in range(hosts):
            sent = bytes_between(truth, leaf, hosts, i, j)
            if sent > 0.0:
                for k in range(find_way(network, network.hosts[i], network.hosts[j])):
                    link = network.way[k]
                    # The first bytes on this link: it is listed once.
                    if network.amount[link] == 0.0:
                        network.touched[touched] = link
                        touched += 1
                    network.amount[link] += sent
    return touched


# --- The rates that links and hosts let flows have -------------------------------------------------------------------
#
# They are those of SimGrid 3.32's model L07 with its solver "fair bottleneck", to the last bit, because the solver
# calls a link full once it has less than 1e-5 bytes/s left: where several links fill up at once, rounding decides which
# ones do. So what is left of a link is counted down by one flow after the other, the latest first, as in SimGrid.
#
# In each round every flow rises by what the tightest of its links and hosts has for it, and each link loses what its
# flows rose. The flows of a full link rise no more; but links lose their last rise again in every round that follows.
# That is SimGrid's own rule, and without it run times differ by up to 12 %.
#
# Links and hosts that a single flow uses all go the same way where they are equally wide and the flow needs as much
# of each: they are one slot. Where several executors of a flow are on one host it counts as often.


@kernel
def set_rates(network):
    """The rates of all flows, from links and hosts."""
    flows, slots = network.nb_flows, _fill_slots(network)
    for flow in range(flows):
        network.flow_rate[flow] = 0.0
        network.flow_frozen[flow] = _RISES
    rising, idle = flows, 0
    # Water filling: all rise together until a link or host is full, and those that use it stay where they are.
    while rising > 0:
        _raise(network, slots)
        _use_up(network)
        frozen = _freeze(network)
        idle = 0 if frozen > 0 else idle + 1  # rounding can leave a little of a slot to the next round
        if idle > _MOST_IDLE:
            raise InternalError("flows rise for ever")
        rising -= frozen


@kernel
def _fill_slots(network):
    """One slot for each link of several flows, and for those of one flow that are equal; returns how many."""
    slots, entry = 0, 0
    for flow in range(network.nb_flows):
        network.flow_slot[flow] = entry
        first = slots
        for part in range(network.flow_first[flow], network.flow_end[flow]):
            link, width, amount = network.part_link[part], network.part_width[part], network.part_amount[part]
            # Only a link that several flows use must be one for all. Others merge where they are equal, so that a task
            # over many hosts is few slots.
            shared = network.users[link] > 1
            if shared:
                at = network.slot[link]
            else:
                # Parts that are equal follow each other mostly, so that a look at the last slots is enough; one that is
                # missed costs time, not truth.
                at = -1
                for other in range(slots - 1, max(first, slots - _LOOK_BACK) - 1, -1):
                    if network.slot_share[other] == amount and network.slot_left[other] == width:
                        at = other
                        break
            if at < 0:
                at = slots
                slots += 1
                network.slot_left[at] = width
                network.slot_users[at] = 0
                network.slot_share[at] = -1.0 if shared else amount  # until the first round
                if shared:
                    network.slot[link] = at
            # An equal part is in that slot already.
            elif not shared:
                continue
            network.slot_users[at] += 1
            network.slot_of[entry] = at
            network.slot_amount[entry] = amount
            entry += 1
    network.flow_slot[network.nb_flows] = entry
    # `slot` is -1 again for the next call; to clear all links would cost more than those that were used.
    for part in range(network.nb_parts):
        network.slot[network.part_link[part]] = -1
    return slots


@kernel
def _raise(network, slots):
    """Each flow that may rise does, by what the tightest of its slots has for it."""
    share, left, users = network.slot_share, network.slot_left, network.slot_users
    # What each slot has for each of its users.
    for at in range(slots):
        if users[at] > 0:
            share[at] = left[at] / users[at]
    for flow in range(network.nb_flows):
        if network.flow_frozen[flow] == _RISES:
            rise = LARGEST_RATE
            for entry in range(network.flow_slot[flow], network.flow_slot[flow + 1]):
                rise = min(rise, share[network.slot_of[entry]] / network.slot_amount[entry])
            # Its own limit, by the slowest host or TCP's window, holds whatever links have.
            if network.flow_limit[flow] > 0.0:
                rise = min(rise, network.flow_limit[flow] - network.flow_rate[flow])
            network.flow_rise[flow] = rise
            network.flow_rate[flow] += rise
            if network.flow_rate[flow] == network.flow_limit[flow]:
                network.flow_frozen[flow] = _STOPS


@kernel
def _use_up(network):
    """Slots lose what flows rose, the latest flow first; those that are frozen lose them their last rise again."""
    left = network.slot_left
    # The latest first, and frozen ones too: both are SimGrid's, and decide what rounding leaves of a link.
    for flow in range(network.nb_flows - 1, -1, -1):
        rise = network.flow_rise[flow]
        for entry in range(network.flow_slot[flow + 1] - 1, network.flow_slot[flow] - 1, -1):
            at = network.slot_of[entry]
            rest = left[at] - network.slot_amount[entry] * rise
            left[at] = rest if rest >= SHARE_PRECISION else 0.0


@kernel
def _freeze(network):
    """Flows of a full slot, or at their limit, rise no more; returns how many have just come to that."""
    left, frozen, count = network.slot_left, network.flow_frozen, 0
    for flow in range(network.nb_flows):
        if frozen[flow] == _RISES:
            for entry in range(network.flow_slot[flow], network.flow_slot[flow + 1]):
                if left[network.slot_of[entry]] <= 0.0:
                    frozen[flow] = _STOPS
                    break
    # Those that were at their limit in `_raise`, and those of full slots: they are users of nothing from now on.
    for flow in range(network.nb_flows):
        if frozen[flow] == _STOPS:
            frozen[flow] = _FROZEN
            count += 1
            for entry in range(network.flow_slot[flow], network.flow_slot[flow + 1]):
                network.slot_users[network.slot_of[entry]] -= 1
    return count


# --- Hosts that jobs share -------------------------------------------------------------------------------------------


@kernel
def _enter_shared(world, job):
    """The hosts of a job compute, or go on to; what they have done up to now is added up, as Batsim does."""
    state, sim, begin = world.state, world.sim, world.state.alloc_first[job]
    for i in range(begin, begin + state.alloc_count[job]):
        for host in range(state.interval_first[i], state.interval_last[i] + 1):
            old = sim.host_state[host]
            sim.in_state[old] -= 1
            sim.in_state[COMPUTING] += 1
            sim.time_in_state[old] += sim.now - sim.host_since[host]
            sim.host_state[host] = COMPUTING
            sim.host_since[host] = sim.now


@kernel
def _leave_shared(world, job):
    """The hosts of a job that is over are idle, unless others compute there or they are away."""
    state, begin = world.state, world.state.alloc_first[job]
    if world.sim.stays_computing:
        return
    for i in range(begin, begin + state.alloc_count[job]):
        for host in range(state.interval_first[i], state.interval_last[i] + 1):
            if world.sim.host_state[host] == COMPUTING and not _is_computed_on(world, host):
                enter(world, host, IDLE)


@kernel
def _is_computed_on(world, host):
    """Whether a job has the host, and is not over."""
    state, sim = world.state, world.sim
    for i in range(state.nb_running):
        job = state.running[i]
        if sim.over[job] == 0 and transitions.has_allocated(state, job, host):
            return True
    return False


@kernel
def _load_shared(world):
    """Put the load of all flows on the hosts, where jobs share them: SimGrid adds it up from the latest task on."""
    network = network_of(world)
    links, load, loaded = len(network.bandwidth), network.load, network.loaded
    for flow in range(network.nb_flows - 1, -1, -1):
        for part in range(network.flow_end[flow] - 1, network.flow_first[flow] - 1, -1):
            host = network.part_link[part] - links
            if host >= 0:
                load[host] += network.flow_rate[flow] * network.part_amount[part]
    # Also hosts on which nobody computes any more; but not those that switch, whose load is none of a flow.
    for host in range(len(load)):
        if load[host] > 0.0 or loaded[host]:
            put_load(world, host, load[host])
            loaded[host] = load[host] > 0.0
            load[host] = 0.0


# --- As a root, for runs in which jobs communicate or share hosts ----------------------------------------------------


@_FLOWS.entry
def flows(state, facts, truth, sim, rows, plan, operation, which, leaf):
    """An operation on flow, job or host `which`."""
    world = a.World(state, facts, truth, sim, rows, plan)
    if operation == SUM_LATENCY:
        return _latency_of(world, which, leaf)
    if operation == NOTE_SPEEDS:
        _note_speeds(world, which, leaf)
    if operation == NOTE_PARTS:
        return 1.0 * _note_parts(world, which, leaf)
    if operation == SET_RATES:
        set_rates(network_of(world))
        sim.rates_changed = 0
    if operation == ENTER_SHARED:
        _enter_shared(world, which)
    if operation == LEAVE_SHARED:
        _leave_shared(world, which)
    if operation == LOAD_SHARED:
        _load_shared(world)
    if operation == IS_COMPUTED_ON:
        return 1.0 * _is_computed_on(world, which)
    return 0.0


@kernel
def ask_flows(world, operation, which, leaf):
    """As `flows`, which must be there: `Sim.network` has its address where jobs communicate."""
    # By address: most runs have no communication, and need not compile any of this.
    given = (world.state, world.facts, world.truth, world.sim, world.rows, world.plan, operation, which, leaf)
    return _call_flows(world.sim.flows, given)
