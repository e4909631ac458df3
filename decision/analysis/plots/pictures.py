"""A figure with what a paper and a page need with it, in sentences."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from matplotlib.figure import Figure

from .figures import drawn


@dataclass(frozen=True)
class Picture:
    """A figure with what a paper and a page need with it, in sentences."""

    figure: Figure
    caption: str  # what is shown, and how it is read
    alt: str  # what is to be seen, for readers who do not see it
    _drawn: dict[str, bytes] = field(default_factory=dict)

    def drawn(self, ending: str) -> bytes:
        """The figure in one of the `decision.analysis.plots.figures.FORMATS`, for a file and for a page drawn once."""
        if ending not in self._drawn:
            self._drawn[ending] = drawn(self.figure, ending)
        return self._drawn[ending]


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: ``easy``, ``easy and fcfs``, ``easy, fcfs and sjf``."""
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def facts_of(what: str, values: dict[str, str]) -> str:
    """A sentence that says a value for each name: ``Energy: easy 3 MJ, fcfs 4 MJ.``."""
    return f"{what}: {', '.join(f'{name} {value}' for name, value in values.items())}."
