"""The linter of platforms: each mistake is found once, where it is, with its mend; what is right has no findings."""

from pathlib import Path

import pytest

from decision.files import write_platform
from decision.files.generate.grid5000 import CLUSTERS
from decision.files.generate.platforms import Wanted, fat_tree, grid5000_cluster, networked
from decision.files.platform_check import check_platform, grouped
from decision.files.simgrid.values import DOCTYPE, format_bandwidth, parse_bandwidth
from decision.model.errors import ConfigError, InputError
from decision.model.platform import Dragonfly, Flat, Link, PowerState, Torus

BROKEN = Path(__file__).parents[1] / "broken"
PLATFORMS = Path(__file__).parents[4] / "platforms"
LINK = Link(1.25e9, 1e-6)

HEAD = f'<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "{DOCTYPE}">\n<platform version="4.1">\n'
MASTER = '<zone id="head" routing="Full"><host id="master_host" speed="1Gf"/></zone>\n'
CLUSTER = '<cluster id="c" prefix="n-" suffix="" radical="0-3" speed="1Gf" bw="125MBps" lat="50us"{}/>\n'
UPLINK = '<link id="up" bandwidth="1.25GBps" latency="100us"/>\n'
ROUTE = '<zoneRoute src="head" dst="c" gw_src="{}" gw_dst="{}"><link_ctn id="up"/></zoneRoute>\n'


def check(folder: Path, text: str, **options: str) -> list[tuple[int, str, str, str]]:
    path = folder / "p.xml"
    path.write_text(text)
    return [(f.line, f.element, f.problem, f.fix) for f in check_platform(path, **options)]


def zoned(body: str, routing: str = "Full") -> str:
    return f'{HEAD}<zone id="AS0" routing="{routing}">\n{body}</zone>\n</platform>\n'


def cluster(gw_src: str = "master_host", gw_dst: str = "n-c_router", more: str = "") -> str:
    return zoned(MASTER + CLUSTER.format(more) + UPLINK + ROUTE.format(gw_src, gw_dst))


def hosts(*properties: tuple[str, str], speed: str = "1Gf", **more: str) -> str:
    """A master, and a host on line 6 with these properties."""
    attributes = "".join(f' {key}="{value}"' for key, value in more.items())
    props = "".join(f'<prop id="{key}" value="{value}"/>' for key, value in properties)
    place = ' coordinates="0 0 0"'
    master = f'<host id="master_host" speed="1Gf"{place}/>\n'
    return zoned(f'{master}<host id="a" speed="{speed}"{place}{attributes}>{props}</host>\n', "Vivaldi")


def test_what_is_right_has_no_findings(tmp_path):
    assert check(tmp_path, cluster()) == []
    assert check(tmp_path, hosts(("wattage_per_state", "95:190"), ("wattage_off", "10"))) == []


@pytest.mark.parametrize("path", sorted(PLATFORMS.glob("*.xml")), ids=lambda path: path.stem)
def test_shipped_platforms_have_no_findings(path):
    assert check_platform(path) == []


@pytest.mark.parametrize("simgrid", ["3.24", "3.32"])
@pytest.mark.parametrize(
    "topology",
    [
        fat_tree(4, 3, [LINK] * 3),
        fat_tree(4, 4, [LINK, LINK, Link(5e9, 1e-6)]),
        Torus((2, 3, 2), LINK),
        Dragonfly(2, 2, 3, 2, LINK),
        Flat(5, LINK),
        Flat(5, LINK, LINK),
    ],
    ids=["tree", "uneven-tree", "torus", "dragonfly", "flat", "backbone"],
)
def test_made_networks_have_no_findings(tmp_path, topology, simgrid):
    platform = networked(topology, (PowerState(1e9, 95.0, 95.0, 190.0),))
    write_platform(tmp_path / "p.xml", platform, simgrid=simgrid)
    assert check_platform(tmp_path / "p.xml", simgrid) == []


@pytest.mark.parametrize("simgrid", ["3.24", "3.28", "4.0"])
@pytest.mark.parametrize("by_core", [False, True])
def test_made_clusters_have_no_findings_in_the_simgrid_they_are_for(tmp_path, simgrid, by_core):
    for network in (False, True):
        wanted = Wanted(cluster=CLUSTERS["graphite"], by_core=by_core, power=True, network=network)
        write_platform(tmp_path / "p.xml", grid5000_cluster(wanted), simgrid=simgrid)
        assert check_platform(tmp_path / "p.xml", simgrid) == []


@pytest.mark.parametrize(
    ("text", "line", "element", "problem", "mend"),
    [
        # gateways and routers
        (
            cluster("n-c_router", "master_host"),
            8,
            "<zoneRoute>",
            "the gateways are swapped; gw_src must be in 'head'",
            'write gw_src="master_host" gw_dst="n-c_router"',
        ),
        (
            cluster(gw_dst="c_router"),
            8,
            "<zoneRoute>",
            "gw_dst 'c_router': no router or host has this name",
            "the router of this cluster is 'n-c_router'",
        ),
        (
            cluster(gw_dst="c_router", more=' topology="TORUS" topo_parameters="2,2"'),
            8,
            "<zoneRoute>",
            "gw_dst 'c_router': no router or host has this name",
            "a cluster of topology TORUS has no router; take one of its hosts, such as 'n-0'",
        ),
        (
            cluster(gw_dst="master_host"),
            8,
            "<zoneRoute>",
            "gw_dst 'master_host' is not in the zone 'c' but in 'head'",
            "the router of this cluster is 'n-c_router'",
        ),
        (cluster().replace('dst="c"', 'dst="d"'), 8, "<zoneRoute>", "the zone 'd' does not exist", "correct its name"),
        (
            cluster().replace('link_ctn id="up"', 'link_ctn id="down"'),
            8,
            "<link_ctn> 'down'",
            "does not exist",
            "add it",
        ),
        # reachability
        (
            zoned(MASTER + CLUSTER.format("")),
            4,
            "<zone> 'AS0'",
            "2 of 2 members do not reach all others: no route from 'head' to 'c'",
            "add a <zoneRoute>",
        ),
        (
            zoned(MASTER + CLUSTER.format(""), "Floyd"),
            4,
            "<zone> 'AS0'",
            "1 of 2 members have no path to 'head', such as 'c'",
            "add a <zoneRoute>",
        ),
        (
            hosts().replace(' coordinates="0 0 0">', ">"),
            6,
            "<host> 'a'",
            "needs its coordinates",
            'coordinates="0 0 0"',
        ),
        (hosts().replace("Vivaldi", "None"), 4, "<zone> 'AS0'", "no host reaches another", "choose another routing"),
        (hosts().replace("Vivaldi", "Fulll"), 4, "<zone> 'AS0'", "the routing 'Fulll' is unknown", "take one of Full"),
        # bits, bytes and units
        (
            cluster().replace("1.25GBps", "10GBps"),
            7,
            "<link> 'up'",
            'bandwidth="10GBps" is 80 Gbit/s; networks of 10 Gbit/s are common',
            "write 1.25GBps for 10 Gbit/s, or 80Gbps if it is meant",
        ),
        (
            cluster().replace("125MBps", "125Mbps"),
            6,
            "<cluster> 'c'",
            'bw="125Mbps" is in bits; networks of 1 Gbit/s, 125MBps, are common',
            "write 125MBps for bytes, or 15.625MBps if it is meant",
        ),
        (cluster().replace("125MBps", "125000000"), 6, "<cluster> 'c'", "SimGrid reads bytes per second", "Bps"),
        (cluster().replace("125MBps", "1gbps"), 6, "<cluster> 'c'", "'1gbps' is not a number and a unit", "Bps"),
        (cluster().replace("50us", "50"), 6, "<cluster> 'c'", 'lat="50" has no unit; SimGrid reads seconds', "50us"),
        (cluster().replace("50us", "50s"), 6, "<cluster> 'c'", "longer than the latency of any network", "us or ms"),
        (hosts(speed="1"), 6, "<host> 'a'", "SimGrid reads flop/s", "1Gf"),
        # power
        (
            hosts(("wattage_per_state", "95:190"), speed="2Gf, 1Gf"),
            6,
            "<host> 'a'",
            "1 powers in 'wattage_per_state' for 2 pstates",
            "give one power per speed",
        ),
        (
            hosts(("watt_per_state", "95:190:190")),
            6,
            "<host> 'a'",
            "SimGrid 3.32 no longer reads 'watt_per_state'",
            "rename it 'wattage_per_state'",
        ),
        (hosts(("watt_off", "10")), 6, "<host> 'a'", "no longer reads 'watt_off'", "rename it 'wattage_off'"),
        (
            hosts(("wattage_per_sate", "95:190")),
            6,
            "<host> 'a'",
            "neither SimGrid nor Batsim reads",
            "was 'wattage_per_state' meant?",
        ),
        (hosts(("wattage_per_state", "190:95")), 6, "<host> 'a'", "more without load than with it", "idle first"),
        (hosts(("sleep_pstates", "1:2")), 6, "<host> 'a'", "'1:2' is not a triplet", "correct 'sleep_pstates'"),
        (hosts(speed="1Gf, 0f"), 6, "<host> 'a'", "pstate 1 has speed 0: a job would never end", "1Gf"),
        (
            hosts(("sleep_pstates", "1:2:3"), speed="1Gf, 1f, 0f, 1f"),
            6,
            "<host> 'a'",
            "pstate 2 has speed 0: a switch would never end",
            "0.1f for 10 s",
        ),
        (
            hosts(("sleep_pstates", "1:2:3"), speed="1Gf, 0f, 1f, 1f", pstate="1"),
            6,
            "<host> 'a'",
            "it starts in pstate 1",
            'pstate="0"',
        ),
        # the file as a whole
        (hosts().replace("master_host", "boss"), 3, "<platform> '4.1'", "one master host (found: none)", "add <host"),
        (hosts().replace(f'<!DOCTYPE platform SYSTEM "{DOCTYPE}">', ""), 3, "<platform> '4.1'", "DOCTYPE", DOCTYPE),
        (hosts().replace("simgrid.org", "example.org"), 3, "<platform> '4.1'", "its own DOCTYPE", DOCTYPE),
        (hosts().replace("4.1", "4"), 3, "<platform> '4'", "version 4 is older than", 'version="4.1"'),
        (hosts().replace("4.1", "3"), 3, "<platform> '3'", "only versions 4 and 4.1 are read", "simgrid_update_xml"),
        (hosts().replace('id="a"', 'id="master_host"'), 6, "<host> 'master_host'", "exists already", "names unique"),
        (hosts().replace('id="a" ', 'id="a" cores="2" '), 6, "<host> 'a'", "no attribute 'cores'", "correct its name"),
        (
            zoned(MASTER + '<host id="a" speed="1Gf"/>\n', "None"),
            6,
            "<host> 'a'",
            "has both hosts or routers and zones or clusters",
            "a zone of their own",
        ),
        (
            zoned(MASTER).replace(
                "</platform>", '<zone id="B" routing="Full"><host id="b" speed="1f"/></zone></platform>'
            ),
            7,
            "<zone> 'B'",
            "several top-level zones",
            "into one",
        ),
        (
            zoned(CLUSTER.format("") + UPLINK + ROUTE.format("master_host", "n-c_router") + MASTER),
            4,
            "<zone> 'AS0'",
            "last",
            "",
        ),
    ],
)
def test_a_mistake_is_found_once_where_it_is(tmp_path, text, line, element, problem, mend):
    ((at, where, wrong, what_to_do),) = check(tmp_path, text)
    assert (at, where) == (line, element)
    assert problem in wrong
    assert mend in what_to_do


@pytest.mark.parametrize("gigabytes", [0.125, 1.0, 1.25, 2.5, 5.0, 10.0, 12.5, 25.0, 80.0, 100.0, 400.0, 1000.0])
def test_what_we_write_is_never_taken_for_bits_in_bytes(tmp_path, gigabytes):
    bandwidth = format_bandwidth(gigabytes * 1e9)
    assert parse_bandwidth(bandwidth) == gigabytes * 1e9
    assert check(tmp_path, cluster().replace("1.25GBps", bandwidth)) == []


def test_all_mistakes_are_found_at_once_and_equal_ones_are_grouped(tmp_path):
    body = "".join(f'<host id="h{n}" speed="1Gf, 0f" coordinates="0 0 0"/>\n' for n in range(5))
    path = tmp_path / "p.xml"
    path.write_text(zoned(body, "Vivaldi"))
    findings = check_platform(path)
    assert [finding.line for finding in findings] == [3, 5, 6, 7, 8, 9]
    assert [(first.line, number) for first, number in grouped(findings)] == [(3, 1), (5, 5)]


def test_names_of_power_are_judged_for_the_version_that_reads_them(tmp_path):
    old, new = hosts(("watt_per_state", "95:190:190")), hosts(("wattage_per_state", "95:190"))
    both = hosts(("watt_per_state", "95:190:190"), ("wattage_per_state", "95:190"))
    clean = {
        version: [not check(tmp_path, text, simgrid=version) for text in (old, new, both)]
        for version in ("3.23", "3.24", "3.27", "3.28", "4.0")
    }
    assert clean == {
        "3.23": [True, False, True],
        "3.24": [True, True, True],
        "3.27": [True, True, True],
        "3.28": [False, True, True],
        "4.0": [False, True, True],
    }


def test_some_hosts_without_power_are_found_among_others_with_it(tmp_path):
    text = hosts(("wattage_per_state", "95:190")).replace(
        "</zone>", '<host id="b" speed="1Gf" coordinates="0 0 0"/>\n</zone>'
    )
    ((line, element, problem, _),) = check(tmp_path, text)
    assert (line, element, problem) == (7, "<host> 'b'", "no power is given, but other hosts have it")


def test_the_master_may_have_another_name_and_needs_neither_power_nor_speed(tmp_path):
    text = hosts(("wattage_per_state", "95:190")).replace("master_host", "boss")
    assert check(tmp_path, text, master="boss") == []


def test_hosts_around_a_switch_need_a_host_link_each(tmp_path):
    text = hosts().replace("Vivaldi", "Cluster")
    assert [(line, problem[:26]) for line, _, problem, _ in check(tmp_path, text)] == [
        (5, "no <host_link> connects it"),
        (6, "no <host_link> connects it"),
    ]


def test_a_router_that_is_no_gateway_needs_no_routes(tmp_path):
    body = (
        '<host id="master_host" speed="1f"/><host id="a" speed="1Gf"/><router id="r"/>'
        '<link id="l" bandwidth="1.25GBps" latency="1us"/><route src="a" dst="master_host"><link_ctn id="l"/></route>'
    )
    assert check(tmp_path, zoned(body)) == []


def test_a_link_of_two_directions_needs_one_in_its_routes(tmp_path):
    body = (
        '<host id="master_host" speed="1f"/><host id="a" speed="1Gf"/>'
        '<link id="l" bandwidth="1.25GBps" latency="1us" sharing_policy="SPLITDUPLEX"/>'
        '<route src="a" dst="master_host"><link_ctn id="l"/></route>'
    )
    ((_, element, problem, _),) = check(tmp_path, zoned(body))
    assert (element, "does not say which it takes" in problem) == ("<link_ctn> 'l'", True)
    for mended in ('<link_ctn id="l" direction="UP"/>', '<link_ctn id="l_UP"/>'):
        assert check(tmp_path, zoned(body.replace('<link_ctn id="l"/>', mended))) == []


def test_deep_zones_do_not_exhaust_the_stack(tmp_path):
    depth = 3000
    inner = "".join(f'<zone id="z{n}" routing="Full">' for n in range(depth)) + "{}" + "</zone>" * depth
    text = zoned(inner.format('<host id="master_host" speed="1f"/>'))
    assert [finding[2] for finding in check(tmp_path, text)] == ["no compute host"]


def test_what_is_no_xml_and_what_is_no_version_are_errors(tmp_path):
    with pytest.raises(InputError, match="not well-formed"):
        check(tmp_path, "<platform")
    with pytest.raises(ConfigError, match=r"such as 3\.24"):
        check(tmp_path, cluster(), simgrid="latest")


@pytest.mark.parametrize("path", sorted(BROKEN.glob("*.xml")), ids=lambda path: path.name)
def test_every_broken_file_has_findings_or_is_refused(path):
    try:
        assert check_platform(path)
    except InputError as error:
        assert len(str(error).splitlines()) == 1
