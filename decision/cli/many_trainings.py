"""``decision train`` with several seeds, several values of settings, or a search: many trainings, and their tables."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from decision.model.errors import ConfigError
from decision.model.table import Table

from .options import Spread, read_range
from .tables import number, print_json, print_table
from .terminal import announce_compilation, can_draw, counting, say, working

if TYPE_CHECKING:
    from decision.experiments.inputs import Inputs
    from decision.rl.learning.config import Space


class Many(NamedTuple):
    """What the command asks for."""

    preset: str
    seeds: Sequence[int]  # of each combination
    inputs: "Inputs"
    output: Path
    data: Path | None
    spread: Spread
    as_json: bool
    command: str = ""  # as it was typed


def read_seeds(text: str | None) -> list[int]:
    """The seeds of ``--seeds A:B``; none where the option was not given. Raises ConfigError."""
    chosen = read_range(text, "--seeds")
    if chosen is None:
        return []
    seeds = list(range(chosen.start or 0, chosen.stop or 0))
    if not seeds or seeds[0] < 0:
        raise ConfigError(
            f"{text!r} names no seed; write the first one and that after the last, like 0:5", field="seeds"
        )
    return seeds


def read_search(text: str) -> "tuple[int, Literal['bayesian', 'random']]":
    """Number of trials and method of ``--search N`` and ``N:random``. Raises ConfigError."""
    trials, colon, method = text.partition(":")
    if not trials.isdecimal() or not int(trials) or (colon and method != "random"):
        raise ConfigError(f"{text!r}: write the number of trainings, like 20, or 20:random", field="search")
    return int(trials), "random" if colon else "bayesian"


def train_combinations(asked: Many, changes: Sequence[str]) -> None:
    """Do the trainings, print their table, and draw their curves on one page."""
    from decision.experiments.training import combinations, train_all, training_folders

    trainings = combinations(asked.preset, changes, asked.seeds)
    announce_compilation()
    with counting("trainings") as show, asked.spread.begun() as how:
        rows = train_all(trainings, asked.inputs, asked.output, data=asked.data, progress=show, **how)
    page = None
    if can_draw("no report.html"):
        from decision.experiments.results import load_trainings
        from decision.report.pages import analyse
        from decision.rl.learning.checkpoint import kind_of

        with working("drawing"):
            learned = load_trainings(training_folders(trainings, asked.output), kind_of)
            page = analyse([], learned, asked.output, None, asked.command)[-1]
    if asked.as_json:
        print_json({"trainings": rows})
        return
    names = [name for name in rows[0] if name != "checkpoint_sha256"]
    settings = trainings[0].own
    heads = [name if name in settings else f">{_header(name)}" for name in names]
    body = []
    for row in rows:
        texts = {
            name: f"{int(t):,}" if t.isdecimal() else number(float(t or "nan"))
            for name, t in row.items()
            if name in names and name not in settings
        }
        body.append([texts.get(name, row[name]) for name in names])
    print_table(Table("", heads, body))
    say(f"trainings.csv and a folder for each training are in {asked.output}")
    if page is not None:
        say(f"their curves: {page}")


def search_combinations(asked: Many, trials: int, method: "Literal['bayesian', 'random']", space: "Space") -> None:
    """Search for settings, print the trials from the best on, and draw them on a page."""
    from decision.experiments.results import best_trial, judged_by, table_rows
    from decision.experiments.training import SettingsSearch, require_optuna, search_settings

    require_optuna()
    search = SettingsSearch(asked.preset, space, trials, method, asked.seeds)
    announce_compilation()
    with counting("trials") as show, asked.spread.begun() as how:
        found = search_settings(search, asked.inputs, asked.output, data=asked.data, progress=show, **how)
    best, page = best_trial(found), None
    if can_draw("no report.html"):
        from decision.report.pages import write_search_report

        with working("drawing"):
            page = write_search_report(asked.output, found, space, asked.command)
    if asked.as_json:
        print_json({"best": best.number, "trials": table_rows(found)})
        return
    judged = list(best.judged)
    heads = [">trial", *space.varied, "state", ">steps", *(f">{_header(name)}" for name in judged)]
    body = []
    for trial in found:
        values = [number(trial.judged.get(name, math.nan)) if trial.judged else "-" for name in judged]
        body.append([str(trial.number), *trial.settings.values(), trial.state, f"{trial.steps:,}", *values])
    print_table(Table("", heads, body))
    say(f"best by {judged_by(found).replace('_', ' ')}: trial {best.number}, {best.changes}")
    say(f"its training: {', '.join(map(str, best.folders))}")
    say(f"search.csv and a folder for each training are in {asked.output}")
    if page is not None:
        say(f"pictures of them: {page}")


def _header(name: str) -> str:
    return name.replace("_", "\n", 1).replace("_", " ")
