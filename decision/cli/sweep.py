"""``decision train`` with several seeds or values of settings: many trainings, their table and their curves."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from decision.model.errors import ConfigError

from .readers import read_range
from .spread import Spread

if TYPE_CHECKING:
    from decision.runs.inputs import Inputs


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


def train_combinations(
    preset: str,
    changes: Sequence[str],
    seeds: Sequence[int],
    inputs: "Inputs",
    output: Path,
    data: Path | None,
    spread: Spread,
    as_json: bool,
    command: str = "",
) -> None:
    """Do the trainings, print their table, and draw their curves on one page."""
    from decision.runs.sweep import combinations, train_all, training_folders

    from .progress import announce_compilation, counting
    from .tables import print_json, simple_table
    from .terminal import say, stdout

    trainings = combinations(preset, changes, seeds)
    announce_compilation()
    with counting("trainings") as show, spread.begun() as how:
        rows = train_all(trainings, inputs, output, data=data, progress=show, **how)
    page = _draw(training_folders(trainings, output), output, command)
    if as_json:
        print_json({"trainings": rows})
        return
    names = [name for name in rows[0] if name != "checkpoint_sha256"]
    own = trainings[0].own
    table = simple_table(*(name if name in own else f">{_header(name)}" for name in names))
    for row in rows:
        table.add_row(*(row[name] if name in own else _figure(row[name]) for name in names))
    stdout().print(table)
    say(f"trainings.csv and a folder for each training are in {output}")
    if page is not None:
        say(f"their curves: {page}")


def _header(name: str) -> str:
    return name.replace("_", "\n", 1).replace("_", " ")


def _figure(text: str) -> str:
    from .tables import number

    return f"{int(text):,}" if text.isdecimal() else number(float(text or "nan"))


def _draw(folders: Sequence[Path], output: Path, command: str) -> Path | None:
    from .progress import working
    from .terminal import can_draw

    if not can_draw("no report.html"):
        return None
    from decision.analysis.curves import load_trainings
    from decision.analysis.report import analyse
    from decision.learn.kinds import kind_of

    with working("drawing"):
        return analyse([], load_trainings(folders, kind_of), output, None, command)[-1]
