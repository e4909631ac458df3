"""Options that several commands share, and how their values are read."""

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from decision.model.errors import ConfigError

INPUT = "Input"
SWF = "Logs in the Standard Workload Format"
DEFAULT_TIMEOUT = 300.0  # seconds


class WalltimeName(StrEnum):
    """Where the walltimes of a log's jobs come from."""

    REQUESTED = "requested"
    RUNTIME = "runtime"
    NONE = "none"


PlatformOption = Annotated[
    Path,
    typer.Option("--platform", "-p", help="SimGrid platform XML.", metavar="FILE", rich_help_panel=INPUT),
]
WorkloadOption = Annotated[
    list[Path],
    typer.Option(
        "--workload", "-w", help="Batsim's JSON, or .swf; may be repeated.", metavar="FILE", rich_help_panel=INPUT
    ),
]
LogOption = Annotated[
    Path, typer.Option("--workload", "-w", help="Batsim's JSON, or .swf.", metavar="FILE", rich_help_panel=INPUT)
]
EventsOption = Annotated[
    list[Path] | None,
    typer.Option("--events", help="Batsim's external events; may be repeated.", metavar="FILE", rich_help_panel=INPUT),
]
EnergyOption = Annotated[
    bool, typer.Option("--energy", "-E", help="Simulate power states and energy.", rich_help_panel=INPUT)
]
OutputOption = Annotated[
    Path, typer.Option("--output", "-o", help="Folder for Batsim's output files.", metavar="FOLDER")
]
PolicyOption = Annotated[
    str,
    typer.Option(
        "--policy",
        help="A name that [bold]decision policies[/bold] lists, module:Class, ./file.py:Class, "
        "or pybatsim:module:Class.",
        metavar="POLICY",
    ),
]
PolicySettings = Annotated[
    list[str] | None,
    typer.Option("--option", "-O", help="An option of the policy; may be repeated.", metavar="NAME=VALUE"),
]
JobsOption = Annotated[
    str | None, typer.Option("--jobs", help="Keep these of the log's jobs only.", metavar="A:B", rich_help_panel=SWF)
]
NodesOption = Annotated[
    int | None, typer.Option("--nodes", help="Leave out jobs larger than this.", min=1, rich_help_panel=SWF)
]
WalltimeOption = Annotated[
    WalltimeName, typer.Option("--walltime", help="What a job's walltime is.", rich_help_panel=SWF)
]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of a policy that draws at random.", min=0)]
ProcessesOption = Annotated[
    int | None, typer.Option("--jobs", "-j", help="Simulations at a time; one per core if absent.", min=1)
]
TimeoutOption = Annotated[
    float,
    typer.Option("--timeout", help="Seconds to wait for the other end before giving up; 0 waits for ever.", min=0.0),
]


def read_settings(pairs: Iterable[str] | None, option: str = "--option") -> dict[str, str]:
    """Values by name from the ``name=value`` pairs of an option that may be repeated.

    Raises:
        ConfigError: for a pair without ``=`` or a name given twice.
    """
    settings: dict[str, str] = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise ConfigError(f"{option} {pair!r}: write it as name=value")
        if name in settings:
            raise ConfigError(f"{option} {name}: given twice, as {settings[name]!r} and {value!r}")
        settings[name] = value
    return settings


def read_range(text: str | None, option: str = "--jobs") -> slice | None:
    """A range of jobs or days from ``a:b``, ``a:`` or ``:b``.

    Raises:
        ConfigError: if it is written otherwise.
    """
    if text is None:
        return None
    first, colon, last = text.partition(":")
    if not colon or not all(part == "" or part.isdigit() for part in (first, last)):
        raise ConfigError(f"{option} {text!r}: write it as a:b, like 0:1000")
    return slice(int(first) if first else None, int(last) if last else None)
