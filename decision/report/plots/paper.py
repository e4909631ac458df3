"""What pictures are drawn for: width, type size, resolution, file format. Importing this imports no matplotlib."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


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
