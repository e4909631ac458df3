"""Topologies: how many hops apart two hosts are, and which hosts share a switch or a pod.

Hosts are named by their place: 0 to `nb_hosts` - 1, from left to right. A hop is one link between two devices, as in
Lan et al., "Optimization of Topology-Aware Job Allocation on a High-Performance Computing Cluster by Neural Simulated
Annealing": hosts of one switch are 2 apart.

Design
------
Each distance is arithmetic on places, so that it works on arrays of any shape and no matrix of all pairs is kept: 4,096
hosts would make one of 16 million entries. They are shortest paths; SimGrid's routes are as long, but for a case of
`Dragonfly`. Links belong to the topology, because a platform that is written again needs them. Rejected: a general
graph, in which distances need a search, and in which nobody could tell what a pod is.
"""

from math import prod

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from .errors import ConfigError
from .record import Ints


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
