"""The command line: one module per command, and nothing in them but options, calls and tables.

Design
------
A command's module imports what it runs inside its function, so that ``--help`` answers without numba. Exit
codes: 0 done, 2 the user's mistake, 3 the peer's fault, 1 a bug of ours, 128 + n ended by signal n. A
`DecisionError` is one line on stderr; ``--debug`` (or the environment's ``DECISION_DEBUG``) shows where it came from.
"""

import signal
import sys


def main() -> None:
    """The command ``decision``."""
    _run(sys.argv[1:])


def batsim() -> None:
    """The command ``decision-batsim``: ``decision batsim`` under one word, for programs that start a batsim."""
    _run(["batsim", *sys.argv[1:]])


def _run(arguments: list[str]) -> None:
    try:
        from .app import app, report_bug
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    try:
        app(args=arguments, prog_name="decision")
    except Exception as error:
        report_bug(error)
        sys.exit(1)
