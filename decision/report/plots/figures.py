"""What all pictures share: style, colours, sizes, titles and legends that fit, units of time, and files.

Sizes are in ems, the type size of the `decision.report.plots.Paper`, so that a wider picture has more columns
and a larger type gets more room. Runs and trainings differ in colour, line pattern and marker together, states in
colour and hatching, so that each picture can be read in grey.
"""

import datetime
import io
import math
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import wraps
from itertools import count
from pathlib import Path
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath
from matplotlib.ticker import Formatter, Locator, MaxNLocator, NullFormatter, NullLocator, StrMethodFormatter

from decision.files.text import write_files
from decision.model.dates import DAY
from decision.model.errors import ConfigError
from decision.report.plots import paper

FORMATS = (".png", ".svg", ".pdf", ".pgf")

BLUE, RED, GREEN, YELLOW, INDIGO, CYAN = "#4477aa", "#cc6677", "#117733", "#cc9911", "#332288", "#55aacc"
DARK, GREY, PALE = "#222222", "#777777", "#e8e8e8"
_STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.formatter.limits": (-5, 10),  # powers of ten beyond which ticks have them in common
    "axes.formatter.useoffset": False,
    "axes.labelsize": "medium",
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "figure.constrained_layout.h_pad": 0.06,
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.w_pad": 0.06,
    "figure.titlesize": "large",
    "font.family": ["DejaVu Sans"],  # comes with matplotlib: the same on every machine
    "grid.color": PALE,
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.5,
    "image.composite_image": False,  # SVG and PDF would draw images again, at 72 pixels per inch
    "legend.fontsize": "medium",
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.0,
    "patch.linewidth": 0.4,
    "pdf.fonttype": 42,  # TrueType, as publishers ask for
    "pgf.rcfonts": False,  # the fonts are those of the document that takes the picture
    "svg.hashsalt": "decision",  # the same picture, the same file
    "text.parse_math": False,  # a run may have $ in its name
    "xtick.labelsize": "small",
    "xtick.major.width": 0.6,
    "ytick.labelsize": "small",
    "ytick.major.width": 0.6,
}
_DATES = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
_TEX = ("xelatex", "lualatex", "pdflatex")  # any of them can measure the texts of a .pgf

P = ParamSpec("P")
T = TypeVar("T")


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """Let a function draw in the style of all pictures, in the present paper's type size.

    What the user has set in matplotlib's rcParams, or a style sheet has, is kept.
    """

    @wraps(draw)
    def in_style(*args: P.args, **kwargs: P.kwargs) -> T:
        given: Any = matplotlib.rcParams
        default: Any = matplotlib.rcParamsDefault
        ours: Any = {name: value for name, value in _STYLE.items() if given[name] == default[name]}
        with matplotlib.rc_context(ours | {"font.size": paper().type_size}):
            return draw(*args, **kwargs)

    return in_style


# --- Files ----------------------------------------------------------------------------------------------------------


def save(figure: Figure, path: Path) -> None:
    """Write a picture in the format that the path's ending names, whole or not at all.

    Raises:
        ConfigError: if the file cannot be written, has an ending that is not in `FORMATS`, or is a .pgf and LaTeX is
            not installed, or cannot set its texts.
    """
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise ConfigError(f"{path}: pictures are {', '.join(FORMATS)}; choose one of these endings")
    if ending != ".pgf":
        write_files({path: [drawn(figure, ending)]})
        return
    from matplotlib.backends.backend_pgf import LatexError

    system = matplotlib.rcParams["pgf.texsystem"]
    found = next((each for each in (system, *_TEX) if shutil.which(each)), None)
    if found is None:
        raise ConfigError(f"{path}: .pgf needs LaTeX, and {system} is not installed; install it, or choose .pdf")
    try:
        with matplotlib.rc_context({"pgf.texsystem": found}):
            write_files({path: [drawn(figure, ending)]})
    except (LatexError, RuntimeError, ValueError) as error:  # matplotlib has one for each place
        why = next((line for line in str(error).splitlines() if line.startswith("!")), str(error).splitlines()[0])
        raise ConfigError(f"{path}: {found} cannot set the texts, as of names with #, & or $ ({why})") from None


@styled
def drawn(figure: Figure, ending: str) -> bytes:
    """A picture in one of the `FORMATS`."""
    content = io.BytesIO()
    undated: dict[str, Any] = {"metadata": _DATES[ending]} if ending in _DATES else {}
    figure.savefig(content, format=ending[1:], dpi=figure.dpi, **undated)
    return content.getvalue()


# --- Runs -----------------------------------------------------------------------------------------------------------


class Look(NamedTuple):
    """How a run or a training is drawn in every picture of its page."""

    color: str
    line: str | tuple[int, tuple[float, ...]]  # matplotlib's line style
    hatch: str  # of areas
    marker: str


_COLORS = (BLUE, RED, GREEN, YELLOW, INDIGO, CYAN)
_LINES: tuple[str | tuple[int, tuple[float, ...]], ...] = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))
_HATCHES = ("", "////", "....", "xxxx")
_MARKERS = "os^DvPX*<>hp"
JOB_COLORS = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#999999")  # of jobs in Gantt charts


def looks() -> Iterator[Look]:
    """The looks of runs in their order: twelve have markers of their own, 24 a colour and line pattern of their own."""
    for at in count():
        color, pattern = _COLORS[at % len(_COLORS)], at // len(_COLORS) % len(_LINES)
        yield Look(color, _LINES[pattern], _HATCHES[pattern], _MARKERS[at % len(_MARKERS)])


def job_color(job: str) -> int:
    """The number in `JOB_COLORS` of a job's colour: the same in all runs, and seldom that of its neighbours."""
    rest = 0
    for letter in job:
        rest = (31 * rest + ord(letter)) % 65521
    return rest % len(JOB_COLORS)


# --- Time -----------------------------------------------------------------------------------------------------------

_DURATIONS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))
_WAITS = ((2 * 3600.0, 3600.0, "h"), (120.0, 60.0, "min"), (0.0, 1.0, "s"))


def short_duration(seconds: float) -> str:
    """A duration with two digits or so: ``0 s``, ``4.2 min``, ``13 h``."""
    unit, name = next(((unit, name) for unit, name in _DURATIONS if seconds >= unit), (1.0, "s"))
    value = seconds / unit
    return f"{value:.1f} {name}" if 0 < value < 9.95 else f"{value:.0f} {name}"


def wait_unit(mean: float) -> tuple[float, str]:
    """The unit of a table or a picture of waits, seconds, and its name, that suits a mean wait of so many seconds."""
    return next((unit, name) for least, unit, name in _WAITS if mean >= least)


# --- Sizes ----------------------------------------------------------------------------------------------------------


def new_figure(height: float) -> Figure:
    """An empty picture as wide as the paper and of a height in ems, drawn without a screen."""
    figure = Figure(figsize=(paper().width, height * paper().em), dpi=paper().dpi)
    FigureCanvasAgg(figure)
    return figure


def panels_in_row(number: int, least: float) -> int:
    """How many of so many panels, each at least so many ems wide, stand in a row; the last row as full as can be."""
    most = max(1, min(number, int(paper().columns // least)))
    return -(-number // -(-number // most))


def side_by_side(number: int, least: float, height: float, stacked: int = 1) -> tuple[Figure, list[list[Axes]]]:
    """A figure with panels for several runs on one clock, each as so many axes, one below the other.

    Args:
        number: runs, at least one.
        least: width of a panel, ems.
        height: of a run's panels together, ems.
        stacked: axes of a run.
    """
    across = panels_in_row(number, least)
    down = -(-number // across)
    figure = new_figure(4 + height * down)
    grid = figure.subplots(stacked * down, across, sharex=True, squeeze=False)
    panels = [[grid[stacked * (i // across) + row, i % across] for row in range(stacked)] for i in range(down * across)]
    for unused in panels[number:]:
        for axes in unused:
            axes.remove()
    for panel in panels[:number]:
        panel[-1].tick_params(labelbottom=True)
    return figure, panels[:number]


# --- Texts ----------------------------------------------------------------------------------------------------------


def wrapped(text: str, room: float, size: str = "medium") -> str:
    """A text in lines of at most so many ems, broken behind blanks, commas, slashes and plus signs.

    Args:
        text: its own line ends are kept.
        room: width of a line, in ems of the paper's type.
        size: matplotlib's name of the type size that it will be drawn in.
    """
    lines: list[str] = []
    for given in text.split("\n"):
        lines.append("")
        for piece in re.findall(r"[^\s,/+]*[\s,/+]*", given):
            if lines[-1] and _width((lines[-1] + piece).rstrip(), size) > room:
                lines.append("")
            if _width((lines[-1] + piece).rstrip(), size) <= room:
                lines[-1] += piece
                continue
            for letter in piece:  # it is itself wider than a line
                if lines[-1] and _width((lines[-1] + letter).rstrip(), size) > room:
                    lines.append("")
                lines[-1] += letter
    return "\n".join(line.rstrip() for line in lines)


def _width(text: str, size: str) -> float:
    """Of a text in one line, in ems of the paper's type."""
    font = FontProperties(size=size)
    width: float = TextToPath().get_text_width_height_descent(text, font, ismath=False)[0]
    return width / paper().type_size


def headline(figure: Figure, text: str) -> None:
    """Give a picture a title that is not cut."""
    figure.suptitle(wrapped(text, paper().columns - 3, "large"))


def explain(figure: Figure, text: str) -> None:
    """Say below a picture how it is read."""
    figure.supxlabel(wrapped(text, paper().columns - 2, "small"), fontsize="small", color=DARK)


def name_panel(axes: Axes, text: str, across: int, beside: float = 4.0) -> None:
    """Give one of so many panels in a row a title that leaves its neighbours theirs, and so many ems next to it."""
    axes.set_title(wrapped(text, paper().columns / across - beside))


def outer_legend(figure: Figure, handles: Sequence[Artist], *, below: bool = False) -> None:
    """A legend above or below all panels, in as many columns as fit."""
    widest = max(_width(str(handle.get_label()), "medium") for handle in handles)
    columns = max(1, min(len(handles), int((paper().columns - 2) // (widest + 5))))
    figure.legend(handles=list(handles), loc="outside lower center" if below else "outside upper center", ncols=columns)


# A figure with what a paper and a page need with it, in sentences.


@dataclass(frozen=True)
class Picture:
    """A figure with what a paper and a page need with it, in sentences."""

    figure: Figure
    caption: str  # what is shown, and how it is read
    alt: str  # what is to be seen, for readers who do not see it
    _drawn: dict[str, bytes] = field(default_factory=dict)

    def drawn(self, ending: str) -> bytes:
        """The figure in one of the `decision.report.plots.figures.FORMATS`, for a file and for a page drawn once."""
        if ending not in self._drawn:
            self._drawn[ending] = drawn(self.figure, ending)
        return self._drawn[ending]


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: ``easy``, ``easy and fcfs``, ``easy, fcfs and sjf``."""
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def facts_of(what: str, values: dict[str, str]) -> str:
    """A sentence that says a value for each name: ``Energy: easy 3 MJ, fcfs 4 MJ.``."""
    return f"{what}: {', '.join(f'{name} {value}' for name, value in values.items())}."


# Axes of pictures: logarithmic ones without formulas, and clocks that show dates where they are known.

PLAIN = "{x:,.10g}"  # a format of ticks: 12,000
_FEW, _MANY = 3, 7  # ticks of an axis
_STEPS = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0))  # in a power of ten, from coarse to fine


def logarithmic(axes: Axes, which: Literal["x", "y"], form: str = PLAIN) -> None:
    """Let an axis be logarithmic, with a few round ticks also over a small range, written as plain numbers.

    Pictures do without matplotlib's mathematical texts, since names may have a ``$``, and its own formatters of
    logarithmic axes write nothing else.

    Args:
        axes: of the plot.
        which: of the two.
        form: of the ticks.
    """
    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(RoundTicks())
    axis.set_major_formatter(StrMethodFormatter(form))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


class RoundTicks(Locator):
    """Three to seven round numbers on a logarithmic axis."""

    def __call__(self) -> Sequence[float]:
        """The ticks of the axis as it is."""
        assert self.axis is not None
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        """The ticks from `vmin` to `vmax`."""
        low, high = sorted((vmin, vmax))
        if not 0 < low < high < math.inf:
            return [value for value in (low,) if 0 < value < math.inf]
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for steps in _STEPS:
            found = [step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high]
            if len(found) >= _FEW:
                return found[:: -(-len(found) // _MANY)]
        return [value for value in MaxNLocator(_MANY - 2).tick_values(low, high) if low <= value <= high]


_UNITS = ((2.0 * DAY, float(DAY), "days"), (2 * 3600.0, 3600.0, "hours"), (0.0, 1.0, "seconds"))


class AxisClock(NamedTuple):
    """What an axis of time counts, and whether it shows dates."""

    unit: float  # seconds
    label: str
    begin: float | None = None  # seconds since 1970 that the machine's clock showed at 0; None: no dates

    def show(self, axes: Axes) -> None:
        """Show dates on a plot's axis of time, where they are known."""
        if self.begin is not None:
            axes.xaxis.set_major_locator(DateTicks(self.unit, self.begin))
            axes.xaxis.set_major_formatter(DateTexts(self.unit, self.begin))


def clock(longest: float, begin: float | None = None, first: float = 0.0) -> AxisClock:
    """The clock that gives numbers easy to read up to `longest` seconds after the first submission, or dates.

    Args:
        longest: seconds.
        begin: what the machine's clock showed at the first submission, seconds since 1970, where it is known.
        first: the simulated time of the first submission, seconds.
    """
    unit, name = next((unit, name) for least, unit, name in _UNITS if longest >= least)
    if begin is not None:
        return AxisClock(unit, "time by the machine's clock", begin)
    return AxisClock(unit, f"{name} since the first submission" + (f" (at {first:,.0f} s)" if first else ""))


class DateTicks(Locator):
    """Midnights, full hours or firsts of months on an axis that counts in a unit from some time on."""

    def __init__(self, unit: float, begin: float) -> None:
        self._unit, self._begin = unit, begin

    def __call__(self) -> Sequence[float]:
        """The ticks of the axis as it is."""
        assert self.axis is not None
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        """The ticks from `vmin` to `vmax`."""
        low, high = sorted((vmin, vmax))
        first, last = (_date(self._begin + value * self._unit) for value in (low, high))
        if first == last:
            return [low]
        found = AutoDateLocator(tz=datetime.UTC, minticks=3, maxticks=_MANY - 1).tick_values(first, last)
        ticks = (np.asarray(found) * DAY - self._begin) / self._unit
        return [value for value in ticks.tolist() if low <= value <= high]


class DateTexts(Formatter):
    """The dates of `DateTicks`, short; what all have in common stands at the axis' end."""

    def __init__(self, unit: float, begin: float) -> None:
        self._unit, self._begin = unit, begin
        self._texts = ConciseDateFormatter(AutoDateLocator(tz=datetime.UTC), tz=datetime.UTC)

    def __call__(self, x: float, pos: int | None = None) -> str:
        """The whole date of a value."""
        return f"{_date(self._begin + x * self._unit):%Y-%m-%d %H:%M}"

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """The texts of all ticks."""
        return self._texts.format_ticks([(self._begin + value * self._unit) / DAY for value in values])

    def get_offset(self) -> str:
        """What the ticks have in common, as ``2016-May``."""
        return str(self._texts.get_offset())


def _date(seconds: float) -> datetime.datetime:
    return datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=seconds)
