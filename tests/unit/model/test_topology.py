"""Hops, switches and pods of each topology, with answers counted by hand."""

import numpy as np
import pytest

from decision.model.errors import ConfigError
from decision.model.platform import Dragonfly, FatTree, Flat, Host, Link, Platform, PowerState, Topology, Torus

LINK = Link(1e9, 1e-6)
FOUR_ARY = FatTree((2, 2, 4), (1, 2, 2), (1, 1, 1), (LINK,) * 3)  # Lan et al., figure 1(a)


def all_pairs(topology: Topology) -> np.ndarray:
    places = np.arange(topology.nb_hosts)
    return topology.distance(places[:, None], places[None, :])


def test_a_fat_tree_counts_up_to_the_common_switch_and_down_again() -> None:
    assert FOUR_ARY.nb_hosts == 16
    assert FOUR_ARY.distance(0, [0, 1, 2, 3, 4, 15]).tolist() == [0, 2, 4, 4, 6, 6]
    assert FOUR_ARY.switch_of().tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7]
    assert FOUR_ARY.pod_of().tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4


def test_hosts_of_a_small_fat_tree_share_one_pod() -> None:
    assert FatTree((3,), (1,), (1,), (LINK,)).pod_of().tolist() == [0, 0, 0]
    assert FatTree((2, 2), (1, 2), (1, 1), (LINK,) * 2).pod_of().tolist() == [0, 0, 0, 0]


def test_a_torus_takes_the_shorter_way_round() -> None:
    torus = Torus((5, 3), LINK)
    assert torus.distance(0, [0, 1, 2, 3, 4, 5, 10, 14]).tolist() == [0, 1, 2, 2, 1, 1, 1, 2]
    assert torus.switch_of().tolist() == list(range(15))
    assert torus.pod_of().tolist() == [0] * 5 + [1] * 5 + [2] * 5


def test_a_dragonfly_leaves_a_group_by_the_router_of_the_other() -> None:
    dragonfly = Dragonfly(groups=3, chassis=2, routers=3, nodes=2, link=LINK)
    same_router, same_chassis, same_number, neither = 1, 2, 6, 8
    assert dragonfly.distance(0, [0, same_router, same_chassis, same_number, neither]).tolist() == [0, 2, 3, 3, 4]
    # from router 1 of group 0 to router 0 of group 1, and from the farthest to the farthest
    assert dragonfly.distance(2, 12) == 3
    assert dragonfly.distance(0 + 10, 12 + 10) == 7
    assert dragonfly.switch_of()[[0, 1, 2, 35]].tolist() == [0, 0, 1, 17]
    assert dragonfly.pod_of()[[0, 11, 12, 35]].tolist() == [0, 0, 1, 2]


def test_all_hosts_of_a_flat_cluster_are_equally_far() -> None:
    assert all_pairs(Flat(3, LINK)).tolist() == [[0, 2, 2], [2, 0, 2], [2, 2, 0]]
    assert Flat(3, LINK, backbone=LINK).distance(0, 2) == 3
    assert (Flat(3, LINK).switch_of().tolist(), Flat(3, LINK).pod_of().tolist()) == ([0, 0, 0], [0, 0, 0])


def platform(nb_hosts: int, topology: Topology | None, places: tuple[int, ...] = ()) -> Platform:
    hosts = tuple(Host(id=number, name=f"n{number}", pstates=(PowerState(1e9),)) for number in range(nb_hosts))
    return Platform(hosts=hosts, topology=topology, places=places)


def test_places_that_are_not_ids_are_looked_up() -> None:
    shuffled = platform(16, FOUR_ARY, (15, *range(15)))
    assert shuffled.distance(0, [0, 1, 15]).tolist() == [0, 6, 2]
    assert shuffled.distance(1, 2) == 2
    assert shuffled.switch_of()[:4].tolist() == [7, 0, 0, 1]
    assert shuffled.pod_of()[:2].tolist() == [3, 0]


def test_the_first_hosts_of_a_topology_keep_their_distances() -> None:
    first = platform(5, FOUR_ARY)
    assert first.distance(0, [1, 4]).tolist() == [2, 6]
    assert first.switch_of().tolist() == [0, 0, 1, 1, 2]


def test_an_unknown_topology_has_no_distances() -> None:
    with pytest.raises(ConfigError, match="the platform: its topology is unknown"):
        platform(2, None).distance(0, 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Torus((4, 0), LINK), "dimensions: whole numbers of at least 1 are needed; found 4, 0"),
        (lambda: Torus((), LINK), "dimensions: whole numbers"),
        (lambda: Flat(0, LINK), "hosts: whole numbers"),
        (lambda: FatTree((2, 2), (1,), (1, 1), (LINK,)), "as many numbers"),
        (lambda: Dragonfly(4, 1, 3, 1, LINK), "4 groups needs at least as many routers in a chassis; found 3"),
        (lambda: Link(0.0, 0.0), "found 0 B/s and 0 s"),
        (lambda: Link(1.0, float("nan")), "latency of at least 0 s"),
    ],
)
def test_what_cannot_be_built_is_refused(make, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()
