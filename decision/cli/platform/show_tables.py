"""The tables of ``decision platform show``."""

from collections.abc import Iterable, Sequence

from rich import box
from rich.table import Table

from decision.analysis.platforms import host_groups, pstate_uses
from decision.formats.platform_links import Links
from decision.generate.topologies import describe_topology
from decision.model.hosts import format_hosts
from decision.model.names import fold_names
from decision.model.platform import Host, Platform

from ..terminal import stdout

_LONGEST = 60  # letters of a list of names


def print_platform(platform: Platform, links: Sequence[Links]) -> None:
    """Hosts and pstates by groups of equal hosts, then the network."""
    groups = host_groups(platform)
    head = f"{platform.path}: {len(platform.hosts):,} hosts"
    head += f", {len(platform.storage):,} for storage" if platform.storage else ""
    known = describe_topology(platform.topology) if platform.topology else "Topology: unknown."
    stdout().print(f"{head}; Batsim runs on {platform.master}.\n{known}", highlight=False, soft_wrap=True)
    _print_groups(groups, len(platform.hosts))
    shown = set()
    for group in groups:
        kind = (group[0].pstates, group[0].sleep)
        if len(group[0].pstates) > 1 and kind not in shown:
            _print_pstates(group)
        shown.add(kind)
    if links:
        _print_links(links)


def _print_groups(groups: Sequence[list[Host]], nb_compute: int) -> None:
    table = _table("hosts", "ids", ">number", ">Gflop/s", ">pstates", ">idle\nW", ">computing\nW", "role")
    for group in groups:
        first = group[0]
        state = first.pstates[first.initial_pstate]
        watts = (f"{state.idle:g}", f"{state.full:g}") if first.has_power else ("-", "-")
        ids = format_hosts(host.id for host in group)
        role = "storage" if first.id >= nb_compute else ""
        figures = (f"{len(group):,}", f"{state.speed / 1e9:g}", str(len(first.pstates)), *watts)
        table.add_row(_folded(host.name for host in group), _short(ids), *figures, role)
    if nb_compute == sum(map(len, groups)):
        table.columns.pop()
    stdout().print(table)


def _print_pstates(group: Sequence[Host]) -> None:
    title = f"pstates of {_folded(host.name for host in group)}"
    table = _table(">pstate", "use", ">Gflop/s", ">idle\nW", ">computing\nW", ">takes\ns", title=title)
    first = group[0]
    for pstate in pstate_uses(first):
        computes = pstate.use == "computing"
        speed = f"{pstate.state.speed / 1e9:g}" if computes else ""
        watts = (
            (f"{pstate.state.idle:g}", f"{pstate.state.full:g}" if computes else "") if first.has_power else ("-", "-")
        )
        takes = "" if pstate.seconds is None else f"{pstate.seconds:g}"
        table.add_row(str(pstate.number), pstate.use, speed, *watts, takes)
    stdout().print(table)


def _print_links(links: Sequence[Links]) -> None:
    table = _table("links", ">number", ">bandwidth", ">latency", "sharing")
    for one in links:
        number = "" if one.number is None else f"{one.number:,}"
        table.add_row(_short(" ".join(one.names)), number, one.kind.bandwidth, one.kind.latency, one.kind.sharing)
    stdout().print(table)


def _table(*headers: str, title: str | None = None) -> Table:
    """A table with these columns; figures, marked by >, to the right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    for header in headers:
        right = header.startswith(">")
        table.add_column(header.removeprefix(">"), justify="right" if right else "left", no_wrap=right)
    return table


def _folded(names: Iterable[str]) -> str:
    return _short(" ".join(fold_names(names)))


def _short(text: str) -> str:
    """At most as much of a long list as says what it is."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4].rsplit(' ', 1)[0]} ..."
