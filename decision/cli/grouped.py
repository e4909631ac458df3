"""Options that several commands have as a group: a command takes the group, and its users see the options."""

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

from decision.analysis.plots.paper import Paper, drawn_for

from .options import (
    MissingWalltimeOption,
    NodesOption,
    SelectOption,
    TimeFieldOption,
    TimeZoneOption,
    WalltimeName,
    WalltimeOption,
)
from .picture_options import PAPER, DpiOption, FormatOption, PictureFormat, TypeSizeOption, WidthOption
from .readers import read_range

if TYPE_CHECKING:
    from decision.formats.selection import Selection


class Chosen(NamedTuple):
    """Which jobs of a log are used, and how, as the user wants it."""

    jobs: SelectOption = None
    nodes: NodesOption = None
    walltime: WalltimeOption = WalltimeName.REQUESTED
    time_field: TimeFieldOption = None
    time_zone: TimeZoneOption = None
    missing_walltime: MissingWalltimeOption = "none"

    def read(self) -> "Selection":
        """The selection that readers of logs take. Raises ConfigError."""
        from decision.formats.selection import Selection

        jobs = read_range(self.jobs) or slice(None)
        return Selection(
            jobs=(jobs.start or 0, jobs.stop),
            nodes=self.nodes,
            walltime=self.walltime.value,
            time_field=self.time_field,
            time_zone=self.time_zone,
            missing=self.missing_walltime,
        )


class Drawing(NamedTuple):
    """How pictures are drawn, as the user wants it."""

    suffix: FormatOption = PictureFormat.PNG
    width: WidthOption = PAPER.width
    type_size: TypeSizeOption = PAPER.type_size
    dpi: DpiOption = PAPER.dpi

    def begun(self) -> AbstractContextManager[None]:
        """A block in which pictures are drawn so."""
        return drawn_for(Paper(self.width, self.type_size, self.dpi, f".{self.suffix}"))


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command, in place of each group that it takes, the group's options: the fields of a named tuple."""
    signature = inspect.signature(command)
    groups = {
        name: each.annotation for name, each in signature.parameters.items() if hasattr(each.annotation, "_fields")
    }
    parameters: list[inspect.Parameter] = []
    for name, each in signature.parameters.items():
        if name not in groups:
            parameters.append(each.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        for option, kind in groups[name].__annotations__.items():
            default = groups[name]._field_defaults[option]
            own = inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            parameters.append(own)

    @functools.wraps(command)
    def grouped_command(*args: Any, **kwargs: Any) -> None:
        made = {
            name: group(**{option: kwargs.pop(option) for option in group._fields if option in kwargs})
            for name, group in groups.items()
        }
        command(*args, **made, **kwargs)

    del grouped_command.__wrapped__
    grouped_command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    grouped_command.__annotations__ = {each.name: each.annotation for each in parameters}
    return grouped_command
