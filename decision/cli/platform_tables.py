"""What the commands about platforms print: tables, or data in their place; commands import it when they print."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from decision.engine.rules import network_refusal
from decision.experiments.descriptions import host_groups, pstate_uses
from decision.files.generate.grid5000 import Grid5000Cluster
from decision.files.generate.platforms import describe_topology
from decision.files.platform_check import Finding, grouped
from decision.files.platform_check.structure import Links
from decision.model.hosts import fold_names, format_hosts
from decision.model.platform import Platform
from decision.model.table import Table

from .tables import count, print_json, print_table
from .terminal import say

_LONGEST = 60  # letters of a list of names


def print_platform(platform: Platform, links: Sequence[Links]) -> None:
    """Hosts and pstates by groups of equal hosts, then the network."""
    groups = host_groups(platform)
    head = f"{platform.path}: {len(platform.hosts):,} hosts"
    head += f", {len(platform.storage):,} for storage" if platform.storage else ""
    known = describe_topology(platform.topology, len(platform.hosts)) if platform.topology else "Topology: unknown."
    say(f"{head}; Batsim runs on {platform.master}.\n{known}")
    columns: Sequence[str] = ("hosts", "ids", ">number", ">Gflop/s", ">pstates", ">idle\nW", ">computing\nW", "role")
    rows: list[Sequence[str]] = []
    for group in groups:
        first = group[0]
        state = first.pstates[first.initial_pstate]
        watts = (f"{state.idle:g}", f"{state.full:g}") if first.has_power else ("-", "-")
        ids = _short(format_hosts(host.id for host in group))
        role = "storage" if first.id >= len(platform.hosts) else ""
        figures = (f"{len(group):,}", f"{state.speed / 1e9:g}", str(len(first.pstates)), *watts)
        rows.append((_folded(host.name for host in group), ids, *figures, role))
    shown = slice(None if platform.storage else -1)  # of compute hosts alone nobody asks the role
    print_table(Table("", columns[shown], [row[shown] for row in rows]))
    listed = set()
    for group in groups:
        kind = (group[0].pstates, group[0].sleep)
        if len(group[0].pstates) > 1 and kind not in listed:
            rows, first = [], group[0]
            for pstate in pstate_uses(first):
                computes, state = pstate.use == "computing", pstate.state
                watts = (f"{state.idle:g}", f"{state.full:g}" if computes else "") if first.has_power else ("-", "-")
                speed, takes = f"{state.speed / 1e9:g}" if computes else "", pstate.seconds
                rows.append((str(pstate.number), pstate.use, speed, *watts, "" if takes is None else f"{takes:g}"))
            columns = (">pstate", "use", ">Gflop/s", ">idle\nW", ">computing\nW", ">takes\ns")
            print_table(Table(f"pstates of {_folded(host.name for host in group)}", columns, rows))
        listed.add(kind)
    if links:
        body = []
        for one in links:
            number = "" if one.number is None else f"{one.number:,}"
            body.append((_short(" ".join(one.names)), number, one.kind.bandwidth, one.kind.latency, one.kind.sharing))
        print_table(Table("", ("links", ">number", ">bandwidth", ">latency", "sharing"), body))


def _folded(names: Iterable[str]) -> str:
    return _short(" ".join(fold_names(names)))


def _short(text: str) -> str:
    """At most as much of a long list as says what it is."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4].rsplit(' ', 1)[0]} ..."


def platform_document(platform: Platform, links: Sequence[Links]) -> dict[str, Any]:
    """What `print_platform` shows, as data."""
    groups = []
    for group in host_groups(platform):
        first = group[0]
        groups.append(
            {
                "hosts": [host.name for host in group],
                "ids": [host.id for host in group],
                "role": "storage" if first.id >= len(platform.hosts) else "compute",
                "has_power": first.has_power,
                "initial_pstate": first.initial_pstate,
                "pstates": [
                    {
                        "pstate": each.number,
                        "use": each.use,
                        "speed": each.state.speed,
                        "idle": each.state.idle if first.has_power else None,
                        "computing": each.state.full if first.has_power else None,
                        "switching_time": each.seconds,
                    }
                    for each in pstate_uses(first)
                ],
            }
        )
    return {
        "path": platform.path,
        "master": platform.master,
        "topology": None if platform.topology is None else describe_topology(platform.topology, len(platform.hosts)),
        "groups": groups,
        "links": links,
    }


def print_clusters(clusters: Sequence[Grid5000Cluster], as_json: bool) -> None:
    """One row of facts per cluster."""
    if as_json:
        print_json({"clusters": clusters})
        return
    rows = []
    for c in clusters:
        measured = "-" if c.measured is None else f"{c.measured / 1e9:g}"
        figures = (str(c.year), str(c.nodes), str(c.cores), measured, f"{c.theoretical / 1e9:g}")
        rows.append((c.name, c.site, *figures, c.network))
    columns = ("cluster", "site", ">year", ">nodes", ">cores", ">measured", ">theoretical", "network")
    print_table(Table("", columns, rows), caption="Gflop/s of one core")


def print_platform_findings(path: Path, findings: Sequence[Finding], platform: Platform | None, as_json: bool) -> None:
    """One line and its fix for each finding; equal ones of many elements once; and what links do to messages and to
    jobs that communicate, where there is a `platform` without findings."""
    delays = [route.latency for route in platform.routes[:-1]] if platform else []
    refusal = network_refusal(platform) if platform else ""
    if as_json:
        delay = {"least": min(delays), "most": max(delays)} if delays else None
        facts = {"path": path, "findings": findings, "message_delay": delay}
        print_json(facts | {"only_batsim_communicates": refusal or None})
        return
    lines = []
    for finding, number in grouped(findings):
        more = f" (and {number - 1:,} more like it)" if number > 1 else ""
        lines += [f"line {finding.line}, {finding.element}{more}: {finding.problem}", f"    {finding.fix}"]
    total = count(len(findings), "finding") if findings else "no findings"
    if delays:
        least, most = (f"{seconds * 1e6:g}" for seconds in (min(delays), max(delays)))
        late = f"{most} us" if least == most else f"{least} to {most} us"
        lines.append(f"messages cross the links: Batsim hears of the end of a job {late} late, one after the other;")
        lines.append("    without links (flat and grid5000: --no-network) it hears of it at once")
    if refusal:
        lines.append(f"jobs that communicate need a Batsim: {refusal}")
    elif platform:
        lines.append("jobs that communicate share its links, in the embedded engine as in Batsim")
    say("\n".join([*lines, f"{path}: {total}"]))
