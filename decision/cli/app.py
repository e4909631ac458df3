"""The application: its commands, and what becomes of errors."""

import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, cast

import click

from decision import __version__
from decision.batsim.signals import Interrupted, interrupted_by_sigterm, none_swallowed
from decision.model.errors import ConfigError, DecisionError, RunsFailedError, ShareDone, ended_if_deaf, heeds_nothing
from decision.model.table import Table

from .command import Deferred, Group, command_of, note_command, printing
from .declared import Option, make_command
from .options import JsonOption
from .terminal import be_quiet, cause_in_words, encodable, log_from, note, print_rest, say, stderr

Makes = Callable[[str], click.Command]  # makes the command of a name


def _command(where: str, **settings: Any) -> Makes:
    """A command: ``module:function`` of this package; `settings` are those of `command_of`."""
    return lambda name: command_of(_found(where), name, **settings)


def _group(where: str) -> Makes:
    return lambda name: cast(click.Command, _found(where))


def _found(where: str) -> Any:
    module, _, attribute = where.partition(":")
    return getattr(importlib.import_module(f"{__package__}.{module}"), attribute)


# Batsim has more options than this command declares; it says itself what it makes of them
_FOREIGN = {"ignore_unknown_options": True, "allow_extra_args": True}
_COMMANDS = {  # as help lists them
    "run": _command("run:run_command"),
    "showcase": _command("run:showcase_command"),
    "again": _command("run:again_command"),
    "advise": _command("compare:advise_command"),
    "starts": _command("starts:starts_command"),
    "compare": _command("compare:compare_command"),
    "collect": _command("train:collect_command"),
    "train": _command("train:train_command"),
    "evaluate": _command("evaluate:evaluate_command"),
    "bound": _command("policies:bound_command", hidden=True),  # Launchpad's question
    "gates": _command("evaluate:gates_command"),
    "serve": _command("run:serve_command"),
    "replay": _command("run:replay_command"),
    "batsim": _command("batsim:batsim_command", context_settings=_FOREIGN),
    "batsim5": _command("batsim:batsim5_command", context_settings=_FOREIGN),
    "report": _group("report:app"),
    "reproduce": _group("app:reproduce"),
    "policies": _group("policies:app"),
    "workload": _group("workload:app"),
    "platform": _group("platform:app"),
    "slurm": _group("slurm:app"),
}
_MOVED = {  # former names of commands, with their present ones
    "analyse": "report analyse",
    "view": "report view",
    "show": "report show",
    "check-policy": "policies check",
    "experiment": "reproduce",
}


class CommandLine(Group):
    """Turns this package's errors into one line and an exit code."""

    def main(self, *args: Any, **settings: Any) -> Any:
        """Run the command line. Failures of the machine are one line, too, such as an output that takes no more."""
        try:
            try:
                return super().main(*args, **settings)
            finally:
                print_rest()
        except Exception as error:
            if (text := cause_in_words(error)) is None:
                raise
            if "--debug" in (settings.get("args") or ()) or os.environ.get("DECISION_DEBUG"):
                traceback.print_exc()
            with suppress(OSError):
                note(f"error: {text}", style="bold red")
            sys.exit(ConfigError.exit_code)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; some options may stand behind the command, too. What was typed is kept."""
        note_command(ctx, args)
        end = args.index("--") if "--" in args else len(args)
        foreign = next((argument for argument in args if not argument.startswith("-")), "") in _OF_BATSIM
        for option in _ANYWHERE[: 2 if foreign else None]:
            if option in args[:end]:
                args = [option, *(argument for argument in args[:end] if argument != option), *args[end:]]
        command = next((i for i, argument in enumerate(args) if not argument.startswith("-")), 0)
        if _JSON in args[:command]:  # each command has it for itself, behind
            args = [*(argument for argument in args[:end] if argument != _JSON), _JSON, *args[end:]]
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise _in_one_line(error) from None
        except KeyboardInterrupt as stop:
            raise _interrupted(stop) from None

    def invoke(self, ctx: Any) -> Any:
        """Run the command; Ctrl-C, SIGTERM and errors end it in one line."""
        try:
            with ended_if_deaf(_end_at_once), interrupted_by_sigterm(), none_swallowed():
                return super().invoke(ctx)
        except click.UsageError as error:
            raise _in_one_line(error) from None
        except ShareDone as done:
            note(str(done))
        except DecisionError as error:
            if isinstance(error, RunsFailedError):
                from .tables import fitted_table

                rows = [[*map(encodable, failure)] for failure in error.failures[:_SHOWN]]
                stderr().print(fitted_table(Table("", ("run", "reason", "host"), rows)))
            if debugging(ctx):
                # First where the error was found, then what the user's code raised
                traceback.print_exception(error, chain=error.__cause__ is None)
                if error.__cause__ is not None:
                    traceback.print_exception(error.__cause__)
            # The options that help, those that `decision.cli.command.Command` noted among them
            hints = [", ".join(options)] if (options := getattr(error, "__notes__", ())) else []
            if error.__cause__ is not None:
                hints.append("--debug shows the trace")
            helped = f" ({'; '.join(hints)})" if hints else ""
            note(f"error: {error}{helped}", style="bold red")
            raise click.exceptions.Exit(error.exit_code) from None
        except Interrupted as stop:
            note(f"interrupted ({stop})", style="bold red")
            raise click.exceptions.Exit(stop.exit_code) from None
        except KeyboardInterrupt as stop:
            raise _interrupted(stop) from None


def _end_at_once(number: int) -> None:
    """End the process, whose main thread heeds no signal; files are renamed when they are whole, so none is half."""
    from decision.compiling.jit import end_helpers

    end_helpers()
    with suppress(OSError):
        print_rest()
    shown = "\x1b[?25h" if sys.stderr.isatty() else ""  # the cursor, which a progress display hides
    which = "" if number == signal.SIGINT else f" ({signal.Signals(number).name})"
    why = "" if heeds_nothing() else "; a computation that did not stop was cut off"
    os.write(2, f"{shown}interrupted{which}{why}\n".encode())
    os._exit(128 + number)


class Decision(CommandLine):
    """The commands of this package."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.commands: Any = Deferred(lambda: _COMMANDS, lambda name: _COMMANDS[name](name))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of the arguments, also by its former name."""
        if (present := _MOVED.get(args[0])) is not None:
            if not (ctx.resilient_parsing or ctx.params["quiet"]):  # the callback has not run yet
                note(f"decision {args[0]} is now decision {present}; the next release will not accept the old name")
            args = [*present.split(), *args[1:]]
        return super().resolve_command(ctx, args)


_ANYWHERE = ("--debug", "--quiet", "--verbose", "-q", "-v")
_JSON = "--json"
_OF_BATSIM = ("batsim", "batsim5")  # have a -q and a -v of their own, as Batsim has
_SHOWN = 20  # runs that have failed; failures.csv has all


def _interrupted(stop: KeyboardInterrupt) -> click.exceptions.Exit:
    """Say so; the end of the command."""
    note(" ".join(["interrupted", *getattr(stop, "__notes__", ())]), style="bold red")
    return click.exceptions.Exit(128 + signal.SIGINT)


def _in_one_line(error: Any) -> Exception:
    """Print what is wrong with the arguments; the end of the command."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        say(error.ctx.get_help())
        return click.exceptions.Exit(error.exit_code)
    text = error.format_message().replace("Value error, ", "").replace("Input should be", "must be").rstrip(".")
    command = error.ctx.command_path if error.ctx else "decision"
    note(f"error: {text} ({command} --help lists the options)", style="bold red")
    return click.exceptions.Exit(error.exit_code)


def debugging(ctx: Any) -> bool:
    """Whether the user wants to see where an error came from."""
    return bool(ctx.params.get("debug") or os.environ.get("DECISION_DEBUG"))


def report_bug(error: Exception) -> None:
    """Say that what happened is our mistake, with all that is needed to report it."""
    traceback.print_exception(error)
    note(
        f"This is a bug in decision {__version__}, not a mistake of yours: please report it with the lines above "
        "and the command that you ran.",
        style="bold red",
    )


_RC = {  # by shell: the file of the script, that which a shell reads first, and what this one needs
    "bash": (".bash_completions/decision.sh", ".bashrc", "source ~/.bash_completions/decision.sh"),
    "zsh": (".zfunc/_decision", ".zshrc", "fpath+=~/.zfunc; autoload -Uz compinit; compinit"),
    "fish": (".config/fish/completions/decision.fish", "", ""),
}


def _completion(context: click.Context) -> tuple[str, str]:
    """The shell, and the script with which it completes our commands."""
    from click.shell_completion import get_completion_class

    shell = Path(os.environ.get("SHELL", "bash")).name
    made = get_completion_class(shell) if shell in _RC else None
    if made is None:
        raise click.UsageError(f"{shell}: there is no completion for it; set SHELL to one of {', '.join(_RC)}")
    return shell, made(context.command, {}, "decision", "_DECISION_COMPLETE").source()


def _install_completion(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        shell, script = _completion(context)
        place, rc, line = _RC[shell]
        file = Path.home() / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(script)
        if rc and line not in (text := (Path.home() / rc).read_text() if (Path.home() / rc).exists() else ""):
            (Path.home() / rc).write_text(f"{text.rstrip()}\n{line}\n")
        note(f"{shell} completes our commands by {file}, once it has begun anew")
        raise click.exceptions.Exit()


def decision(
    debug: Annotated[bool, Option("--debug", help="Show the traceback of an error.")] = False,
    quiet: Annotated[
        bool, Option("--quiet", "-q", help="Print no notes and no progress, only results and errors.")
    ] = False,
    verbose: Annotated[
        bool, Option("--verbose", "-v", help="Print also what is read, compiled, run and written.")
    ] = False,
    as_json: JsonOption = False,
    install_completion: Annotated[
        bool,
        Option(
            "--install-completion",
            help="Let the shell complete commands and options.",
            callback=_install_completion,
            is_eager=True,
        ),
    ] = False,
    show_completion: Annotated[
        bool,
        Option(
            "--show-completion",
            help="Print the script that does so.",
            callback=printing(lambda context: _completion(context)[1]),
            is_eager=True,
        ),
    ] = False,
    version: Annotated[
        bool,
        Option(
            "--version",
            "-V",
            help="Print the version and exit.",
            callback=printing(lambda _: f"decision {__version__}"),
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Schedule for Batsim, or for the embedded engine that follows Batsim's rules.

    [bold]decision showcase[/bold] compares five policies on the shipped workload,
    [bold]decision run[/bold] runs one policy on your files,
    [bold]decision serve[/bold] schedules for a Batsim that you start.

    --json, -q, -v and --debug stand before or behind the command (batsim and
    batsim5 have a -q and a -v of their own behind them, and no --json).

    Exit codes: 0 success, 1 some runs failed, 2 invalid input, 3 failure of the other process
    (Batsim or the decision process), 128 + N ended by signal N.
    """
    be_quiet(quiet)
    log_from("DEBUG" if debug else "INFO" if verbose else "ERROR" if quiet else "WARNING")


# ``decision reproduce``: published or recorded results, and what this package gives for them.
#
# Each command is an entry point of the group ``decision.papers``: its name, and a function that says what its options
# are as `decision.cli.declared` does (or as Typer). Ours are in `decision.papers`; installed packages add theirs so.

# Of who makes the shipped models again, and judges them or our intervals and forecasts; help does not list them, nor
# `hpcschedule`, another part of `topology`'s paper
_OF_MAINTAINERS = (
    *("coverage", "held-out", "hpcschedule", "learned", "left-out", "packer", "ranking", "starts", "timetable"),
)


def _papers() -> Any:
    from importlib.metadata import entry_points  # other commands need no such modules

    return entry_points(group="decision.papers")


reproduce = Group(
    "reproduce", no_args_is_help=True, help="Reproduce a published or recorded result and print its tables."
)
reproduce.commands = cast(
    Any,
    Deferred(
        lambda: sorted(_papers().names),
        lambda name: command_of(_papers()[name].load(), name, hidden=name in _OF_MAINTAINERS),
    ),
)

app = make_command(
    decision,
    "decision",
    Decision,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
