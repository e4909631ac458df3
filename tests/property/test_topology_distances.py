"""Distances are those of a search over the links themselves, a metric, and survive being written as SimGrid's zones."""

from collections import defaultdict
from collections.abc import Hashable, Iterator
from itertools import combinations, product
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from decision.files import load_platform, write_platform
from decision.files.generate.platforms import fat_tree, networked
from decision.model.platform import Dragonfly, FatTree, Flat, Link, Platform, PowerState, Topology, Torus

few = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)

links = st.builds(Link, st.floats(1, 1e12), st.floats(0, 1))
k_ary_trees = st.integers(1, 3).flatmap(
    lambda half: st.builds(
        fat_tree,
        st.just(2 * half),
        st.integers(1, 2 * half),
        st.one_of(links.map(lambda link: [link] * 3), st.lists(links, min_size=3, max_size=3)),
    )
)
tori = st.builds(Torus, st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple), links)
dragonflies = st.integers(1, 4).flatmap(
    lambda routers: st.builds(
        Dragonfly,
        groups=st.integers(1, routers),
        chassis=st.integers(1, 3),
        routers=st.just(routers),
        nodes=st.integers(1, 2),
        link=links,
        cables=st.tuples(*[st.integers(1, 3)] * 3),
    )
)
flats = st.builds(Flat, st.integers(1, 12), links, st.none() | links)
topologies = st.one_of(k_ary_trees, tori, dragonflies, flats)

Edge = tuple[Hashable, Hashable]


def edges(topology: Topology) -> Iterator[Edge]:
    """The links between devices; hosts are their places."""
    match topology:
        case FatTree(down=(half, _, pods)):
            yield from fat_tree_edges(half, pods)
        case Torus(dims=dims):
            yield from torus_edges(dims)
        case Dragonfly():
            yield from dragonfly_edges(topology)
        case Flat(nb_hosts=number, backbone=backbone):
            ports = [f"port {host}" for host in range(number)] if backbone else ["switch"] * number
            yield from enumerate(ports)
            yield from combinations(ports, 2) if backbone else ()


def fat_tree_edges(half: int, pods: int) -> Iterator[Edge]:
    for pod, low, other in product(range(pods), range(half), range(half)):
        yield (pod * half + low) * half + other, ("L0", pod, low)
        yield ("L0", pod, low), ("L1", pod, other)
        yield ("L1", pod, low), ("L2", low, other)


def torus_edges(dims: tuple[int, ...]) -> Iterator[Edge]:
    shape = dims[::-1]  # numpy's last dimension runs fastest, ours the first
    places = np.arange(np.prod(dims)).reshape(shape)
    for axis in range(len(dims)):
        yield from zip(places.ravel().tolist(), np.roll(places, 1, axis).ravel().tolist(), strict=True)


def dragonfly_edges(topology: Dragonfly) -> Iterator[Edge]:
    sizes = (topology.groups, topology.chassis, topology.routers)
    all_routers = list(product(*map(range, sizes)))
    for number, router in enumerate(all_routers):
        yield from ((number * topology.nodes + node, router) for node in range(topology.nodes))
    for a, b in combinations(all_routers, 2):
        same_chassis, same_number = a[:2] == b[:2], a[0] == b[0] and a[2] == b[2]
        between_groups = a[0] != b[0] and a[1:] == (0, b[0]) and b[1:] == (0, a[0])
        if same_chassis or same_number or between_groups:
            yield a, b


def searched(topology: Topology) -> list[list[int]]:
    """Hops between all hosts by breadth-first search."""
    neighbours = defaultdict(set)
    for a, b in edges(topology):
        neighbours[a].add(b)
        neighbours[b].add(a)
    return [hops_from(host, neighbours, topology.nb_hosts) for host in range(topology.nb_hosts)]


def hops_from(start: int, neighbours: dict[Hashable, set[Hashable]], number: int) -> list[int]:
    hops, level = {start: 0}, [start]
    while level:
        level = list({there for here in level for there in neighbours[here]} - hops.keys())
        hops |= dict.fromkeys(level, max(hops.values()) + 1)
    return [hops[host] for host in range(number)]


def all_pairs(platform: Platform) -> np.ndarray:
    hosts = np.arange(len(platform.hosts))
    return platform.distance(hosts[:, None], hosts[None, :])


@few
@given(topologies)
def test_distances_are_those_of_a_search(topology: Topology) -> None:
    assert all_pairs(networked(topology, (PowerState(1e9),))).tolist() == searched(topology)


@few
@given(topologies)
def test_distance_is_a_metric(topology: Topology) -> None:
    hops = all_pairs(networked(topology, (PowerState(1e9),)))
    assert (hops == hops.T).all()
    assert ((hops == 0) == np.eye(len(hops), dtype=bool)).all()
    assert (hops[:, None, :] <= hops[:, :, None] + hops[None, :, :]).all()


@few
@given(topologies)
def test_hosts_of_one_switch_are_nearest_and_pods_hold_whole_switches(topology: Topology) -> None:
    platform = networked(topology, (PowerState(1e9),))
    hops, switches, pods = all_pairs(platform), platform.switch_of(), platform.pod_of()
    same_switch, same_pod = (part[:, None] == part[None, :] for part in (switches, pods))
    assert (np.diff(switches) >= 0).all()  # from left to right
    assert not (same_switch & ~same_pod).any()
    assert same_switch.all() or hops[same_switch].max() < hops[~same_switch].min()
    if isinstance(topology, FatTree):
        assert same_pod.all() or hops[same_pod].max() < hops[~same_pod].min()


@few
@given(topology=topologies, speed=st.floats(1e9, 1e15), watts=st.floats(1, 500))
def test_a_written_network_is_read_again(topology: Topology, speed: float, watts: float, tmp_path: Path) -> None:
    platform = networked(topology, (PowerState(speed, watts, watts, 2 * watts),))
    write_platform(tmp_path / "platform.xml", platform)
    again = load_platform(tmp_path / "platform.xml", energy=True)
    assert (again.topology, again.places) == (topology, ())
    assert [(h.id, h.name, h.pstates) for h in again.hosts] == [(h.id, h.name, h.pstates) for h in platform.hosts]
    assert (all_pairs(again) == all_pairs(platform)).all()


@few
@given(half=st.integers(1, 3), first=st.integers(0, 120), suffix=st.sampled_from(["", ".org"]))
def test_names_that_do_not_sort_by_number_keep_their_places(half: int, first: int, suffix: str, tmp_path: Path) -> None:
    """A cluster of SimGrid numbers its hosts in order, n9 before n10; Batsim's ids are in the order of bytes."""
    number = 2 * half**3
    shape = f"3;{half},{half},{2 * half};1,{half},{half};1,1,1"
    (tmp_path / "platform.xml").write_text(
        '<platform version="4.1"><zone id="z" routing="Full">'
        f'<cluster id="c" prefix="n" suffix="{suffix}" radical="{first}-{first + number - 1}" speed="1Gf" bw="1GBps" '
        f'lat="1us" topology="FAT_TREE" topo_parameters="{shape}"/>'
        '<zone id="head" routing="Full"><host id="master_host" speed="1Gf"/></zone></zone></platform>'
    )
    platform = load_platform(tmp_path / "platform.xml")
    places = [int(host.name.removeprefix("n").removesuffix(suffix)) - first for host in platform.hosts]
    expected = np.array(searched(fat_tree(2 * half, 2 * half, [Link(1e9, 1e-6)] * 3)))
    assert (all_pairs(platform) == expected[np.ix_(places, places)]).all()
    write_platform(tmp_path / "again.xml", platform)
    again = load_platform(tmp_path / "again.xml")
    assert (again.topology, again.places) == (platform.topology, platform.places)
