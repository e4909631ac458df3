"""What annotations say of a command's arguments and options, and the parameters of click that these become.

``Annotated[int, Option("--seed", help="Random seed.", min=0)]`` is all that a command says of an option; its default is
that of the argument in Python. ``T | None``, ``list[T]`` (may be repeated), ``list[tuple[str, str]]`` (two words each)
are known, of `T` text, whole numbers, numbers, paths, enumerations and literals.
"""

import inspect
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import click

AnyCommand = TypeVar("AnyCommand", bound=click.Command)


class Declared:
    """What an annotation says of an option or an argument.

    Args:
        names: of an option, ``--long`` and ``-s``.
        help: a sentence.
        metavar: what stands for the value in help; by default a word for its type.
        min: the least number.
        max: the largest number.
        parser: makes the value of a text, and raises ValueError or ConfigError.
        callback: as click has it: takes the context, the parameter and the value, and gives the value.
        is_eager: it is read before the others are.
        hidden: help does not show it.
        show_default: whether help shows the default; or what it says of it.
        panel: the heading under which help shows it.
        case_sensitive: of words that are chosen from.
        exists: the path must be there.
        file_okay: the path may be a file.
        dir_okay: the path may be a folder.
    """

    def __init__(
        self,
        *names: str,
        help: str = "",
        metavar: str | None = None,
        min: float | None = None,
        max: float | None = None,
        parser: Callable[[str], Any] | None = None,
        callback: Callable[[click.Context, click.Parameter, Any], Any] | None = None,
        is_eager: bool = False,
        hidden: bool = False,
        show_default: bool | str = True,
        panel: str = "",
        case_sensitive: bool = True,
        exists: bool = False,
        file_okay: bool = True,
        dir_okay: bool = True,
    ) -> None:
        self.names, self.help, self.metavar, self.panel = names, help, metavar, panel
        self.min, self.max, self.parser, self.case_sensitive = min, max, parser, case_sensitive
        self.callback, self.is_eager, self.hidden, self.show_default = callback, is_eager, hidden, show_default
        self.exists, self.file_okay, self.dir_okay = exists, file_okay, dir_okay


class Option(Declared):
    """An option of a command, by its names."""


class Argument(Declared):
    """An argument of a command, by its place."""


def make_command(function: Callable[..., None], name: str, kind: type[AnyCommand], **settings: Any) -> AnyCommand:
    """A command of click that calls a function.

    Args:
        function: its docstring is the help. It may take a `click.Context`, and groups of options: named tuples, whose
            fields are options of the command.
        name: of the command.
        kind: a class of commands.
        settings: of that class.
    """
    signature = inspect.signature(function, eval_str=True)
    groups = {
        name: each.annotation for name, each in signature.parameters.items() if hasattr(each.annotation, "_fields")
    }
    contexts = [
        name for name, each in signature.parameters.items() if getattr(each.annotation, "__name__", "") == "Context"
    ]
    plain: dict[str, inspect.Parameter] = {}
    for key, each in signature.parameters.items():
        if key in groups:
            defaults = groups[key]._field_defaults
            for field, annotation in groups[key].__annotations__.items():
                default = defaults.get(field, inspect.Parameter.empty)
                plain[field] = inspect.Parameter(field, each.KEYWORD_ONLY, default=default, annotation=annotation)
        elif key not in contexts:
            plain[key] = each

    def call(**values: Any) -> None:
        for key, each in plain.items():
            if isinstance(values[key], tuple):  # of what may be repeated
                values[key] = None if each.default is None and not values[key] else list(values[key])
        made = {key: group(**{field: values.pop(field) for field in group._fields}) for key, group in groups.items()}
        function(**values, **made, **dict.fromkeys(contexts, click.get_current_context()))

    text = inspect.cleandoc(function.__doc__ or "")
    return kind(name, callback=call, params=[_parameter(each) for each in plain.values()], help=text, **settings)


def _parameter(parameter: inspect.Parameter) -> click.Parameter:
    """The parameter of click that an argument in Python is."""
    kind, required = parameter.annotation, parameter.default is parameter.empty
    annotations = [each for each in getattr(kind, "__metadata__", ()) if hasattr(each, "help")]
    declared = annotations[0] if annotations else Argument() if required else Option()
    if not isinstance(declared, Declared):
        # of Typer's, in a command of another package
        spelt = [each for each in (declared.default, *(declared.param_decls or ())) if isinstance(each, str)]
        same = ("metavar", "min", "max", "parser", "callback", "is_eager", "hidden", "show_default", "case_sensitive")
        as_here = {name: getattr(declared, name) for name in (*same, "exists", "file_okay", "dir_okay")}
        made_as = Option if type(declared).__name__ == "OptionInfo" else Argument
        declared = made_as(*spelt, help=declared.help or "", panel=declared.rich_help_panel or "", **as_here)
    kind = get_args(kind)[0] if hasattr(kind, "__metadata__") else kind
    if get_origin(kind) in (UnionType, Union):
        kind = next(each for each in get_args(kind) if each is not NoneType)
    several = get_origin(kind) is list
    (kind,) = get_args(kind) if several else (kind,)
    words = len(get_args(kind)) if get_origin(kind) is tuple else 1
    value = Value(str if words > 1 else kind, declared)
    settings: dict[str, Any] = {
        "type": value if value.path is None else value.path,
        "required": required,
        "callback": declared.callback,
        "is_eager": declared.is_eager,
        "metavar": declared.metavar or value.name,
    }
    if not required:
        settings["default"] = parameter.default
    if isinstance(declared, Argument):
        made: click.Parameter = _Argument([parameter.name], nargs=-1 if several else 1, **settings)
    else:
        name = parameter.name.replace("_", "-")
        names = declared.names or (f"--{name}/--no-{name}" if kind is bool else f"--{name}",)
        settings |= {
            "multiple": several,
            "nargs": words,
            "hidden": declared.hidden,
            "show_default": declared.show_default,
        }
        if kind is bool:
            settings |= {"is_flag": True, "type": click.BOOL, "metavar": None}
        made = _Option([*names, parameter.name], help=declared.help, **settings)
    made.panel, made.range, made.help = declared.panel, value.range, declared.help  # type: ignore[attr-defined]
    made.shows_default = declared.show_default  # type: ignore[attr-defined]
    return made


class _Option(click.Option):
    """An option whose help says values in words."""

    def get_help_extra(self, ctx: click.Context) -> Any:
        """What stands in brackets behind the help."""
        extra = super().get_help_extra(ctx)
        if isinstance(self.default, str) and not isinstance(self.show_default, str):
            extra["default"] = str(self.default)  # of an enumeration the value
        if not extra.get("default"):
            extra.pop("default", None)
        if text := self.range:  # type: ignore[attr-defined]
            extra["range"] = text
        return extra


class _Argument(click.Argument):
    """An argument that has a help."""

    hidden = False

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        """What stands in the line of usage."""
        name = self.make_metavar(ctx)
        name = name if self.nargs == 1 or name.endswith("...") else f"{name}..."
        return [name if self.required else f"[{name}]"]

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """What help says of it."""
        shown = self.shows_default  # type: ignore[attr-defined]
        default = None if self.required else self.get_default(ctx)
        text = shown if isinstance(shown, str) else "" if default is None or not shown else str(default)
        extra = "required" if self.required else f"default: {text}" if text else ""
        return self.make_metavar(ctx), f"{self.help or ''}{f'  [{extra}]' if extra else ''}"


class Value(click.ParamType):
    """How the text of a value is read; `name` stands for the value in help."""

    def __init__(self, kind: Any, declared: Declared) -> None:
        self.kind, self.least, self.most = kind, declared.min, declared.max
        self.parser, self.case_sensitive = declared.parser, declared.case_sensitive
        self.choices: Mapping[str, Any] = {}
        if get_origin(kind) is Literal:
            self.choices = {each: each for each in get_args(kind)}
        elif isinstance(kind, type) and issubclass(kind, Enum):
            self.choices = {str(each.value): each for each in kind}
        words = {int: "N", float: "NUMBER", Path: "PATH"}
        self.name = " | ".join(self.choices) or words.get(kind, "TEXT")
        asked = {"exists": declared.exists, "file_okay": declared.file_okay, "dir_okay": declared.dir_okay}
        plain = kind is Path and self.parser is None
        self.path = click.Path(**asked, readable=True, path_type=Path) if plain else None
        least, most = ("" if each is None else f"{each:.10g}" for each in (self.least, self.most))
        self.range = (
            f"{least}<=x<={most}" if least and most else f"x>={least}" if least else f"x<={most}" if most else ""
        )

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value; click says of which option it is wrong."""
        try:
            if self.parser is not None:
                return self.parser(value)
            if self.choices:
                text = str(getattr(value, "value", value))
                for name, each in self.choices.items():
                    if text == name or (not self.case_sensitive and text.casefold() == name.casefold()):
                        return each
                raise ValueError(f"{text!r} is not one of {', '.join(map(repr, self.choices))}.")
            if self.kind not in (int, float):
                return value
            whole = str(value).removesuffix(".0") if self.kind is int else value  # 7.0 is a whole number, too
            try:
                number: int | float = self.kind(whole)
            except ValueError:
                wanted = "a whole number" if self.kind is int else "a number"
                raise ValueError(f"{str(value)!r} is not {wanted}.") from None
            if self.least is not None and not number >= self.least:
                raise ValueError(f"must be greater than or equal to {self.least:.10g}.")
            if self.most is not None and not number <= self.most:
                raise ValueError(f"must be less than or equal to {self.most:.10g}.")
            return number
        except ValueError as error:
            self.fail(str(error), param, ctx)
