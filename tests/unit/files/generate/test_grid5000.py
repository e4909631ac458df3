"""Grid'5000's clusters: the published figures, and servers that are the sums of their cores."""

import pytest

from decision.files import load_platform, write_platform
from decision.files.generate.grid5000 import CLUSTERS, ETHERNET_LATENCY, find_cluster
from decision.files.generate.platforms import Wanted, describe_cluster, grid5000_cluster
from decision.model.errors import ConfigError
from decision.model.platform import Flat, Link

# nodes, cores, Gflop/s of a core: measured, theoretical
PUBLISHED = {
    "taurus": (16, 12, 11.77, 18.4),
    "orion": (4, 12, 11.90, 18.4),
    "graphite": (4, 16, 13.17, 16.0),
    "econome": (22, 16, 14.04, 17.6),
    "gros": (124, 18, 26.918, 35.2),
    "dahu": (32, 32, 12.79, 67.2),
    "paravance": (72, 16, 14.60, 38.4),
    "graphene": (144, 4, 8.024, 16.673),
    "chetemi": (15, 20, 15.69, 35.2),
    "parasilo": (28, 16, 18.72, 38.4),
    "nova": (23, 16, 16.12, 33.6),
    "paradoxe": (64, 52, None, 70.4),
}


def test_the_table_has_the_published_figures():
    facts = {
        name: (c.nodes, c.cores, c.measured and c.measured / 1e9, c.theoretical / 1e9) for name, c in CLUSTERS.items()
    }
    assert facts == {name: pytest.approx(row) for name, row in PUBLISHED.items()}


@pytest.mark.parametrize("name", ["taurus", "econome", "dahu"])
def test_a_measured_core_is_slower_than_its_peak_and_a_node_is_no_faster_than_its_cores_at_their_peak(name):
    facts = CLUSTERS[name]
    assert facts.measured < facts.theoretical
    assert facts.measured < facts.measured_node < facts.cores * facts.theoretical


def test_every_measured_figure_says_when_it_was_published():
    for facts in CLUSTERS.values():
        assert (facts.measured is None) == (facts.measured_in == "")


def test_a_speed_that_was_never_measured_is_refused_with_what_is_known():
    with pytest.raises(ConfigError, match=r"paradoxe.*only the theoretical 70.4 Gflop/s.*choose that") as caught:
        grid5000_cluster(Wanted(cluster=CLUSTERS["paradoxe"]))
    assert caught.value.field == "flops"
    wanted = Wanted(cluster=CLUSTERS["paradoxe"], flops="theoretical")
    assert grid5000_cluster(wanted).hosts[0].pstates[0].speed == pytest.approx(52 * 70.4e9)


def test_an_unknown_cluster_is_refused_with_those_that_are_known():
    with pytest.raises(ConfigError, match=r"'gross'; known are taurus, .*gros"):
        find_cluster("gross")


@pytest.mark.parametrize("name", ["taurus", "gros"])
def test_the_cores_of_a_server_are_neighbours_and_come_to_what_the_server_is(name):
    facts = CLUSTERS[name]
    servers, cores = (
        grid5000_cluster(Wanted(cluster=facts, servers=12, by_core=by_core, power=True)).hosts
        for by_core in (False, True)
    )
    assert len(cores) == 12 * facts.cores
    for k, server in enumerate(servers):
        own = cores[k * facts.cores : (k + 1) * facts.cores]
        assert {core.properties["server"] for core in own} == {server.name}
        for p, state in enumerate(server.pstates):
            assert sum(core.pstates[p].idle for core in own) == pytest.approx(state.idle, abs=1e-4)
            assert sum(core.pstates[p].full for core in own) == pytest.approx(state.full, abs=1e-4)
        assert sum(core.pstates[0].speed for core in own) == pytest.approx(server.pstates[0].speed)
        assert own[0].sleep == server.sleep
        assert own[0].pstates[server.sleep[0].switch_on].speed == server.pstates[server.sleep[0].switch_on].speed


def test_the_description_names_the_source_of_each_figure():
    text = describe_cluster(Wanted(cluster=CLUSTERS["graphite"], servers=5, by_core=True, power=True))
    for part in (
        "5 servers (there were 4)",
        "13.17 Gflop/s",
        "of 2013-12",
        "a server of taurus",
        "none of graphite are known",
    ):
        assert part in text.replace("\n", " ")


@pytest.mark.parametrize("by_core", [False, True])
def test_a_network_changes_nothing_for_the_embedded_engine_but_is_known(tmp_path, by_core):
    kept = []
    for network in (False, True):
        wanted = Wanted(cluster=CLUSTERS["orion"], by_core=by_core, power=True, network=network)
        write_platform(tmp_path / "p.xml", grid5000_cluster(wanted))
        kept.append(load_platform(tmp_path / "p.xml", energy=True))
    without, networked = kept
    assert [(h.name, h.pstates, h.sleep, h.properties) for h in networked.hosts] == [
        (h.name, h.pstates, h.sleep, h.properties) for h in without.hosts
    ]
    assert (without.topology, networked.topology) == (None, Flat(48 if by_core else 4, Link(1.25e9, ETHERNET_LATENCY)))


def test_cores_share_the_link_of_their_server(tmp_path):
    write_platform(tmp_path / "p.xml", grid5000_cluster(Wanted(cluster=CLUSTERS["orion"], by_core=True, network=True)))
    text = (tmp_path / "p.xml").read_text()
    assert text.count("<link id=") == 4 + 1  # the master's too
    assert text.count('up="orion-1_link_UP" down="orion-1_link_DOWN"') == 12
    assert 'bandwidth="1.25GBps" latency="100us"' in text
