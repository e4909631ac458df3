"""All checks of one file."""

import os
from collections.abc import Iterator

from decision.formats.files import read_bytes
from decision.formats.platform_xml import load_platform
from decision.formats.simgrid import BATSIM_SIMGRID, DOCTYPE, OLD_DOCTYPE, PLATFORM_FORMAT, simgrid_version
from decision.formats.xml_nodes import ElementError, XmlNode, read_xml
from decision.model.errors import InputError

from .hosts import check_energy, check_quantities
from .network import check_layout, check_reach, check_routes
from .structure import Finding, finding_at, read_zones


def check_platform(
    path: str | os.PathLike[str], simgrid: str = BATSIM_SIMGRID, master: str = "master_host"
) -> list[Finding]:
    """The mistakes in a platform file, in the order of its lines.

    Args:
        path: the XML file.
        simgrid: the version of SimGrid that will read it.
        master: the host that Batsim itself runs on.

    Raises:
        InputError: if the file cannot be read or is not XML.
        ConfigError: if the version of SimGrid is unknown.
    """
    version = simgrid_version(simgrid)
    root = read_xml(path)
    zones = read_zones(root)
    network = [*check_layout(root), *check_routes(zones)] or check_reach(zones)  # wrong routes lead nowhere anyway
    findings = [*_check_head(path, root), *check_quantities(root), *check_energy(root, version, master), *network]
    findings += _check_reading(path, root, master, {finding.element for finding in findings})
    return sorted(findings, key=lambda finding: finding.line)


def _check_head(path: str | os.PathLike[str], root: XmlNode) -> Iterator[Finding]:
    """The DOCTYPE, which SimGrid's parser wants word for word, and the version."""
    head = b" ".join(read_bytes(path).partition(b"<platform")[0].split()).replace(b"'", b'"')
    if not any(f'<!DOCTYPE platform SYSTEM "{url}">'.encode() in head for url in (DOCTYPE, OLD_DOCTYPE)):
        fix = f'write <!DOCTYPE platform SYSTEM "{DOCTYPE}"> before it'
        yield finding_at(root, "SimGrid refuses files without its own DOCTYPE", fix)
    version = root.attributes.get("version")
    if version in ("4", "4.0"):
        yield finding_at(root, f"version {version} is older than SimGrid 3.16", f'write version="{PLATFORM_FORMAT}"')


def _check_reading(path: str | os.PathLike[str], root: XmlNode, master: str, known: set[str]) -> Iterator[Finding]:
    """The error with which Batsim would refuse the file (energy on), unless its element has findings already."""
    try:
        load_platform(path, energy=True, master=master)
    except ElementError as error:
        if error.node.element not in known:
            yield finding_at(error.node, *_split(error.text))
    except InputError as error:
        yield finding_at(root, *_split(str(error).removeprefix(f"{path}: ")))


def _split(text: str) -> tuple[str, str]:
    """Problem and fix of an error's text."""
    problem, _, fix = text.rpartition("; ")
    return (problem, fix) if problem else (fix, "correct it")
