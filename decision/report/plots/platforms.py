"""Pictures of a platform: its hosts where they are in the network, and the power of their pstates.

A fat-tree is drawn with its hosts in a row at the bottom and each level of switches above.
"""

from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from decision.experiments.descriptions import host_groups, pstate_uses
from decision.files.generate.platforms import describe_topology
from decision.model.hosts import fold_names
from decision.model.platform import Dragonfly, FatTree, Flat, Host, Platform, Torus
from decision.model.record import Floats, Ints
from decision.report.plots import paper

from .figures import explain, headline, new_figure, outer_legend, panels_in_row, save, styled

_GROUP_COLORS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
_USE_LOOKS = {  # colour and hatching
    "computing": ("#4477aa", ""),
    "asleep": ("#bbbbbb", "...."),
    "falling asleep": ("#aa3377", "\\\\\\\\"),
    "waking up": ("#ee6677", "////"),
}
_IDLE, _SWITCH, _LINK = "#a9c4dd", "#444444", "#999999"
_MOST_CHARTS = 3  # power charts, one for each kind of hosts
_LABELLED = 64  # hosts up to which each is labelled with its id
_FEWEST = 6  # pstates for which a chart has room
_POD_NAMES = {Dragonfly: "group", Torus: "plane", Flat: "switch"}


def draw_platform(platform: Platform, path: Path, title: str) -> None:
    """Write a picture of the hosts, coloured by kind, in their network, above the power of each kind's pstates.

    Args:
        platform: what is drawn; a fat-tree as its levels, anything else as blocks of hosts of one server, pod or rack.
        path: the file, .png, .svg or .pdf.
        title: the picture's title.

    Raises:
        ConfigError: if the file cannot be written or has another ending.
    """
    save(platform_figure(platform, title), path)


@styled
def platform_figure(platform: Platform, title: str) -> Figure:
    """The picture that `draw_platform` writes, as a figure."""
    groups = host_groups(platform)
    every = [group for group in groups if group[0].has_power]
    powered = every[:_MOST_CHARTS]
    across = panels_in_row(len(powered), 20) if powered else 1
    down = -(-len(powered) // across)
    high = 28 if isinstance(platform.topology, FatTree) or len(platform.hosts) > _LABELLED else 16
    figure = new_figure(high + 4 + 20 * down)
    grid = figure.add_gridspec(1 + down, across, height_ratios=(high, *[20] * down))
    headline(
        figure,
        f"{title}: {len(platform.hosts):,} hosts"
        + (f"\n{describe_topology(platform.topology, len(platform.hosts))}" if platform.topology else ""),
    )
    if powered:
        uses = dict.fromkeys(pstate.use for group in powered for pstate in pstate_uses(group[0]))
        looks = [(use, *_USE_LOOKS[use]) for use in uses]
        patches = [Patch(facecolor=c, hatch=hatch, edgecolor="white", label=use) for use, c, hatch in looks]
        outer_legend(figure, [Patch(color=_IDLE, label="idle"), *patches], below=True)
    if len(every) > len(powered):
        explain(figure, f"{len(every) - len(powered)} other kinds of hosts have power too")
    _draw_hosts(figure.add_subplot(grid[0, :]), platform, groups)
    for at, group in enumerate(powered):
        _draw_power(figure.add_subplot(grid[1 + at // across, at % across]), group)
    return figure


# --------------------------------------------------------------------------------------------------- hosts


def _draw_hosts(axes: Axes, platform: Platform, groups: Sequence[Sequence[Host]]) -> None:
    kind = {host.id: number for number, group in enumerate(groups) for host in group}
    colors = [_GROUP_COLORS[kind[host.id] % len(_GROUP_COLORS)] for host in platform.hosts]
    few = len(platform.hosts) <= _LABELLED
    if isinstance(platform.topology, FatTree):
        centres, size = _draw_tree(axes, platform, platform.topology)
        smooth = few  # many narrow boxes would blur into a pattern
    else:
        # What belongs together: a server's cores, a pod, or everything
        labels = [""] * len(platform.hosts)
        if any("server" in host.properties for host in platform.hosts):
            labels = [host.properties.get("server", host.name) for host in platform.hosts]
        elif platform.topology is not None:
            name = _POD_NAMES.get(type(platform.topology), "pod")
            labels = [f"{name} {pod}" for pod in platform.pod_of().tolist()]
        blocks: dict[str, list[int]] = {}
        for number, label in enumerate(labels):
            blocks.setdefault(label, []).append(number)
        # In rows of blocks, which are grids of hosts.
        largest = max(map(len, blocks.values()))
        width = _columns(largest, 3 if len(blocks) == 1 else 1)
        height = -(-largest // width)
        per_row = _columns(len(blocks), 3 * (height + 1.5) / (width + 1))
        centres, size, smooth = np.zeros((len(platform.hosts), 2)), (0.9, 0.9), True
        for number, (label, hosts) in enumerate(blocks.items()):
            left, top = number % per_row * (width + 1), -(number // per_row) * (height + 1.5)
            within = np.arange(len(hosts))
            centres[hosts] = np.column_stack((left + within % width, top - within // width))
            if len(blocks) > 1:
                axes.text(left - 0.5, top + 0.6, label, fontsize="x-small", va="bottom")
        axes.set_aspect("equal")
    corners = centres[:, None, :] + np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) * np.array(size) / 2
    boxes = PolyCollection(list(corners), facecolors=colors, linewidths=0, antialiaseds=smooth, snap=False, zorder=3)
    axes.add_collection(boxes)
    if few:
        for host, (x, y) in zip(platform.hosts, centres, strict=True):
            axes.text(x, y, str(host.id), ha="center", va="center", fontsize="x-small", color="white", zorder=4)
    columns = max(1, int(paper().columns // 24))
    handles = [Patch(color=c, label=_describe(group)) for group, c in zip(groups, _GROUP_COLORS, strict=False)]
    if rest := len(groups) - len(handles):
        handles.append(Patch(color="none", label=f"and {rest} other kinds"))
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.0), fontsize="small", ncols=columns)
    axes.autoscale_view()
    axes.set_axis_off()


def _describe(group: Sequence[Host]) -> str:
    names = " ".join(fold_names(host.name for host in group))
    short = names if len(names) <= 30 else f"{names[:26]} ..."
    return f"{short}\n{len(group):,} x {group[0].pstates[group[0].initial_pstate].speed / 1e9:g} Gflop/s"


def _columns(number: int, ratio: float) -> int:
    """Columns of a grid about `ratio` times as wide as high, whose last row is as full as can be."""
    least = int(np.ceil(np.sqrt(number * ratio)))
    return min(range(least, least + 4), key=lambda columns: -number % columns)


def _draw_tree(axes: Axes, platform: Platform, tree: FatTree) -> tuple[Floats, tuple[float, float]]:
    """Draw a fat-tree's switches and links; the middle of each host, (H, 2), and its width and height."""
    places = np.asarray(platform.places) if platform.places else np.arange(len(platform.hosts))
    links = list(tree_links(tree, places))
    width, alpha = (0.8, 1.0) if len(links) <= _LABELLED else (0.4, 0.5)
    axes.add_collection(LineCollection(links, colors=_LINK, linewidths=width, alpha=alpha, zorder=1))
    for level, all_switches in enumerate(tree_switches(tree), 1):
        switches = all_switches[_in_use(tree, level, places)]
        area = float(np.clip(2000 / len(switches), 3, 60))  # points squared: many fit, and few are no blocks
        axes.scatter(switches[:, 0], switches[:, 1], marker="s", s=area, color=_SWITCH, zorder=2)
        link = tree.links[level - 1]
        kind = "switch" if len(switches) == 1 else "switches"
        label = f"{len(switches):,} {kind} L{level - 1}\nlinks below {link.bandwidth * 8 / 1e9:g} Gbit/s"
        axes.text(-0.02, switches[0, 1], label, ha="right", va="center", fontsize="small")
    gap = 0.15 if len(places) <= _LABELLED else 0.0  # narrower ones would be rounded away unevenly
    return tree_hosts(tree)[places], ((1 - gap) / tree.nb_hosts, 0.05)


# --------------------------------------------------------------------------------------------------- power


def _draw_power(axes: Axes, group: Sequence[Host]) -> None:
    """A bar for each pstate: without load, and with it."""
    pstates = list(pstate_uses(group[0]))
    numbers = np.array([pstate.number for pstate in pstates])
    full = [max(pstate.state.full, pstate.state.idle) for pstate in pstates]
    computes = np.array([pstate.use == "computing" for pstate in pstates])
    axes.bar(
        numbers + 0.2 * computes,
        full,
        np.where(computes, 0.4, 0.8),
        color=[_USE_LOOKS[pstate.use][0] for pstate in pstates],
        hatch=[_USE_LOOKS[pstate.use][1] for pstate in pstates],
        edgecolor="white",
    )
    idle = [pstate.state.idle for pstate, computing in zip(pstates, computes, strict=True) if computing]
    axes.bar(np.array(numbers)[computes] - 0.2, idle, 0.4, color=_IDLE, edgecolor="white")
    for pstate, watts in zip(pstates, full, strict=True):
        if pstate.seconds is not None:
            axes.text(pstate.number, watts, f"{pstate.seconds:g} s", ha="center", va="bottom", fontsize="x-small")
    labels = [f"{p.number}\n{p.state.speed / 1e9:.4g}" if p.use == "computing" else f"{p.number}" for p in pstates]
    axes.set_xticks(numbers, labels, fontsize="x-small")
    axes.set_xlabel("pstate, and its speed in Gflop/s")
    axes.set_ylabel("watts")
    axes.set_title(_describe(group).partition("\n")[0])
    middle, half = (len(pstates) - 1) / 2, max(len(pstates) + 1, _FEWEST) / 2
    axes.set_xlim(middle - half, middle + half)
    axes.margins(y=0.12)


def tree_hosts(tree: FatTree) -> Floats:
    """The middle of each host by its place, (nb_hosts, 2), from 0 to 1 in both directions."""
    middle = (np.arange(tree.nb_hosts) + 0.5) / tree.nb_hosts
    return np.column_stack((middle, np.zeros_like(middle)))


def tree_switches(tree: FatTree) -> list[Floats]:
    """The middle of each switch, (switches, 2), for each level from the hosts up.

    The switches of a subtree are spread over its hosts; those of one subtree are neighbours.
    """
    levels = []
    for level in range(1, len(tree.down) + 1):
        number = prod(tree.down[level:]) * prod(tree.up[:level])
        middle = (np.arange(number) + 0.5) / number
        levels.append(np.column_stack((middle, np.full(number, level / len(tree.down)))))
    return levels


def _in_use(tree: FatTree, level: int, places: Ints) -> NDArray[np.bool_]:
    """Of each device of a level whether there are hosts below it, or it is one."""
    used = np.zeros(prod(tree.down[level:]), bool)
    used[places // prod(tree.down[:level])] = True
    return np.repeat(used, prod(tree.up[:level]))


def tree_links(tree: FatTree, places: Ints) -> Floats:
    """The two ends of each pair of connected devices that connect these places, (links, 2, 2)."""
    devices = [tree_hosts(tree), *tree_switches(tree)]
    links = []
    for level, (above, below) in enumerate(zip(tree.up, tree.down, strict=True)):
        in_subtree = prod(tree.up[:level])  # devices of this level that a subtree has
        device = np.arange(len(devices[level]))
        subtree, index = device // in_subtree, device % in_subtree
        first = subtree // below * (in_subtree * above) + index * above
        parents = first[:, None] + np.arange(above)
        used = _in_use(tree, level, places)
        lower = np.repeat(devices[level][used], above, axis=0)
        links.append(np.stack((lower, devices[level + 1][parents[used].ravel()]), axis=1))
    return np.concatenate(links)
