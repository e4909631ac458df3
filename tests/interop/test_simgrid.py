"""Every shipped and every generated kind of platform in the real SimGrid: hosts, power, routes, and what tasks take.

SimGrid runs in a process of its own, by a Python that has its bindings: Debian's python3-simgrid is 3.32, with which
Batsim 4.2.1 is built.
"""

from collections.abc import Callable
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.simgrid_platforms import probe

from decision.files import load_platform, write_platform
from decision.files.generate.grid5000 import CLUSTERS
from decision.files.generate.platforms import (
    Wanted,
    fat_tree,
    grid5000_cluster,
    networked,
    simple_cluster,
    taurus_power,
)
from decision.model.platform import Dragonfly, FatTree, Flat, Link, Platform, PowerState, Topology, Torus

ROOT = Path(__file__).parents[2]
SHIPPED = sorted(path.stem for path in (ROOT / "platforms").glob("*.xml"))
BYTES = 1e9

LINK, FAST, FASTEST = Link(1.25e9, 1e-6), Link(2.5e9, 2e-6), Link(5e9, 3e-6)
PLAIN = ((PowerState(1e9, 95.0, 95.0, 190.0),),)
SLEEPY = taurus_power(1e9, 1)

MADE: dict[str, Callable[[], Platform]] = {
    "fat-tree": lambda: networked(fat_tree(4, 4, [LINK] * 3), *PLAIN),
    "fat-tree-pruned": lambda: networked(fat_tree(6, 2, [LINK] * 3), *SLEEPY),
    "fat-tree-of-the-paper": lambda: networked(fat_tree(20, 10, [LINK] * 3), *PLAIN),
    "fat-tree-with-levels": lambda: networked(fat_tree(6, 4, [LINK, FAST, FASTEST]), *SLEEPY),
    "torus": lambda: networked(Torus((4, 3, 5), LINK), *PLAIN),
    "torus-2-6": lambda: networked(Torus((2, 6), LINK), *SLEEPY),
    "dragonfly": lambda: networked(Dragonfly(4, 2, 5, 3, LINK, (2, 1, 3)), *PLAIN),
    "dragonfly-small": lambda: networked(Dragonfly(3, 2, 3, 1, LINK), *SLEEPY),
    "flat": lambda: networked(Flat(10, LINK), *PLAIN),
    "flat-backbone": lambda: networked(Flat(10, LINK, FAST), *SLEEPY),
    "unconnected": lambda: simple_cluster(4),
}
for _name, _cluster in CLUSTERS.items():
    _flops = "measured" if _cluster.measured else "theoretical"
    for _core, _power in ((False, False), (False, True), (True, True)):
        _wanted = Wanted(cluster=_cluster, flops=_flops, servers=4, by_core=_core, power=_power, network=True)
        MADE[f"{_name}{'-by-core' * _core}{'-energy' * _power}"] = partial(grid5000_cluster, _wanted)


def written(name: str, folder: Path) -> Platform:
    """A platform of ours, read from its file."""
    path = folder / "platform.xml"
    write_platform(path, MADE[name]())
    return load_platform(path, energy=True)


def sample_pairs(platform: Platform) -> list[tuple[int, int]]:
    """Ids of different hosts: all pairs where they are few."""
    number = len(platform.hosts)
    if number <= 24:
        return list(permutations(range(number), 2))
    drawn = np.random.default_rng(1).integers(number, size=(300, 2))
    return [(int(a), int(b)) for a, b in drawn if a != b]


def expected_route(platform: Platform, a: int, b: int) -> dict[str, Any]:
    """How many links are between two hosts, and what they take."""
    if platform.topology is None:
        return {"links": 0, "latency": 0.0}
    hops = int(platform.distance(a, b)) + detour(platform.topology, a, b)
    return {"links": hops, "latency": pytest.approx(latency(platform.topology, hops), rel=1e-9)}


def detour(topology: Topology, a: int, b: int) -> int:
    """Hops that SimGrid's route in a dragonfly has more than the shortest, from 3.24 to 4.1 at least.

    When it goes to a router of another number in the same group, it takes the next hop from the first chassis, wherever
    it is: one too few into that chassis, one too many within another.
    """
    if not isinstance(topology, Dragonfly):
        return 0
    (chassis_a, router_a), (chassis_b, router_b) = (
        divmod(place // topology.nodes % (topology.chassis * topology.routers), topology.routers) for place in (a, b)
    )
    same_group = a // topology.hosts_per_group == b // topology.hosts_per_group
    if not same_group or router_a == router_b:
        return 0
    return int(chassis_b != 0) - int(chassis_a != chassis_b)


def latency(topology: Topology, hops: int) -> float:
    match topology:
        case FatTree(links=links):
            return 2 * sum(link.latency for link in links[: hops // 2])
        case Flat(link=link, backbone=Link() as backbone):
            return 2 * link.latency + backbone.latency
    return hops * topology.link.latency


def check(python: str, platform: Platform) -> None:
    """Hold hosts, pstates, watts, routes, and a task of ten seconds to what we say of them."""
    pairs = sample_pairs(platform)
    names = [host.name for host in platform.hosts]
    ways = [(platform.master, names[-1]), (names[-1], platform.master), (platform.master, names[0])]
    state = platform.hosts[-1].pstates[0]
    task = [[names[-1]], [10 * state.speed], [0.0]]
    found = probe(python, platform, [(names[a], names[b]) for a, b in pairs] + ways, [task])

    hosts = found["hosts"]
    assert sorted(hosts.keys() - {platform.master}, key=str.encode) == names  # Batsim's order of ids
    for host in platform.hosts:
        assert hosts[host.name]["speeds"] == pytest.approx([pstate.speed for pstate in host.pstates], rel=1e-14)
        assert hosts[host.name]["pstate"] == host.initial_pstate
        watts = [[p.idle, p.epsilon, p.full] for p in host.pstates] if platform.has_power else []
        assert hosts[host.name]["watts"] == watts
    assert found["routes"][: len(pairs)] == [expected_route(platform, a, b) for a, b in pairs]
    assert platform.topology is None or all(route["links"] for route in found["routes"][len(pairs) :])
    assert found["tasks"] == [{"seconds": pytest.approx(10), "joules": pytest.approx(10 * state.full)}]


@pytest.mark.parametrize("name", SHIPPED)
def test_simgrid_finds_what_we_do_in_shipped_platforms(name: str, python: str) -> None:
    check(python, load_platform(ROOT / f"platforms/{name}.xml", energy=True))


@pytest.mark.parametrize("name", MADE)
def test_simgrid_finds_what_we_do_in_made_platforms(name: str, python: str, tmp_path: Path) -> None:
    check(python, written(name, tmp_path))


@pytest.mark.parametrize(
    ("name", "hops"),
    [
        ("fat-tree", (2, 4, 6)),
        ("fat-tree-pruned", (2, 4, 6)),
        ("fat-tree-of-the-paper", (2, 4, 6)),
        ("fat-tree-with-levels", (2, 4, 6)),
        ("dragonfly", (2, 3, 4, 5, 6)),
        ("torus", (1, 2, 3, 4, 5)),
    ],
)
def test_a_parallel_task_takes_longer_across_than_within(
    name: str, hops: tuple[int, ...], python: str, tmp_path: Path
) -> None:
    """Two hosts that send each other a gigabyte, in the same switch, the same pod, another pod."""
    platform = written(name, tmp_path)
    from_first = platform.distance(0, np.arange(len(platform.hosts)))
    assert set(from_first.tolist()) == {0, *hops}
    others = [int(np.argmax(from_first == number)) for number in hops]
    tasks = [[[platform.hosts[0].name, platform.hosts[b].name], [0, 0], [0, BYTES, BYTES, 0]] for b in others]
    seconds = [task["seconds"] for task in probe(python, platform, [], tasks)["tasks"]]
    assert platform.topology is not None
    expected = [latency(platform.topology, number) + BYTES / LINK.bandwidth for number in hops]
    assert seconds == pytest.approx(expected, rel=1e-9)
    assert seconds == sorted(set(seconds))


def test_a_slow_link_between_pods_slows_what_crosses_it_down(python: str, tmp_path: Path) -> None:
    """All hosts of pod 0 send at once to those of pod 1: its four uplinks of a tenth of the rate are what they have."""
    slow = Link(LINK.bandwidth / 10, LINK.latency)
    path = tmp_path / "platform.xml"
    write_platform(path, networked(fat_tree(4, 2, [LINK, LINK, slow]), *PLAIN))
    platform = load_platform(path)
    within, across = [0, 1, 2, 3], [4, 5, 6, 7]
    sent = np.zeros((8, 8))
    sent[within, across] = BYTES
    task = [[host.name for host in platform.hosts], [0] * 8, sent.ravel().tolist()]
    (done,) = probe(python, platform, [], [task])["tasks"]
    assert done["seconds"] == pytest.approx(10 * BYTES / LINK.bandwidth, rel=1e-4)


def test_a_thousand_hosts_load_in_a_moment(python: str, tmp_path: Path) -> None:
    platform = written("fat-tree-of-the-paper", tmp_path)
    assert len(platform.hosts) == 1000
    assert probe(python, platform, [], [])["loading"] < 2
