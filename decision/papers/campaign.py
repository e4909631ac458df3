"""Reproductions by budget: parts that leave files, and the table and figures of those that are there."""

import base64
import io
import math
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np

from decision.experiments.inputs import writable_folder
from decision.experiments.statistics import Estimate
from decision.experiments.store import Result
from decision.experiments.tasks import CachedTask, How, run_tasks, task_key
from decision.files.text import write_files
from decision.model.table import Table

# What a reproduction returns, and how one of many parts does them.


ResultTable = Table  # the name under which papers import it


class Findings(NamedTuple):
    """What a reproduction found: tables, and what they say."""

    tables: tuple[ResultTable, ...]
    notes: str  # what the tables say, for a person
    side_by_side: bool = False  # whether the first column of the first table names the rows of all


class Parts(NamedTuple):
    """How a reproduction of many parts does them; finished parts are never repeated."""

    folder: Path  # of the finished parts and of the results
    processes: int = 1  # at a time
    progress: Callable[[int, int], None] = lambda done, of: None  # is called with how many parts of how many are done
    others: How = {}  # how `run_tasks` does them, but for the processes

    @property
    def how(self) -> How:
        """How `run_tasks` does the parts: in which folder, and how many processes or machines."""
        return {"processes": self.processes, **self.others}


def tables_markdown(tables: Sequence[ResultTable]) -> str:
    """Several tables in Markdown, each under its title."""
    return "\n".join(line for each in tables for line in each.markdown(2))


class FilePart(CachedTask, Protocol):
    """A part that leaves files."""

    @property
    def written(self) -> Sequence[Path]:
        """The files, of different names; the first is there once the part is finished."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part that any process can do: what it finds is written into a file. Subclasses add their fields, and `file`."""

    experiment: ClassVar[str]  # the paper's name
    budget: Any
    seed: int
    folder: Path

    @property
    def file(self) -> Path:
        """The file that it leaves when it is finished."""
        raise NotImplementedError

    @property
    def written(self) -> list[Path]:
        """The files that it leaves when it is finished."""
        return [self.file]

    def definition(self) -> dict[str, Any]:
        """All that its result depends on."""
        fields = msgspec.structs.asdict(self)
        del fields["folder"]
        return {"experiment": self.experiment, **fields}


_B = TypeVar("_B")
_P = TypeVar("_P", bound=FilePart)


class Asked(NamedTuple, Generic[_B, _P]):
    """What somebody wants to be shown."""

    name: str  # of the budget
    budget: _B
    folder: Path  # of table and figures
    done: list[_P]
    wanted: list[_P]
    how: Parts


class Shown(NamedTuple):
    """What the finished parts of a campaign say: tables, files and notes."""

    tables: tuple[ResultTable, ...]
    files: Mapping[str, bytes] = {}  # to be written; ``table.md`` has the tables, where it is none of them
    notes: str = ""  # instead of the usual ones


class Campaign(NamedTuple, Generic[_B, _P]):
    """What a paper runs by each budget, and what that shows."""

    budgets: Mapping[str, _B]
    parts: Callable[
        [_B, Path], list[_P]
    ]  # of a budget that is kept in a folder, what is to be done first standing first
    work: Callable[[_P], None]  # does a part; a function that another process can import
    show: Callable[[Asked[_B, _P]], Shown]
    few: Callable[[_B], str] = str  # of what the budget smoke has too little to say something, in words
    kept: Callable[[str], str] = str  # the folder of a budget's parts; another budget may have some of the same
    price: Callable[[Asked[_B, _P]], str] = lambda _: ""  # what the paper's own trainings take that are left, a line

    def reproduce(self, how: Parts, budget: str = "smoke", *, only_finished: bool = False) -> Findings:
        """Do what is missing, write ``table.md`` and the figures into ``FOLDER/BUDGET``.

        Args:
            how: where parts are kept, and how many are done at a time; an interrupted one is resumed.
            budget: how much is run.
            only_finished: learn nothing; show what is there.

        Raises:
            ConfigError: if nothing can be written there.
            RunsFailedError: if parts have failed, when all others are done.
            Interrupted: if a signal asked for the end; what is finished is kept.
        """
        chosen, folder, kept = self.budgets[budget], how.folder / budget, how.folder / self.kept(budget)
        wanted = self.parts(chosen, kept)
        if not only_finished:
            finish(self.work, wanted, how, writable_folder(kept))
        done = [part for part in wanted if part.written[0].exists()]
        asked = Asked(budget, chosen, folder, done, wanted, how)
        shown = self.show(asked)
        finished = f"{len(done)} of {len(wanted)} parts are finished"
        if not shown.tables:
            return Findings((), "\n".join(filter(None, (f"{folder}: {finished}", self.price(asked)))))
        files = {"table.md": tables_markdown(shown.tables).encode(), **shown.files}
        write_files({folder / name: [content] for name, content in files.items()})
        notes = shown.notes or f"{folder}: {', '.join(files)}; {finished}"
        if budget == "smoke" and not shown.notes:
            notes += f"\nsmoke shows that all runs: so {self.few(chosen)} say nothing else"
        return Findings(shown.tables, "\n".join(filter(None, (notes, self.price(asked)))))


class _Kept(NamedTuple):
    """A part, and what does it."""

    work: Callable[[Any], None]
    part: FilePart

    @property
    def title(self) -> str:
        return str(self.part.written[0])

    def definition(self) -> dict[str, Any]:
        return self.part.definition()


def finish(work: Callable[[_P], None], wanted: Sequence[_P], how: Parts, folder: Path) -> None:
    """Do the parts that have no result of these sources, and write the files of all.

    Args:
        work: what does a part; a function that another process can import. It writes the part's files, and where its
            folder is not this one's, as on another machine, they are written here again.
        wanted: the parts.
        how: of `decision.experiments.tasks.run_tasks`.
        folder: keeps the results.

    Raises:
        RunsFailedError: if parts have failed, when all others are done and written.
    """
    heard: list[int] = []

    def progress(done: int, of: int) -> None:
        heard.append(done)
        if len(heard) > 1:  # the first says what was there
            how.progress(done, of)

    kept = [_Kept(work, part) for part in wanted]
    results = run_tasks(_files_of, kept, folder / "runs", progress=progress, **how.how)
    for part, result in zip(wanted, results, strict=True):
        for path in part.written:
            content = base64.b64decode(result[path.name])
            if not path.exists() or path.read_bytes() != content:
                write_files({path: [content]})


def _files_of(kept: _Kept) -> Result:
    """Do a part; the content of its files by name."""
    kept.work(kept.part)
    return {path.name: base64.b64encode(path.read_bytes()).decode() for path in kept.part.written}


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays by name, as numpy's npz. Raises ConfigError where that cannot be done."""
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    write_files({path: [content.getvalue()]})


def training_folder(part: FilePart) -> Path:
    """Where a part trains, so that it goes on after an interruption; another one for other sources."""
    first = part.written[0]
    return first.with_name(f"{first.stem}-{task_key(part)[:8]}")


# What a difference says of a claim: the same rule for all papers.
#
# Each quantity has one margin: differences within it, either way, count as equal. So a difference is below, equal or
# above, and never two of these; a claim names which of them it may be. It holds where the whole interval is what the
# claim names, and is refuted where no part of it is; else it is undecided. What nobody has run as its paper has it was
# not tried, whatever others did: what another network, budget or reward of ours says stands in a column of its own. And
# two runs or one decide nothing, whatever they say.


class Kind(StrEnum):
    """What a claim says of a difference."""

    ABOVE = "above"
    BELOW = "below"
    EQUAL = "equal"
    NO_WORSE = "no worse"  # equal or above
    NO_MORE = "no more"  # equal or below


VERDICT_COLUMNS = "verdict", "by ours", "learned by"  # of claims: of the paper's own method, of ours in its place


class Verdict(StrEnum):
    """What is known of a claim."""

    HOLDS = "holds"
    REFUTED = "refuted"
    UNDECIDED = "undecided"
    NOT_TRIED = "not tried"


def judge(kind: Kind, found: Estimate | None, margin: float) -> Verdict:
    """What a difference and its interval say of a claim.

    Args:
        kind: what the claim says.
        found: the difference; None where it was not tried.
        margin: up to which differences count as equal.
    """
    if found is None:
        return Verdict.NOT_TRIED
    lowest = {Kind.ABOVE: margin, Kind.EQUAL: -margin, Kind.NO_WORSE: -margin}.get(kind, -math.inf)
    highest = {Kind.BELOW: -margin, Kind.EQUAL: margin, Kind.NO_MORE: margin}.get(kind, math.inf)
    above = found.low > lowest if kind == Kind.ABOVE else found.low >= lowest
    below = found.high < highest if kind == Kind.BELOW else found.high <= highest
    if above and below:
        return Verdict.HOLDS
    beside = (found.high <= lowest if kind == Kind.ABOVE else found.high < lowest) or (
        found.low >= highest if kind == Kind.BELOW else found.low > highest
    )
    return Verdict.REFUTED if beside else Verdict.UNDECIDED


class PaperAgent(NamedTuple):
    """Who learned, and how much of the paper's own training that was."""

    name: str  # of the preset
    own: bool  # whether networks, rewards and settings are the paper's
    share: float  # of the paper's steps

    def __str__(self) -> str:
        return f"{'own' if self.own else 'ours'} ({self.name}), {100 * self.share:.2g} % of its steps"


class TrainingHours(NamedTuple):
    """What the trainings of a paper's own agent take, by speeds that were measured."""

    steps: float  # of one, or updates
    per_core: float  # in a second of one core, as `decision train` makes them with learn.threads=1
    per_gpu: float  # in a second of one H200; 0 where that was not measured

    def hours(self, trainings: float) -> tuple[float, float]:
        """Of two cores, and of one GPU: nan where that was not measured."""
        seconds = trainings * self.steps
        return seconds / self.per_core / 7200, seconds / self.per_gpu / 3600 if self.per_gpu else math.nan


def price_line(prices: Sequence[tuple[TrainingHours, float]]) -> str:
    """What is left of the paper's own trainings, in hours.

    Args:
        prices: of each kind of training, and how many of these there are still to do, of one that was begun its rest.
    """
    left = math.fsum(number for _, number in prices)
    return f"the paper's own trainings that are left: {left:,.4g}; {hours_of(prices)}"


def hours_of(prices: Sequence[tuple[TrainingHours, float]]) -> str:
    """What so many of each kind of training take, in words."""
    hours = [price.hours(number) for price, number in prices if number]
    cores, gpus = (math.fsum(column) for column in zip(*hours, strict=True)) if hours else (0.0, 0.0)
    texts = [f"{value:,.0f}" if value >= 100 else f"{value:.2g}" for value in (cores, gpus)]
    gpu = "hours of one H200 not measured" if math.isnan(gpus) else f"{texts[1]} hours of one H200"
    return f"{texts[0]} hours of two cores, {gpu}"


RUNS_OF_A_VERDICT = 3  # the interval of fewer says nothing of the next one


def known_of(kind: Kind, found: Estimate | None, margin: float, runs: int) -> str:
    """What `judge` says, in words; undecided where fewer than `RUNS_OF_A_VERDICT` were compared."""
    if found is None or runs >= RUNS_OF_A_VERDICT:
        return judge(kind, found, margin).value
    return f"{Verdict.UNDECIDED.value} ({counted(runs, 'run')})"


def counted(number: int, thing: str) -> str:
    """So many things, in words: "1 run", "5 runs"."""
    return f"{number:,} {thing}{'s' * (number != 1)}"


def verdicts(
    kind: Kind, found: Estimate | None, margin: float, *, agent: PaperAgent | None, runs: int
) -> tuple[str, str, str]:
    """What is known of a claim, and what ours says of it, for `VERDICT_COLUMNS`.

    Args:
        kind: what the claim says.
        found: the difference; None where nothing was tried.
        margin: up to which differences count as equal.
        agent: who learned what was compared; None where nothing of it was learned.
        runs: of whichever side has fewest, rules without chance left out.
    """
    known = known_of(kind, found, margin, runs)
    if agent is None or found is None:
        return known, "", ""
    who = f"{agent}, {counted(runs, 'run')}"
    return (known, "", who) if agent.own else (Verdict.NOT_TRIED.value, known, who)
