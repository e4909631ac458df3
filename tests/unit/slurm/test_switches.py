"""topology.conf: switches below switches become a tree that allocations, hops and files know."""

import numpy as np
import pytest
from helpers.policy_toys import Toy

from decision.cli.network_options import LevelOptions
from decision.cli.platform import slurm_command
from decision.files import load_platform
from decision.model.errors import InputError
from decision.model.platform import Flat
from decision.policies.allocation import take_on_tree
from decision.policies.options import PolicyConfig
from decision.slurm.switches import read_switches
from decision.state.cluster import pack_hosts, platform_facts
from decision.state.plan_arrays import START, add, clear

TREE = """# two islands, and a leaf beside them
SwitchName=top Switches=island[0-1],leaf9 LinkSpeed=100
SwitchName=island0 Switches=leaf[0-2]
SwitchName=island1 Switches=leaf[3,4]   # smaller
SwitchName=leaf0 Nodes=n[1-3]
SwitchName=leaf1 Nodes=n[4-6]
SwitchName=leaf2 Nodes=n[7-8],\\
 gpu1
SwitchName=leaf3 Nodes=n[09-10]
SwitchName=leaf4 Nodes=n[11-14]
SwitchName=leaf9 Nodes=login
"""


def conf(folder, text):
    (folder / "topology.conf").write_text(text)
    return folder / "topology.conf"


def platform_of(folder, text):
    slurm_command(conf(folder, text), links=LevelOptions(), output=folder / "p.xml")
    return load_platform(folder / "p.xml")


def names(platform, hosts):
    return sorted(platform.hosts[host].name for host in hosts)


def test_switches_are_a_tree_as_wide_as_their_widest(tmp_path):
    tree = read_switches(conf(tmp_path, TREE))
    assert tree.down == (4, 3, 3)
    assert list(tree.places) == [f"n{i}" for i in range(1, 9)] + [
        "gpu1",
        "n09",
        *(f"n{i}" for i in range(10, 15)),
        "login",
    ]
    assert [tree.places[name] for name in ("n1", "n4", "n7", "n09", "n11", "login")] == [0, 4, 8, 12, 16, 24]


def test_its_platform_is_read_as_it_was_written_with_hops_up_to_the_lowest_common_switch(tmp_path):
    platform = platform_of(tmp_path, TREE)
    tree = read_switches(tmp_path / "topology.conf")
    assert {host.name: place for host, place in zip(platform.hosts, platform.places, strict=True)} == tree.places
    number = {host.name: host.id for host in platform.hosts}
    hops = [int(platform.distance(number["n7"], number[name])) for name in ("gpu1", "n1", "n09", "login")]
    assert hops == [2, 4, 6, 6]


@pytest.mark.parametrize(
    ("busy", "size", "expected"),
    [
        ((), 3, ["n1", "n2", "n3"]),  # of the leaves that fit exactly the first one
        ((), 4, ["n11", "n12", "n13", "n14"]),
        ((), 6, ["n09", "n10", "n11", "n12", "n13", "n14"]),  # the smaller island fits
        (("n11",), 4, ["n09", "n12", "n13", "n14"]),  # its fuller leaf, then the other
        (("n1", "n2", "n3", "n4", "n09"), 1, ["n10"]),  # the leaf with the fewest free hosts
    ],
)
def test_slurm_tree_takes_the_lowest_switch_that_fits_and_its_fullest_leaves(tmp_path, busy, size, expected):
    platform = platform_of(tmp_path, TREE)
    toy = Toy(len(platform.hosts), PolicyConfig())
    toy.facts = platform_facts(platform, energy=False)[0]
    toy.submit(size)
    free = np.array([host.name not in busy for host in platform.hosts])
    toy.state.free[:] = pack_hosts(free)
    toy.state.nb_free = free.sum()
    clear(toy.plan, toy.state)
    take_on_tree(toy.plan, toy.state, toy.facts, add(toy.plan, START, 0), toy.memory.prices, False)
    assert names(platform, toy.starts()[0][1]) == sorted(expected)


def test_one_switch_is_a_flat_network(tmp_path):
    platform = platform_of(tmp_path, "SwitchName=s0 Nodes=a,b,c\n")
    assert platform.topology == Flat(3, platform.topology.link)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\n", "topology.conf: no switch is above all others .a, b.; add"),
        ("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n", "line 2: there is a switch a already"),
        ("SwitchName=a Nodes=n1\nSwitchName=t Switches=a,b\n", "line 2: there is no switch b; add a line"),
        ("SwitchName=a Nodes=n1 Switches=b\nSwitchName=b Nodes=n2\n", "line 1: switch a has both Nodes and Switches"),
        ("SwitchName=t Switches=[a-b]\n", "line 1: 't?.*' is not a list of names"),
        ("SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n2\n", "line 2: node n2 is on switch a already"),
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a\n", "topology.conf: its switches are in a circle"),
        (
            "SwitchName=t Nodes=n1\nSwitchName=a Switches=b\nSwitchName=b Switches=a\n",
            "line 2: switch a is in a circle",
        ),
        ("BlockName=b1 Nodes=n[1-32]\n", "line 1: blockname is not known; only topology/tree is read"),
        ("SwitchName=t Switches=a\nSwitchName=a\n", "no switch has nodes"),
        ("a switch\n", "is not Key=Value"),
    ],
)
def test_what_is_no_tree_of_switches_is_refused_by_its_line(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_switches(conf(tmp_path, text))
