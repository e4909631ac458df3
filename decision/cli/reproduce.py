"""``decision reproduce``: published or recorded results, and what this package gives for them.

Each command is an entry point of the group ``decision.papers``: its name, and a function as Typer takes it. This
package's own are in `decision.papers`; installed packages add theirs in the same way.
"""

from typing import Any

import typer

from .command import Deferred, Group, add_command


def _entry_points() -> Any:
    from importlib.metadata import entry_points  # other commands need no such modules

    return entry_points(group="decision.papers")


def _names() -> list[str]:
    return sorted(_entry_points().names)


def _add(app: typer.Typer, name: str) -> None:
    add_command(app, name, _entry_points()[name].load(), hidden=name in _OF_MAINTAINERS)


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


class Papers(Group):
    """The commands that are registered."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = Deferred(_names, _add)


app = typer.Typer(
    cls=Papers, no_args_is_help=True, help="Reproduce a published or recorded result and print its tables."
)
