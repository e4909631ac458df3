"""Pictures, drawn with matplotlib: of schedules, comparisons and learning curves, platforms, workloads.

Importing this package does not import matplotlib; its modules do.
"""

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from decision.model.errors import ConfigError, how_to_install

if TYPE_CHECKING:
    from decision.experiments.inputs import LoadedInputs
    from decision.experiments.run import Draw
    from decision.model.record import JobTable


def require_matplotlib() -> None:
    """Check that pictures can be drawn.

    Raises:
        ConfigError: if matplotlib is not installed, with how to install it.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ConfigError(f"pictures need matplotlib, which is not installed: {how_to_install('analysis')}")


def schedule_drawer() -> "Draw":
    """What draws ``schedule``, in the paper's format, for `decision.experiments.run.run_to_folder`.

    Raises:
        ConfigError: as `require_matplotlib`.
    """
    require_matplotlib()

    def draw(case: "LoadedInputs", policy: str, folder: Path, jobs: "JobTable") -> Path:
        from decision.model.dates import clock_at_zero

        from .paper import paper
        from .schedules import draw_schedule

        path = folder / f"schedule{paper().suffix}"
        title, begin = f"{policy} on {case.inputs.platform.stem}", clock_at_zero(case.workloads)
        draw_schedule(jobs, len(case.platform.hosts), path, title, begin=begin)
        return path

    return draw
