"""Everything that can be seen of some runs and trainings, written into one folder."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from decision.formats.files import write_files
from decision.model.errors import InputError
from decision.model.platform import Platform

from .curves import CURVES, Training
from .curves_picture import learning_curves
from .page import REPORT
from .picture_file import save
from .pictures import PICTURES
from .plots import draw_schedule
from .report import write_report
from .runs import JOBS, Run, folders_with
from .timelines import hosts_and_power, reservation_timeline


def split(places: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Tell places of runs from folders of trainings; a folder of folders stands for all of either kind in it.

    Raises:
        InputError: if a folder has neither.
    """
    trainings = [folder for place in places for folder in folders_with(CURVES, place)]
    runs = [place for place in places if not folders_with(CURVES, place) or folders_with(JOBS, place)]
    for place in runs:
        if place.is_dir() and not folders_with(JOBS, place):
            raise InputError(f"{place}: no run ({JOBS}) and no training ({CURVES}) there; name folders that have one")
    return runs, trainings


def analyse(
    runs: Sequence[Run], trainings: Sequence[Training], folder: Path, suffix: str, platform: Platform | None
) -> list[Path]:
    """Write pictures and ``report.html``.

    Args:
        runs: side by side; their Gantt charts are one picture each.
        trainings: their learning curves are one picture.
        folder: where to.
        suffix: of the pictures, ``png`` or ``svg``.
        platform: splits power by state, where it is known.

    Returns:
        The files, the report last.

    Raises:
        ConfigError: if a file cannot be written.
    """
    figures = _figures(runs, platform) if runs else {}
    if trainings:
        figures["learning"] = learning_curves(trainings)
    common = {folder / f"{name}.{suffix}": figure for name, figure in figures.items()}
    for path, figure in common.items():
        save(figure, path)
    charts = [folder / f"schedule-{run.name.replace('/', '-')}.{suffix}" for run in runs]
    for run, path in zip(runs, charts, strict=True):
        draw_schedule(run.record.jobs, run.record.nb_hosts, path, run.name)
    write_files({folder / REPORT: write_report(runs, list(common), [training.name for training in trainings])})
    return [*common, *charts, folder / REPORT]


def _figures(runs: Sequence[Run], platform: Platform | None) -> dict[str, Figure]:
    figures = {name: draw(runs) for name, draw in PICTURES.items()}
    figures["reservations"] = reservation_timeline(runs)
    powered = [run for run in runs if run.record.energy is not None]
    if powered:
        figures["energy"] = hosts_and_power(powered, platform)
    return figures
