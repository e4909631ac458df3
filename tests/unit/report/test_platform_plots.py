"""Pictures of platforms: every host, switch and link is on them, and every pstate has a bar."""

import numpy as np
import pytest

from decision.files.generate.grid5000 import CLUSTERS
from decision.files.generate.platforms import Wanted, fat_tree, grid5000_cluster, networked, simple_cluster
from decision.model.errors import ConfigError
from decision.model.platform import Dragonfly, Link, PowerState

plots = pytest.importorskip("decision.report.plots.platforms")
from decision.experiments.descriptions import host_groups, pstate_uses  # noqa: E402
from decision.report.plots.platforms import tree_hosts, tree_links, tree_switches  # noqa: E402

LINK = Link(1.25e9, 1e-6)
STATE = (PowerState(1e9),)


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """Draws, and gives the figure that was saved and its file."""
    kept = []
    save = plots.save
    monkeypatch.setattr(plots, "save", lambda figure, path: (kept.append(figure), save(figure, path)))

    def draw(platform, name="p.png"):
        plots.draw_platform(platform, tmp_path / name, "title")
        return kept[-1], tmp_path / name

    return draw


def boxes(axes):
    """Lower left corners and sizes of the drawn hosts."""
    corners = np.array([path.vertices[:4] for path in axes.collections[-1].get_paths()])
    return corners.min(axis=1), np.ptp(corners, axis=1)


@pytest.mark.parametrize(
    "platform",
    [
        simple_cluster(7),
        grid5000_cluster(Wanted(cluster=CLUSTERS["orion"], by_core=True)),
        networked(fat_tree(4, 3, [LINK] * 3), STATE),
        networked(Dragonfly(2, 2, 3, 2, LINK), STATE),
    ],
    ids=["flat", "cores", "tree", "dragonfly"],
)
def test_every_host_has_a_box_of_its_own(drawn, platform):
    figure, _ = drawn(platform)
    corners, sizes = boxes(next(axes for axes in figure.axes if axes.collections))
    assert len(corners) == len(platform.hosts)
    offset = np.abs(corners[:, None] - corners[None, :]) - sizes[0]
    apart = (offset > -1e-9).any(axis=2) | np.eye(len(corners), dtype=bool)
    assert apart.all()


def test_hosts_are_in_the_legend_with_their_speed_and_pstates_have_a_bar_each(drawn):
    platform = grid5000_cluster(Wanted(cluster=CLUSTERS["taurus"], power=True))
    figure, file = drawn(platform)
    hosts, power = figure.axes
    assert [text.get_text() for text in hosts.get_legend().get_texts()] == ["taurus-[1-16]\n16 x 141.24 Gflop/s"]
    heights = [bar.get_height() for bar in power.patches[:16]]
    assert heights == [state.full for state in platform.hosts[0].pstates]
    assert [text.get_text() for text in power.texts] == ["6.1 s", "151.52 s"]
    assert file.read_bytes().startswith(b"\x89PNG")


def test_a_platform_without_power_is_drawn_without_charts_of_it(drawn):
    figure, file = drawn(grid5000_cluster(Wanted(cluster=CLUSTERS["gros"])), "p.svg")
    assert len(figure.axes) == 1
    assert b"<svg" in file.read_bytes()


def test_other_pictures_and_unwritable_folders_are_one_clear_line(drawn, tmp_path):
    with pytest.raises(ConfigError, match=r"p\.jpg: pictures are \.png, \.svg, \.pdf"):
        drawn(simple_cluster(2), "p.jpg")
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be written"):
        drawn(simple_cluster(2), "file/p.png")


@pytest.mark.parametrize(("radix", "pods"), [(4, 4), (4, 2), (6, 5)])
def test_a_drawn_tree_has_the_switches_and_links_of_the_tree(radix, pods):
    half = radix // 2
    tree = fat_tree(radix, pods, [LINK] * 3)
    assert [len(level) for level in tree_switches(tree)] == [half * pods, half * pods, half * half]
    links = tree_links(tree, np.arange(tree.nb_hosts))
    assert len(links) == tree.nb_hosts + 2 * half * half * pods
    for switches, down, up in zip(tree_switches(tree), (half, half, pods), (half, half, 0), strict=True):
        for switch in switches:
            at = (links == switch).all(axis=2)
            assert (at[:, 1].sum(), at[:, 0].sum()) == (down, up)
    assert len(np.unique(links.reshape(len(links), 4), axis=0)) == len(links)
    assert (np.isin(tree_hosts(tree)[:, 0], links[: tree.nb_hosts, 0, 0])).all()


def test_hosts_are_one_group_if_they_differ_in_name_and_server_only():
    cores = grid5000_cluster(Wanted(cluster=CLUSTERS["orion"], by_core=True, power=True))
    assert [len(group) for group in host_groups(cores)] == [48]
    uses = [pstate.use for pstate in pstate_uses(cores.hosts[0])]
    assert uses == ["computing"] * 13 + ["asleep", "falling asleep", "waking up"]
    seconds = [pstate.seconds for pstate in pstate_uses(cores.hosts[0])]
    assert seconds[13:] == [None, pytest.approx(6.1), pytest.approx(151.52)]
