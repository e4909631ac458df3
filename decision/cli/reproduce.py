"""``decision reproduce``: published or recorded results, and what this package gives for them.

Each command is an entry point of the group ``decision.papers``: its name, and a function that says what its options are
as `decision.cli.declared` does (or as Typer). Ours are in `decision.papers`; installed packages add theirs so.
"""

from typing import Any, cast

import click

from .command import Deferred, Group, command_of


def _entry_points() -> Any:
    from importlib.metadata import entry_points  # other commands need no such modules

    return entry_points(group="decision.papers")


def _names() -> list[str]:
    return sorted(_entry_points().names)


def _make(name: str) -> click.Command:
    return command_of(_entry_points()[name].load(), name, hidden=name in _OF_MAINTAINERS)


# Of who makes the shipped models again, and judges them or our intervals and forecasts; help does not list them, nor
# `hpcschedule`, another part of `topology`'s paper
_OF_MAINTAINERS = {
    "coverage",
    "held-out",
    "hpcschedule",
    "learned",
    "left-out",
    "packer",
    "ranking",
    "starts",
    "timetable",
}


app = Group("reproduce", no_args_is_help=True, help="Reproduce a published or recorded result and print its tables.")
app.commands = cast(Any, Deferred(_names, _make))
