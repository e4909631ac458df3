"""The links that a platform file declares, equal ones together."""

import os
from collections.abc import Iterator, Sequence

import msgspec

from decision.model.names import fold_names

from .platform_check.zones import Zone, Zones, read_zones
from .xml_nodes import Node, read_xml


class LinkKind(msgspec.Struct, frozen=True):
    """What links that differ in name only have in common, as the file has it."""

    bandwidth: str
    latency: str
    sharing: str


class Links(msgspec.Struct, frozen=True):
    """Links of one kind."""

    names: tuple[str, ...]  # folded; "each of network" for those that a <cluster> makes
    number: int | None  # None where SimGrid makes as many as the topology needs
    kind: LinkKind


def read_links(path: str | os.PathLike[str]) -> list[Links]:
    """The links of a file: those that it names, and then those that its clusters make.

    Raises:
        InputError: if it is unreadable or no XML.
    """
    zones = read_zones(read_xml(path))
    kinds: dict[LinkKind, list[tuple[str, int | None]]] = {}
    for name, number, kind in (*_named(zones), *(made for zone in zones.all for made in _made(zone))):
        kinds.setdefault(kind, []).append((name, number))
    return [
        Links(tuple(fold_names(name for name, _ in members)), _sum([number for _, number in members]), kind)
        for kind, members in kinds.items()
    ]


def _named(zones: Zones) -> Iterator[tuple[str, int | None, LinkKind]]:
    return ((name, 1, _kind(node, "bandwidth", "latency", "SHARED")) for name, node in zones.links.items())


def _made(zone: Zone) -> Iterator[tuple[str, int | None, LinkKind]]:
    """The links that a <cluster> or a <cabinet> makes by itself."""
    if zone.is_cluster:
        number = len(zone.hosts) if zone.topology == "FLAT" else None
        yield f"each of {zone.name}", number, _kind(zone.node, "bw", "lat", "SPLITDUPLEX")
        if zone.node.attributes.get("bb_bw"):
            yield f"{zone.name}_backbone", 1, _kind(zone.node, "bb_bw", "bb_lat", "SHARED")
    for node in zone.node.children:
        if node.tag == "cabinet":
            number = sum(home is node for home in zone.hosts.values())
            yield f"each of {node.attributes.get('id', '')}", number, _kind(node, "bw", "lat", "SPLITDUPLEX")


def _kind(node: Node, bandwidth: str, latency: str, sharing: str) -> LinkKind:
    policy = sharing if bandwidth == "bb_bw" else node.attributes.get("sharing_policy", sharing)
    return LinkKind(node.attributes.get(bandwidth, ""), node.attributes.get(latency, "0s"), policy)


def _sum(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None
