"""The command line: modules of commands that hold nothing but options, calls and tables.

Design
------
A command's module imports what it runs inside its function, so that ``--help`` answers without numba. Exit
codes: 0 done, 2 the user's mistake, 3 the peer's fault, 1 a bug of ours, 128 + n ended by signal n. A
`DecisionError` is one line on stderr; ``--debug`` (or the environment's ``DECISION_DEBUG``) shows where it came from.

No layer below names an option. Their errors carry the Python name of the argument to change, `DecisionError.field`;
a command calls its own parameters by the same names, so that it can say which option that is: ``(--speed)``. Command
functions end in ``_command``, since the libraries' functions have the plain names: `decision.cli.run.run_command` calls
`decision.experiments.run`.

Each table can be had as data: with ``--json`` a command prints one JSON document on stdout and nothing else there.
Options and commands that were renamed are accepted under their old names for one release (`decision.cli.command`).

Options stand in the signature of the function that they are for (`decision.cli.declared`); `decision.cli.command` makes
a command of click of it, whose help is short.

Rejected: Typer, whose help could be had by its private parts only, other ones in each release, and whose validators
take 0.1 s of each start; a module per command (53 files, of which 20 had fewer than 50 lines and the same imports);
option types in each command's module (four definitions of ``--output``); translating errors by their text.
"""

import codecs
import gc
import io
import signal
import sys
from types import FrameType

_GARBAGE = 100_000  # new objects after which Python looks for garbage: a short run has fewer, and need not look


def main() -> None:
    """Run the command ``decision``, and report what is a bug of ours as one."""
    _run(sys.argv[1:])


def batsim() -> None:
    """The command ``decision-batsim``, an alias of ``decision batsim`` for programs that start a Batsim."""
    _run(["batsim", *sys.argv[1:]])


def batsim5() -> None:
    """The command ``decision-batsim5``, an alias of ``decision batsim5``."""
    _run(["batsim5", *sys.argv[1:]])


def _run(arguments: list[str]) -> None:
    gc.set_threshold(_GARBAGE)
    interrupts = _Interrupts()
    _print_anything()
    try:
        from .app import app, report_bug

        try:
            app(args=arguments, prog_name="decision")
        except Exception as error:
            if not interrupts.seen:
                report_bug(error)
                sys.exit(1)
            raise
    except (Exception, KeyboardInterrupt):
        if not interrupts.seen:
            raise
        sys.stderr.write("interrupted\n")
        sys.exit(128 + signal.SIGINT)
    finally:
        interrupts.ignore()


_PLAIN = {"\u25b2": "^", "\u25bc": "v", "\u2026": "...", "\u2500": "-", "\u2501": "-", "\u2588": "#", "\u00d7": "x"}


def _print_anything() -> None:
    """Print texts in whatever encoding the terminal has: a sign that it lacks becomes one like it, or an escape."""

    def plain(error: UnicodeError) -> tuple[str, int]:
        if not isinstance(error, UnicodeEncodeError):
            raise error
        signs = error.object[error.start : error.end]
        return "".join(_PLAIN.get(sign, ascii(sign)[1:-1]) for sign in signs), error.end

    codecs.register_error("decision", plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # there is none where it was closed
            stream.reconfigure(errors="decision")


class _Interrupts:
    """Ctrl-C raises KeyboardInterrupt, of which imports and compilers may make another error: it is known, too."""

    def __init__(self) -> None:
        self.seen = False
        signal.signal(signal.SIGINT, self._raise)

    def _raise(self, number: int, frame: FrameType | None) -> None:
        self.seen = True
        known = sys.modules.get("decision.model.errors")  # which is loaded before compiled code calls Python
        getattr(known, "interrupt", _raise)(KeyboardInterrupt(), frame)

    @staticmethod
    def ignore() -> None:
        """All is over, and the interpreter ends.

        After ``python -m`` it would end itself by SIGINT, whatever the exit code, if the last text that `exec` ran was
        interrupted (each data class is made of one); so it runs one more.
        """
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        exec("")


def _raise(error: BaseException, _frame: FrameType | None) -> None:
    raise error
