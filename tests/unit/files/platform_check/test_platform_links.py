"""Links of a platform file: what it names and what its clusters make, equal ones together."""

import pytest

from decision.files.platform_check.structure import LinkKind, declared_links

HEAD = '<platform version="4.1"><zone id="AS0" routing="Full">'
TAIL = "</zone></platform>"
CLUSTER = '<cluster id="{}" prefix="n" suffix="" radical="{}" speed="1f" bw="125MBps" lat="50us" {}/>'


def links(folder, body):
    (folder / "p.xml").write_text(HEAD + body + TAIL)
    return [(one.names, one.number, one.kind) for one in declared_links(folder / "p.xml")]


def test_equal_links_are_folded_into_one(tmp_path):
    body = "".join(f'<link id="l{n}" bandwidth="1GBps" latency="1us"/>' for n in (1, 2, 3))
    body += '<link id="up" bandwidth="1GBps" latency="2us" sharing_policy="FATPIPE"/>'
    assert links(tmp_path, body) == [
        (("l[1-3]",), 3, LinkKind("1GBps", "1us", "SHARED")),
        (("up",), 1, LinkKind("1GBps", "2us", "FATPIPE")),
    ]


@pytest.mark.parametrize(("more", "number"), [("", 4), ('topology="TORUS" topo_parameters="2,2"', None)])
def test_a_cluster_makes_a_link_for_each_host_or_as_its_topology_needs(tmp_path, more, number):
    kind = LinkKind("125MBps", "50us", "SPLITDUPLEX")
    assert links(tmp_path, CLUSTER.format("c", "0-3", more)) == [(("each of c",), number, kind)]


def test_the_links_of_equal_clusters_are_added_up_and_a_backbone_is_one_more(tmp_path):
    body = CLUSTER.format("c1", "0-3", "") + CLUSTER.format("c2", "4-9", 'bb_bw="1GBps" bb_lat="1us"')
    assert links(tmp_path, body) == [
        (("each of c[1-2]",), 10, LinkKind("125MBps", "50us", "SPLITDUPLEX")),
        (("c2_backbone",), 1, LinkKind("1GBps", "1us", "SHARED")),
    ]
