"""The links of a platform and the ways between its hosts, as arrays.

A way goes up from the sender to the lowest switch above both hosts, and down again. In SimGrid's fat-trees the receiver
decides which of several switches above is taken ("d-mod-k"); where links are pooled there is one way.

Which link of a level a way takes is the sum of two numbers, one of the sender's and one of the receiver's. So a table
of levels times hosts says all. Rejected: a matrix of all pairs, which is 268 million ways for 16,384 hosts.
"""

from math import prod

import numpy as np
from numpy.typing import ArrayLike

from decision.compiling.bundle import F8, I1, I4, I8, Bundle, I4x2, Int
from decision.compiling.jit import kernel
from decision.model.platform import FatTree, Flat, Platform

_FLOWS_PER_HOST = 2  # a job that is over may still compute while the next one begins
_NO_CABLE = 2**31 - 1  # more than there are


class LinkState(Bundle):
    """Links and hosts, and what goes through them. N links (each direction of a cable is one), L levels, H hosts.

    A flow is a task that takes its share of them: one that communicates, once its latency is over, or one that shares
    hosts; F flows, in the order in which they began. A part is what a flow needs of a link, or an executor of its host;
    P parts, those of a flow in a row. In `share` many parts are one: S slots. Hosts are links N to N + H - 1.
    """

    bandwidth: F8  # (N,) bytes/s
    latency: F8  # (L + 1,) seconds of a way whose top is this level; [0] unused
    subtree: I4x2  # (L, H) which subtree of levels 0 to l the host is in
    up_from: I4x2  # (L, H) a way up from this host takes link up_from + up_towards of the receiver
    up_towards: I4x2  # (L, H)
    down_towards: I4x2  # (L, H) a way down to this host takes it, or one of its parallel cables
    place: I4  # (H,) in SimGrid's own order
    below: I4  # (L,) devices below each switch
    stride: I4  # (L,) hosts below each device
    cables: I4  # (L,) parallel cables
    cable_step: I4  # (L,) from a link to the one of the next cable
    backbone: I4  # (0 or 1,) link in the middle of each way
    nb_flows: Int
    nb_parts: Int
    has_cables: Int  # 1 where a device has several cables to one switch
    flow_job: I4  # (F,)
    flow_first: I8  # (F,) its first part, -1 before its parts are known
    flow_end: I8  # (F,) one past its last part
    flow_limit: F8  # (F,) share per second at most, -1 where nothing bounds it
    flow_rate: F8  # (F,) share per second
    flow_rise: F8  # (F,) what it got of that in the last round
    flow_frozen: I1  # (F,) whether it gets no more
    flow_slot: I8  # (F,) its first entry in slot_of
    part_link: I4  # (P,)
    part_width: F8  # (P,) bytes/s of the link, or flop/s of all cores of the host
    part_amount: F8  # (P,) bytes or flop
    slot_of: I4  # (P,) of each entry
    slot_amount: F8  # (P,) of each entry
    slot_left: F8  # (P,) bytes/s or flop/s
    slot_share: F8  # (P,) of each flow
    slot_users: I4  # (P,) flows that may still get more of it
    amount: F8  # (N,) bytes; 0 but in `note_links`
    touched: I4  # (N,)
    users: I4  # (N + H,) parts that are known
    slot: I4  # (N + H,) -1 but in `share`
    hosts: I4  # (H,) of the job that is looked at
    load: F8  # (H,) flop/s; 0 but in `load_shared`
    loaded: I1  # (H,) 1 where flows compute
    way: I4  # (2L + 1,)


def new_network(platform: Platform | None) -> LinkState:
    """The network of a platform without any flow; without a platform, or where it has none, one of no links."""
    topology = platform.topology if platform else None
    # A world without a network has one of no links, so that kernels need not ask; jobs that communicate were refused.
    if platform is None or not isinstance(topology, Flat | FatTree) or platform.unmodelled:
        hosts = len(platform.hosts) if platform else 0
        return _network(np.zeros(0), np.zeros(1), *(np.zeros((0, hosts), np.int32) for _ in range(4)))
    if isinstance(topology, Flat):
        return _flat_network(topology, platform)
    place = np.asarray(platform.places or range(len(platform.hosts)), np.int64)
    return _pooled_tree(topology, place) if topology.pooled else _fat_tree(topology, place)


def _flat_network(topology: Flat, platform: Platform) -> LinkState:
    """Hosts with the same property `server` share a link."""
    servers: dict[str, int] = {}
    names = [host.properties.get("server", host.name) for host in platform.hosts]
    port = np.array([[servers.setdefault(name, len(servers)) for name in names]])
    bandwidth = np.full(2 * len(servers), topology.link.bandwidth)
    # Added up link by link, as SimGrid does: the last digit may decide whether two tasks begin in one instant.
    latency = 2 * topology.link.latency
    backbone = []
    if topology.backbone is not None:
        backbone = [len(bandwidth)]
        bandwidth = np.append(bandwidth, topology.backbone.bandwidth)
        latency = topology.link.latency + topology.backbone.latency + topology.link.latency
    zero = np.zeros_like(port)
    return _network(bandwidth, np.array([0.0, latency]), zero, port, zero, port + len(servers), backbone=backbone)


def _pooled_tree(topology: FatTree, place: np.ndarray) -> LinkState:
    """One link up and one down between each subtree and the level above."""
    bandwidth, latency, tables = [], _latencies(topology), []
    first = 0
    for level, link in enumerate(topology.links):
        below = prod(topology.down[:level])
        devices = topology.nb_hosts // below
        cables = prod(topology.up[: level + 1]) * topology.cables[level]
        # All cables and all switches above together are one link: this is how `decision platform` writes such trees.
        bandwidth += [link.bandwidth * cables] * (2 * devices)
        device = place // below
        tables.append((device // topology.down[level], first + device, 0 * device, first + devices + device))
        first += 2 * devices
    return _network(np.array(bandwidth), latency, *(np.array(table) for table in zip(*tables, strict=True)))


def _fat_tree(topology: FatTree, place: np.ndarray) -> LinkState:
    """SimGrid's own: each device of a level has `up` times `cables` links, numbered by switch first."""
    bandwidth, tables, first = [], [], 0
    above = np.zeros_like(place)  # which of the devices of this level in the sender's subtree a way to here passes
    for level, link in enumerate(topology.links):
        below, parents = prod(topology.down[:level]), prod(topology.up[:level])
        devices = topology.nb_hosts // below * parents
        ports = topology.up[level] * topology.cables[level]
        # The receiver's place decides, its lowest digits at the lowest level, so that neighbours are reached over
        # different switches.
        port = place // parents % ports  # d-mod-k
        column, parent = place // below, port % topology.up[level]
        # Up: numbered by the device in the sender's subtree that the way passes, which all earlier choices of ports
        # have fixed. Down: the same cables, seen from the receiver.
        up_to = above * ports + port
        down = first + devices * ports + (column * parents + above) * ports + parent
        tables.append((column // topology.down[level], first + column * parents * ports, up_to, down))
        bandwidth += [link.bandwidth] * (2 * devices * ports)
        first += 2 * devices * ports
        above = above + parent * parents
    return _network(
        np.array(bandwidth),
        _latencies(topology),
        *(np.array(table) for table in zip(*tables, strict=True)),
        place=place,
        below=topology.down,
        cables=topology.cables,
        cable_step=topology.up,
    )


def _latencies(topology: FatTree) -> np.ndarray:
    """Seconds of a way by its top level, link after link."""
    up = [link.latency for link in topology.links]
    return np.array([sum([*up[:top], *reversed(up[:top])]) for top in range(len(up) + 1)])


def _network(
    bandwidth: np.ndarray,
    latency: np.ndarray,
    subtree: np.ndarray,
    up_from: np.ndarray,
    up_towards: np.ndarray,
    down_towards: np.ndarray,
    **more: ArrayLike,
) -> LinkState:
    i4 = np.int32
    links, (levels, hosts) = len(bandwidth), subtree.shape
    below = np.asarray(more.get("below", [1] * levels), i4)
    cables = np.asarray(more.get("cables", [1] * levels), i4)
    return LinkState(
        bandwidth=bandwidth,
        latency=latency,
        subtree=subtree.astype(i4),
        up_from=up_from.astype(i4),
        up_towards=up_towards.astype(i4),
        down_towards=down_towards.astype(i4),
        place=np.asarray(more.get("place", np.arange(hosts)), i4),
        below=below,
        stride=np.cumprod([1, *below], dtype=i4)[:-1].astype(i4),
        cables=cables,
        cable_step=np.asarray(more.get("cable_step", [1] * levels), i4),
        backbone=np.asarray(more.get("backbone", []), i4),
        has_cables=bool((cables > 1).any()),
        **_flows(_FLOWS_PER_HOST * hosts + 1),
        **_parts(0),
        amount=np.zeros(links),
        touched=np.zeros(links, i4),
        users=np.zeros(links + hosts, i4),
        slot=np.full(links + hosts, -1, i4),
        hosts=np.zeros(hosts, i4),
        load=np.zeros(hosts),
        loaded=np.zeros(hosts, np.int8),
        way=np.zeros(2 * levels + 1, i4),
    )


def _flows(room: int) -> dict[str, np.ndarray]:
    arrays = {name: np.zeros(room) for name in ("flow_limit", "flow_rate", "flow_rise")}
    arrays |= {name: np.zeros(room, np.int64) for name in ("flow_first", "flow_end", "flow_slot")}
    return arrays | {"flow_job": np.zeros(room, np.int32), "flow_frozen": np.zeros(room, np.int8)}


def _parts(room: int) -> dict[str, np.ndarray]:
    # None to begin with: most runs have no flow, and `grow_network` makes room for the first.
    f8 = ("part_width", "part_amount", "slot_amount", "slot_left", "slot_share")
    arrays = {name: np.zeros(room) for name in f8}
    return arrays | {name: np.zeros(room, np.int32) for name in ("part_link", "slot_of", "slot_users")}


NO_NETWORK = new_network(None)  # of worlds in which no job communicates


def grow_network(network: LinkState) -> LinkState:
    """The same network with room for the parts of any one flow more, and twice as many in all."""
    used = network.nb_parts
    # A flow may need each host and each link once; twice what there is, so that growing is rare, and ends where a flow
    # has more executors than there are hosts.
    more = _parts(2 * len(network.part_link) + len(network.bandwidth) + len(network.hosts))
    for name in ("part_link", "part_width", "part_amount"):
        more[name][:used] = getattr(network, name)[:used]
    return network._replace(**more)


def with_flows(network: LinkState, room: int) -> LinkState:
    """The same network with room for so many flows: the same arrays where they are long enough."""
    if room <= len(network.flow_job):
        return network
    more, used = _flows(max(room, 2 * len(network.flow_job))), network.nb_flows
    for name, array in more.items():
        array[:used] = getattr(network, name)[:used]
    return network._replace(**more)


@kernel
def find_way(network, sender, receiver):
    """Put the links of the way between two hosts into `way`; returns how many they are.

    A host reaches itself through the switch above it.
    """
    way, top, count = network.way, 1, 0
    # Up to the lowest level at which both are in one subtree.
    while network.subtree[top - 1, sender] != network.subtree[top - 1, receiver]:
        top += 1
    for level in range(top):
        way[level] = network.up_from[level, sender] + network.up_towards[level, receiver]
    count = top
    if len(network.backbone) > 0:
        way[count] = network.backbone[0]
        count += 1
    port = _NO_CABLE
    # Down, from that level.
    for level in range(top - 1, -1, -1):
        way[count] = network.down_towards[level, receiver]
        if network.has_cables:
            port = _next_port(network, level, sender, receiver, port)
            way[count] += port // network.below[level] * network.cable_step[level]
        count += 1
    return count


@kernel
def _next_port(network, level, sender, receiver, port):
    """The port of a switch by which SimGrid goes on down to the receiver.

    The sender chooses among parallel cables. But SimGrid first goes on from the port above, where one that leads to
    the receiver comes after it.
    """
    below, cables = network.below[level], network.cables[level]
    child = network.place[receiver] // network.stride[level] % below
    # The first port after the one above that leads to the child. One would expect the search to begin anew at each
    # switch; SimGrid's loop does not, and its ways are what Batsim's run times come from.
    if port < below * cables:
        later = child + below * max(-((child - port - 1) // below), 0)
        if later < below * cables:
            return later
    return network.place[sender] % cables * below + child


@kernel
def top_of_way(network, sender, receiver):
    """The level at which the way between two hosts turns, counted from 1."""
    top = 1
    while network.subtree[top - 1, sender] != network.subtree[top - 1, receiver]:
        top += 1
    return top
