"""``decision workload predict``: how well run times can be predicted."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from decision.model.errors import ConfigError

from .options import read_speed


class PredictorName(StrEnum):
    """Who predicts."""

    WALLTIME = "walltime"
    LAST2 = "last2"
    REGRESSION = "regression"


PredictorOption = Annotated[
    list[PredictorName] | None,
    typer.Option("--predictor", help="Only this one; may be repeated."),
]
TimeField = Annotated[
    int | None,
    typer.Option(
        "--time-field", help="The field of an SWF log that has the requested time; 9 if not given.", min=1, max=18
    ),
]

SpeedOption = Annotated[
    str | None, typer.Option("--speed", help="Speed of a host, for jobs that compute: 11.77Gf.", metavar="FLOPS")
]


def predict(
    file: Annotated[
        Path, typer.Argument(help="An SWF log (.swf), an OAR export (.csv), or Batsim's JSON.", metavar="FILE")
    ],
    predictor: PredictorOption = None,
    time_field: TimeField = None,
    speed: SpeedOption = None,
) -> None:
    """Predict each job's run time as a scheduler could, and show the errors.

    A predictor learns of a run time when the job has ended, and predicts at most
    the walltime. A log's job ends its waiting and run time after its submission;
    where the waiting time is unknown, it is taken to be none.

      walltime    what the user asked for

      last2       the mean of the user's last two ended jobs (Tsafrir 2007)

      regression  of the logarithm, on user, size, walltime and hour

    Accuracy is the mean of min(p, r) / max(p, r) for predictions p of run times
    r: 1 is perfect.

    Examples:

      decision workload predict NASA-iPSC-1993-3.1-cln.swf

      decision workload predict theta.swf --time-field 6 --predictor last2
    """
    from decision.drivers.conversion import load_any
    from decision.estimates import PREDICTORS
    from decision.estimates.history import history_of, measure, predict_history
    from decision.formats.history import REQUESTED_TIME, load_history

    from .prediction_table import print_errors

    is_log = file.suffix.lower() == ".swf"
    if time_field is not None and not is_log:
        raise ConfigError(f"--time-field: {file} is no log in the Standard Workload Format (.swf); leave it out")
    history = (
        load_history(file, time_field or REQUESTED_TIME) if is_log else history_of(load_any(file), read_speed(speed))
    )
    names = [name.value for name in predictor or PredictorName]
    errors = {name: measure(predict_history(history, PREDICTORS[name]()), history.runtime) for name in names}
    print_errors(errors, history)
