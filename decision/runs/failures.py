"""Runs that have failed: an error that lists them, and ``failures.csv``."""

import csv
import io
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from decision.formats.files import utf8, write_files
from decision.model.errors import Failure, RunsFailedError


class TraceError(Exception):
    """Where a run failed, as a text: it may have been in another process."""


def write_failures(path: Path, failures: Sequence[Failure]) -> None:
    """Write the table; where nothing has failed, none is left."""
    if not failures:
        with suppress(OSError):
            path.unlink()
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Failure._fields)
    writer.writerows(failures)
    write_files({path: [utf8(text.getvalue())]})


def failed(failures: Sequence[Failure], of: int, path: Path) -> RunsFailedError:
    """The error that says so; `path` is that of the table."""
    each = failures[0]
    first = f"the first is {each.run}: {each.reason.removeprefix(f'{each.run}: ')}"
    advice = f"{path} lists them, and the same command tries them again"
    return RunsFailedError(f"{len(failures):,} of {of:,} runs failed; {first}; {advice}", failures)
