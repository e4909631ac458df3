"""Pictures, drawn with matplotlib: of schedules, comparisons and learning curves, platforms, workloads.

Importing this package does not import matplotlib; its modules do.
"""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

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

        from .schedules import draw_schedule

        path = folder / f"schedule{paper().suffix}"
        title, begin = f"{policy} on {case.inputs.platform.stem}", clock_at_zero(case.workloads)
        draw_schedule(jobs, len(case.platform.hosts), path, title, begin=begin)
        return path

    return draw


# What pictures are drawn for: width, type size, resolution, file format. Importing this imports no matplotlib.


class Paper(NamedTuple):
    """What a picture is drawn for; the default is as wide as the text of a page."""

    width: float = 7.0  # inches
    type_size: float = 8.0  # points, of most texts; none is smaller than two thirds of it
    dpi: float = 200.0  # pixels per inch of PNG, and of what is drawn as pixels in the other formats
    suffix: str = ".png"  # of the files of pictures that the program names

    @property
    def em(self) -> float:
        """The type size in inches."""
        return self.type_size / 72

    @property
    def columns(self) -> float:
        """The width in ems: how much text fits beside each other."""
        return self.width / self.em


_PAPER: ContextVar[Paper] = ContextVar("paper")


def paper() -> Paper:
    """What pictures are drawn for at present."""
    return _PAPER.get(Paper())


@contextmanager
def drawn_for(wanted: Paper) -> Iterator[None]:
    """Draw and write pictures for this."""
    token = _PAPER.set(wanted)
    try:
        yield
    finally:
        _PAPER.reset(token)
