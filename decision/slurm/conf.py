"""slurm.conf as it stands: lines, keys, nodes and partitions.

Keys are kept with the file and line that they come from, so that an error can name the place and a recommendation can
change one word of one line. What a key means is in `parameters`.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from decision.formats.files import read_bytes
from decision.model.errors import InputError

from .text import read_hosts

_PAIR = re.compile(r'([\w/:.-]+)\s*=\s*("[^"]*"|\S*)')
_TABLES = ("nodename", "partitionname", "nodeset", "downnodes", "frontendname", "switchname")
_DEEPEST = 10  # Includes in Includes


class ConfLine(msgspec.Struct, frozen=True):
    """A logical line: comments are gone, continued lines are joined."""

    text: str
    path: str
    number: int  # of its first line

    @property
    def place(self) -> str:
        """Where it is, for an error."""
        return f"{self.path}, line {self.number}"


class ConfEntry(msgspec.Struct, frozen=True):
    """A line of several pairs: ``NodeName=n[1-4] CPUs=8``, with what DEFAULT lines said before."""

    name: str  # of the node or partition, or the list of them
    pairs: Mapping[str, str]  # keys in lower case
    line: ConfLine


class Conf(msgspec.Struct, frozen=True):
    """What a slurm.conf says."""

    path: str
    keys: Mapping[str, str]  # of single keys, in lower case; the last one counts
    places: Mapping[str, ConfLine]  # the line of each of them
    nodes: tuple[ConfEntry, ...]
    partitions: tuple[ConfEntry, ...]
    files: tuple[str, ...]  # all that were read

    def get(self, key: str, default: str = "") -> str:
        """The value of a key, whatever its case."""
        return self.keys.get(key.lower(), default)

    @property
    def options(self) -> dict[str, str]:
        """SchedulerParameters by name in lower case; those without value are "yes"."""
        parts = (part.strip().partition("=") for part in self.get("SchedulerParameters").split(",") if part.strip())
        return {name.lower(): value or "yes" for name, _, value in parts}


def read_conf(path: Path) -> Conf:
    """Read a slurm.conf and all that it includes.

    Raises:
        InputError: naming file and line.
    """
    keys: dict[str, str] = {}
    places: dict[str, ConfLine] = {}
    tables: dict[str, list[ConfEntry]] = {"nodename": [], "partitionname": []}
    defaults: dict[str, dict[str, str]] = {}
    files: list[str] = []
    for line in _lines(path, files, 0):
        pairs = pairs_of(line)
        key, value = pairs[0]
        if key in _TABLES:
            _add_entry(key, value, dict(pairs[1:]), line, tables, defaults)
            continue
        for key, value in pairs:
            keys[key], places[key] = value, line
    if not keys and not any(tables.values()):
        raise InputError(f"{path}: nothing of a slurm.conf is in it; is it the right file?")
    return Conf(
        path=str(path),
        keys=keys,
        places=places,
        nodes=tuple(tables["nodename"]),
        partitions=tuple(tables["partitionname"]),
        files=tuple(files),
    )


def _add_entry(
    key: str,
    name: str,
    pairs: dict[str, str],
    line: ConfLine,
    tables: dict[str, list[ConfEntry]],
    defaults: dict[str, dict[str, str]],
) -> None:
    if name.upper() == "DEFAULT":
        defaults.setdefault(key, {}).update(pairs)
        return
    if key not in tables:
        return
    try:
        read_hosts(name)
    except ValueError:
        raise InputError(f"{line.place}: {name!r} is not a list of names; write it as n[1-16] or n1,n2") from None
    tables[key].append(ConfEntry(name, {**defaults.get(key, {}), **pairs}, line))


def _lines(path: Path, files: list[str], depth: int) -> Iterator[ConfLine]:
    if depth > _DEEPEST:
        raise InputError(f"{path}: included by itself, or more than {_DEEPEST} files deep; remove an Include")
    files.append(str(path))
    for line in logical_lines(path):
        word, _, rest = line.text.partition(" ")
        if word.lower() != "include":
            yield line
            continue
        target = Path(rest.strip())
        found = target if target.is_absolute() and target.exists() else path.parent / target
        if not found.is_file():
            found = path.parent / target.name
        if not found.is_file():
            raise InputError(f"{line.place}: the included file {target} is missing; put it next to {path.name}")
        yield from _lines(found, files, depth + 1)


def logical_lines(path: Path) -> Iterator[ConfLine]:
    """The lines that say something, with continued ones joined. Raises InputError."""
    begun, text = 0, ""
    for number, raw in enumerate(read_text(path).splitlines(), 1):
        part = re.sub(r"(?<!\\)#.*", "", raw).replace("\\#", "#").rstrip()
        begun = begun or number
        if part.endswith("\\"):
            text += part[:-1]
            continue
        text = re.sub(r",\s+", ",", text + part).strip()
        if text:
            yield ConfLine(text, str(path), begun)
        begun, text = 0, ""
    if text.strip():
        raise InputError(f"{path}, line {begun}: continued with \\ at the end of the file; is it complete?")


def read_text(path: Path) -> str:
    """A text file. Raises InputError."""
    data = read_bytes(path)
    if not data.strip():
        raise InputError(f"{path}: the file is empty")
    if b"\0" in data:
        raise InputError(f"{path}, line {data[: data.index(0)].count(10) + 1}: a zero byte; is it a text file?")
    return data.decode("utf-8-sig", errors="replace")


def pairs_of(line: ConfLine) -> list[tuple[str, str]]:
    """The pairs of a line, keys in lower case. Raises InputError if there are none, or something is between them."""
    pairs = [(key.lower(), value.strip('"')) for key, value in _PAIR.findall(line.text)]
    rest = _PAIR.sub("", line.text).strip()
    if not pairs or rest:
        found = rest or line.text
        raise InputError(f"{line.place}: {found[:60]!r} is not Key=Value; is it a file of Slurm's?")
    return pairs
