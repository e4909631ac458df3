"""Everything that can be seen of some runs, written into one folder."""

from collections.abc import Sequence
from pathlib import Path

from decision.formats.files import write_files
from decision.model.platform import Platform

from .picture_file import save
from .pictures import PICTURES
from .plots import draw_schedule
from .report import write_report
from .runs import Run
from .timelines import hosts_and_power, reservation_timeline

REPORT = "report.html"


def analyse(runs: Sequence[Run], folder: Path, suffix: str, platform: Platform | None) -> list[Path]:
    """Write pictures and ``report.html``.

    Args:
        runs: side by side; their Gantt charts are one picture each.
        folder: where to.
        suffix: of the pictures, ``png`` or ``svg``.
        platform: splits power by state, where it is known.

    Returns:
        The files, the report last.

    Raises:
        ConfigError: if a file cannot be written.
    """
    figures = {name: draw(runs) for name, draw in PICTURES.items()}
    figures["reservations"] = reservation_timeline(runs)
    powered = [run for run in runs if run.record.energy is not None]
    if powered:
        figures["energy"] = hosts_and_power(powered, platform)
    common = {folder / f"{name}.{suffix}": figure for name, figure in figures.items()}
    for path, figure in common.items():
        save(figure, path)
    charts = [folder / f"schedule-{run.name.replace('/', '-')}.{suffix}" for run in runs]
    for run, path in zip(runs, charts, strict=True):
        draw_schedule(run.record.jobs, run.record.nb_hosts, path, run.name)
    write_files({folder / REPORT: write_report(runs, list(common))})
    return [*common, *charts, folder / REPORT]
