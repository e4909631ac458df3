"""What commands about workloads print."""

import math
from typing import TYPE_CHECKING

from ..tables import print_dropped
from ..terminal import stdout

if TYPE_CHECKING:
    from decision.drivers.conversion import Converted


def print_converted(converted: "Converted") -> None:
    """What was written where, and what was left out of the source."""
    print_dropped([converted.workload])
    for file in converted.files:
        load = "unknown without --speed" if math.isnan(file.load) else f"{file.load:.3g}"
        text = f"{file.path}: {len(file.workload.jobs):,} jobs on {file.workload.nb_res:,} hosts, offered load {load}"
        stdout().print(text, highlight=False, soft_wrap=True, markup=False)
