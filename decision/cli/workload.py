"""``decision workload``: what a workload is like, and the commands that make and convert workloads."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decision.report.plots.paper import Paper, drawn_for

from .command import Group, add_command
from .options import (
    PAPER,
    DpiOption,
    JsonOption,
    PlotFile,
    SeedOption,
    SpeedOption,
    TimeFieldOption,
    TimeZoneOption,
    TypeSizeOption,
    WidthOption,
    WorkloadArgument,
    read_speed,
)
from .workload_audit import audit_command, clean_command, fetch_command, outages_command, sacct_command
from .workload_convert import OLD_NAMES, convert_command, to_swf_command
from .workload_make import (
    carbon_command,
    failures_command,
    green_command,
    grid5000_like_command,
    lublin_command,
    predicted_runtimes_command,
    price_command,
    topology_jobs_command,
)
from .workload_supply import supply_command

if TYPE_CHECKING:
    from decision.model.demand import Floats
    from decision.model.workload import Workload


Predictors = Annotated[
    list[str] | None,
    typer.Option(
        "--predictor",
        help="What predicts: walltime, last2, regression, quantiles, actual or noise:S; may be repeated.",
        show_default="the first four",
        metavar="P",
    ),
]
PredictedFile = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        help="Write the workload as Batsim's JSON, with predictions as the jobs' estimate.",
        dir_okay=False,
    ),
]


def describe_command(
    file: WorkloadArgument,
    speed: SpeedOption = None,
    time_field: TimeFieldOption = None,
    time_zone: TimeZoneOption = None,
    plot: PlotFile = None,
    width: WidthOption = PAPER.width,
    type_size: TypeSizeOption = PAPER.type_size,
    dpi: DpiOption = PAPER.dpi,
    as_json: JsonOption = False,
) -> None:
    """Describe a workload: sizes, run times, estimates, arrivals, users.

    The offered load is the host time that the jobs take, each at most its
    walltime, divided by the host time that the machine has from the first
    submission to the last.

    Examples:

      decision workload describe log.swf

      decision workload describe week.json --speed 141.24Gf --plot week.png
    """
    from decision.experiments.conversion import load_any
    from decision.experiments.descriptions import workload_figures
    from decision.model.demand import runtimes
    from decision.model.reshape import refuse_empty

    from .tables import print_dropped, print_json
    from .workload_tables import figure_facts, print_figures

    workload = load_any(file, time_field, time_zone)
    refuse_empty(workload)
    seconds = runtimes(workload, read_speed(speed))
    if plot is not None:
        with drawn_for(Paper(width, type_size, dpi)):
            _draw(workload, seconds, plot, file.name)
    print_dropped([workload])
    found = workload_figures(workload, seconds)
    if as_json:
        print_json(figure_facts(workload, found))
    else:
        print_figures(workload, found)


def _draw(workload: "Workload", runtimes: "Floats", path: Path, title: str) -> None:
    from decision.report.plots import require_matplotlib

    require_matplotlib()
    from decision.report.plots.workloads import draw_workload

    draw_workload(workload, runtimes, path, title)


def predict_command(
    file: WorkloadArgument,
    predictor: Predictors = None,
    output: PredictedFile = None,
    time_field: TimeFieldOption = None,
    time_zone: TimeZoneOption = None,
    speed: SpeedOption = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Predict each job's run time as a scheduler could, and show the errors.

    A predictor learns a run time when the job has ended; predictions are at most
    the walltime. In a log, a job ends its waiting time and its run time after
    its submission; an unknown waiting time counts as 0.

      walltime    the requested time

      last2       the mean of the user's last two ended jobs (Tsafrir 2007)

      regression  of the logarithm, on user, size, walltime and hour

      quantiles   the median of a distribution; it says how many jobs take what
                  their interval of 80 % has, said at their submission

      actual      the run time itself: perfect predictions

      noise:S     the run time, times e to S times a normally distributed number

    With -o the workload is written with each job's prediction as its field
    estimate, which policies read with estimate=given.

    Accuracy is the mean of min(p, r) / max(p, r) for predictions p of run times
    r: 1 is perfect.

    Examples:

      decision workload predict NASA-iPSC-1993-3.1-cln.swf

      decision workload predict theta.swf --time-field 6 --predictor last2

      decision workload predict week.json --predictor noise:0.5 -o told.json
    """
    import numpy as np

    from decision.experiments.conversion import load_any, write_with_predictions
    from decision.model.errors import ConfigError
    from decision.policies.runtimes import PREDICTORS
    from decision.policies.runtimes.predictors import history_of, interval_coverage, measure_errors, predict_by

    from .tables import print_json
    from .workload_tables import print_errors

    workload = load_any(file, time_field, time_zone)
    history = history_of(workload, read_speed(speed))
    names, rng = predictor or list(PREDICTORS), np.random.default_rng(seed)
    if output is not None and len(names) != 1:
        raise ConfigError("-o writes the predictions of one predictor; name it with --predictor")
    predictions = {name: predict_by(name, history, rng) for name in names}
    if output is not None:
        write_with_predictions(file, workload, predictions[names[0]], output)
    errors = {name: measure_errors(seconds, history.runtime) for name, seconds in predictions.items()}
    coverage = interval_coverage(history) if "quantiles" in names else None
    if as_json:
        found = {"jobs": len(history.runtime), "predictors": errors}
        print_json(found if coverage is None else {**found, "interval_coverage": coverage})
    else:
        print_errors(errors, history, coverage)


app = typer.Typer(cls=Group, no_args_is_help=True, help="Make, convert and describe workloads.")
add_command(app, "convert", convert_command)
add_command(app, "audit", audit_command)
add_command(app, "clean", clean_command)
add_command(app, "outages", outages_command)
add_command(app, "fetch", fetch_command)
add_command(app, "sacct", sacct_command)
add_command(app, "to-swf", to_swf_command)
for _name, _command in OLD_NAMES.items():
    add_command(app, _name, _command, hidden=True)
add_command(app, "describe", describe_command)
add_command(app, "lublin", lublin_command)
add_command(app, "predict", predict_command)
add_command(app, "supply", supply_command)
add_command(app, "failures", failures_command)
add_command(app, "carbon", carbon_command)
add_command(app, "price", price_command)

_presets = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    help="Make the workloads of published papers: grid5000-like, and those of decision reproduce, which are "
    "predicted-runtimes, green (jobs with value) and topology.",
)
add_command(_presets, "predicted-runtimes", predicted_runtimes_command, hidden=True)
add_command(_presets, "grid5000-like", grid5000_like_command)
add_command(_presets, "green", green_command, hidden=True)
add_command(_presets, "topology", topology_jobs_command, hidden=True)
app.add_typer(_presets, name="preset")
