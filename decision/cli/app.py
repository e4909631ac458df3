"""The application: its commands, and what becomes of errors."""

import os
import signal
import traceback
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from decision import __version__
from decision.drivers.signals import Interrupted
from decision.model.errors import DecisionError

from . import platform, workload
from .analyse import analyse
from .batsim import batsim
from .check_policy import check_policy
from .compare import compare
from .evaluate import evaluate
from .experiment import experiment
from .policies import policies
from .replay import replay
from .run import run
from .serve import serve
from .show import show
from .showcase import showcase
from .terminal import stderr, stdout
from .train import train
from .view import view


class Commands(TyperGroup):
    """Turns this package's errors into one line and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except DecisionError as error:
            if debugging(ctx):
                traceback.print_exc()
            stderr().print(f"error: {error}", style="bold red", soft_wrap=True)
            raise typer.Exit(error.exit_code) from None
        except Interrupted as stop:
            stderr().print(f"interrupted ({stop}): what was under way has been finished", style="bold red")
            raise typer.Exit(stop.exit_code) from None
        except KeyboardInterrupt:
            stderr().print("interrupted", style="bold red")
            raise typer.Exit(128 + signal.SIGINT) from None


def debugging(ctx: Any) -> bool:
    """Whether the user wants to see where an error came from."""
    return bool(ctx.params.get("debug") or os.environ.get("DECISION_DEBUG"))


def report_bug(error: Exception) -> None:
    """Say that what happened is our mistake, with all that is needed to report it."""
    traceback.print_exception(error)
    stderr().print(
        f"This is a bug in decision {__version__}, not a mistake of yours: please report it with the lines above "
        "and the command that you ran.",
        style="bold red",
        soft_wrap=True,
    )


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(value: bool) -> None:
    if value:
        stdout().print(f"decision {__version__}", highlight=False)
        raise typer.Exit()


@app.callback()
def decision(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Schedule for Batsim, or for the embedded engine that follows Batsim's rules.

    [bold]decision showcase[/bold] compares five policies on the shipped workload,
    [bold]decision run[/bold] runs one policy on your files,
    [bold]decision serve[/bold] schedules for a Batsim that you start.
    """


for command in (
    run,
    showcase,
    compare,
    serve,
    replay,
    policies,
    check_policy,
    analyse,
    view,
    experiment,
    train,
    evaluate,
    show,
):
    app.command()(command)
app.add_typer(platform.app, name="platform")
app.add_typer(workload.app, name="workload")
# Batsim has more options than this command declares; it says itself what it makes of them
app.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})(batsim)
