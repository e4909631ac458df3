"""Platforms: hosts, their power states, and how they sleep and wake."""

import math
from collections.abc import Mapping
from math import prod
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import ConfigError
from .record import Floats, Ints
from .table import Table

# Topologies: how many hops apart two hosts are, and which hosts share a switch or a pod.
#
# Hosts are named by their place: 0 to `nb_hosts` - 1, from left to right. A hop is one link between two devices, as in
# Lan et al., "Optimization of Topology-Aware Job Allocation on a High-Performance Computing Cluster by Neural Simulated
# Annealing": hosts of one switch are 2 apart.
#
# Design
# ------
# Each distance is arithmetic on places, so that it works on arrays of any shape and no matrix of all pairs is kept:
# 4,096 hosts would make one of 16 million entries. They are shortest paths; SimGrid's routes are as long, but for a
# case of `Dragonfly`. Links belong to the topology, because a platform that is written again needs them. Rejected: a
# general graph, in which distances need a search, and in which nobody could tell what a pod is.


class Link(msgspec.Struct, frozen=True):
    """A cable, the same in both directions."""

    bandwidth: float  # bytes/s, each way
    latency: float  # seconds

    def __post_init__(self) -> None:
        if not self.bandwidth > 0 or not self.latency >= 0:
            raise ConfigError(
                f"a link needs a bandwidth above 0 and a latency of at least 0 s; "
                f"found {self.bandwidth:g} B/s and {self.latency:g} s"
            )


class Flat(msgspec.Struct, frozen=True):
    """All hosts on one switch, each by its own link; a backbone inside the switch counts as one more hop."""

    nb_hosts: int
    link: Link
    backbone: Link | None = None

    def __post_init__(self) -> None:
        _check_counts("hosts", self.nb_hosts)

    def distance(self, a: ArrayLike, b: ArrayLike) -> Ints:
        """Hops between places; arrays are broadcast."""
        return (np.asarray(a) != np.asarray(b)) * np.int64(2 if self.backbone is None else 3)

    def switch_of(self) -> Ints:
        """The switch that the host at each place is on, (nb_hosts,)."""
        return np.zeros(self.nb_hosts, np.int64)

    def pod_of(self) -> Ints:
        """The pod that the host at each place is in, (nb_hosts,)."""
        return self.switch_of()


class FatTree(msgspec.Struct, frozen=True):
    """A fat-tree of any number of levels, in SimGrid's terms; level 0 is that between hosts and their switches.

    A k-ary fat-tree of P pods has `down` (k/2, k/2, P) and `up` (1, k/2, k/2): distances are 2 within a switch,
    4 within a pod and 6 across.
    """

    down: tuple[int, ...]  # devices below each switch of a level
    up: tuple[int, ...]  # switches above each device of a level
    cables: tuple[int, ...]  # parallel links between two connected devices of a level
    links: tuple[Link, ...]  # one cable of each level
    pooled: bool = False  # True: the cables from a subtree to the level above are one link; so where levels differ

    def __post_init__(self) -> None:
        _check_counts("devices below, switches above and cables", *self.down, *self.up, *self.cables)
        if not 0 < len(self.down) == len(self.up) == len(self.cables) == len(self.links):
            raise ConfigError("a fat-tree needs as many numbers below, above, of cables and of links as it has levels")
        if len(set(self.links)) > 1:  # SimGrid's own fat-trees have equal links only: a platform file pools them
            msgspec.structs.force_setattr(self, "pooled", True)

    @property
    def nb_hosts(self) -> int:
        """How many hosts there are in all."""
        return prod(self.down)

    @property
    def hosts_per_switch(self) -> int:
        """Hosts on each switch of the lowest level."""
        return self.down[0]

    @property
    def hosts_per_pod(self) -> int:
        """Hosts that are at most 4 hops apart."""
        return prod(self.down[:2])

    def distance(self, a: ArrayLike, b: ArrayLike) -> Ints:
        """Hops between places, up to the lowest common switch and down again; arrays are broadcast."""
        left, right = np.asarray(a), np.asarray(b)
        hops = np.zeros(np.broadcast_shapes(left.shape, right.shape), np.int64)
        for below in self.down:
            hops += 2 * (left != right)
            left, right = left // below, right // below
        return hops

    def switch_of(self) -> Ints:
        """The switch that the host at each place is on, (nb_hosts,)."""
        return np.arange(self.nb_hosts) // self.hosts_per_switch

    def pod_of(self) -> Ints:
        """The pod that the host at each place is in, (nb_hosts,)."""
        return np.arange(self.nb_hosts) // self.hosts_per_pod


class Torus(msgspec.Struct, frozen=True):
    """A grid whose ends meet; each host is its own switch, and the first dimension runs fastest through the places."""

    dims: tuple[int, ...]
    link: Link

    def __post_init__(self) -> None:
        _check_counts("dimensions", *self.dims)

    @property
    def nb_hosts(self) -> int:
        """How many hosts there are in all."""
        return prod(self.dims)

    def distance(self, a: ArrayLike, b: ArrayLike) -> Ints:
        """Hops between places, the shorter way round in each dimension; arrays are broadcast."""
        left, right = np.asarray(a), np.asarray(b)
        hops = np.zeros(np.broadcast_shapes(left.shape, right.shape), np.int64)
        for dim in self.dims:
            offset = np.abs(left % dim - right % dim)
            hops += np.minimum(offset, dim - offset)
            left, right = left // dim, right // dim
        return hops

    def switch_of(self) -> Ints:
        """The switch that the host at each place is on, (nb_hosts,)."""
        return np.arange(self.nb_hosts)

    def pod_of(self) -> Ints:
        """Each place's plane across the last dimension, (nb_hosts,)."""
        return np.arange(self.nb_hosts) // prod(self.dims[:-1])


class Dragonfly(msgspec.Struct, frozen=True):
    """SimGrid's dragonfly (after Cray's Cascade): groups of chassis of routers of hosts.

    Routers of a chassis are all connected, and so are those of one number in a group's chassis. Group i reaches
    group j by a link from router j of its first chassis to router i of the other's, which is why there can be no more
    groups than routers in a chassis. Within a group SimGrid's own route between routers of different numbers is one hop
    off where it leaves another chassis than the first; distances here are the shortest.
    """

    groups: int
    chassis: int  # in a group
    routers: int  # in a chassis
    nodes: int  # hosts on a router
    link: Link
    cables: tuple[int, int, int] = (1, 1, 1)  # parallel links between groups, chassis, routers

    def __post_init__(self) -> None:
        _check_counts("groups, chassis, routers and nodes", self.groups, self.chassis, self.routers, self.nodes)
        _check_counts("cables", *self.cables)
        if self.groups > self.routers:
            raise ConfigError(
                f"a dragonfly of {self.groups} groups needs at least as many routers in a chassis; found {self.routers}"
            )

    @property
    def nb_hosts(self) -> int:
        """How many hosts there are in all."""
        return self.groups * self.hosts_per_group

    @property
    def hosts_per_group(self) -> int:
        """How many hosts a group has."""
        return self.chassis * self.routers * self.nodes

    def distance(self, a: ArrayLike, b: ArrayLike) -> Ints:
        """Hops between places by the shortest way; arrays are broadcast."""
        left, right = np.asarray(a), np.asarray(b)
        group_a, chassis_a, router_a = self._position(left)
        group_b, chassis_b, router_b = self._position(right)
        within = _steps(router_a, router_b) + _steps(chassis_a, chassis_b)
        out = _steps(router_a, group_b) + _steps(chassis_a, 0)
        back = _steps(router_b, group_a) + _steps(chassis_b, 0)
        between = np.where(group_a == group_b, within, out + 1 + back)
        return np.where(left == right, 0, 2 + between)

    def switch_of(self) -> Ints:
        """The router that the host at each place is on, (nb_hosts,)."""
        return np.arange(self.nb_hosts) // self.nodes

    def pod_of(self) -> Ints:
        """The group that the host at each place is in, (nb_hosts,)."""
        return np.arange(self.nb_hosts) // self.hosts_per_group

    def _position(self, place: Ints) -> tuple[Ints, Ints, Ints]:
        router = place // self.nodes
        chassis = router // self.routers
        return chassis // self.chassis, chassis % self.chassis, router % self.routers


Topology = Flat | FatTree | Torus | Dragonfly


def _steps(here: Ints, there: ArrayLike) -> Ints:
    """One hop where they differ."""
    return (here != there).astype(np.int64)


def _check_counts(shape: str, *counts: int) -> None:
    if not counts or min(counts) < 1:
        raise ConfigError(f"{shape}: whole numbers of at least 1 are needed; found {', '.join(map(str, counts))}")


MAX_HOSTS = 1_000_000  # more are a mistake
_TCP_WINDOW = 4194304.0  # bytes, SimGrid's


class PowerState(msgspec.Struct, frozen=True):
    """One pstate of a host: its speed and what it draws at three loads (SimGrid's host energy model).

    A host draws `idle` without load, and ``epsilon + load * (full - epsilon)`` at a load in (0, 1].
    """

    speed: float  # flop/s
    idle: float = 0.0  # watts
    epsilon: float = 0.0  # watts
    full: float = 0.0  # watts

    @property
    def idle_watts(self) -> float:
        """What a host without a task draws: a speed of 0 counts as fully used."""
        return self.idle if self.speed > 0 else self.full


class SleepState(msgspec.Struct, frozen=True):
    """A pstate in which a host sleeps, and the virtual pstates that model its way in and out.

    A switch computes one flop in the virtual pstate: it takes ``1 / speed`` seconds at `full` watts.
    """

    pstate: int
    switch_off: int  # virtual pstate of falling asleep
    switch_on: int  # virtual pstate of waking up


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """One host. `id` is Batsim's: compute hosts first, by name in byte order, then storage hosts."""

    id: int
    name: str
    pstates: tuple[PowerState, ...]
    sleep: tuple[SleepState, ...] = ()
    initial_pstate: int = 0
    cores: int = 1  # which give a job the speed of one
    has_power: bool = False  # whether the platform says what the host draws
    properties: Mapping[str, str] = {}
    zone_properties: Mapping[str, str] = {}

    @property
    def virtual_pstates(self) -> frozenset[int]:
        """Pstates that only model a switch."""
        return frozenset(p for s in self.sleep for p in (s.switch_off, s.switch_on))

    @property
    def sleep_pstates(self) -> frozenset[int]:
        """Pstates in which the host sleeps."""
        return frozenset(s.pstate for s in self.sleep)

    def is_computing_pstate(self, pstate: int) -> bool:
        """Whether the host can run jobs in this pstate."""
        known = 0 <= pstate < len(self.pstates)
        return known and pstate not in self.sleep_pstates and pstate not in self.virtual_pstates


class Route(msgspec.Struct, frozen=True):
    """What a message meets on its way to Batsim's own host."""

    latency: float = 0.0  # seconds, of all links together
    bandwidth: float = math.inf  # bytes/s, of the slowest link; inf where there is no link

    @property
    def byte_rate(self) -> float:
        """Share per second of a message of one byte, once the latency has passed (SimGrid's model L07)."""
        return min(self.bandwidth, _TCP_WINDOW / (2.0 * self.latency)) if self.latency > 0 else self.bandwidth


class Platform(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts that jobs run on, the storage hosts, and the name of the host that Batsim itself runs on."""

    hosts: tuple[Host, ...]  # compute hosts; hosts[i].id == i
    storage: tuple[Host, ...] = ()  # storage hosts; their ids follow
    master: str = "master_host"
    path: str = ""  # the file it came from
    topology: Topology | None = None  # None where the network is unknown
    places: tuple[int, ...] = ()  # each host's place in the topology; empty where it is the host's id
    unmodelled: str = ""  # what else its network has that a topology does not say, such as a loopback
    routes: tuple[Route, ...] = ()  # of messages to the master: from each compute host, and then its own to itself;
    # empty where all messages arrive at once

    def __repr__(self) -> str:
        name = self.path.rpartition("/")[2] or "made"
        return f"<{type(self).__name__}: {name}, {len(self.hosts):,} hosts>"

    def _repr_html_(self) -> str:
        first, network = self.hosts[0], "unknown" if self.topology is None else type(self.topology).__name__
        rows = [
            ("hosts", f"{len(self.hosts):,}"),
            ("first host", f"{first.name}, {first.pstates[first.initial_pstate].speed:.6g} flop/s"),
            ("power", "known" if self.has_power else "unknown"),
            ("topology", network),
        ]
        return Table(repr(self).strip("<>"), ("", ""), rows).html()

    @property
    def has_power(self) -> bool:
        """Whether every compute host says what it draws."""
        return all(h.has_power for h in self.hosts)

    @property
    def down(self) -> tuple[int, ...]:
        """Devices below each switch of a level, from the hosts up, where a tree of switches connects the hosts."""
        match self.topology:
            case FatTree(down=down):
                return down
            case Flat(nb_hosts=hosts):
                return (hosts,)
        return ()

    @property
    def servers(self) -> tuple[str, ...]:
        """The name of each host's server, by id: hosts with the same property ``server`` are one machine.

        Where it is empty the host is a machine of its own.
        """
        return tuple(host.properties.get("server", "") for host in self.hosts)

    def distance(self, a: ArrayLike, b: ArrayLike) -> NDArray[np.int64]:
        """Hops between hosts by id, 0 from a host to itself; arrays are broadcast.

        Raises:
            ConfigError: if the topology is unknown.
        """
        topology = self._known()
        if not self.places:
            return topology.distance(a, b)
        places = np.asarray(self.places)
        return topology.distance(places[np.asarray(a)], places[np.asarray(b)])

    def switch_of(self) -> NDArray[np.int64]:
        """Each host's switch, (H,) by id; hosts of one switch are nearest. Raises as `distance`."""
        return self._by_id(self._known().switch_of())

    def pod_of(self) -> NDArray[np.int64]:
        """Each host's pod, (H,) by id: of a dragonfly its group, of a torus its plane. Raises as `distance`."""
        return self._by_id(self._known().pod_of())

    def _known(self) -> Topology:
        if self.topology is None:
            raise ConfigError(f"{self.path or 'the platform'}: its topology is unknown; take one of a single <cluster>")
        return self.topology

    def _by_id(self, by_place: NDArray[np.int64]) -> NDArray[np.int64]:
        return by_place[list(self.places)] if self.places else by_place[: len(self.hosts)]


# What hosts draw at most, and how many may compute within so many watts.


class Draw(NamedTuple):
    """Watts of a platform by how many hosts compute, whichever they are: at most ``watts[k]`` where k do.

    A host that computes counts at full load; any other as idle, asleep or on its way, whichever draws most.
    """

    watts: Floats  # (H + 1,) ascending

    def hosts_within(self, watts: Floats) -> Ints:
        """How many hosts may compute within so many watts (n,); -1 where not even none may."""
        hosts: Ints = np.searchsorted(self.watts, watts * (1 + 1e-12), side="right") - 1
        return hosts


def draw_of(platform: Platform, sleeps: bool = True) -> Draw:
    """What a platform draws at most; storage hosts count at full load.

    Args:
        platform: the hosts.
        sleeps: whether hosts may sleep and change their pstates; else they stay in the one that they begin in.

    Raises:
        ConfigError: if a host does not say what it draws.
    """
    silent = next((host.name for host in platform.hosts if not host.has_power), None)
    if silent is not None:
        mistake = f"{platform.path}: does not say what host {silent} draws"
        raise ConfigError(f"{mistake}; give the platform's hosts a wattage_per_state", field="platform")
    rest = np.array([_resting(host, sleeps) for host in platform.hosts])
    more = (
        np.array([max(_computing(host, sleeps), low) for host, low in zip(platform.hosts, rest.tolist(), strict=True)])
        - rest
    )
    storage = sum(max(state.full, state.idle) for host in platform.storage for state in host.pstates[:1])
    return Draw(rest.sum() + storage + np.append(0.0, np.cumsum(np.sort(more)[::-1])))


def _computing(host: Host, sleeps: bool) -> float:
    """Watts at full load in the pstate that draws most."""
    return max(max(state.full, state.epsilon, state.idle) for state in _states(host, sleeps))


def _states(host: Host, sleeps: bool) -> list[PowerState]:
    """Pstates in which a host may compute."""
    if not sleeps:
        return [host.pstates[host.initial_pstate]]
    return [state for at, state in enumerate(host.pstates) if host.is_computing_pstate(at)]


def _resting(host: Host, sleeps: bool) -> float:
    """Watts without a job, whether it idles, sleeps or switches."""
    ways = [at for way in host.sleep for at in (way.pstate, way.switch_off, way.switch_on)] if sleeps else []
    return max(*(state.idle_watts for state in _states(host, sleeps)), *(host.pstates[at].full for at in ways), 0.0)
