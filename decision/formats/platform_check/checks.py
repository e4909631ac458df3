"""All checks of one file."""

import os
from collections.abc import Iterator

from decision.formats.files import read_bytes
from decision.formats.platform_xml import load_platform
from decision.formats.simgrid import BATSIM_SIMGRID, DOCTYPE, FORMAT, OLD_DOCTYPE, simgrid_version
from decision.formats.xml_nodes import ElementError, Node, read_xml
from decision.model.errors import InputError

from .energy import check_energy
from .finding import Finding, found
from .layout import check_layout
from .quantities import check_quantities
from .reach import check_reach
from .routes import check_routes
from .zones import read_zones


def check_platform(
    path: str | os.PathLike[str], simgrid: str = BATSIM_SIMGRID, master: str = "master_host"
) -> list[Finding]:
    """What is wrong with a platform file, in the order of its lines.

    Args:
        path: the XML file.
        simgrid: the version of SimGrid that will read it.
        master: the host that Batsim itself runs on.

    Raises:
        InputError: if the file is unreadable or no XML.
        ConfigError: if there is no such version.
    """
    version = simgrid_version(simgrid)
    root = read_xml(path)
    zones = read_zones(root)
    network = [*check_layout(root), *check_routes(zones)] or check_reach(zones)  # wrong routes lead nowhere anyway
    findings = [
        *_check_head(path, root),
        *check_quantities(root),
        *check_energy(root, version, master),
        *network,
    ]
    findings += _check_reading(path, root, master, {finding.element for finding in findings})
    return sorted(findings, key=lambda finding: finding.line)


def _check_head(path: str | os.PathLike[str], root: Node) -> Iterator[Finding]:
    """The DOCTYPE, which SimGrid's parser wants word for word, and the version."""
    head = b" ".join(read_bytes(path).partition(b"<platform")[0].split()).replace(b"'", b'"')
    if not any(f'<!DOCTYPE platform SYSTEM "{url}">'.encode() in head for url in (DOCTYPE, OLD_DOCTYPE)):
        mend = f'write <!DOCTYPE platform SYSTEM "{DOCTYPE}"> before it'
        yield found(root, "SimGrid reads no file without its own DOCTYPE", mend)
    version = root.attributes.get("version")
    if version in ("4", "4.0"):
        yield found(root, f"version {version} is of before SimGrid 3.16", f'write version="{FORMAT}"')


def _check_reading(path: str | os.PathLike[str], root: Node, master: str, known: set[str]) -> Iterator[Finding]:
    """What keeps Batsim from loading the file with energy, unless it is in an element with findings."""
    try:
        load_platform(path, energy=True, master=master)
    except ElementError as error:
        if error.node.element not in known:
            yield found(error.node, *_split(error.text))
    except InputError as error:
        yield found(root, *_split(str(error).removeprefix(f"{path}: ")))


def _split(text: str) -> tuple[str, str]:
    """Problem and mend of an error's text."""
    problem, _, mend = text.rpartition("; ")
    return (problem, mend) if problem else (mend, "correct it")
