"""Findings: what is wrong, where, and how to mend it."""

from collections.abc import Iterable

import msgspec

from decision.formats.xml_nodes import Node


class Finding(msgspec.Struct, frozen=True):
    """One mistake in a file."""

    line: int
    element: str  # as messages call it: <host> 'taurus-1'
    problem: str
    mend: str


def found(node: Node, problem: str, mend: str) -> Finding:
    """A finding about an element."""
    return Finding(node.line, node.element, problem, mend)


def grouped(findings: Iterable[Finding]) -> list[tuple[Finding, int]]:
    """The first of all findings with one problem and mend, and how many there are, in the order of lines."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in sorted(findings, key=lambda finding: finding.line):
        groups.setdefault((finding.problem, finding.mend), []).append(finding)
    return [(members[0], len(members)) for members in groups.values()]
