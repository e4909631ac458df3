"""Fat-trees of any radix, whole and pruned, and the commands that write platforms with a network."""

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from decision.cli import app as application
from decision.files import load_platform
from decision.files.generate.platforms import describe_topology, fat_tree, full_tree, networked
from decision.files.simgrid.values import format_bandwidth, format_latency, parse_bandwidth, parse_latency
from decision.model.errors import ConfigError, InputError
from decision.model.platform import Dragonfly, FatTree, Flat, Link, PowerState, Torus

REPOSITORY = Path(__file__).parents[4]
LINK = Link(12.5e9, 1e-6)


def decision(*arguments: str):
    return CliRunner().invoke(application.app, ["platform", *map(str, arguments)], env={"COLUMNS": "200"})


@pytest.mark.parametrize("radix", [2, 4, 8, 20])
def test_a_whole_fat_tree_has_a_quarter_of_the_cube_of_its_radix(radix: int) -> None:
    tree = fat_tree(radix, radix, [LINK] * 3)
    assert tree.nb_hosts == radix**3 // 4
    assert tree.pod_of().tolist() == np.repeat(np.arange(radix), radix**2 // 4).tolist()


def test_the_tree_of_the_topology_paper_has_a_thousand_hosts() -> None:
    """Lan et al. prune a fat-tree of radix 20 to 1,000 nodes: 10 pods of 10 switches of 10."""
    platform = load_platform(REPOSITORY / "platforms/fat_tree1000.xml", energy=True)
    assert platform.topology == fat_tree(20, 10, [LINK] * 3)
    assert [host.name for host in platform.hosts] == [f"node-{number}" for number in range(1000, 2000)]
    assert platform.distance(0, [0, 9, 10, 99, 100, 999]).tolist() == [0, 2, 4, 4, 6, 6]
    hops = platform.distance(np.arange(1000)[:, None], np.arange(1000)[None, :])
    counts = dict(zip(*np.unique(hops, return_counts=True), strict=True))
    assert counts == {0: 1000, 2: 1000 * 9, 4: 1000 * 90, 6: 1000 * 900}


@pytest.mark.parametrize(("radix", "pods"), [(5, 5), (0, 1), (-2, 1)])
def test_a_radix_is_even(radix: int, pods: int) -> None:
    with pytest.raises(ConfigError, match="even number of ports"):
        fat_tree(radix, pods, [LINK] * 3)


@pytest.mark.parametrize("pods", [0, 5])
def test_there_are_no_more_pods_than_ports(pods: int) -> None:
    with pytest.raises(ConfigError, match=rf"switches of 4 ports connect 1 to 4 pods; found {pods}"):
        fat_tree(4, pods, [LINK] * 3)


def test_more_than_a_million_hosts_are_refused() -> None:
    with pytest.raises(ConfigError, match="99,980,001 hosts are more than the 1,000,000"):
        networked(Torus((9999, 9999), LINK), (PowerState(1e9),))


@pytest.mark.parametrize(
    ("topology", "words"),
    [
        (fat_tree(4, 2, [LINK] * 3), ["8 hosts", "2 pods of 2 switches of 2", "6 across"]),
        (FatTree((4, 4), (1, 2), (1, 1), (LINK,) * 2), ["16 hosts in 2 levels", "2 to 4 hops"]),
        (Torus((4, 5), LINK), ["20 hosts, 4 x 5", "at most 4 hops"]),
        (Dragonfly(3, 2, 3, 2, LINK), ["36 hosts", "3 groups of 2 chassis of 3 routers of 2"]),
        (Flat(1500, LINK), ["1,500 hosts", "2 hops"]),
        (Flat(2, LINK, LINK), ["3 hops"]),
    ],
)
def test_a_topology_is_described(topology, words) -> None:
    text = describe_topology(topology)
    assert all(word in text for word in words), text


# ---------------------------------------------------------------------------------------------- commands


@pytest.mark.parametrize(
    ("arguments", "topology"),
    [
        (["fat-tree", "--radix", 4], fat_tree(4, 4, [LINK] * 3)),
        (
            ["fat-tree", "--radix", 6, "--pods", 2, "--simgrid", "3.24"],
            replace(fat_tree(6, 2, [LINK] * 3), pooled=True),
        ),
        (
            ["fat-tree", "--radix", 4, "--bandwidth", "10Gbps,10Gbps,40Gbps", "--latency", "1us,2us,3us"],
            fat_tree(4, 4, [Link(1.25e9, 1e-6), Link(1.25e9, 2e-6), Link(5e9, 3e-6)]),
        ),
        (["torus", "--dims", "4x3"], Torus((4, 3), LINK)),
        (
            ["dragonfly", "--groups", 2, "--chassis", 2, "--routers", 3, "--nodes", 1, "--cables", "3,2,1"],
            Dragonfly(2, 2, 3, 1, LINK, (3, 2, 1)),
        ),
        (["flat", "--hosts", 5, "--latency", "50us"], Flat(5, Link(12.5e9, parse_latency("50us")))),
    ],
)
def test_a_command_writes_the_topology_that_it_is_told(arguments, topology, tmp_path: Path) -> None:
    result = decision(*arguments, "-o", tmp_path / "p.xml")
    assert result.exit_code == 0, result.stderr
    platform = load_platform(tmp_path / "p.xml", energy=True)
    assert platform.topology == topology
    for host in platform.hosts:
        assert [(state.speed, state.idle, state.full) for state in host.pstates] == [(141.24e9, 95.0, 190.738)]
    assert f"platform {arguments[0]}, {arguments[1].strip('-')[0]}" in (tmp_path / "p.xml").read_text()


@pytest.mark.parametrize("command", ["fat-tree", "torus", "dragonfly", "flat"])
def test_a_command_shows_an_example(command: str) -> None:
    assert f"decision platform {command} --" in decision(command, "--help").stdout


@pytest.mark.parametrize(
    ("power", "pstates", "sleeps"), [("none", 1, False), ("taurus", 16, True), ("50:60:70", 1, False)]
)
def test_hosts_have_the_power_that_is_wanted(power: str, pstates: int, sleeps: bool, tmp_path: Path) -> None:
    result = decision("torus", "--dims", "2x2", "--speed", "2Gf", "--power", power, "-o", tmp_path / "p.xml")
    assert result.exit_code == 0, result.stderr
    (host, *_) = load_platform(tmp_path / "p.xml", energy=True).hosts
    assert (len(host.pstates), bool(host.sleep), host.has_power) == (pstates, sleeps, power != "none")
    assert host.pstates[0].speed == 2e9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fat-tree", "--radix", 4, "--bandwidth", "1,2"], "--bandwidth '1,2': give one value, or 3"),
        (["flat", "--hosts", 2, "--latency", "1s,2s"], "--latency '1s,2s': give one value"),
        (["flat", "--hosts", 2, "--bandwidth", "1Gb"], "the bandwidth '1Gb' is not a number and a unit"),
        (["flat", "--hosts", 0], "whole numbers of at least 1"),
        (["flat", "--hosts", 2, "--speed", "0f"], "--speed '0f': must be at least 1 flop/s"),
        (["flat", "--hosts", 2, "--speed", "1Mf", "--power", "taurus"], "must be at least 1e+09 flop/s"),
        (["flat", "--hosts", 2, "--power", "1:2,3:4"], "give taurus, none, or watts"),
        (["torus", "--dims", "4,4"], "write whole numbers like 4x4x4"),
        (["dragonfly", "--groups", 4, "--chassis", 1, "--routers", 3, "--nodes", 1], "at least as many routers"),
        (["dragonfly", "--groups", 1, "--chassis", 1, "--routers", 1, "--nodes", 1, "--cables", "1"], "like 2,1,1"),
    ],
)
def test_a_mistake_is_one_line_and_no_file(arguments, message: str, tmp_path: Path) -> None:
    result = decision(*arguments, "-o", tmp_path / "p.xml")
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


# -------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("text", "rate"),
    [("1.25GBps", 1.25e9), ("10Gbps", 1.25e9), ("100", 100.0), ("1MiBps", 1024.0**2), ("8Kibps", 1024.0)],
)
def test_bandwidths_are_bytes_or_bits(text: str, rate: float) -> None:
    assert parse_bandwidth(text) == rate


@pytest.mark.parametrize(("text", "seconds"), [("50us", 5e-5), ("1ms", 1e-3), ("2", 2.0), ("0s", 0.0), ("3ns", 3e-9)])
def test_latencies_have_the_units_of_simgrid(text: str, seconds: float) -> None:
    assert parse_latency(text) == pytest.approx(seconds, rel=1e-15)


@pytest.mark.parametrize("value", [0.0, 1e-6, 5e-5, 1.0, 3.3e-7, 1.25e9, 1 / 3, 1e13, 123456789.0])
def test_written_rates_and_latencies_are_read_again(value: float) -> None:
    assert parse_bandwidth(format_bandwidth(value)) == value
    assert parse_latency(format_latency(value)) == value


CLUSTER = '<cluster id="c" prefix="n" suffix="" radical="0-7" speed="1Gf" bw="{bw}" lat="1us" {rest}/>'


def load(tmp_path: Path, rest: str, bw: str = "1GBps", before: str = ""):
    path = tmp_path / "platform.xml"
    head = '<zone id="head" routing="Full"><host id="master_host" speed="1Gf"/></zone>'
    cluster = CLUSTER.format(bw=bw, rest=rest)
    path.write_text(f'<platform version="4.1"><zone id="z" routing="Full">{before}{cluster}{head}</zone></platform>')
    return load_platform(path)


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ('topology="TORUS" topo_parameters="3,3"', r"the TORUS '3,3' is of 9 hosts; there are 8"),
        ('topology="TORUS" topo_parameters="2x4"', "is not of the form 4,4,2"),
        ('topology="TORUS" topo_parameters="0,4"', "whole numbers of at least 1"),
        ('topology="TORUS"', "the TORUS '' is not of the form"),
        ('topology="FAT_TREE" topo_parameters="3;2,4;1,1;1,1"', "is not of the form 2;4,4;1,2;1,1"),
        ('topology="FAT_TREE" topo_parameters="2;2,4;1;1,1"', "as many numbers"),
        ('topology="DRAGONFLY" topo_parameters="2,1;2,1;1,1;2"', "2 groups needs at least as many routers"),
        ('topology="RING" topo_parameters="8"', "the topology 'RING' is none of FLAT, TORUS, FAT_TREE, DRAGONFLY"),
    ],
)
def test_a_cluster_that_simgrid_would_not_build_is_refused(rest: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        load(tmp_path, rest)
    assert "line 1, <cluster> 'c': " in str(caught.value)


def test_a_cluster_of_unreadable_bandwidth_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"<cluster> 'c': the bandwidth '1GB' is not a number and a unit"):
        load(tmp_path, "", bw="1GB")


def test_a_flat_cluster_may_have_a_backbone(tmp_path: Path) -> None:
    platform = load(tmp_path, 'bb_bw="2GBps" bb_lat="500us"')
    assert platform.topology == Flat(8, Link(1e9, 1e-6), Link(2e9, 5e-4))
    assert platform.distance(0, 7) == 3


def test_hosts_of_two_clusters_have_no_known_topology(tmp_path: Path) -> None:
    before = '<cluster id="d" prefix="m" suffix="" radical="0" speed="1Gf" bw="1GBps" lat="1us"/>'
    assert load(tmp_path, "", before=before).topology is None


def test_a_network_of_unequal_hosts_cannot_be_written(tmp_path: Path) -> None:
    from msgspec.structs import replace

    from decision.files import write_platform

    platform = networked(Torus((2, 2), LINK), (PowerState(1e9),))
    unequal = (*platform.hosts[:3], replace(platform.hosts[3], pstates=(PowerState(2e9),)))
    unnumbered = (*platform.hosts[:3], replace(platform.hosts[3], name="node-99"))
    for hosts in (unequal, unnumbered):
        with pytest.raises(ConfigError, match="a Torus is written as one <cluster>: its hosts must be equal"):
            write_platform(tmp_path / "p.xml", replace(platform, hosts=hosts))
    assert not list(tmp_path.iterdir())


def test_a_tree_of_any_sizes_has_as_many_links_up_as_devices_below():
    tree = full_tree([10, 4, 25], [LINK] * 3)
    assert (tree.down, tree.up, tree.cables) == ((10, 4, 25), (1, 10, 4), (1, 1, 1))
    assert describe_topology(tree).startswith("A fat-tree of 1,000 hosts in 25 pods of 4 switches of 10")
    assert full_tree([3, 2], [LINK] * 2).nb_hosts == 6
    assert full_tree((2, 2, 2), [LINK] * 3) == fat_tree(4, 2, [LINK] * 3)


def test_the_command_writes_trees_that_are_not_k_ary(tmp_path):
    file = tmp_path / "tree.xml"
    done = decision("fat-tree", "--down", "10,4,25", "-o", file)
    assert done.exit_code == 0, done.output
    assert "in 25 pods of 4 switches of 10" in done.output
    assert load_platform(file).topology == full_tree([10, 4, 25], [LINK] * 3)
    assert "down=10,4,25" in file.read_text()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ((), "give --radix, or --down"),
        (("--down", "10,4,25", "--radix", "4"), "leave --radix and --pods out"),
        (("--down", "10x4"), "write whole numbers like 10,4,25"),
        (("--down", "10,0"), "at least 1"),
        (("--down", "2,2,2,2", "--bandwidth", "1GBps,2GBps"), "give one value, or 4"),
    ],
)
def test_a_tree_that_cannot_be_made_is_refused_in_one_line(tmp_path, options, why):
    done = decision("fat-tree", *options, "-o", tmp_path / "tree.xml")
    assert isinstance(done.exception, (ConfigError, SystemExit))
    assert why in str(done.exception) + done.output
    assert not (tmp_path / "tree.xml").exists()
