"""The table of prediction errors."""

import math
from collections.abc import Mapping

from rich import box
from rich.table import Table

from decision.estimates.history import Errors, History

from ..tables import number
from ..terminal import stdout

_COLUMNS = ("jobs\npredicted\n%", "mean\nerror\ns", "median\nerror\ns", "too\nshort\n%", "too\nlong\n%", "accuracy")


def print_errors(errors: Mapping[str, Errors], history: History) -> None:
    """One row per predictor; errors are absolute, over the jobs that had a prediction."""
    mean = number(float(history.runtime.mean()))
    caption = f"{len(history.runtime):,} jobs, mean run time {mean} s; errors are absolute"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=caption, caption_justify="left")
    table.add_column("predictor")
    for header in _COLUMNS:
        table.add_column(header, justify="right", no_wrap=True)
    for name, found in errors.items():
        table.add_row(name, *_cells(found))
    stdout().print(table)


def _cells(found: Errors) -> tuple[str, ...]:
    return (
        number(100 * found.share),
        number(found.mean_absolute_error),
        number(found.median_absolute_error),
        number(100 * found.under),
        number(100 * found.over),
        "-" if math.isnan(found.accuracy) else f"{found.accuracy:.3f}",
    )
