"""``decision reproduce``: published or recorded results, and what this package gives for them.

Each command is an entry point of the group ``decision.papers``: its name, and a function as Typer takes it. This
package's own are in `decision.papers`; installed packages add theirs in the same way.
"""

from typing import Any

import typer

from .command import Deferred, Group, add_command
from .terminal import note


def _entry_points() -> Any:
    from importlib.metadata import entry_points  # other commands need no such modules

    return entry_points(group="decision.papers")


def _names() -> list[str]:
    return sorted(_entry_points().names)


def _add(app: typer.Typer, name: str) -> None:
    add_command(app, name, _entry_points()[name].load())


class Papers(Group):
    """The commands that are registered."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = Deferred(_names, _add)


class OldName(Papers):
    """The same under the name of the previous release."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        note("decision experiment is now decision reproduce; the next release will not accept the old name")
        return super().invoke(ctx)


app = typer.Typer(
    cls=Papers, no_args_is_help=True, help="Reproduce a published or recorded result and print its tables."
)
