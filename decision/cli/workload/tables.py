"""What commands about workloads print."""

import math
from typing import TYPE_CHECKING

from ..tables import print_dropped
from ..terminal import stdout

if TYPE_CHECKING:
    from decision.drivers.conversion import Converted


def count(number: int, what: str) -> str:
    """``1 job``, ``10,000 jobs``."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def print_converted(converted: "Converted") -> None:
    """What was written where, and what was left out of the source."""
    print_dropped([converted.workload])
    for file in converted.files:
        jobs = count(len(file.workload.jobs), "job")
        text = f"{file.path}: {jobs} for {count(file.workload.nb_res, 'host')}, {_load_text(file.load)}"
        stdout().print(text, highlight=False, soft_wrap=True)


def _load_text(load: float | None) -> str:
    if load is None:
        return "offered load unknown without --speed"
    return "all at one time" if math.isnan(load) else f"offered load {load:.3g}"
