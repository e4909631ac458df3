"""Which hosts a job gets."""

from itertools import combinations

import msgspec
import numpy as np
import pytest
from helpers.policy_toys import Toy
from hypothesis import given, settings
from hypothesis import strategies as st

from decision.files import load_platform
from decision.files.generate.platforms import networked
from decision.model.errors import ConfigError
from decision.model.platform import Dragonfly, FatTree, Flat, Link, Platform, PowerState, Torus
from decision.policies import find_policy
from decision.policies.allocation import plan_start, take_near, take_on_tree
from decision.policies.options import Allocation, PolicyConfig
from decision.state.cluster import count_hops, network_codes, pack_hosts, platform_facts
from decision.state.plan_arrays import START, add, clear


def allocate(
    hosts: int,
    free: list[int],
    size: int,
    allocation: Allocation,
    seed: int = 0,
    job: int = 0,
    platform: Platform | None = None,
) -> list[int]:
    toy = Toy(hosts, PolicyConfig(allocation=allocation, seed=seed))
    if platform is not None:
        toy.facts = platform_facts(platform, energy=False)[0]
    for _ in range(job + 1):
        toy.submit(size)
    toy.state.free[:] = pack_hosts(np.isin(np.arange(hosts), free))
    toy.state.nb_free = len(free)
    clear(toy.plan, toy.state)
    if allocation in (Allocation.TREE, Allocation.SLURM_TREE):
        action, exact = add(toy.plan, START, job), allocation == Allocation.TREE
        take_on_tree(toy.plan, toy.state, toy.facts, action, toy.memory.prices, exact)
    elif allocation == Allocation.HOPS:
        take_near(toy.plan, toy.state, toy.facts, add(toy.plan, START, job))
    else:
        plan_start(toy.plan, toy.state, toy.facts, toy.config, job)
    chosen = toy.starts()[0][1]
    left = np.unpackbits(toy.plan.free.view(np.uint8), bitorder="little").nonzero()[0].tolist()
    assert sorted(chosen + left) == sorted(free), "the plan's free hosts are those not given"
    return chosen


def on_tree(down: tuple[int, ...], places: tuple[int, ...] = ()) -> Platform:
    links = (Link(1e9, 0.0),) * len(down)
    tree = FatTree(down, (1,) * len(down), (1,) * len(down), links)
    return msgspec.structs.replace(networked(tree, (PowerState(1e9),)), places=places)


FREE = [1, 2, 4, 5, 6, 7, 10, 11, 12]


@pytest.mark.parametrize(
    ("allocation", "size", "expected"),
    [
        (Allocation.LOWEST, 3, [1, 2, 4]),
        (Allocation.CONTIGUOUS, 2, [1, 2]),
        (Allocation.CONTIGUOUS, 3, [4, 5, 6]),
        (Allocation.CONTIGUOUS, 5, [1, 2, 4, 5, 6]),
        (Allocation.BEST_FIT, 1, [1]),
        (Allocation.BEST_FIT, 3, [10, 11, 12]),
        (Allocation.BEST_FIT, 4, [4, 5, 6, 7]),
        (Allocation.BEST_FIT, 5, [1, 2, 4, 5, 6]),
    ],
)
def test_hosts_are_chosen_as_the_slot_says(allocation, size, expected):
    assert allocate(16, FREE, size, allocation) == expected


@pytest.mark.parametrize("allocation", Allocation)
def test_runs_cross_the_words_of_a_bitmap(allocation):
    assert allocate(200, list(range(60, 140)), 80, allocation) == list(range(60, 140))


@pytest.mark.parametrize("hosts", [63, 64, 65, 128])
def test_the_last_host_of_the_platform_can_be_had(hosts):
    for allocation in Allocation:
        assert allocate(hosts, [hosts - 1], 1, allocation) == [hosts - 1]


def test_a_random_choice_depends_on_the_seed_and_on_the_job():
    hosts, drawn = list(range(64)), Allocation.SCATTERED
    choices = {(s, j): tuple(allocate(64, hosts, 8, drawn, s, j)) for s in (0, 1) for j in (0, 1)}
    assert len(set(choices.values())) == 4
    assert choices[0, 0] == tuple(allocate(64, hosts, 8, drawn, 0, 0))


def test_a_random_choice_favours_no_host():
    counts = np.zeros(10)
    for seed in range(1000):
        counts[allocate(10, list(range(10)), 3, Allocation.SCATTERED, seed)] += 1
    assert abs(counts - 300).max() < 75  # five standard deviations of 14.5


@given(st.sets(st.integers(0, 149), min_size=1), st.data(), st.sampled_from(list(Allocation)))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_a_job_gets_as_many_free_hosts_as_it_needs(free, data, allocation):
    size = data.draw(st.integers(1, len(free)))
    chosen = allocate(150, sorted(free), size, allocation)
    assert len(chosen) == size
    assert set(chosen) <= free
    run_exists = any(set(range(h, h + size)) <= free for h in free)
    if run_exists and allocation in (Allocation.CONTIGUOUS, Allocation.BEST_FIT):
        assert chosen == list(range(chosen[0], chosen[0] + size))


@pytest.mark.parametrize(
    ("allocation", "expected"), [(Allocation.TREE, [8, 9, 10, 11, 13]), (Allocation.SLURM_TREE, [0, 1, 2, 4, 5])]
)
def test_hosts_are_chosen_by_the_switches_that_connect_them(allocation, expected):
    free = [0, 1, 2, 4, 5, 8, 9, 10, 11, 13]  # 3 and 2 free hosts in one pod, 4 and 1 in the other
    assert allocate(16, free, 5, allocation, platform=on_tree((4, 2, 2))) == expected


@pytest.mark.parametrize("allocation", [Allocation.TREE, Allocation.SLURM_TREE])
def test_ids_need_not_count_along_the_tree(allocation):
    places = (0, 2, 1, 3)  # hosts 0 and 2 on the first switch
    assert allocate(4, [0, 1, 3], 2, allocation, platform=on_tree((2, 2), places)) == [1, 3]


@pytest.mark.parametrize("name", ["tree", "slurm-tree"])
@pytest.mark.parametrize(
    ("platform", "why"), [("torus64", "torus64.xml is a torus"), ("dragonfly64", "is a dragonfly"), ("toy", "unknown")]
)
def test_what_is_no_tree_is_refused_by_its_name(request, name, platform, why):
    hosts = load_platform(request.config.rootpath / "platforms" / f"{platform}.xml")
    with pytest.raises(ConfigError, match=f"policy easy: allocation={name} needs a fat-tree, and .*{why}"):
        find_policy(f"easy,allocation={name}").reset(hosts, 0)


TORUS, DRAGONFLY = Torus((4, 3), Link(1e9, 0.0)), Dragonfly(3, 2, 3, 2, Link(1e9, 0.0))


@pytest.mark.parametrize(
    ("topology", "free", "size", "expected"),
    [
        (TORUS, range(12), 5, [0, 1, 3, 4, 8]),  # a host and its four neighbours, across the ends
        (TORUS, [0, 2, 5, 6, 10], 3, [2, 6, 10]),  # a column
        (DRAGONFLY, [0, 3, 13, 14, 15, 30], 3, [13, 14, 15]),  # two routers of one group
        (DRAGONFLY, [0, 2, 7, 12, 24], 2, [0, 2]),
    ],
)
def test_hosts_that_are_few_hops_apart_are_chosen_on_any_network(topology, free, size, expected):
    platform = networked(topology, (PowerState(1e9),))
    assert allocate(topology.nb_hosts, list(free), size, Allocation.HOPS, platform=platform) == expected


@pytest.mark.parametrize("topology", [TORUS, DRAGONFLY, on_tree((3, 2, 2)).topology, Flat(9, Link(1e9, 0.0))])
def test_kernels_count_the_hops_that_the_topology_has(topology):
    places, network = np.arange(topology.nb_hosts), network_codes(topology)
    counted = [[count_hops(network, a, b) for b in places] for a in places]
    assert np.array_equal(counted, topology.distance(places[:, None], places))


@given(st.sampled_from([TORUS, DRAGONFLY]), st.data())
@settings(max_examples=100, deadline=None, derandomize=True)
def test_hosts_chosen_by_hops_are_less_than_twice_as_far_apart_as_the_nearest(topology, data):
    free = sorted(data.draw(st.sets(st.integers(0, topology.nb_hosts - 1), min_size=5, max_size=9)))
    size = data.draw(st.integers(2, 4))
    chosen = allocate(topology.nb_hosts, free, size, Allocation.HOPS, platform=networked(topology, (PowerState(1e9),)))
    all_pairs = [topology.distance(np.array(s)[:, None], np.array(s)).sum() for s in combinations(free, size)]
    assert topology.distance(np.array(chosen)[:, None], np.array(chosen)).sum() <= (2 - 2 / size) * min(all_pairs)


def test_hops_need_a_network():
    with pytest.raises(ConfigError, match=r"policy easy: allocation=hops needs a network, and .*toy.xml is unknown"):
        find_policy("easy,allocation=hops").reset(load_platform("toy"), 0)


def test_hosts_of_one_switch_are_alike():
    platform = networked(Flat(8, Link(1e9, 0.0)), (PowerState(1e9),))
    assert allocate(8, [1, 3, 4, 6], 3, Allocation.TREE, platform=platform) == [1, 3, 4]
