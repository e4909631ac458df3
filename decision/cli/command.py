"""Commands on Typer: their help, their errors, their options' values, and options that several take as a group.

A command's help is short: of panels of options that few calls need (`FOLDED`) it has the names, and
``decision -v COMMAND --help`` explains them, too.
"""

import functools
import inspect
import os
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from decision.model.errors import ConfigError, DecisionError
from decision.model.hosts import nearest
from decision.report.plots import Paper, drawn_for

from .options import (
    PAPER,
    DpiOption,
    FormatOption,
    MissingWalltimeOption,
    NodesOption,
    PictureFormat,
    SelectOption,
    TimeFieldOption,
    TimeZoneOption,
    TypeSizeOption,
    WalltimeName,
    WalltimeOption,
    WidthOption,
    read_range,
)

if TYPE_CHECKING:
    from decision.files.workload import Selection

_TYPED = "decision.typed"  # key of a context's data


def add_command(app: typer.Typer, name: str, function: Callable[..., None], **settings: Any) -> None:
    """Register a command; `settings` are those of `typer.Typer.command`."""
    app.command(name, cls=Command, **settings)(function)


class Command(TyperCommand):
    """A command whose help is short, which takes an option once, and says which of its options repairs an error."""

    def get_params(self, ctx: Any) -> Any:
        """The parameters, as help shows them."""
        parameters = super().get_params(ctx)
        plain_types(parameters)
        return parameters

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; an option that has one value is refused a second time."""
        if not ctx.resilient_parsing:
            self._refuse_repeated(ctx, args)
        return super().parse_args(ctx, args)

    def _refuse_repeated(self, ctx: Any, arguments: Sequence[str]) -> None:
        """Refuse a second value for an option that has one: the first would be lost without a word."""
        _, _, order = self.make_parser(ctx).parse_args(args=list(arguments))
        for option, times in Counter(order).items():
            if times > 1 and not option.multiple and not getattr(option, "is_flag", True):
                raise ConfigError(f"{long_name(option.opts)}: given {times} times, and it takes one value")

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error says which of its options repairs it."""
        try:
            return super().invoke(ctx)
        except DecisionError as error:
            options = [parameter for parameter in self.params if parameter.param_type_name == "option"]
            name = next((long_name(option.opts) for option in options if option.name == error.field), None)
            if name is not None:
                error.add_note(name)
            raise

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help; of panels that few calls need the names alone, unless ``-v`` asks for all."""
        folded = {} if ctx.find_root().params.get("verbose") else _folded(self.params)
        epilog, options = self.epilog, [option for panel in folded.values() for option in panel]
        if folded:
            names = {panel: ", ".join(long_name(option.opts) for option in of) for panel, of in folded.items()}
            panels = [f"{panel.lower()} ({listed})" for panel, listed in names.items()]
            command = " ".join(ctx.command_path.split()[1:])
            self.epilog = f"More options, which decision -v {command} --help explains: {', '.join(panels)}."
        try:
            for option in options:
                option.hidden = True
            super().format_help(ctx, formatter)
        finally:
            self.epilog = epilog
            for option in options:
                option.hidden = False


# Panels of options that few calls need
FOLDED = ("Time limits", "How logs are read", "Many machines", "Pictures", "SimGrid version")


def _folded(parameters: Sequence[Any]) -> dict[str, list[Any]]:
    """The shown options of each panel of `FOLDED` that there is, by its name."""
    shown = [option for option in parameters if not getattr(option, "hidden", False)]
    panels = {name: [each for each in shown if getattr(each, "rich_help_panel", None) == name] for name in FOLDED}
    return {name: options for name, options in panels.items() if options}


def long_name(names: Sequence[str]) -> str:
    """The name of an option that is a word."""
    return next((name for name in names if name.startswith("--")), names[0])


class Group(TyperGroup):
    """A group of commands whose help shows flags as flags."""

    def get_params(self, ctx: Any) -> Any:
        """The parameters, as help shows them."""
        parameters = super().get_params(ctx)
        plain_types(parameters)
        return parameters


class Deferred(Mapping[str, Any]):
    """The commands of a group by name, each made once somebody asks for it: to make all takes longer than a short run.

    Args:
        names: says what there is, in the order of the help.
        add: adds the command of a name to an application.
    """

    def __init__(self, names: Callable[[], Collection[str]], add: Callable[[typer.Typer, str], None]) -> None:
        self._names, self._add = names, add

    def __getitem__(self, name: str) -> Any:
        if name not in self._names():
            raise KeyError(name)
        alone = typer.Typer(add_completion=False)
        self._add(alone, name)
        return typer.main.get_group(alone).commands[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())


# How help shows values, and how they are converted without pydantic, of which Typer makes a validator for each option:
# 0.1 s of each start.
#
# A value that is plainly of its option's type is taken here. Anything else, a wrong one above all, goes to Typer, which
# knows more spellings and says what is wrong.


def plain_types(parameters: Sequence[Any]) -> None:
    """Let help show flags without a value, and values in words instead of Python's types; convert values quickly."""
    for parameter in parameters:
        parameter._runtime_param = parameter._runtime_param or PlainValues()
        if "display_type_rich" not in vars(parameter):  # it is looked up where help is printed
            parameter.display_type_rich = partial(_shown_type, parameter, parameter.display_type_rich)


_TYPES = {
    "<int>": "N",
    "<int range>": "N",
    "<float>": "NUMBER",
    "<float range>": "NUMBER",
    "<str>": "TEXT",
    "<list[str]>": "",
    "<Path>": "PATH",
    "<list[Path]>": "",
}


def _shown_type(parameter: Any, display: Callable[[Any], str | None], ctx: Any) -> str | None:
    text = "" if getattr(parameter, "is_flag", False) else display(ctx) or ""
    if "|" in text:  # choices, of which none is broken
        text = text.strip("<>").removeprefix("list[").removesuffix("]").replace("|", " | ")
    return _TYPES.get(text, text) or None


class PlainValues:
    """Converts an option's values, in the place where Typer keeps what does (a private part of Typer's)."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value that a command gets, the same as Typer's; errors are Typer's."""
        kind, info = param.type_descriptor.annotation, param.type_descriptor.parameter_info
        try:
            if value is None:
                return () if param.multiple or param.nargs == -1 else None
            if get_origin(kind) is not list:
                return plain_value(value, kind, info)
            if isinstance(value, str) or not isinstance(value, Sequence):
                raise NotPlainError
            return [plain_value(each, get_args(kind)[0], info) for each in value]
        except NotPlainError:
            param._runtime_param = None
            return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


class NotPlainError(Exception):
    """A value is for Typer to judge."""


def plain_value(value: Any, kind: Any, info: Any) -> Any:
    """The value of an option.

    Args:
        value: a text, or already a value of the type.
        kind: the type.
        info: Typer's description of the option: its own parser, its range.

    Raises:
        NotPlainError: if it is not plainly of this type, in this range.
    """
    if info.parser is not None:
        try:
            return info.parser(value)
        except ValueError:
            raise NotPlainError from None
    if kind is str and isinstance(value, str):
        return value
    if kind in _PLAIN_NUMBERS:
        return _number(value, kind, info)
    if kind is Path and isinstance(value, str | Path):
        # Nothing is asked of it but that it can be read where it exists
        path = Path(value)
        asked = info.exists or info.writable or info.resolve_path or info.path_type is not None
        if asked or not (info.file_okay and info.dir_okay) or (path.exists() and not os.access(path, os.R_OK)):
            raise NotPlainError
        return path
    if isinstance(kind, type) and issubclass(kind, Enum):
        found = value if isinstance(value, kind) else next((each for each in kind if each.value == value), None)
        if found is not None:
            return found
    raise NotPlainError


_PLAIN_NUMBERS = {int: re.compile("-?[0-9]{1,15}"), float: re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")}


def _number(value: Any, kind: Any, info: Any) -> int | float:
    if isinstance(value, str) and _PLAIN_NUMBERS[kind].fullmatch(value):
        value = kind(value)
    if type(value) not in (int, kind) or info.clamp:
        raise NotPlainError
    if (info.min is not None and value < info.min) or (info.max is not None and value > info.max):
        raise NotPlainError
    return kind(value)


# What was typed: the command, an option, a file of options.


def note_command(context: Any, arguments: Sequence[str]) -> None:
    """Keep what was typed, for ``run.json`` and reports."""
    context.meta[_TYPED] = shlex.join(["decision", *arguments])


def typed_command(context: typer.Context) -> str:
    """What was typed, for a shell."""
    return str(context.meta.get(_TYPED, ""))


def is_given(context: typer.Context, name: str) -> bool:
    """Whether the user gave an option, by its name in Python, a value."""
    source = context.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "DEFAULT_MAP")


def refuse_unused(context: typer.Context, options: Mapping[str, bool], why: str) -> None:
    """Refuse an option that the user gave and that would do nothing in this call.

    Args:
        context: of the command.
        options: whether each has an effect, by its name in Python.
        why: when they have none.

    Raises:
        ConfigError: naming the option.
    """
    for name, used in options.items():
        if not used and is_given(context, name):
            raise ConfigError(f"{why}; leave the option out", field=name)


def read_config(context: Any, _parameter: Any, path: Path | None) -> Path | None:
    """Take the values of options from a TOML file, whose keys are the long names; those that are typed go first.

    Raises:
        ConfigError: if the file cannot be read, or a key is not an option of the command.
    """
    if path is None or context.resilient_parsing:
        return path
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML ({error}); write lines like windows = 50") from None
    known = {long_name(option.opts).removeprefix("--"): option for option in context.command.params}
    for name, value in found.items():
        if name in ("config", "help"):
            raise ConfigError(f"{path}: {name} is only for the command line; leave it out")
        if name not in known:
            raise ConfigError(f"{path}: {context.info_name} has no option --{name}{nearest(name, known)}")
        _check_values(f"{path}, {name}", known[name], value if isinstance(value, list) else [value])
        if isinstance(value, list) and not known[name].multiple:
            raise ConfigError(f"{path}, {name}: one value is needed; found a list")
        if known[name].multiple and not isinstance(value, list):
            found[name] = [value]
    context.default_map = {known[name].name: value for name, value in found.items()}
    return path


_TOML_TYPES: dict[type, tuple[tuple[type, ...], str]] = {  # by an option's type; text for all others
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
}


def _check_values(where: str, option: Any, values: Sequence[Any]) -> None:
    """Refuse values of another type than the option's. Raises ConfigError."""
    annotation = option.type_descriptor.annotation  # int, int | None, list[int]
    kinds = [kind for kind in (annotation, *get_args(annotation)) if kind in _TOML_TYPES]
    types, wanted = _TOML_TYPES[kinds[0]] if kinds else ((str,), "a text in quotes")
    for value in values:
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            shown = str(value).lower() if isinstance(value, bool) else repr(value)
            raise ConfigError(f"{where}: {wanted} is needed; found {shown}")


# Options that several commands have as a group: a command takes the group, and its users see the options.


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
        from decision.files.workload import Selection

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
    grouped_command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return grouped_command
