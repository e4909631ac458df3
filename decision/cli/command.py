"""Commands on click: their help, their errors, and options that several take as a group.

A command's help is short: what few calls need are settings of one option (`SETTINGS`), ``--pictures width=3,dpi=300``.
Each of them is an option as well, ``--width 3``, which ``decision -v COMMAND --help`` explains.
"""

import copy
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from decision.model.errors import ConfigError, DecisionError
from decision.model.hosts import nearest
from decision.report.plots import Paper, drawn_for

from .declared import make_command
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
from .terminal import say

if TYPE_CHECKING:
    from decision.files.workload import Selection

_TYPED = "decision.typed"  # key of a context's data


# Options whose values are the settings of a panel
SETTINGS = {
    "Time limits": "--limits",
    "How logs are read": "--log",
    "Many machines": "--machines",
    "More files of the cluster": "--files",
    "Pictures": "--pictures",
    "Simulator": "--simulator",
    "A table of power": "--table",
}
EVERYWHERE = "Every command"  # the panel of what is said once, in ``decision --help``


def add_command(group: click.Group, name: str, function: Callable[..., None], **settings: Any) -> None:
    """Add a command to a group; `settings` are those of `click.Command`."""
    group.add_command(command_of(function, name, **settings))


def command_of(function: Callable[..., None], name: str, **settings: Any) -> "Command":
    """A command that calls a function; `settings` are those of `click.Command`.

    It has an option for each panel of `SETTINGS`, in place of those of the panel that the function takes. These are
    hidden, and so is what each command has: `Command` makes them of the option's value before it is parsed.
    """
    made = make_command(function, name, Command, **settings)
    panels = Counter(panel for option in made.params if (panel := panel_of(option)) in SETTINGS)
    several = [panel for panel, times in panels.items() if times > 1]
    for option in made.params:
        if panel_of(option) in (*several, EVERYWHERE):
            option.hidden = True  # type: ignore[attr-defined]
    for panel in several:
        names = ", ".join(long_name(option.opts)[2:] for option in made.params if panel_of(option) == panel)
        name = SETTINGS[panel]
        shown: dict[str, Any] = {"help": f"{panel}: {names}.", "metavar": "NAME=VALUE,..."}
        of_panel = click.Option([name, f"settings_{name[2:]}"], expose_value=False, multiple=True, **shown)
        made.params.append(of_panel)
    return made


def panel_of(parameter: click.Parameter) -> str:
    """The heading under which help shows an option."""
    return str(getattr(parameter, "panel", ""))


class _Helped(click.Command):
    """A command whose help has a heading for each panel of options, and keeps the lines of examples."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does."""
        for part in filter(None, (self.help or "").replace("[bold]", "").replace("[/bold]", "").split("\n\n")):
            formatter.write_paragraph()
            if part.startswith(" "):
                formatter.write("".join(f"  {line}\n" for line in part.splitlines()))
            else:
                with formatter.indentation():
                    formatter.write_text(part)

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Nothing: `format_options` writes them; click from 8.5 on would write them here, earlier ones nowhere."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments, and the options by panel."""
        panels: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for each in self.get_params(ctx):
            usual = "Arguments" if each.param_type_name == "argument" else "Options"
            if (record := each.get_help_record(ctx)) is not None:
                text = record[1].replace("[bold]", "").replace("[/bold]", "")
                panels.setdefault(panel_of(each) or usual, []).append((record[0], text))
        for panel, rows in panels.items():
            if rows:
                with formatter.section(panel):
                    formatter.write_dl(rows)


class Command(_Helped):
    """A command whose help is short, which takes an option once, and says which of its options repairs an error."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; an option that has one value is refused a second time."""
        args = list(self._written_out(args))
        try:
            if not ctx.resilient_parsing:
                # A second value for an option that has one is refused: the first would be lost without a word
                _, _, order = self.make_parser(ctx).parse_args(args=list(args))
                for option, times in Counter(order).items():
                    if times > 1 and not option.multiple and not getattr(option, "is_flag", True):
                        raise ConfigError(f"{long_name(option.opts)}: given {times} times, and it takes one value")
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

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
        """Print the help, with ``-v`` that of each setting."""
        before, text, explained = self.params, self.help, self.explained()
        try:
            if ctx.find_root().params.get("verbose"):
                self.params = explained
            else:
                # What the end of the help says of options that it does not explain.
                self.help, notes = _brief(text or ""), list[str]()
                command = " ".join(ctx.command_path.split()[1:])
                for option, settings in [*self._settings().items()][:1]:
                    name = next((each for each, setting in settings.items() if not setting.is_flag), "")
                    notes.append(f"{option} {name}=X is --{name} X, too: decision -v {command} --help explains each.")
                if not notes and self.help != text:
                    notes.append(f"decision -v {command} --help says more.")
                if any(panel_of(each) == EVERYWHERE for each in self.params):
                    notes.append("--json, -q, -v and --debug: decision --help.")
                self.epilog = " ".join(notes) or None
            super().format_help(ctx, formatter)
        finally:
            self.params, self.help, self.epilog = before, text, None

    def explained(self) -> list[Any]:
        """The arguments and options, each setting as an option of its own; not what is hidden."""
        added = set(self._settings())
        folded = {id(option) for options in self._settings().values() for option in options.values()}
        shown: list[Any] = []
        for each in self.params:
            hidden = getattr(each, "hidden", False) or added.intersection(each.opts)
            if id(each) in folded or panel_of(each) == EVERYWHERE or not hidden:
                shown.append(copy.copy(each))
                if hasattr(each, "hidden"):
                    shown[-1].hidden = False
        return shown

    def _settings(self) -> dict[str, dict[str, Any]]:
        """The options that are settings of another, by that one and by name."""
        found: dict[str, dict[str, Any]] = {}
        for option in self.params:
            panel = panel_of(option)
            if panel in SETTINGS and getattr(option, "hidden", False):
                found.setdefault(SETTINGS[panel], {})[long_name(option.opts)[2:]] = option
        return found

    def _written_out(self, args: Sequence[str]) -> Iterator[str]:
        """The arguments, with an option for each setting. Raises ConfigError for one that there is not."""
        known = self._settings()
        words = iter(args)
        for word in words:
            option, equals, text = word.partition("=")
            if option == "--":
                yield word
                yield from words
            elif option not in known:
                yield word
            elif (value := text if equals else next(words, None)) is None:
                yield word  # the parser says that it needs a value
            else:
                # A comma ends a setting where another one follows: --submit has commas of its own
                names = "|".join(map(re.escape, known[option]))
                for part in re.split(rf",(?=(?:{names})(?:[=,]|$))", value):
                    yield _as_option(option, known[option], part)


_PROSE = 8  # lines between the first paragraph and the examples that a short help still has
_EXAMPLES = 3  # of a command whose help is cut


def _brief(text: str) -> str:
    """A help's first paragraph and first examples, where it is long."""
    first, *rest = text.split("\n\n")
    at = next((i for i, part in enumerate(rest) if part.startswith("Example")), len(rest))
    if sum(part.count("\n") + 2 for part in rest[:at]) <= _PROSE:
        return text
    return "\n\n".join([first, *rest[at : at + 1 + _EXAMPLES]])


def _as_option(option: str, known: Mapping[str, Any], part: str) -> str:
    """The option that a setting stands for. Raises ConfigError."""
    name, equals, _ = part.partition("=")
    if name not in known:
        raise ConfigError(f"{option} {part!r}: no such setting{nearest(name, known)}; choose from {', '.join(known)}")
    if bool(equals) == bool(known[name].is_flag):
        form = name if known[name].is_flag else f"{name}=VALUE"
        raise ConfigError(f"{option} {part!r}: write it as {form}")
    return f"--{part}"


def long_name(names: Sequence[str]) -> str:
    """The name of an option that is a word."""
    return next((name for name in names if name.startswith("--")), names[0])


class Group(_Helped, click.Group):
    """A group of commands, in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands."""
        return list(self.commands)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, and the commands."""
        super().format_options(ctx, formatter)
        shown = {name: each for name, each in self.commands.items() if not each.hidden}
        if shown:
            firsts = {name: (each.help or "").partition("\n\n")[0] for name, each in shown.items()}
            with formatter.section("Commands"):
                formatter.write_dl([(name, " ".join(first.split())) for name, first in firsts.items()])


class Deferred(Mapping[str, Any]):
    """The commands of a group by name, each made once somebody asks for it: to make all takes longer than a short run.

    Args:
        names: says what there is, in the order of the help.
        make: makes the command of a name.
    """

    def __init__(self, names: Callable[[], Collection[str]], make: Callable[[str], click.Command]) -> None:
        self._names, self._make = names, make

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._names():
            raise KeyError(name)
        return self._make(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())


def printing(text: Callable[[click.Context], str]) -> Callable[[click.Context, click.Parameter, bool], None]:
    """What an option does, as its callback, that prints a text and ends the command."""

    def callback(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
        if value:
            say(text(context))
            raise click.exceptions.Exit()

    return callback


# What was typed: the command, an option, a file of options.


def note_command(context: Any, arguments: Sequence[str]) -> None:
    """Keep what was typed, for ``run.json`` and reports."""
    context.meta[_TYPED] = shlex.join(["decision", *arguments])


def typed_command(context: click.Context) -> str:
    """What was typed, for a shell."""
    return str(context.meta.get(_TYPED, ""))


def is_given(context: click.Context, name: str) -> bool:
    """Whether the user gave an option, by its name in Python, a value."""
    source = context.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "DEFAULT_MAP")


def refuse_unused(context: click.Context, options: Mapping[str, bool], why: str) -> None:
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
    known = {long_name(option.opts).removeprefix("--"): option for option in context.command.explained()}
    for name, value in found.items():
        if name in ("config", "help"):
            raise ConfigError(f"{path}: {name} is only for the command line; leave it out")
        if name not in known:
            raise ConfigError(f"{path}: {context.info_name} has no option --{name}{nearest(name, known)}")
        kind = bool if known[name].is_flag else getattr(known[name].type, "kind", str)
        types, wanted = _TOML_TYPES.get(kind, ((str,), "a text in quotes"))
        for each in value if isinstance(value, list) else [value]:
            if not isinstance(each, types) or (isinstance(each, bool) and bool not in types):
                shown = str(each).lower() if isinstance(each, bool) else repr(each)
                raise ConfigError(f"{path}, {name}: {wanted} is needed; found {shown}")
        if isinstance(value, list) and not known[name].multiple:
            raise ConfigError(f"{path}, {name}: one value is needed; found a list")
        if known[name].multiple and not isinstance(value, list):
            found[name] = [value]
    context.default_map = {known[name].name: value for name, value in found.items()}
    return path


_TOML_TYPES: dict[object, tuple[tuple[type, ...], str]] = {  # by an option's type; text for all others
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
}


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
