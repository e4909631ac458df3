"""Tasks that communicate: what they need of links and hosts; `rates` has what these let them have."""

from decision.compiling.bundle import bundle_at
from decision.compiling.entry import Interface
from decision.compiling.jit import kernel
from decision.engine.constants import TCP_WINDOW, TIME_PRECISION
from decision.model.errors import InternalError

from . import arrays as a
from .links import LinkState, find_way, top_of_way
from .rates import LARGEST_RATE, set_rates

_network_at = bundle_at(LinkState)

# Operations of `flows`
SUM_LATENCY, NOTE_SPEEDS, NOTE_PARTS, SET_RATES = range(4)

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
    return truth.leaf_bytes[leaf] > 0.0 and (hosts > 1 or truth.leaf_kind[leaf] == a.FLOPS_VECTOR)


@kernel
def bytes_between(truth, leaf, hosts, i, j):
    """Bytes that host i of a job sends to host j."""
    kind = truth.leaf_kind[leaf]
    if kind == a.FLOPS_VECTOR:
        return truth.matrix[truth.leaf_matrix[leaf] + i * hosts + j]
    if i == j:
        return 0.0
    return truth.leaf_bytes[leaf] / hosts if kind == a.FLOPS_TOTAL else truth.leaf_bytes[leaf]


@kernel
def flops_of(truth, leaf, hosts, i):
    """Flop that host i of a job computes."""
    kind = truth.leaf_kind[leaf]
    if kind == a.FLOPS_VECTOR:
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
    if truth.leaf_kind[leaf] == a.FLOPS_VECTOR:
        for i in range(count):
            for j in range(count):
                if bytes_between(truth, leaf, count, i, j) > 0.0:
                    top = max(top, top_of_way(network, network.hosts[i], network.hosts[j]))
    else:
        for i in range(1, count):  # two subtrees that are not one part from the first host's on some way
            top = max(top, top_of_way(network, network.hosts[0], network.hosts[i]))
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
    network.flow_first[at] = network.flow_end[at] = -1


@kernel
def end_flow(world, job):
    """The job's task, if it is a flow, leaves its links to others."""
    at = _find_flow(world, job)
    if at < 0:
        return
    network = network_of(world)
    first, end = network.flow_first[at], network.flow_end[at]
    for part in range(first, end):
        if network.part_link[part] >= 0:
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
    if network.flow_first[flow] < 0:
        return
    hosts, part = _list_hosts(world, job), network.flow_first[flow]
    for i in range(hosts):
        if flops_of(world.truth, leaf, hosts, i) > 0.0:
            network.part_width[part] = _speed(world, i)
            part += 1
    network.flow_limit[flow] = _limit(world, leaf, hosts)


@kernel
def _speed(world, i):
    """Flop/s of host number i of those listed."""
    host = network_of(world).hosts[i]
    return world.facts.speed[host, world.state.pstate[host]]


@kernel
def _limit(world, leaf, hosts):
    """Share per second that the listed hosts have at most, by their speeds and by TCP's window over latencies."""
    network, truth, delay, limit = network_of(world), world.truth, 0.0, LARGEST_RATE
    if truth.leaf_kind[leaf] == a.FLOPS_VECTOR:
        for i in range(hosts):
            for j in range(hosts):
                sent = bytes_between(truth, leaf, hosts, i, j)
                if sent > 0.0:
                    top = top_of_way(network, network.hosts[i], network.hosts[j])
                    delay = max(delay, network.latency[top] * sent)
    else:
        for i in range(1, hosts):
            top = top_of_way(network, network.hosts[0], network.hosts[i])
            delay = max(delay, network.latency[top] * bytes_between(truth, leaf, hosts, 0, i))
    if delay > 0.0:
        limit = TCP_WINDOW / (2.0 * delay)
    for i in range(hosts):
        flops = flops_of(truth, leaf, hosts, i)
        if flops > 0.0:
            limit = min(limit, _speed(world, i) / flops)
    return limit if limit < LARGEST_RATE else -1.0


@kernel
def _note_parts(world, flow, leaf):
    """List what a flow needs of hosts and links. False where arrays must grow first."""
    network, truth = network_of(world), world.truth
    hosts = _list_hosts(world, network.flow_job[flow])
    touched = _count_bytes(world, leaf, hosts)
    fits = network.nb_parts + hosts + touched <= len(network.part_link)
    part = network.nb_parts
    network.flow_first[flow] = part if fits else -1
    if fits:
        for i in range(hosts):
            flops = flops_of(truth, leaf, hosts, i)
            if flops > 0.0:
                network.part_link[part] = -1
                network.part_width[part] = _speed(world, i)
                network.part_amount[part] = flops
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
                    if network.amount[link] == 0.0:
                        network.touched[touched] = link
                        touched += 1
                    network.amount[link] += sent
    return touched


# --- As a root, for runs in which jobs communicate -----------------------------------------------------------------


@_FLOWS.entry
def flows(state, facts, truth, sim, rows, plan, operation, which, leaf):
    """An operation on flow or job `which`."""
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
    return 0.0


@kernel
def ask_flows(world, operation, which, leaf):
    """As `flows`, which must be there: `Sim.network` has its address where jobs communicate."""
    given = (world.state, world.facts, world.truth, world.sim, world.rows, world.plan, operation, which, leaf)
    return _call_flows(world.sim.flows, given)
